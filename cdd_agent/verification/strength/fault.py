from enum import StrEnum

from msgspec import Struct


class FaultKind(StrEnum):
    """The code that a fault changes."""

    COMPARISON = "comparison"
    BOUNDARY = "boundary"
    BOOLEAN = "boolean"
    CONSTANT = "constant"
    RETURNED = "returned value"
    DELETED = "deleted statement"


class Fault(Struct, frozen=True):
    """A small edit of a file's text."""

    path: str
    line: int
    """From 1."""
    start: int
    """In bytes of UTF-8, as `end`."""
    end: int
    replacement: str
    kind: FaultKind
    words: str
    """The edit as a clause: "`<` became `<=`"."""
    source: str
    """The original line, unindented."""

    def apply(self, text: str) -> str:
        data = text.encode()
        before, after = data[: self.start], data[self.end :]
        return (before + self.replacement.encode() + after).decode()
