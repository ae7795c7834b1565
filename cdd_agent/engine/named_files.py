"""Files in a sentence."""

from collections.abc import Sequence

_MOST = 6


def named(paths: Sequence[str]) -> str:
    """Return the first paths, and the number of others."""
    more = f" and {len(paths) - _MOST} more" if len(paths) > _MOST else ""
    return ", ".join(paths[:_MOST]) + more
