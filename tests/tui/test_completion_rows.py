"""The list of completions shows each command, what it does, and its group."""

from cdd_agent.commands.catalogue import Group
from cdd_agent.text.completion import Completion
from cdd_agent.tui.widgets.completion_rows import completion_rows

OFFERS = [
    Completion("/new", "/new TYPE", "Create a ticket", group=Group.TICKETS),
    Completion("/list", "/list", "List the tickets", group=Group.TICKETS),
    Completion("/exec", "/exec SLUG", "Carry out a plan", group=Group.WORK),
]


def test_the_first_row_of_a_group_ends_with_its_name() -> None:
    rows = [row.plain for row in completion_rows(OFFERS, 50)]
    assert rows == [
        "/new TYPE   Create a ticket                Tickets",
        "/list       List the tickets",
        "/exec SLUG  Carry out a plan                  Work",
    ]


def test_a_name_of_a_group_never_cuts_a_description() -> None:
    for room in range(40):
        rows = [row.plain for row in completion_rows(OFFERS, room)]
        for row, offer in zip(rows, OFFERS, strict=True):
            assert offer.help in row
            assert row.endswith(offer.help) or len(row) <= room


def test_a_wide_name_moves_only_its_own_description() -> None:
    wide = Completion("x", "ｗ" * 20, "wide")
    rows = [row.plain for row in completion_rows([wide, OFFERS[1]], 80)]
    assert rows[0].endswith("ｗ  wide")
    assert rows[1].startswith("/list  List the tickets")
