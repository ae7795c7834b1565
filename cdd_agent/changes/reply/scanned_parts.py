"""Parts that the scanner of a streaming reply returns."""

from msgspec import Struct


class ReplyWords(Struct, frozen=True):
    """A line of Markdown, with its line end."""

    text: str


class EditStarted(Struct, frozen=True):
    path: str
    """Empty if the reply names no file."""
    language: str = ""
    """For a whole file, if the reply gives it."""
    note: str = ""
    """`new`, `deleted`, `renamed to b.py`, ..."""


class LineOfFile(Struct, frozen=True):
    text: str


class HunkStarted(Struct, frozen=True):
    """Changed lines begin, apart from previous ones."""

    section: str = ""
    """The surrounding function or class."""


class HunkLine(Struct, frozen=True):
    sign: str
    """`+`, `-` or a space."""
    text: str


class LinesReplaced(Struct, frozen=True):
    """A search/replace block."""

    find: tuple[str, ...]
    new: tuple[str, ...]
    is_complete: bool = True
    """False while new lines are arriving."""


class EditNote(Struct, frozen=True):
    """Another line in an edit."""

    text: str


class EditEnded(Struct, frozen=True):
    """The end of an edit."""


ReplyPart = (
    ReplyWords
    | EditStarted
    | LineOfFile
    | HunkStarted
    | HunkLine
    | LinesReplaced
    | EditNote
    | EditEnded
)
