"""A question to the map of a project."""

from collections.abc import Collection

from msgspec import Struct


class Query(Struct, frozen=True):
    """A search for code: a text in plain words, and whatever else is known."""

    text: str
    failure: str = ""
    """The output of an attempt that failed, with its traceback."""
    touched: tuple[str, ...] = ()
    """Files that earlier steps of this run changed."""
    pinned: frozenset[str] = frozenset()
    """Paths and folders that a person wants to be shown."""
    without: frozenset[str] = frozenset()
    """Paths and folders that a person wants left out."""


def is_in(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of these files, or in one of these folders."""
    return bool(places) and any(
        path == place.rstrip("/") or path.startswith(f"{place.rstrip('/')}/")
        for place in places
    )
