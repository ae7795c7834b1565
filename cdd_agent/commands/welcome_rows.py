"""The rows of the first screen as values. This module is imported with the first
screen, so it imports little.
"""

from enum import Enum, auto

from msgspec import Struct

WHAT_CDD_IS = "Turns tickets into specs, plans and tested code."


class RowAction(Enum):
    CONTINUE = auto()
    SET_UP_MODEL = auto()
    NEW_TICKET = auto()
    TICKETS = auto()
    DEMO = auto()
    HELP = auto()


class WelcomeRow(Struct, frozen=True):
    """A row. `line` continues the ticket (for `CONTINUE`)."""

    action: RowAction
    title: str
    detail: str = ""
    line: str = ""
    is_sent: bool = False
    """True if the line is sent at once; otherwise it goes into the prompt."""


class Beginning(Struct, frozen=True):
    """The content of the first screen below its heading."""

    rows: tuple[WelcomeRow, ...] = ()
    first: int = 0
    """The row to highlight first."""
    place: str = ""
    """A remark on the folder."""
