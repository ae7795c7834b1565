"""`cdd plan` without a screen: a plan is made and written without a question."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.cli.main import main
from cdd_agent.events.notices import NoticeKind
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_reader import read_plan
from tests.agents.test_planner import GOOD_STEPS, SPEC, asking, plan, step
from tests.support.forked import Forked
from tests.support.projects import SLUG, Sandbox, Step
from tests.support.tables import each_row


@pytest.fixture
def ticket(sandbox: Sandbox) -> Sandbox:
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()
    return sandbox


def script(sandbox: Sandbox, *replies: str | dict[str, object], pace: int = 0) -> str:
    entries = [
        json.dumps({"reply": reply} if isinstance(reply, str) else reply)
        for reply in replies
    ]
    (sandbox.root / ".cdd/script.yaml").write_text(
        f"pace: {pace}\nreplies: [{', '.join(entries)}]\n"
    )
    return "script:.cdd/script.yaml"


def cdd(sandbox: Sandbox, *arguments: str) -> int:
    return main([*arguments, "-C", str(sandbox.root)])


def written(sandbox: Sandbox) -> ImplementationPlan:
    return read_plan((sandbox.ticket / "plan.md").read_text())


def test_a_plan_is_made_and_written_and_passes_its_check(
    ticket: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    risky = plan(risks=["Assumed: two files"])
    assert cdd(ticket, "plan", SLUG, "--model", script(ticket, risky)) == 0
    out = capsys.readouterr().out
    assert "✓" in out
    assert f"tickets/{SLUG}/plan.md" in out
    assert f"`cdd exec {SLUG}`" in out
    assert len(written(ticket).steps) == len(GOOD_STEPS)
    assert cdd(ticket, "plan", "check", SLUG) == 0
    assert "warning" not in capsys.readouterr().out


def test_json_is_one_event_a_line(
    ticket: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cdd(ticket, "plan", SLUG, "--json", "--model", script(ticket, plan())) == 0
    events: list[dict[str, Any]] = [
        json.loads(line) for line in capsys.readouterr().out.splitlines()
    ]
    assert {
        "reply_started",
        "reply_finished",
        "plan_proposed",
        "plan_checked",
        "notice",
    } <= {event["event"] for event in events}
    (checked,) = [event for event in events if event["event"] == "plan_checked"]
    assert checked["problems"] == []


def test_a_plan_that_is_there_stays_unless_it_is_to_be_made_anew(
    ticket: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    ticket.write(Step("mine.txt"), spec=SPEC)
    before = (ticket.ticket / "plan.md").read_text()
    model = script(ticket, plan())
    assert cdd(ticket, "plan", SLUG, "--model", model) == 0
    assert "`--regenerate`" in capsys.readouterr().out
    assert (ticket.ticket / "plan.md").read_text() == before
    assert cdd(ticket, "plan", SLUG, "--model", model, "--regenerate") == 0
    assert written(ticket).steps[0].title == "Write a.txt"
    (kept,) = (ticket.root / ".cdd/runs" / SLUG / "plans").iterdir()
    assert kept.read_text() == before


def test_nobody_is_asked(ticket: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cdd(ticket, "plan", SLUG, "--model", script(ticket, asking("Which?"), plan()))
        == 0
    )
    capsys.readouterr()
    (ticket.ticket / "plan.md").unlink()
    assert (
        cdd(ticket, "plan", SLUG, "--model", script(ticket, *[asking("Which?")] * 3))
        == 1
    )
    assert "Which?" in capsys.readouterr().err
    assert not (ticket.ticket / "plan.md").exists()


def test_errors_that_remain_are_written_only_with_yes_and_not_paid_for_again(
    ticket: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = plan(step(1, "a.txt"))
    assert cdd(ticket, "plan", SLUG, "--model", script(ticket, *[narrow] * 3)) == 1
    out = capsys.readouterr().out
    assert "criterion 2" in out
    assert "--yes`" in out
    assert not (ticket.ticket / "plan.md").exists()
    assert cdd(ticket, "plan", SLUG, "--model", script(ticket), "--yes") == 0
    assert (ticket.ticket / "plan.md").exists()
    assert len(written(ticket).steps) == 1


def test_a_basic_plan_needs_no_model(
    ticket: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cdd(ticket, "plan", SLUG) == 2
    assert "`cdd model" in capsys.readouterr().err
    assert cdd(ticket, "plan", SLUG, "--basic") == 0
    assert "Basic plan" in written(ticket).overview
    assert cdd(ticket, "plan", "check", SLUG) == 0


def test_checking_writes_nothing(ticket: Sandbox) -> None:
    ticket.write(Step("a.txt"), spec=SPEC)
    before = sorted(ticket.root.rglob("*"))
    assert cdd(ticket, "plan", "check", SLUG) == 0
    assert sorted(ticket.root.rglob("*")) == before


@each_row(
    ("arguments", "words"),
    [
        (["plan", "nope"], "no ticket"),
        (["plan", "shwo", SLUG], "There is no `cdd plan shwo`"),
        (["plan", "show", SLUG, "--basic"], "`cdd plan show` does not take"),
        (["plan", SLUG, "--basic"], "is not complete"),
    ],
)
def test_bad_input_is_a_message_and_exit_2(
    ticket: Sandbox,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    (ticket.ticket / "spec.yaml").write_text(
        "title: Say words\ndescription: <what is wanted>\n"
    )
    assert cdd(ticket, *arguments) == 2
    assert words in capsys.readouterr().err


def planning_slowly(sandbox: Sandbox) -> Forked:
    """A process that plans, at the moment when it has looked at words.py and waits for
    the model.
    """
    (sandbox.root / "words.py").write_text("GOOD = 'good'\n")
    looking: dict[str, object] = {
        "reply": "I look.",
        "tool_calls": [{"name": "read_file", "arguments": {"path": "words.py"}}],
    }
    model = script(sandbox, looking, {"reply": plan(), "slow": 60})
    process = Forked("plan", SLUG, "--model", model, cwd=sandbox.root)
    until = time.monotonic() + 60
    while not (
        notes(sandbox).exists() and '"role": "tool"' in notes(sandbox).read_text()
    ):
        assert time.monotonic() < until, process.communicate()
        time.sleep(0.05)
    return process


def told(capsys: pytest.CaptureFixture[str]) -> list[object]:
    """The subjects of the notices."""
    return [
        json.loads(line).get("kind") for line in capsys.readouterr().out.splitlines()
    ]


def notes(sandbox: Sandbox) -> Path:
    return sandbox.root / ".cdd/runs" / SLUG / "planning.json"


@pytest.mark.fork
def test_after_ctrl_c_the_same_command_goes_on_with_what_was_learnt(
    ticket: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    process = planning_slowly(ticket)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert len(err.strip().splitlines()) == 1
    assert notes(ticket).exists()
    assert not (ticket.ticket / "plan.md").exists()

    assert cdd(ticket, "plan", SLUG, "--json", "--model", script(ticket, plan())) == 0
    assert NoticeKind.RESUMED in told(capsys)
    assert len(written(ticket).steps) == 2
    assert not notes(ticket).exists()


@pytest.mark.fork
def test_of_two_that_plan_one_ticket_the_second_is_told_who_the_first_is(
    ticket: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    process = planning_slowly(ticket)
    before = notes(ticket).read_bytes()
    for arguments in (
        ["--model", script(ticket, plan())],
        ["--basic"],
        ["--regenerate", "--basic"],
    ):
        assert cdd(ticket, "plan", SLUG, *arguments) == 2
        assert f" {process.pid} " in capsys.readouterr().err
    assert notes(ticket).read_bytes() == before
    assert cdd(ticket, "status", SLUG) == 0  # who only looks is not in the way
    capsys.readouterr()
    process.kill()
    process.communicate()
    assert cdd(ticket, "plan", SLUG, "--json", "--model", script(ticket, plan())) == 0
    assert NoticeKind.RESUMED in told(capsys)
    assert not notes(ticket).exists()


def test_a_plan_that_is_there_is_told_of_while_somebody_is_at_work(
    ticket: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    ticket.write(Step("a.txt"), spec=SPEC)
    engine = ticket.engine()
    assert cdd(ticket, "plan", SLUG) == 0
    assert "`--regenerate`" in capsys.readouterr().out
    assert cdd(ticket, "plan", "check", SLUG) == 0
    engine.close()
