"""Parts of cdd that other packages add as entry points. A failing one is left out and
reported; the others work.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_log = logging.getLogger(__name__)
_Value = TypeVar("_Value")


class Extensions:
    """The entry points of one group."""

    def __init__(self, group: str, what: str) -> None:
        self._group = group
        self._what = what
        """A noun for one extension: `test runner`."""
        self.left_out: dict[str, str] = {}
        """Names of unused extensions, with the reasons."""
        self.waiting: list[str] = []
        """Names of extensions that are not loaded yet."""
        self.loading = ""
        self.seconds: dict[str, float] = {}
        """Seconds that each extension took to load."""

    def load(self, make: Callable[[str, object], _Value]) -> tuple[_Value, ...]:
        """Load all extensions. `make` checks one, which was built without arguments."""
        return tuple(self.load_each(make))

    def load_each(self, make: Callable[[str, object], _Value]) -> Iterator[_Value]:
        # late: the first screen has no extensions
        from importlib.metadata import entry_points  # noqa: PLC0415

        points = list(entry_points(group=self._group))
        self.waiting = [_full_name(entry_point) for entry_point in points]
        for entry_point in points:
            self.loading = _full_name(entry_point)
            started = time.monotonic()
            try:
                value = make(self.loading, entry_point.load()())
            # cdd works without the package, whatever it raises
            except (Exception, SystemExit) as error:  # noqa: BLE001
                self.leave_out(self.loading, error)
            else:
                yield value
            self.seconds[self.loading] = time.monotonic() - started
            self.waiting.remove(self.loading)
        self.loading = ""

    def leave_out(self, name: str, error: BaseException) -> None:
        """Note that an extension is no longer used."""
        if name not in self.left_out:
            self.left_out[name] = f"{type(error).__name__}: {error}"[:300]
            _log.warning(
                "The %s %s is left out: %s", self._what, name, self.left_out[name]
            )


def require_type(value: object, kind: type[_Value]) -> _Value:
    """Return a value of an extension. Raises `TypeError` for another type."""
    if not isinstance(value, kind):
        raise TypeError(f"{value!r:.80} is not a {kind.__name__}")
    return value


def _full_name(entry_point: EntryPoint) -> str:
    package = entry_point.dist.name if entry_point.dist else entry_point.value
    return f"{entry_point.name} of {package}"
