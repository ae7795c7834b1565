"""`/list`: how far each ticket is, and those of one type or in one state."""

import json
import subprocess
import sys
import time
from collections import Counter

import pytest

from cdd_agent.cli.main import main
from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput
from cdd_agent.events.ticket_events import TicketsListed
from cdd_agent.session.session import Session
from cdd_agent.tickets.step_tally import StepTally
from tests.support.listening import collect
from tests.support.projects import SLUG, Copied, Sandbox, Step, check, says
from tests.support.tables import each_row


async def slugs(session: Session, line: str) -> list[str]:
    (listed,) = await collect(handle(session, line))
    assert isinstance(listed, TicketsListed)
    return [ticket.slug for ticket in listed.tickets]


async def two_tickets(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    session = sandbox.replies(says("a.txt", "bad")).session()
    for line in (f"/exec {SLUG}", "continue", "close", "/new bug rounding"):
        await handle(session, line)


@pytest.fixture
async def session(copied: Copied) -> Session:
    """One ticket with a failed step, one with nothing but a spec."""
    return (await copied(two_tickets)).session()


@each_row(
    ("line", "expected"),
    [
        ("/list", ["bug-rounding", SLUG]),
        ("/list failed", [SLUG]),
        ("/list EMPTY", ["bug-rounding"]),
        ("/list spec", []),
        ("/list bug", ["bug-rounding"]),
        ("/list Feature failed", [SLUG]),
        ("/list failed feature", [SLUG]),
        ("/list bug failed", []),
        ("/list in_progress", []),
        ("/list in-progress", []),
    ],
)
async def test_a_type_and_a_state_narrow_the_list(
    session: Session, line: str, expected: list[str]
) -> None:
    assert await slugs(session, line) == expected


@each_row(
    ("replies", "line", "state", "tally"),
    [
        (
            [says("a.txt", "good"), says("b.txt", "x")],
            "continue",
            "completed",
            StepTally(exit_code=1, unverified=1),
        ),
        (
            [says("a.txt", "good")],
            "skip because I looked",
            "completed",
            StepTally(exit_code=1, skipped=1),
        ),
    ],
)
async def test_a_run_with_an_unverified_or_skipped_step_is_not_done(
    sandbox: Sandbox, replies: list[str], line: str, state: str, tally: StepTally
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", "none"))
    session = sandbox.replies(*replies).session()
    for typed in (f"/exec {SLUG}", "continue", line):
        await handle(session, typed)
    (listed,) = await collect(handle(session, "/list"))
    assert isinstance(listed, TicketsListed)
    (ticket,) = listed.tickets
    assert (ticket.state, ticket.tally, ticket.is_over) == (state, tally, True)
    assert await slugs(session, "/list done") == []
    assert await slugs(session, "/list completed") == [SLUG]


async def test_an_unknown_state_is_an_error_with_the_known_states(
    session: Session,
) -> None:
    with pytest.raises(BadInput, match="'finished'") as caught:
        await slugs(session, "/list finished")
    assert "in-progress" in caught.value.hint


@each_row("words", ["bug feature", "failed done", "bug bug"])
async def test_two_types_or_two_states_are_refused(
    session: Session, words: str
) -> None:
    with pytest.raises(BadInput):
        await slugs(session, f"/list {words}")


async def states(session: Session, line: str = "/list") -> dict[str, str]:
    (listed,) = await collect(handle(session, line))
    assert isinstance(listed, TicketsListed)
    return {ticket.slug: ticket.state for ticket in listed.tickets}


@each_row(
    ("spec", "state"),
    [
        (b"", "empty"),
        (b"# only a comment\n", "empty"),
        (b"title: <what is it about>\ntechnical_notes: sqlite\n", "empty"),
        (b"title: Rounding is off\n", "empty"),
        (b"description: It is off.\n", "spec"),
        (b"title: x\ntype: story\n", "unreadable"),
        (b"title: [\n", "unreadable"),
        (b"\xff\xfe", "unreadable"),
        (
            b"title: x\nacceptance_criteria:\n" + b"  - words and words\n" * 100_000,
            "spec",
        ),
    ],
)
async def test_the_state_of_a_ticket_without_a_plan_is_that_of_its_spec(
    sandbox: Sandbox, spec: bytes, state: str
) -> None:
    folder = sandbox.root / "tickets" / "bug-rounding"
    folder.mkdir(parents=True)
    (folder / "spec.yaml").write_bytes(spec)
    assert await states(sandbox.session()) == {"bug-rounding": state}


async def test_the_spec_has_the_type_if_the_slug_does_not(
    sandbox: Sandbox,
) -> None:
    for slug, spec in (
        ("login", "description: x\ntype: spike\n"),
        ("broken", "title: [\n"),
    ):
        folder = sandbox.root / "tickets" / slug
        folder.mkdir(parents=True)
        (folder / "spec.yaml").write_text(spec)
    assert await states(sandbox.session(), "/list spike") == {"login": "spec"}
    assert await states(sandbox.session()) == {"broken": "unreadable", "login": "spec"}


async def test_three_hundred_tickets_are_listed_quickly(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*[Step(f"{name}.txt") for name in "abcde"])
    plan = (sandbox.ticket / "plan.md").read_text()
    for number in range(300):
        folder = sandbox.root / "tickets" / f"bug-{number:03}"
        folder.mkdir()
        (folder / "spec.yaml").write_text(
            "description: x\n" if number % 3 else "title: [\n"
        )
        if number % 3 == 2:
            (folder / "plan.md").write_text(plan)
    large = b"title: x\nacceptance_criteria:\n" + b"  - words\n" * 200_000
    (sandbox.root / "tickets/bug-001/spec.yaml").write_bytes(large)
    session = sandbox.session()
    began = time.process_time()
    found = Counter((await states(session, "/list bug")).values())
    assert found == {"unreadable": 100, "spec": 100, "planned": 100}
    # about half a second on a machine that is not busy
    assert time.process_time() - began < 5


def test_the_command_line_takes_the_same_state(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(Step("a.txt"))
    assert main(["list", "planned", "--json", "-C", str(sandbox.root)]) == 0
    assert [
        ticket["slug"] for ticket in json.loads(capsys.readouterr().out)["tickets"]
    ] == [SLUG]
    assert main(["list", "done", "-C", str(sandbox.root)]) == 0
    assert "done" in capsys.readouterr().out
    assert main(["list", "bug", "done", "-C", str(sandbox.root)]) == 0
    assert {"bug", "done."} <= set(capsys.readouterr().out.split())
    assert main(["list", "bug", "-C", str(sandbox.root)]) == 0
    assert "bug" in capsys.readouterr().out
    assert main(["list", "finished", "-C", str(sandbox.root)]) == 2
    told = capsys.readouterr().err
    assert all(state in told for state in ("empty", "spec", "planned", "in-progress"))


async def carried_out(sandbox: Sandbox) -> Session:
    """The session in which a plan of one step was."""
    sandbox.write(Step("a.txt", check("a.txt")))
    session = sandbox.replies(says("a.txt", "good")).session()
    for line in (f"/exec {SLUG}", "continue"):
        await handle(session, line)
    return session


@pytest.mark.fork
async def test_a_completed_plan_is_read_again_only_if_it_changed(
    sandbox: Sandbox,
) -> None:
    await carried_out(sandbox)
    plan = sandbox.root / "tickets" / SLUG / "plan.md"
    done, code = (
        plan.read_text(),
        "import sys; from cdd_agent.cli.main import main; main(['list']); ",
    )
    code += (
        "from cdd_agent.tickets.store import read_plan_once;"
        " print(read_plan_once.cache_info().misses > 0)"
    )

    def listed_in_a_process() -> list[str]:
        command = [sys.executable, "-c", code]
        told = subprocess.run(
            command, capture_output=True, text=True, cwd=sandbox.root, check=True
        ).stdout
        return told.splitlines()

    assert listed_in_a_process() == [f"{SLUG}  done, 1 by exit code", "False"]
    plan.write_text(done + "\n### Step 2: More\n\n**Description:** Make more.\n")
    assert listed_in_a_process() == [f"{SLUG}  in progress 1/2, 1 by exit code", "True"]
    plan.write_text(done)
    assert listed_in_a_process() == [f"{SLUG}  done, 1 by exit code", "False"]


async def test_an_undone_step_does_not_count_as_done(
    sandbox: Sandbox,
) -> None:
    session = await carried_out(sandbox)
    await handle(session, f"/undo {SLUG} --yes")
    assert await slugs(session, "/list done") == []
    assert await slugs(session, "/list in-progress") == [SLUG]


async def test_an_older_tool_s_digest_does_not_make_a_pending_step_done(
    sandbox: Sandbox,
) -> None:
    session = await carried_out(sandbox)
    path = sandbox.root / "tickets" / SLUG / "execution-state.json"
    digest = json.loads(path.read_text())["done_plan"]
    await handle(session, f"/undo {SLUG} --yes")
    undone = json.loads(path.read_text())
    # an older tool keeps keys that it does not know
    path.write_text(json.dumps(undone | {"done_plan": digest}))
    assert await slugs(session, "/list done") == []
