"""How long something has worked, without the time in which a person was asked."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct


class WorkClock(Struct):
    """A clock that stands still while a person is asked."""

    _asked: float = 0.0

    def now(self) -> float:
        """Seconds since some moment in the past."""
        return time.monotonic() - self._asked

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        since = time.monotonic()
        try:
            yield
        finally:
            self._asked += time.monotonic() - since
