from collections.abc import Collection

from msgspec import Struct


class Query(Struct, frozen=True):
    text: str
    failure: str = ""
    """The output of a failed attempt, with its traceback."""
    touched: tuple[str, ...] = ()
    """Files that earlier steps of this run changed."""
    pinned: frozenset[str] = frozenset()
    """Files and folders that rank first."""
    without: frozenset[str] = frozenset()
    """Files and folders to exclude."""


def is_in(path: str, places: Collection[str]) -> bool:
    """True if a path is one of these files, or in one of these folders."""
    for place in places:
        bare = place.rstrip("/")
        if path == bare or path.startswith(f"{bare}/"):
            return True
    return False
