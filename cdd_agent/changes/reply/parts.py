"""Reads the edits of each block of a reply."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from cdd_agent.changes.completeness import PROSE
from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.naming import find_mentioned_files, find_name_above_edits
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import Edit, ReplyRefused, WholeFile
from cdd_agent.changes.reply.layout import Layout

Read = Callable[[], Sequence[Edit]]


class ReplyPiece(Struct, frozen=True):
    """The smallest readable part. Lines count from 0; `end` is exclusive."""

    start: int
    end: int
    kind: str
    edits: tuple[Edit, ...] = ()
    refusal: ReplyRefused | None = None


class Part(Struct, frozen=True):
    """A block of a reply. A code block has one piece for each search/replace block."""

    start: int
    end: int
    pieces: tuple[ReplyPiece, ...]
    fence: Fence | None = None
    whole: WholeFile | None = None
    """The file, if the code block is one."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        return tuple(edit for piece in self.pieces for edit in piece.edits)

    @property
    def path(self) -> str:
        """The file of the last edit, or ""."""
        return self.edits[-1].path if self.edits else ""

    @property
    def is_refused(self) -> bool:
        return any(piece.refusal for piece in self.pieces)


def read_parts(
    lines: Sequence[str],
    layout: Layout,
    project_names: ProjectNames,
    forms: Sequence[Form],
) -> list[Part]:
    """Return the parts in the order of the reply."""
    reader = _Reader(lines, layout, project_names, forms)
    parts = [
        *map(reader.read_fence, layout.fences),
        *reader.read_marks_in_prose(),
        *(_span_part(span, None) for span in layout.in_prose),
        *_loose_lines(lines, layout, forms),
    ]
    return sorted(parts, key=lambda part: part.start)


class _Reader(Struct, frozen=True):
    lines: Sequence[str]
    layout: Layout
    project_names: ProjectNames
    forms: Sequence[Form]

    def read_fence(self, fence: Fence) -> Part:
        marked = self.layout.marked_in(fence)
        if marked and not self._is_file_about_edits(fence, marked):
            pieces = tuple(self._read_marks_in_fence(fence, marked))
            return Part(fence.start, fence.end, pieces, fence)
        form = next((form for form in self.forms if form.accepts(fence)), None)
        if form is not None:
            piece = _read(fence, form.kind, lambda: form.read(fence))
            return Part(fence.start, fence.end, (piece,), fence)
        whole = None if fence.path is None else WholeFile(fence.path, fence.content)
        edits = () if whole is None else (whole,)
        piece = ReplyPiece(fence.start, fence.end, Form.kind, edits)
        return Part(fence.start, fence.end, (piece,), fence, whole)

    def _is_file_about_edits(self, fence: Fence, marked: Sequence[Span]) -> bool:
        if fence.path is None or suffix(fence.path) not in PROSE:
            return False
        if not fence.info.strip():
            return False
        if any(_span_part(span, fence.path).is_refused for span in marked):
            return False
        inside = {place for span in marked for place in range(span.start, span.end)}
        last = fence.end - 1 if fence.is_closed else fence.end
        for place in range(fence.start + 1, last):
            line = self.lines[place]
            is_word = place not in inside and line.strip()
            if is_word and not find_name_above_edits(line, self.project_names):
                return True
        return False

    def _read_marks_in_fence(
        self, fence: Fence, marked: Sequence[Span]
    ) -> Iterator[ReplyPiece]:
        """Only file names and dots may be between the edits."""
        path = fence.path or fence.above
        begin = fence.start
        words_start = fence.start + 1
        stop = fence.end - 1 if fence.is_closed else fence.end
        for span in marked:
            is_last = span is marked[-1]
            end = fence.end if is_last else span.end
            words = self._words_in(words_start, span.start)
            named = self._pop_name(words)
            path = span.path or named or path
            if is_last and not words:
                words = self._words_in(span.end, stop)
                words_start = span.end if words else words_start
            if words and not span.names_files:
                refusal = _words_between(words_start + 1, path)
                yield ReplyPiece(begin, end, span.kind, refusal=refusal)
            else:
                yield _read_span(span, path, begin, end)
            words_start = begin = span.end

    def _pop_name(self, words: list[str]) -> str | None:
        named = find_name_above_edits(words[-1], self.project_names) if words else None
        if named:
            words.pop()
        return named

    def _words_in(self, start: int, stop: int) -> list[str]:
        return [
            line
            for line in self.lines[start:stop]
            if line.strip(" \t>") and not _stands_for_lines(line)
        ]

    def read_marks_in_prose(self) -> Iterator[Part]:
        """An edit's file is the one that the line above names, or the previous one if
        no other is named between.
        """
        in_fences: set[int] = set()
        for fence in self.layout.fences:
            in_fences.update(span.start for span in self.layout.marked_in(fence))
        path: str | None = None
        end = 0
        for span in self.layout.marked:
            if span.start in in_fences:
                continue
            if span.names_files:
                yield _span_part(span, None)
                continue
            between = range(end, span.start)
            named = self._name_above(between)
            if path is not None and self._is_about_another(between, path):
                path = None
            path, end = span.path or named or path, span.end
            yield _span_part(span, path)

    def _name_above(self, between: range) -> str | None:
        """Return the file that the last line, or a code block ending there, names."""
        above = next(
            (place for place in reversed(between) if self.lines[place].strip()), None
        )
        if above is None:
            return None
        for fence in self._fences_in(between):
            if fence.end - 1 == above:
                is_name = fence.holds_a_name(self.project_names)
                return fence.content.strip() if is_name else None
        return find_name_above_edits(self.lines[above], self.project_names)

    def _is_about_another(self, between: range, path: str) -> bool:
        if self._fences_in(between):
            return True
        mentioned: set[str] = set()
        for place in between:
            mentioned.update(
                find_mentioned_files(self.lines[place], self.project_names)
            )
        return bool(mentioned) and not any(map(path.endswith, mentioned))

    def _fences_in(self, between: range) -> Sequence[Fence]:
        return self.layout.fences_from(between.start, between.stop)


def suffix(path: str) -> str:
    """Return the suffix in lower case, with its dot."""
    return PurePosixPath(path.replace("\\", "/")).suffix.lower()


def _span_part(span: Span, path: str | None) -> Part:
    piece = _read_span(span, path, span.start, span.end)
    return Part(span.start, span.end, (piece,))


def _read_span(span: Span, path: str | None, start: int, end: int) -> ReplyPiece:
    piece = _read(span, span.kind, lambda: span.read(path))
    return ReplyPiece(start, end, piece.kind, piece.edits, piece.refusal)


def _read(block: Span | Fence, kind: str, read: Read) -> ReplyPiece:
    try:
        return ReplyPiece(block.start, block.end, kind, tuple(read()))
    except ReplyRefused as refusal:
        return ReplyPiece(block.start, block.end, kind, refusal=refusal)


def _loose_lines(
    lines: Sequence[str], layout: Layout, forms: Sequence[Form]
) -> Iterator[Part]:
    """Yield stray lines that belong in a block, each with the text up to the next
    block.
    """
    covered = layout.covered()
    end = 0
    for place, line in enumerate(lines):
        if place in covered or place < end:
            continue
        for form in forms:
            try:
                form.refuse_loose(line, place + 1)
            except ReplyRefused as refusal:
                end = _end_of_text(lines, place, covered)
                kind = f"line of a {form.kind}"
                yield Part(place, end, (ReplyPiece(place, end, kind, refusal=refusal),))
                break


def _end_of_text(lines: Sequence[str], start: int, covered: Collection[int]) -> int:
    """Return the line after the text, which ends at the next block."""
    end = start + 1
    for place in range(start, len(lines)):
        if place in covered:
            break
        if lines[place].strip():
            end = place + 1
    return end


def _words_between(line: int, path: str | None) -> ReplyRefused:
    return ReplyRefused(
        f"Line {line} of the reply: a code block has other lines beside its"
        " search/replace blocks.",
        hint=(
            "A block that changes a file holds only such blocks, and the file's path"
            " above them."
        ),
        path=path or "",
    )


def _stands_for_lines(line: str) -> bool:
    signs = (re.match(r"\W*", way) for way in (line, line[::-1]))
    return all(
        sign is not None and ("..." in sign[0] or "…" in sign[0]) for sign in signs
    )
