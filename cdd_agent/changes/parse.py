"""A model's reply as text → the edits it asks for, whatever form they have. The forms
are in docs/replies.md.

What is unclear is refused, with words by which the model can do better: which of two
fences ends a file, a block that never ends, edits of a file without a name. A code
block without a path is explanation; one that could be a file is told.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.changes.completeness import PROSE
from cdd_agent.changes.formats.diffs import Diffs, quoted_fences
from cdd_agent.changes.formats.fences import Fence, find_fences, unwrapped
from cdd_agent.changes.formats.file_names import is_code
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.known import NOTHING_KNOWN, KnownNames
from cdd_agent.changes.formats.listed import Actions
from cdd_agent.changes.formats.naming import DIFFS, in_line, mentioned, of_edits
from cdd_agent.changes.formats.patches import Patches
from cdd_agent.changes.formats.search_replace import SearchReplace
from cdd_agent.changes.formats.thinking import without_thoughts
from cdd_agent.changes.model import Doubt, Edit, Reply, ReplyRefused, WholeFile
from cdd_agent.changes.readability import is_whole

_DIFFS = Diffs()
FORMS: tuple[Form, ...] = (SearchReplace(), Patches(), _DIFFS, Actions())
"""Beside whole files in code blocks."""
_ROUNDS = 8
"""How often a reply is taken apart anew because a diff in it has fences."""
_HOLD_FENCES = PROSE | {"", ".py", ".pyi", ".qmd", ".rmd", ".org", ".jl", ".ex", ".exs"}
"""Files in which a line may be a fence: Markdown and its like, and those whose comments
are Markdown.
"""


def parse_reply(text: str, known: KnownNames = NOTHING_KNOWN) -> Reply:
    """Find the edits in a reply. Raises `ReplyRefused` where they cannot be known for
    certain.
    """
    if "\0" in text:
        raise ReplyRefused(
            "The reply has a null character in it, which is no part of a text."
        )
    pieces = re.split(r"(\r\n|\r|\n)", text.removeprefix("\ufeff"))
    lines, ends = pieces[::2], pieces[1::2]
    crlf = (
        []
        if all(end == "\r\n" for end in ends)
        else [place for place, end in enumerate(ends) if end == "\r\n"]
    )
    answer = without_thoughts(lines)
    crlf = [place - len(lines) + len(answer) for place in crlf]
    inside = unwrapped(answer)
    if inside is not None:
        try:
            wrapped = answer[inside.start : inside.stop]
            reading = _Reading(
                wrapped, known, frozenset(place - inside.start for place in crlf)
            )
            reply = reading.reply()
        except ReplyRefused:
            reply = Reply(())
        if reply.edits and all(fence.is_closed for fence in reading.fences):
            return reply
    return _Reading(answer, known, frozenset(crlf)).reply()


class _Part(Struct, frozen=True):
    """Some lines of a reply, and the edits that they are; a fence is kept for what its
    end means for the next one.
    """

    start: int
    end: int
    edits: tuple[Edit, ...]
    fence: Fence | None = None
    whole: WholeFile | None = None
    """The file that the code block is."""


class _Reading:
    """One text, taken apart. `crlf` are the lines that end in CRLF, where others do
    not: a file whose lines are among them is meant so.
    """

    def __init__(
        self, lines: Sequence[str], known: KnownNames, crlf: frozenset[int]
    ) -> None:
        self.lines, self.known, self.crlf = lines, known, crlf
        self.spans: list[Span] = []
        found = (span for form in FORMS for span in form.marked(lines, known))
        for span in sorted(found, key=lambda span: span.start):
            # else it is a part of a text that is edited
            if not self.spans or span.start >= self.spans[-1].end:
                self.spans.append(span)
        hidden = {place for span in self.spans for place in range(span.start, span.end)}
        in_diffs = quoted_fences(lines)
        # what looks like a fence in a diff may be a line of its file; then what comes
        # after is seen anew
        for _ in range(_ROUNDS):
            self.fences = find_fences(lines, hidden | in_diffs, known)
            taken = hidden | {
                place
                for fence in self.fences
                for place in range(fence.start, fence.end)
            }
            self.unmarked = [
                span for form in FORMS for span in form.in_prose(lines, taken, hidden)
            ]
            in_prose = {
                place for span in self.unmarked for place in range(span.start, span.end)
            }
            if not any(fence.start in in_prose for fence in self.fences):
                break
            in_diffs |= in_prose
        else:
            raise ReplyRefused(
                "It is unclear where the diffs of the reply end.",
                hint="Put each in a ```diff block.",
            )
        for place, line in enumerate(lines):
            if place not in taken and place not in in_prose:
                for form in FORMS:
                    form.refuse_loose(line, place + 1)

    def reply(self) -> Reply:
        parts = sorted(self._parts(), key=lambda part: part.start)
        known = self.known.with_files(
            edit.path for part in parts for edit in part.edits
        )
        named = [part.fence.path for part in parts if part.fence and part.fence.path]
        if not self.known.folders and any(map(known.is_folder, named)):
            # a title above explanation named one of them
            return _Reading(self.lines, known, self.crlf).reply()
        self._refuse_unclear(parts)
        whole: dict[str, Edit] = {}
        edits: list[Edit] = []
        for edit in (edit for part in parts for edit in self._as_ended(part)):
            if isinstance(edit, WholeFile) and not edit.must_be_new:
                if edit.path in whole and whole[edit.path] != edit:
                    raise ReplyRefused(
                        f"The reply gives {edit.path} twice, with different content.",
                        path=edit.path,
                    )
                if edit.path in whole:
                    continue
                whole[edit.path] = edit
            edits.append(edit)
        return Reply(
            tuple(edits), self._explanation(parts), tuple(self._doubts(parts, edits))
        )

    def _parts(self) -> Iterator[_Part]:
        fenced: set[int] = set()
        for fence in self.fences:
            inner = self._inside(fence)
            fenced.update(span.start for span in inner)
            form = next((form for form in FORMS if form.takes(fence)), None)
            whole = None
            if inner and not self._is_file_about_edits(fence, inner):
                edits = list(self._edits_inside(fence, inner))
            elif form is not None:
                edits = form.read(fence)
            else:
                whole = (
                    WholeFile(fence.path, fence.content)
                    if fence.path is not None
                    else None
                )
                edits = [whole] if whole else []
            yield _Part(fence.start, fence.end, tuple(edits), fence, whole)
        yield from self._unfenced(
            [span for span in self.spans if span.start not in fenced]
        )
        for span in self.unmarked:
            yield _Part(span.start, span.end, tuple(span.read(None)))

    def _inside(self, fence: Fence) -> list[Span]:
        first = bisect_right(self.spans, fence.start, key=lambda span: span.start)
        return self.spans[
            first : bisect_left(
                self.spans, fence.end, lo=first, key=lambda span: span.start
            )
        ]

    def _is_file_about_edits(self, fence: Fence, inner: Sequence[Span]) -> bool:
        """A text for people that explains these forms, given whole: it has words beside
        them.
        """
        if (
            fence.path is None
            or _suffix(fence.path) not in PROSE
            or not fence.info.strip()
        ):
            return False
        inside = {place for span in inner for place in range(span.start, span.end)}
        last = fence.end - 1 if fence.is_closed else fence.end
        others = (
            self.lines[place]
            for place in range(fence.start + 1, last)
            if place not in inside
        )
        return any(line.strip() and not of_edits(line, self.known) for line in others)

    def _edits_inside(self, fence: Fence, inner: Sequence[Span]) -> Iterator[Edit]:
        path, floor = fence.path or fence.above, fence.start + 1
        for span in inner:
            stray = [
                line
                for line in self.lines[floor : span.start]
                if line.strip(" \t>") and not _is_gap(line)
            ]
            named = of_edits(stray[-1], self.known) if stray else None
            if len(stray) > (named is not None) and not span.names_files:
                raise ReplyRefused(
                    f"Line {floor + 1} of the reply: a code block has other lines"
                    " beside its search/replace blocks.",
                    hint=(
                        "A block that changes a file holds only such blocks, and the"
                        " file's path above them."
                    ),
                    path=path or "",
                )
            path, floor = span.path or named or path, span.end
            yield from span.read(path)

    def _unfenced(self, spans: Sequence[Span]) -> Iterator[_Part]:
        """Edits between words: of the file that the line above names, or of the last
        one, where no other is named.
        """
        path: str | None = None
        end = 0
        fence_starts = {fence.start for fence in self.fences}
        names_in_fences = {fence.end - 1: fence for fence in self.fences}
        for span in spans:
            if span.names_files:
                yield _Part(span.start, span.end, tuple(span.read(None)))
                continue
            between = range(end, span.start)
            above = next(
                (place for place in reversed(between) if self.lines[place].strip()),
                None,
            )
            if above in names_in_fences:
                fence = names_in_fences[above]
                named = (
                    fence.content.strip() if fence.holds_a_name(self.known) else None
                )
            else:
                named = (
                    of_edits(self.lines[above], self.known)
                    if above is not None
                    else None
                )
            spoken_of = {
                name
                for place in between
                for name in mentioned(self.lines[place], self.known)
            }
            is_of_another = (
                path is not None
                and spoken_of
                and not any(path.endswith(name) for name in spoken_of)
            )
            if is_of_another or not fence_starts.isdisjoint(between):
                path = None
            path, end = span.path or named or path, span.end
            yield _Part(span.start, span.end, tuple(span.read(path)))

    def _as_ended(self, part: _Part) -> tuple[Edit, ...]:
        """A part's edits, with the line ends of a whole file that are not those of the
        reply around it.
        """
        count = sum(
            edit.content.count("\n")
            for edit in part.edits
            if isinstance(edit, WholeFile)
        )
        ended = (
            sum(place in self.crlf for place in range(part.start + 1, part.end))
            if self.crlf
            else 0
        )
        if part.start in self.crlf or not count or ended < count:
            return part.edits
        return tuple(
            (
                replace(edit, content=edit.content.replace("\n", "\r\n"))
                if isinstance(edit, WholeFile)
                else edit
            )
            for edit in part.edits
        )

    def _refuse_unclear(self, parts: Sequence[_Part]) -> None:
        """A fence that never closes was cut; one that holds the opening of another may
        have been closed too early; and so may be one before a fence that says nothing
        of itself.
        """
        last: _Part | None = None
        for part in parts:
            fence = part.fence
            if fence is None:
                continue
            file, whole = part.edits[-1].path if part.edits else "", part.whole
            if not file and fence.holds_an_opening and _holds_edits(fence):
                raise _unclear(f"in line {fence.start + 1} of the reply", fence)
            after = self.lines[fence.end] if fence.end < len(self.lines) else ""
            goes_on = after.startswith(("+", "-", "@@")) and not after.startswith(
                ("- ", "+ ")
            )
            # a fence among its lines has closed it
            if file and goes_on and _DIFFS.takes(fence):
                raise _unclear(f"of {file}", fence, file)
            is_apart = fence.info.strip() or (
                file and (fence.is_named_apart or whole is None)
            )
            if (
                last is not None
                and last.fence is not None
                and not is_apart
                and not _is_over(last)
            ):
                raise _unclear(
                    f"of {last.edits[-1].path}", last.fence, last.edits[-1].path
                )
            is_all = (
                whole
                and not self.lines[-1].strip()
                and is_whole(whole.path, whole.content)
            )
            if file and not (fence.is_closed or is_all or self._inside(fence)):
                raise ReplyRefused(
                    f"The code block of {file} is never closed: the reply seems to be"
                    " cut.",
                    path=file,
                )
            if whole and fence.holds_an_opening:
                raise _unclear(f"of {file}", fence, file)
            last = part if file else None

    def _explanation(self, parts: Sequence[_Part]) -> str:
        """The words around the edits, and the code blocks that are no files."""
        left: list[str] = []
        place = 0
        for part in parts:
            if part.edits:
                left += self.lines[place : part.start]
                while left:
                    named = in_line(left[-1], "", self.known)
                    if left[-1].strip() and not (named and named.is_file):
                        break
                    left.pop()
                left.append("")
                place = max(place, part.end)
        left += self.lines[place:]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(left)).strip()

    def _doubts(self, parts: Sequence[_Part], edits: Sequence[Edit]) -> Iterator[Doubt]:
        """The blocks that could be files of which no edit is, and that do not just show
        what is in them.
        """
        paths = {edit.path.removeprefix("./") for edit in edits}
        for fence in [
            fence for part in parts if (fence := part.fence) and not part.edits
        ]:
            name = fence.doubt.removeprefix("./")
            if not name or any(
                path == name or path.endswith(f"/{name}") for path in paths
            ):
                continue
            if not self.known.is_quotation(name, fence.content):
                yield Doubt(
                    fence.start + 1,
                    name,
                    self.known.is_asked(name) and not is_code(fence.language),
                )


def _holds_edits(fence: Fence) -> bool:
    """Whether a code block that is none itself has one in it that would be."""
    inner = find_fences(fence.lines)
    return any(
        one.path or one.language in DIFFS or any(form.takes(one) for form in FORMS)
        for one in inner
    )


def _is_gap(line: str) -> bool:
    """Between the blocks of one file, dots stand for the lines that none of them is
    about.
    """
    signs = (re.match(r"\W*", way) for way in (line, line[::-1]))
    return all(
        found is not None and ("..." in found[0] or "…" in found[0]) for found in signs
    )


def _is_over(part: _Part) -> bool:
    """Whether a file ends with its code block for certain, whatever fences come after
    it.
    """
    if any(_suffix(edit.path) in PROSE for edit in part.edits):
        return False
    whole = part.whole
    return (
        whole is None
        or _suffix(whole.path) not in _HOLD_FENCES
        or is_whole(whole.path, whole.content)
    )


def _suffix(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).suffix.lower()


def _unclear(which: str, fence: Fence, path: str = "") -> ReplyRefused:
    """A bare fence after a file's may be the rest of that file, whose own code block
    has closed it too early.
    """
    mark = fence.mark
    return ReplyRefused(
        f"It is unclear where the code block {which} ends.",
        hint=(
            "If it contains code blocks itself, open and close it with"
            f" {mark[0] * (len(mark) + 1)}. Give blocks that are not files a language,"
            f" as in {mark}text."
        ),
        path=path,
    )
