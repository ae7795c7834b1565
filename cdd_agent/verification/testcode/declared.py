"""A test as the text of its file declares it. Values only."""

import re
from enum import IntEnum

from msgspec import Struct


class Skipped(IntEnum):
    """The statement of a test that it does not run."""

    NO = 0
    PERHAPS = 1
    """On a condition."""
    YES = 2


class Declared(Struct, frozen=True):
    """One test of a file, or a helper with assertions for tests."""

    name: str
    """With the names around it: `TestLogin::test_it`, `adding > two numbers`. Empty
    for a file that is one test as a whole.
    """
    body: str
    """Its code without comments and layout. Tests with the same body are the same."""
    shape: str = ""
    """The body without the names in it."""
    words: frozenset[str] = frozenset()
    """The subjects of the test: the functions that it calls and the values in it."""
    calls: frozenset[str] = frozenset()
    checks: int = 0
    """Number of assertions that can fail."""
    is_empty: bool = False
    """True if it does nothing."""
    skipped: Skipped = Skipped.NO
    rows: int | None = 0
    """Number of sets of values that it runs for; 0 without a table, None if the number
    is computed.
    """
    is_test: bool = True
    """False for a helper."""
    lines: tuple[str, ...] = ()
    """The lines of a file that is one test as a whole, without comments and layout."""

    @property
    def leaf(self) -> str:
        """The name without the names around it."""
        return re.split(r"::| > ", self.name)[-1]

    @property
    def weight(self) -> int:
        """Number of assertions times the sets of values that they run for."""
        return max(self.checks, 1) * max(self.rows or 0, 1)
