"""A model's reply as text → the edits it asks for, whatever form they have. The forms are in docs/replies.md.

What is unclear is refused, with words by which the model can do better: which of two fences ends a file, a block that
never ends, edits of a file without a name. A code block without a path is explanation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from cdd_agent.actions.edits import Edit, NewFile, Replacement, Reply, ReplyRefused, WholeFile
from cdd_agent.actions.formats.diffs import find_diffs, has_hunks, is_diff, read_diff
from cdd_agent.actions.formats.fences import Fence, find_fences, unwrapped
from cdd_agent.actions.formats.listed import is_list_of_actions, read_actions
from cdd_agent.actions.formats.naming import in_comment, in_line
from cdd_agent.actions.formats.patches import begins_patch, find_patches, is_patch, read_patch
from cdd_agent.actions.formats.search_replace import Block, find_blocks
from cdd_agent.actions.guards import PROSE, is_whole

_DIFFS = {"diff", "patch", "udiff"}
_HOLD_FENCES = PROSE | {"", ".py", ".pyi", ".qmd", ".rmd", ".org", ".jl", ".ex", ".exs"}
"""Files in which a line may be a fence: Markdown and its like, and those whose comments are Markdown."""


def parse_reply(text: str) -> Reply:
    """Find the edits in a reply. Raises `ReplyRefused` where they cannot be known for certain."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    inside = unwrapped(lines)
    if inside is not None:
        try:
            reading = _Reading(inside)
            reply = reading.reply()
        except ReplyRefused:
            reply = Reply(())
        if reply.edits and reading.is_closed:
            return reply
    return _Reading(lines).reply()


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
    blocks: list[Block] = field(init=False)
    patches: list[tuple[int, int]] = field(init=False)
    fences: list[Fence] = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = find_blocks(self.lines)
        self.patches = find_patches(self.lines)
        hidden = {place for block in self.blocks for place in range(block.start, block.end)}
        hidden |= {place for start, end in self.patches for place in range(start, end)}
        in_diffs: set[int] = set()
        while True:  # what looks like a fence in a diff may be a line of its file; then what comes after is seen anew
            self.fences = find_fences(self.lines, hidden | in_diffs)
            taken = hidden | {place for fence in self.fences for place in range(fence.start, fence.end)}
            self.diffs = find_diffs(self.lines, taken, hidden)
            lines = {place for start, end in self.diffs for place in range(start, end)}
            if not any(fence.start in lines for fence in self.fences):
                break
            in_diffs |= lines
        self._refuse_cut_patch(taken)

    @property
    def is_closed(self) -> bool:
        return all(fence.is_closed for fence in self.fences)

    def reply(self) -> Reply:
        parts = sorted(self._parts(), key=lambda part: part.start)
        self._refuse_unclear(parts)
        edits = tuple(edit for part in parts for edit in part.edits)
        _refuse_two_versions(edits)
        return Reply(_once(edits), self._explanation(parts))

    def _parts(self) -> Iterator[_Part]:
        blocks, patches = list(self.blocks), list(self.patches)
        for fence in self.fences:
            inside = [block for block in blocks if fence.start < block.start < fence.end]
            patches_inside = [span for span in patches if fence.start < span[0] < fence.end]
            if inside and not self._is_file_about_blocks(fence):
                blocks = [block for block in blocks if block not in inside]
                yield _Part(fence.start, fence.end, tuple(self._replacements(fence, inside)), fence)
            elif patches_inside and not self._is_file_about_blocks(fence):
                patches = [span for span in patches if span not in patches_inside]
                edits = [edit for start, end in patches_inside for edit in read_patch(self.lines[start:end])]
                yield _Part(fence.start, fence.end, tuple(edits), fence)
            else:
                blocks = [block for block in blocks if block not in inside]
                patches = [span for span in patches if span not in patches_inside]
                yield _Part(fence.start, fence.end, tuple(_of_fence(fence)), fence)
        yield from self._unfenced_blocks(blocks)
        for start, end in patches:
            yield _Part(start, end, tuple(read_patch(self.lines[start:end])))
        for start, end in self.diffs:
            yield _Part(start, end, tuple(read_diff(self.lines[start:end])))

    def _is_file_about_blocks(self, fence: Fence) -> bool:
        """A text for people that explains these forms, given whole."""
        return (
            fence.path is not None
            and _suffix(fence.path) in PROSE
            and bool(fence.info.strip())
            and any(line.strip() and not in_line(line) for line in self._between(fence))
        )

    def _between(self, fence: Fence) -> Iterator[str]:
        """The lines of a code block that are in none of its search/replace blocks and patches."""
        inner = [(block.start, block.end) for block in self.blocks] + self.patches
        inside = {place for start, end in inner if fence.start < start < fence.end for place in range(start, end)}
        last = fence.end - 1 if fence.is_closed else fence.end
        return (self.lines[place] for place in range(fence.start + 1, last) if place not in inside)

    def _replacements(self, fence: Fence, blocks: Sequence[Block]) -> Iterator[Edit]:
        path, floor = fence.path, fence.start + 1
        for block in blocks:
            stray = [line for line in self.lines[floor : block.start] if line.strip(" \t>")]
            named = (in_line(stray[-1]) or in_comment(stray[-1], "")) if stray else None
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
            above = next(
                (place for place in range(block.start - 1, max(end, 0) - 1, -1) if self.lines[place].strip()), -1
            )
            named = in_line(self.lines[above]) if above >= 0 else None
            if any(end <= place < block.start for place in fenced):
                path = None
            path, end = block.path or named or path, block.end
            yield _Part(block.start, block.end, (_edit_of(block, path),))

    def _refuse_cut_patch(self, taken: set[int]) -> None:
        for place, line in enumerate(self.lines):
            if place not in taken and begins_patch(line):
                raise ReplyRefused("The patch is never closed with `*** End Patch`: the reply seems to be cut.")

    def _refuse_unclear(self, parts: Sequence[_Part]) -> None:
        """A fence that never closes was cut; one that holds the opening of another may have been closed too early; and
        so may be one before a fence that says nothing of itself."""
        last: _Part | None = None
        for part in parts:
            fence = part.fence
            if fence is None:
                continue
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

    def _ends_well(self, part: _Part, fence: Fence) -> bool:
        """Whether nothing can be missing from a code block without an end."""
        if any(fence.start < block.start < fence.end for block in self.blocks):
            return True
        if any(fence.start < start < fence.end for start, _ in self.patches):
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
                while left and (not left[-1].strip() or in_line(left[-1]) is not None):
                    left.pop()
                left.append("")
                place = max(place, part.end)
        left += self.lines[place:]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(left)).strip()


def _of_fence(fence: Fence) -> list[Edit]:
    """What a code block holds as a whole."""
    is_diff_file = fence.path is not None and _suffix(fence.path) in (".diff", ".patch")
    if is_patch(fence.lines) and not is_diff_file:
        return read_patch(fence.lines)
    if not is_diff_file and (
        is_diff(fence.lines) or (fence.language in _DIFFS and fence.path and has_hunks(fence.lines))
    ):
        return read_diff(fence.lines, fence.path)
    if fence.path is None:
        return read_actions(fence.content) if is_list_of_actions(fence.language, fence.lines) else []
    if fence.language in _DIFFS and not is_diff_file:
        raise ReplyRefused(
            f"The diff of {fence.path} has no `@@` line.", hint="Begin each hunk with a line `@@`.", path=fence.path
        )
    return [WholeFile(fence.path, fence.content)]


def _edit_of(block: Block, path: str | None) -> Edit:
    if path is None:
        raise ReplyRefused(
            f"The search/replace block in line {block.start + 1} of the reply names no file.",
            hint="Write the file's path on a line of its own just before it.",
        )
    if not block.find:
        return NewFile(path, "".join(line + "\n" for line in block.replace))
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


def _unclear(path: str, mark: str) -> ReplyRefused:
    """A bare fence after a file's may be the rest of that file, whose own code block has closed it too early."""
    return ReplyRefused(
        f"It is unclear where the code block of {path} ends.",
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
