"""A clock for working time, without time spent waiting for the user or the baseline."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from msgspec import Struct


class WorkClock(Struct):
    _waited: float = 0.0

    def now(self) -> float:
        """Return seconds since an arbitrary moment."""
        return monotonic() - self._waited

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        since = monotonic()
        try:
            yield
        finally:
            self._waited += monotonic() - since
