"""Runs as processes: whatever one of them prints, the others continue."""

from pathlib import Path

import pytest

from cdd_agent.errors import ExitCode
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.coordinator import Coordinator
from cdd_agent.fleet.job import TicketJob
from cdd_agent.fleet.order import RunOrder
from cdd_agent.fleet.this_machine import ThisMachine
from cdd_agent.llm.budget import Limit
from cdd_agent.llm.purse import Purse
from cdd_agent.process import child

pytestmark = pytest.mark.fork

# a program in place of `cdd`: what it does is told by the ticket's name
PROGRAM = """
import json, os, signal, sys

def show(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)

def ask(number, kind, **fields):
    show("answer_needed", id=number, kind=kind, text="?", **fields)
    return json.loads(sys.stdin.readline())

ticket = sys.argv[-1]
show("alive")
match ticket:
    case "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    case "half-a-line":
        sys.stdout.write('{"event": "run_fin')
    case "no-json":
        print("Segmentation fault", flush=True)
        sys.stdin.read()
    case "no-object":
        print("[1, 2]", flush=True)
        sys.stdin.read()
    case "deep":
        print("[" * 100_000, flush=True)
        sys.stdin.read()
    case "not-utf-8":
        sys.stdout.buffer.write(b'{"event": "\\xff"}\\n')
        sys.stdout.flush()
        sys.stdin.read()
    case "damaged-event":
        show("plan_opened", steps=[{}])
        sys.stdin.read()
    case "damaged-question":
        show("answer_needed", id="one")
        sys.stdin.read()
    case "long-line":
        print("x" * 3_000_000, flush=True)
        sys.stdin.read()
    case "silent":
        sys.stdin.read()
    case "crashes":
        raise ZeroDivisionError
    case "refused":
        sys.stderr.write("cdd: reading ...\\ncdd: There is no plan\\nMake one.\\n")
        sys.exit(2)
    case "slow":
        sys.stderr.write("cdd: loading takes a few seconds …\\nA warning\\n")
        show("notice", tone="error", text="The step failed")
        sys.exit(1)
    case "asks":
        answer = ask(1, "command", choices=["yes", "no"])
        show("notice", tone="error", text=f"the answer: {answer['choice']}")
        sys.exit(3)
    case "trusts":
        answer = ask(1, "trust", choices=["all", "none", "some"], settings=["a", "b"])
        sys.exit(0 if answer["settings"] == ["a"] else 1)
    case "spends":
        first = ask(1, "call", tokens=600, usd=None)
        assert first["choice"] == "yes" and first["tokens_left"] == 1_000, first
        show("budget_spent", tokens=300, usd=None, estimated=False)
        show("call_ended", id=1)
        second = ask(2, "call", tokens=800, usd=None)
        assert second["choice"] == "no" and second["tokens_left"] == 700, second
        show("call_ended", id=2)
        sys.exit(3)
"""


@pytest.fixture(autouse=True)
def fake_cdd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "programs" / "cdd_agent"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setattr(child, "LONGEST_LINE", 1_000_000)


async def carry_out(root: Path, *tickets: str) -> dict[str, Row]:
    """Return the rows of the tickets after their runs."""
    jobs = [TicketJob(ticket) for ticket in tickets]
    place = ThisMachine(Purse(Limit(tokens=1_000)), accepted=("a",))
    coordinator = Coordinator(
        Board({job.name: Row(job) for job in jobs}),
        {job.name: RunOrder(root, job.slug) for job in jobs},
        place,
        4,
        lambda row, event: None,
    )
    await coordinator.carry_out()
    return dict(coordinator.board.rows)


async def test_a_run_that_breaks_the_protocol_fails_and_the_others_continue(
    tmp_path: Path,
) -> None:
    bad = (
        *("killed", "half-a-line", "no-json", "no-object", "deep", "not-utf-8"),
        *("damaged-event", "damaged-question", "long-line", "crashes"),
    )
    rows = await carry_out(tmp_path, *bad, "good")
    states = {name: row.state for name, row in rows.items()}
    assert states == {**dict.fromkeys(bad, RunState.FAILED), "good": RunState.DONE}
    assert all(rows[name].why for name in bad), rows


async def test_a_run_that_says_nothing_for_long_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "SILENCE", 0.2)
    row = (await carry_out(tmp_path, "silent"))["silent"]
    assert row.state is RunState.FAILED
    assert row.why


async def test_the_reason_of_a_refusal_is_that_of_its_process(tmp_path: Path) -> None:
    row = (await carry_out(tmp_path, "refused"))["refused"]
    assert row.state is RunState.REFUSED
    assert row.why == "There is no plan Make one."


async def test_a_line_about_progress_is_no_reason(tmp_path: Path) -> None:
    row = (await carry_out(tmp_path, "slow"))["slow"]
    assert row.state is RunState.FAILED
    assert row.why == "The step failed"


async def test_questions_are_answered_that_there_is_no_user(tmp_path: Path) -> None:
    row = (await carry_out(tmp_path, "asks"))["asks"]
    assert row.state is RunState.NEEDS_YOU
    assert row.why == "the answer: nobody"


async def test_a_run_may_use_the_settings_that_the_user_accepted(
    tmp_path: Path,
) -> None:
    rows = await carry_out(tmp_path, "trusts")
    assert rows["trusts"].state is RunState.DONE


async def test_the_budget_is_kept_by_this_process(tmp_path: Path) -> None:
    rows = await carry_out(tmp_path, "spends")
    assert rows["spends"].state is RunState.NO_BUDGET, rows
    assert Board(rows).exit_code is ExitCode.NOT_APPROVED
