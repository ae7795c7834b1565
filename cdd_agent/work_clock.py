"""How long something has worked, without the time in which it waited for a person, or
for the baseline.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from msgspec import Struct


class WorkClock(Struct):
    """A clock that stands still while something else is waited for."""

    _waited: float = 0.0

    def now(self) -> float:
        """Seconds since some moment in the past."""
        return monotonic() - self._waited

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        since = monotonic()
        try:
            yield
        finally:
            self._waited += monotonic() - since
