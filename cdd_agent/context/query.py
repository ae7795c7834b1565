"""A question to the map of a project."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """What the code is looked for by: a text in plain words, and what else is known."""

    text: str
    failure: str = ""
    """The output of an attempt that failed, with its traceback."""
    touched: tuple[str, ...] = ()
    """Files that earlier steps of this run changed."""
    pinned: frozenset[str] = frozenset()
    """Paths and folders that a person wants to be shown."""
    without: frozenset[str] = frozenset()
    """Paths and folders that a person wants left out."""
