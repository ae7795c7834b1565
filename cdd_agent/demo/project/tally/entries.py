"""The entries of an expense list."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True)
class Entry:
    """One expense, in cents. A refund is negative."""

    day: date
    category: str
    note: str
    cents: int
