"""The entries of an expense list."""

from msgspec import Struct
from datetime import date


class Entry(Struct, frozen=True):
    """One expense, in cents. A refund is negative."""

    day: date
    category: str
    note: str
    cents: int
