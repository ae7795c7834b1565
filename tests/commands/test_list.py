"""`/list STATE`: the tickets in one state."""

import json

import pytest

from cdd_agent.cli import main
from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput
from cdd_agent.events import TicketsListed
from cdd_agent.session import Session
from tests.projects import SLUG, Sandbox, Step, check, says


async def slugs(session: Session, line: str) -> list[str]:
    (listed,) = [event async for event in handle(session, line)]
    assert isinstance(listed, TicketsListed)
    return [ticket.slug for ticket in listed.tickets]


@pytest.fixture
async def session(sandbox: Sandbox) -> Session:
    """One ticket with a failed step, one with nothing but a spec."""
    sandbox.write(Step("a.txt", check("a.txt")))
    session = sandbox.replies(says("a.txt", "bad")).session()
    for line in (f"/exec {SLUG}", "continue", "exit", "/new bug rounding"):
        async for _ in handle(session, line):
            pass
    return session


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/list", ["bug-rounding", SLUG]),
        ("/list failed", [SLUG]),
        ("/list SPEC", ["bug-rounding"]),
        ("/list in-progress", []),
    ],
)
async def test_a_state_narrows_the_list(session: Session, line: str, expected: list[str]) -> None:
    assert await slugs(session, line) == expected


async def test_an_unknown_state_is_told_with_those_there_are(session: Session) -> None:
    with pytest.raises(BadInput, match="no state 'finished'") as caught:
        await slugs(session, "/list finished")
    assert "in-progress" in caught.value.hint


def test_the_command_line_takes_the_same_state(sandbox: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    sandbox.write(Step("a.txt"))
    assert main(["list", "planned", "--json", "-C", str(sandbox.root)]) == 0
    assert [ticket["slug"] for ticket in json.loads(capsys.readouterr().out)["tickets"]] == [SLUG]
    assert main(["list", "done", "-C", str(sandbox.root)]) == 0
    assert capsys.readouterr().out == "No ticket is in the state done.\n"
    assert main(["list", "finished", "-C", str(sandbox.root)]) == 2
    assert "Allowed: empty, spec, planned, in-progress" in capsys.readouterr().err
