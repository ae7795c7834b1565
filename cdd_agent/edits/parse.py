"""A model's reply as text → the edits it asks for, whatever form they have. The forms are in docs/replies.md.

What is unclear is refused, with words by which the model can do better: which of two fences ends a file, a block that
never ends, edits of a file without a name. A code block without a path is explanation; one that could be a file is
told.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from cdd_agent.edits.formats.diffs import find_diffs, has_hunks, holds_diff, is_diff, quoted_fences, read_diff
from cdd_agent.edits.formats.fences import Fence, find_fences, unwrapped
from cdd_agent.edits.formats.file_names import is_code
from cdd_agent.edits.formats.known import NOTHING_KNOWN, KnownNames
from cdd_agent.edits.formats.listed import begins_action, is_list_of_actions, read_actions
from cdd_agent.edits.formats.naming import DIFFS, in_line, mentioned, of_edits
from cdd_agent.edits.formats.patches import begins_patch, find_patches, is_patch, names_file, read_patch
from cdd_agent.edits.formats.search_replace import Block, find_blocks
from cdd_agent.edits.formats.thinking import without_thoughts
from cdd_agent.edits.model import Doubt, Edit, NewFile, Replacement, Reply, ReplyRefused, WholeFile
from cdd_agent.edits.validators import PROSE, is_whole

_ROUNDS = 8
"""How often a reply is taken apart anew because a diff in it has fences."""
_HOLD_FENCES = PROSE | {"", ".py", ".pyi", ".qmd", ".rmd", ".org", ".jl", ".ex", ".exs"}
"""Files in which a line may be a fence: Markdown and its like, and those whose comments are Markdown."""


def parse_reply(text: str, known: KnownNames = NOTHING_KNOWN) -> Reply:
    """Find the edits in a reply. Raises `ReplyRefused` where they cannot be known for certain."""
    if "\0" in text:
        raise ReplyRefused("The reply has a null character in it, which is no part of a text.")
    pieces = re.split(r"(\r\n|\r|\n)", text.removeprefix("\ufeff"))
    lines, ends = pieces[::2], pieces[1::2]
    crlf = [] if all(end == "\r\n" for end in ends) else [place for place, end in enumerate(ends) if end == "\r\n"]
    answer = without_thoughts(lines)
    crlf = [place - len(lines) + len(answer) for place in crlf]
    inside = unwrapped(answer)
    if inside is not None:
        try:
            wrapped = answer[inside.start : inside.stop]
            reading = _Reading(wrapped, known, frozenset(place - inside.start for place in crlf))
            reply = reading.reply()
        except ReplyRefused:
            reply = Reply(())
        if reply.edits and reading.is_closed:
            return reply
    return _Reading(answer, known, frozenset(crlf)).reply()


@dataclass(frozen=True)
class _Part:
    """Some lines of a reply, and the edits that they are; a fence is kept for what its end means for the next one."""

    start: int
    end: int
    edits: tuple[Edit, ...]
    fence: Fence | None = None

    @property
    def file(self) -> str:
        """A file of which its edits are."""
        return self.edits[-1].path if self.edits else self.fence.path or "" if self.fence else ""


@dataclass
class _Reading:
    """One text, taken apart."""

    lines: Sequence[str]
    known: KnownNames
    crlf: frozenset[int]
    """Lines that end in CRLF, where others do not: a file whose lines are among them is meant so."""
    blocks: list[Block] = field(init=False)
    patches: list[tuple[int, int]] = field(init=False)
    fences: list[Fence] = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = find_blocks(self.lines, self.known)
        self.patches = find_patches(self.lines)
        hidden = {place for block in self.blocks for place in range(block.start, block.end)}
        hidden |= {place for start, end in self.patches for place in range(start, end)}
        in_diffs = quoted_fences(self.lines)
        # what looks like a fence in a diff may be a line of its file; then what comes after is seen anew
        for _ in range(_ROUNDS):
            self.fences = find_fences(self.lines, hidden | in_diffs, self.known)
            taken = hidden | {place for fence in self.fences for place in range(fence.start, fence.end)}
            self.diffs = find_diffs(self.lines, taken, hidden)
            lines = {place for start, end in self.diffs for place in range(start, end)}
            if not any(fence.start in lines for fence in self.fences):
                break
            in_diffs |= lines
        else:
            raise ReplyRefused("It is unclear where the diffs of the reply end.", hint="Put each in a ```diff block.")
        self._refuse_loose(taken | lines)

    @property
    def is_closed(self) -> bool:
        return all(fence.is_closed for fence in self.fences)

    def reply(self) -> Reply:
        parts = sorted(self._parts(), key=lambda part: part.start)
        known = self.known.with_files(edit.path for part in parts for edit in part.edits)
        named = [part.fence.path for part in parts if part.fence and part.fence.path]
        if not self.known.folders and any(map(known.is_folder, named)):
            return _Reading(self.lines, known, self.crlf).reply()  # a title above explanation named one of them
        self._refuse_unclear(parts)
        edits = tuple(edit for part in parts for edit in self._as_ended(part))
        _refuse_two_versions(edits)
        return Reply(_once(edits), self._explanation(parts), tuple(self._doubts(parts, edits)))

    def _parts(self) -> Iterator[_Part]:
        fenced: set[int] = set()
        for fence in self.fences:
            blocks, patches = self._blocks_in(fence), self._patches_in(fence)
            fenced.update([block.start for block in blocks], [start for start, _ in patches])
            if blocks and not self._is_file_about_blocks(fence):
                yield _Part(fence.start, fence.end, tuple(self._replacements(fence, blocks)), fence)
            elif patches and not self._is_file_about_blocks(fence):
                edits = [edit for start, end in patches for edit in read_patch(self.lines[start:end])]
                yield _Part(fence.start, fence.end, tuple(edits), fence)
            else:
                yield _Part(fence.start, fence.end, tuple(_of_fence(fence)), fence)
        yield from self._unfenced_blocks([block for block in self.blocks if block.start not in fenced])
        for start, end in self.patches:
            if start not in fenced:
                yield _Part(start, end, tuple(read_patch(self.lines[start:end])))
        for start, end in self.diffs:
            yield _Part(start, end, tuple(read_diff(self.lines[start:end])))

    def _as_ended(self, part: _Part) -> tuple[Edit, ...]:
        """A part's edits, with the line ends of a whole file that are not those of the reply around it."""
        count = sum(edit.content.count("\n") for edit in part.edits if isinstance(edit, WholeFile))
        ended = sum(place in self.crlf for place in range(part.start + 1, part.end)) if self.crlf else 0
        if part.start in self.crlf or not count or ended < count:
            return part.edits
        return tuple(
            replace(edit, content=edit.content.replace("\n", "\r\n")) if isinstance(edit, WholeFile) else edit
            for edit in part.edits
        )

    def _blocks_in(self, fence: Fence) -> list[Block]:
        first = bisect_right(self.blocks, fence.start, key=lambda block: block.start)
        return self.blocks[first : bisect_left(self.blocks, fence.end, lo=first, key=lambda block: block.start)]

    def _patches_in(self, fence: Fence) -> list[tuple[int, int]]:
        first = bisect_right(self.patches, fence.start, key=lambda span: span[0])
        return self.patches[first : bisect_left(self.patches, fence.end, lo=first, key=lambda span: span[0])]

    def _is_file_about_blocks(self, fence: Fence) -> bool:
        """A text for people that explains these forms, given whole."""
        return (
            fence.path is not None
            and _suffix(fence.path) in PROSE
            and bool(fence.info.strip())
            and any(line.strip() and not of_edits(line, self.known) for line in self._between(fence))
        )

    def _between(self, fence: Fence) -> Iterator[str]:
        """The lines of a code block that are in none of its search/replace blocks and patches."""
        inner = [(block.start, block.end) for block in self._blocks_in(fence)] + self._patches_in(fence)
        inside = {place for start, end in inner for place in range(start, end)}
        last = fence.end - 1 if fence.is_closed else fence.end
        return (self.lines[place] for place in range(fence.start + 1, last) if place not in inside)

    def _replacements(self, fence: Fence, blocks: Sequence[Block]) -> Iterator[Edit]:
        path, floor = fence.path or fence.above, fence.start + 1
        for block in blocks:
            stray = [line for line in self.lines[floor : block.start] if line.strip(" \t>") and not _is_gap(line)]
            named = of_edits(stray[-1], self.known) if stray else None
            if len(stray) > (named is not None):
                raise ReplyRefused(
                    f"Line {floor + 1} of the reply: a code block has other lines beside its search/replace blocks.",
                    hint="A block that changes a file holds only such blocks, and the file's path above them.",
                    path=path or "",
                )
            path, floor = block.path or named or path, block.end
            yield _edit_of(block, path)

    def _unfenced_blocks(self, blocks: Sequence[Block]) -> Iterator[_Part]:
        path: str | None = None
        end = -1
        fenced = {fence.start for fence in self.fences}
        for block in blocks:
            between = range(max(end, 0), block.start)
            above = next(
                (place for place in range(block.start - 1, max(end, 0) - 1, -1) if self.lines[place].strip()), -1
            )
            named = self._name_in(above) if above >= 0 else None
            if not fenced.isdisjoint(between) or not self._speaks_of(path, between):
                path = None
            path, end = block.path or named or path, block.end
            yield _Part(block.start, block.end, (_edit_of(block, path),))

    def _speaks_of(self, path: str | None, between: Iterable[int]) -> bool:
        """Whether the words before a block can be about the last block's file: they name no other, or that one, too."""
        names = {name for place in between for name in mentioned(self.lines[place], self.known)}
        return path is None or not names or any(path.endswith(name) for name in names)

    def _name_in(self, place: int) -> str | None:
        """The file that a line names, or the code block that ends in it, if a name is all that it holds."""
        fence = next((fence for fence in self.fences if fence.end == place + 1), None)
        if fence is not None:
            return fence.content.strip() if fence.holds_a_name(self.known) else None
        return of_edits(self.lines[place], self.known)

    def _refuse_loose(self, taken: set[int]) -> None:
        """Lines in prose that begin a patch without an end, or actions without a code block."""
        for place, line in enumerate(self.lines):
            if place in taken:
                continue
            if begins_patch(line):
                raise ReplyRefused("The patch is never closed with `*** End Patch`: the reply seems to be cut.")
            if begins_action(line):
                raise ReplyRefused(
                    f"Line {place + 1} of the reply begins a list of actions outside of a code block.",
                    hint="Put the whole list into a ```yaml block.",
                )
            if names_file(line):
                raise ReplyRefused(
                    f"Line {place + 1} of the reply is in no patch.", hint="Begin a patch with `*** Begin Patch`."
                )

    def _refuse_unclear(self, parts: Sequence[_Part]) -> None:
        """A fence that never closes was cut; one that holds the opening of another may have been closed too early; and
        so may be one before a fence that says nothing of itself."""
        last: _Part | None = None
        for part in parts:
            fence = part.fence
            if fence is None:
                continue
            if not part.edits and fence.holds_an_opening and _holds_edits(fence):
                raise _unclear("", fence.mark, f"in line {fence.start + 1} of the reply")
            if part.edits and self._goes_on(fence):
                raise _unclear(part.file, fence.mark)
            if last is not None and not fence.info.strip() and not _is_apart(part, fence) and not _is_over(last):
                assert last.fence is not None
                raise _unclear(last.file, last.fence.mark)
            is_whole_file = len(part.edits) == 1 and type(part.edits[0]) is WholeFile
            if part.edits and not fence.is_closed and not self._ends_well(part, fence):
                raise ReplyRefused(
                    f"The code block of {part.file} is never closed: the reply seems to be cut.", path=part.file
                )
            if is_whole_file and fence.holds_an_opening:
                raise _unclear(part.file, fence.mark)
            last = part if part.edits else None

    def _goes_on(self, fence: Fence) -> bool:
        """Whether a diff has lines just after its code block: then a fence among its lines has closed it."""
        after = self.lines[fence.end] if fence.end < len(self.lines) else ""
        return _is_diff_block(fence) and after.startswith(("+", "-", "@@")) and not after.startswith(("- ", "+ "))

    def _ends_well(self, part: _Part, fence: Fence) -> bool:
        """Whether nothing can be missing from a code block without an end."""
        if self._blocks_in(fence) or self._patches_in(fence):
            return True
        only = part.edits[0] if len(part.edits) == 1 else None
        return type(only) is WholeFile and not self.lines[-1].strip() and is_whole(only.path, only.content)

    def _explanation(self, parts: Sequence[_Part]) -> str:
        """The words around the edits, and the code blocks that are no files."""
        left: list[str] = []
        place = 0
        for part in parts:
            if part.edits:
                left += self.lines[place : part.start]
                while left and (not left[-1].strip() or self._is_name(left[-1])):
                    left.pop()
                left.append("")
                place = max(place, part.end)
        left += self.lines[place:]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(left)).strip()

    def _doubts(self, parts: Sequence[_Part], edits: Sequence[Edit]) -> Iterator[Doubt]:
        """The blocks that could be files of which no edit is, and that do not just show what is in them."""
        paths = {edit.path.removeprefix("./") for edit in edits}
        for part in parts:
            name = part.fence.doubt.removeprefix("./") if part.fence and not part.edits else ""
            if not name or any(path == name or path.endswith(f"/{name}") for path in paths):
                continue
            assert part.fence is not None
            if not self.known.is_quotation(name, part.fence.content):
                yield Doubt(part.start + 1, name, self.known.is_asked(name) and not is_code(part.fence.language))

    def _is_name(self, line: str) -> bool:
        named = in_line(line, "", self.known)
        return named is not None and named.is_file


def _of_fence(fence: Fence) -> list[Edit]:
    """What a code block holds as a whole."""
    is_diff_file = fence.path is not None and _suffix(fence.path) in (".diff", ".patch")
    if is_patch(fence.lines) and not is_diff_file:
        return read_patch(fence.lines)
    if _is_diff_block(fence):
        return read_diff(fence.lines, fence.path)
    if fence.path is None:
        if fence.language in DIFFS and has_hunks(fence.lines):
            raise ReplyRefused(
                f"The diff in line {fence.start + 1} of the reply names no file.",
                hint="Begin it with `--- a/PATH` and `+++ b/PATH`.",
            )
        return read_actions(fence.content) if is_list_of_actions(fence.language, fence.lines) else []
    if fence.language in DIFFS and not is_diff_file:
        raise ReplyRefused(
            f"The diff of {fence.path} has no `@@` line.", hint="Begin each hunk with a line `@@`.", path=fence.path
        )
    return [WholeFile(fence.path, fence.content)]


def _holds_edits(fence: Fence) -> bool:
    """Whether a code block that is none itself has one in it that would be."""
    return any(inner.path or inner.language in DIFFS or _of_fence(inner) for inner in find_fences(fence.lines))


def _is_diff_block(fence: Fence) -> bool:
    if fence.path is not None and _suffix(fence.path) in (".diff", ".patch"):
        return False
    is_named = holds_diff(fence.lines) or (fence.path is not None and has_hunks(fence.lines))
    return is_diff(fence.lines) or (fence.language in DIFFS and is_named)


def _is_gap(line: str) -> bool:
    """Between the blocks of one file, dots stand for the lines that none of them is about."""
    signs = (re.match(r"\W*", way) for way in (line, line[::-1]))
    return all(found is not None and ("..." in found[0] or "…" in found[0]) for found in signs)


def _edit_of(block: Block, path: str | None) -> Edit:
    if path is None:
        raise ReplyRefused(
            f"The search/replace block in line {block.start + 1} of the reply names no file.",
            hint="Write the file's path on a line of its own just before it.",
        )
    if not block.find:
        return NewFile(path, "".join(line + "\n" for line in block.replace))
    if block.longer is not None:  # who takes the underline of a heading for a divider wants both to go
        return Replacement(path, block.longer, (), block.hint, otherwise=(block.find, ()))
    return Replacement(path, block.find, block.replace, block.hint)


def _is_apart(part: _Part, fence: Fence) -> bool:
    """A fence that says something of itself by its name, or by what it holds."""
    return bool(part.edits) and (fence.is_named_apart or type(part.edits[0]) is not WholeFile)


def _is_over(part: _Part) -> bool:
    """Whether a file ends with its code block for certain, whatever fences come after it."""
    only = part.edits[0]
    if any(_suffix(edit.path) in PROSE for edit in part.edits):
        return False
    if type(only) is not WholeFile:
        return True
    return _suffix(only.path) not in _HOLD_FENCES or is_whole(only.path, only.content)


def _suffix(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).suffix.lower()


def _unclear(path: str, mark: str, which: str = "") -> ReplyRefused:
    """A bare fence after a file's may be the rest of that file, whose own code block has closed it too early."""
    return ReplyRefused(
        f"It is unclear where the code block {which or f'of {path}'} ends.",
        hint=f"If it contains code blocks itself, open and close it with {mark[0] * (len(mark) + 1)}. "
        f"Give blocks that are not files a language, as in {mark}text.",
        path=path,
    )


def _refuse_two_versions(edits: Sequence[Edit]) -> None:
    given: dict[str, Edit] = {}
    for edit in edits:
        if type(edit) is WholeFile and given.setdefault(edit.path, edit) != edit:
            raise ReplyRefused(f"The reply gives {edit.path} twice, with different content.", path=edit.path)


def _once(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """A whole file that is given twice with the same content is one."""
    given: set[Edit] = set()
    once: list[Edit] = []
    for edit in edits:
        if type(edit) is not WholeFile or edit not in given:
            once.append(edit)
        if type(edit) is WholeFile:
            given.add(edit)
    return tuple(once)
