"""Edits that a reply shows and that the project's files do not have."""

from pathlib import Path, PurePosixPath

from msgspec import Struct, field

from cdd_agent.changes.reply.scanned_parts import (
    EditStarted,
    HunkLine,
    HunkStarted,
    LineOfFile,
    LinesReplaced,
)
from cdd_agent.changes.reply.scanner import ReplyScanner
from cdd_agent.errors import CddError
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.paths import confine
from cdd_agent.files.text import decode_file


class _Passage(Struct):
    """Lines that an edit replaces, and their replacement."""

    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    def is_in(self, lines: list[str]) -> bool:
        """True if a file with these lines has the replacement."""
        if not _contains(lines, self.new):
            return False
        # the replacement of an insertion contains the old lines, too
        return _contains(self.new, self.old) or not _contains(lines, self.old)


class _ShownEdit(Struct):
    path: str
    deletes: bool
    passages: list[_Passage] = field(default_factory=list)

    def add_line(self, text: str, *, is_old: bool, is_new: bool) -> None:
        if not self.passages:
            self.passages.append(_Passage())
        passage = self.passages[-1]
        if is_old:
            passage.old.append(text.rstrip())
        if is_new:
            passage.new.append(text.rstrip())

    def is_in(self, lines: list[str] | None) -> bool:
        """True if the file has the edit; `lines` is None for no file."""
        if self.deletes:
            return lines is None
        return all(passage.is_in(lines or []) for passage in self.passages)


def list_unwritten(reply: str, root: Path) -> list[str]:
    """Return the project's files without the edits that a reply shows for them, each
    once and in order. A file that has the shown lines is quoted, or was changed
    before.
    """
    unwritten = dict[str, None]()
    for edit in _read_edits(reply):
        try:
            path = confine(root, _relative_to(root, edit.path))
            lines = _read_lines(root, path)
        except (OSError, ValueError, CddError):
            continue
        if not edit.is_in(lines):
            unwritten[path.as_posix()] = None
    return list(unwritten)


def _read_edits(reply: str) -> list[_ShownEdit]:
    scanner = ReplyScanner()
    parts = [part for line in reply.splitlines() for part in scanner.take(line)]
    edits: list[_ShownEdit] = []
    for part in (*parts, *scanner.finish()):
        match part:
            case EditStarted(path=path, note=note):
                edits.append(_ShownEdit(path, note == "deleted"))
            case LineOfFile(text=text):
                edits[-1].add_line(text, is_old=False, is_new=True)
            case HunkStarted():
                edits[-1].passages.append(_Passage())
            case HunkLine(sign=sign, text=text):
                edits[-1].add_line(text, is_old=sign != "+", is_new=sign != "-")
            case LinesReplaced(find=find, new=new, is_complete=True):
                old_lines = [line.rstrip() for line in find]
                new_lines = [line.rstrip() for line in new]
                edits[-1].passages.append(_Passage(old_lines, new_lines))
            case _:
                pass
    return [edit for edit in edits if edit.path]


def _relative_to(root: Path, path: str) -> str:
    place = PurePosixPath(path)
    if place.is_relative_to(root.as_posix()):
        return place.relative_to(root.as_posix()).as_posix()
    return path


def _read_lines(root: Path, path: PurePosixPath) -> list[str] | None:
    place = root / path
    data = read_bytes(place) if place.is_file() else None
    if data is None:
        return None
    text = decode_file(path, data, Charsets(root)).text
    return [line.rstrip() for line in text.splitlines()]


def _contains(lines: list[str], passage: list[str]) -> bool:
    if not passage:
        return True
    size = len(passage)
    for start, line in enumerate(lines):
        if line == passage[0] and lines[start : start + size] == passage:
            return True
    return False
