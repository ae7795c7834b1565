"""The findings of spec.yaml: every face reports them, once when a ticket is opened."""

import json

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.stream import Event
from tests.agents.asking import asks
from tests.support.commandline import cdd, events, script
from tests.support.listening import collect
from tests.support.projects import SLUG, SPEC, Sandbox, Step, check, says
from tests.support.tables import each_row

FOUND = SPEC.replace("Say words", "Fix #42")
LINE = f"tickets/{SLUG}/spec.yaml:1:"
INCOMPLETE = "title: Fix #42\nacceptance_critera: [x]\n"


def count(seen: list[Event]) -> int:
    texts = [
        event.text
        for event in seen
        if isinstance(event, Notice) and event.kind is NoticeKind.SPEC_FINDING
    ]
    assert all(text.startswith(LINE) for text in texts)
    return len(texts)


@each_row(
    ("line", "then"),
    [
        (f"/status {SLUG}", None),
        (f"/socrates {SLUG}", "Readers."),
        (f"/plan {SLUG}", "check"),
        (f"/exec {SLUG}", "all"),
    ],
)
async def test_the_shell_reports_them_once_in_an_opening(
    sandbox: Sandbox, line: str, then: str | None
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), spec=FOUND)
    is_dialogue = line.startswith("/socrates")
    sandbox.replies(*[asks("Who?") if is_dialogue else says("a.txt", "good")] * 3)
    session = sandbox.session()
    assert count(await collect(handle(session, line))) == 1
    if then:
        assert count(await collect(handle(session, then))) == 0
    session.leave()
    assert count(await collect(handle(sandbox.session(), "/list"))) == 0


async def test_a_spec_without_findings_is_not_mentioned(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    for line in (f"/status {SLUG}", f"/plan {SLUG}", f"/exec {SLUG}"):
        session = sandbox.session()
        assert count(await collect(handle(session, line))) == 0
        session.leave()


@each_row(
    ("line", "code"),
    [
        (("status", SLUG), 0),
        (("plan", SLUG), 0),
        (("plan", "check", SLUG), 0),
        (("plan", "show", SLUG), 0),
        (("exec", SLUG), 0),
    ],
)
def test_commands_report_them_once(
    sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    line: tuple[str, ...],
    code: int,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), spec=FOUND)
    model = script(sandbox, says("a.txt", "good"))
    options = ("--model", model) if "exec" in line else ()
    assert cdd(sandbox, *line, *options) == code
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count(LINE) == 1


def test_a_plan_that_the_spec_is_not_ready_for_names_the_key_that_was_meant(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(spec=INCOMPLETE)
    (sandbox.ticket / "plan.md").unlink()
    assert cdd(sandbox, "plan", SLUG) == 2
    assert "`acceptance_criteria`?" in capsys.readouterr().out


@each_row("line", [("status", SLUG), ("exec", SLUG), ("plan", SLUG)])
def test_scripts_find_them_by_what_they_are_about(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str], line: tuple[str, ...]
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), spec=FOUND)
    model = script(sandbox, says("a.txt", "good"))
    options = ("--model", model) if "exec" in line else ()
    assert cdd(sandbox, *line, "--json", *options) == 0
    subjects = [event.get("kind") for event in events(capsys)]
    assert subjects.count("spec_finding") == 1


def test_the_check_of_a_plan_has_them_beside_the_problems_of_the_plan(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), spec=FOUND)
    assert cdd(sandbox, "plan", "check", SLUG, "--json") == 0
    (problem,) = json.loads(capsys.readouterr().out)["spec_problems"]
    assert (problem["kind"], problem["line"]) == ("comment", 1)
