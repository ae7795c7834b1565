"""A small fault in a file's text."""

from enum import StrEnum

from msgspec import Struct


class FaultKind(StrEnum):
    """The kind of code that a fault changes."""

    COMPARISON = "comparison"
    BOUNDARY = "boundary"
    BOOLEAN = "boolean"
    CONSTANT = "constant"
    RETURNED = "returned value"
    DELETED = "deleted statement"


class Fault(Struct, frozen=True):
    """One small edit of a file's text."""

    path: str
    line: int
    """From 1."""
    start: int
    """In bytes of the text in UTF-8, as `end`."""
    end: int
    replacement: str
    kind: FaultKind
    words: str
    """The edit as a clause: "`<` became `<=`"."""
    source: str
    """The line without the fault, and without its indentation."""

    def apply(self, text: str) -> str:
        data = text.encode()
        before, after = data[: self.start], data[self.end :]
        return (before + self.replacement.encode() + after).decode()
