from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content

from cdd_agent.text.completion import Completion
from cdd_agent.text.sanitize import sanitize_for_display

_WIDEST = 30
"""Maximum columns of a name that moves the descriptions to the right."""
_GAP = 2


def completion_rows(offers: Sequence[Completion], room: int) -> list[Content]:
    """Return a row for each completion. The first row of a group ends with the group's
    name, if it fits into `room` columns.
    """
    names = [sanitize_for_display(offer.shown) for offer in offers]
    column = 0
    for name in names:
        if cell_len(name) <= _WIDEST:
            column = max(column, cell_len(name))
    rows = []
    group = ""
    for name, offer in zip(names, offers, strict=True):
        gap = " " * (max(column - cell_len(name), 0) + _GAP)
        row = Content.assemble((name, "bold"), gap, sanitize_for_display(offer.help))
        space = room - row.cell_length - cell_len(offer.group)
        if offer.group != group and space >= _GAP:
            row = Content.assemble(row, " " * space, (offer.group, "italic"))
        group = offer.group
        rows.append(row)
    return rows
