"""Tests as the text of their file declares them."""

import re
from enum import IntEnum

from msgspec import Struct


class Skipped(IntEnum):
    """Says that the test does not run."""

    NO = 0
    PERHAPS = 1
    """On a condition."""
    YES = 2


class Declared(Struct, frozen=True):
    """A test, or a helper with assertions."""

    name: str
    """With surrounding names: `TestLogin::test_it`, `adding > two numbers`. Empty if
    the whole file is one test.
    """
    body: str
    """Code without comments and layout; identifies the test."""
    shape: str = ""
    """The body without names."""
    words: frozenset[str] = frozenset()
    """Subjects of the test: functions called and values used."""
    calls: frozenset[str] = frozenset()
    checks: int = 0
    """Number of assertions that can fail."""
    is_empty: bool = False
    skipped: Skipped = Skipped.NO
    rows: int | None = 0
    """Number of value sets; 0 without a table, None if computed."""
    is_test: bool = True
    """False for a helper."""
    lines: tuple[str, ...] = ()
    """For a whole-file test: lines without comments and layout."""

    @property
    def leaf(self) -> str:
        return re.split(r"::| > ", self.name)[-1]

    @property
    def weight(self) -> int:
        """Assertions times value sets."""
        return max(self.checks, 1) * max(self.rows or 0, 1)
