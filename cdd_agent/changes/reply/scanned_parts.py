"""The parts that the scanner of a streaming reply returns."""

from msgspec import Struct


class ReplyWords(Struct, frozen=True):
    """A line of Markdown, with its line end."""

    text: str


class EditStarted(Struct, frozen=True):
    """An edit of a file begins."""

    path: str
    """Empty if the reply names no file."""
    language: str = ""
    """The language of a whole file, if the reply gives it."""
    note: str = ""
    """More about the file: `new`, `deleted`, `renamed to b.py`."""


class LineOfFile(Struct, frozen=True):
    """A line of a whole file."""

    text: str


class HunkStarted(Struct, frozen=True):
    """Changed lines begin that do not follow the previous ones."""

    section: str = ""
    """The function or class around them."""


class HunkLine(Struct, frozen=True):
    """A line of a change."""

    sign: str
    """`+`, `-` or a space."""
    text: str


class LinesReplaced(Struct, frozen=True):
    """The lines of a search/replace block."""

    find: tuple[str, ...]
    new: tuple[str, ...]
    is_complete: bool = True
    """False while the new lines are still arriving."""


class EditNote(Struct, frozen=True):
    """Another line in an edit."""

    text: str


class EditEnded(Struct, frozen=True):
    """An edit is over."""


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
