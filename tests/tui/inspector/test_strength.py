"""The strength tab: the faults that were tried, and the way to a measurement."""

from cdd_agent.engine.project_digest import digest_project
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.saved_faults import SavedFaults
from cdd_agent.engine.saved_run import SavedRun
from cdd_agent.engine.strength_summary import StrengthSettings, StrengthSummary
from cdd_agent.text.redaction import Redactor
from cdd_agent.tui.inspector.action_screen import ActionScreen
from cdd_agent.tui.inspector.row_list import RowList
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.verification.strength.fault import Fault, FaultKind
from cdd_agent.verification.strength.score import FaultResult, TriedFault
from tests.support.projects import SLUG, Sandbox, Step, run_all, says
from tests.tui.person import Person, person_at


def measure(sandbox: Sandbox, *results: FaultResult) -> None:
    """Save the results of faults of step 1, a line each."""
    ticket = sandbox.project.tickets.find(SLUG)
    run = SavedRun.load(ticket, Redactor())
    record = RunRecord.of_ticket(ticket, Redactor())
    settings = StrengthSettings.from_config(sandbox.project.config)
    saved = SavedFaults.load(record, digest_project(sandbox.root, "tickets"))
    summary = StrengthSummary(run.plan, run.state, saved, settings)
    step = run.plan.steps[0]
    for line, result in enumerate(results, 1):
        fault = Fault(
            "a.py",
            line,
            line,
            line + 1,
            "<=",
            FaultKind.BOUNDARY,
            "`<` became `<=`",
            "x = a < b",
        )
        saved.add(summary.identify(step), TriedFault(fault, result))


def rows(person: Person) -> list[str]:
    lists = person.app.screen.query("#pane-strength RowList")
    return lists.first(RowList).texts if lists else []


async def done(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.py", "none"), Step("b.txt", "none"))
    await run_all(sandbox.replies(says("a.py", "x = 1 < 2"), says("b.txt", "x")))


async def test_the_faults_of_each_step_are_listed_the_unnoticed_ones_first(
    sandbox: Sandbox,
) -> None:
    await done(sandbox)
    measure(
        sandbox, FaultResult.NOTICED, FaultResult.NOT_NOTICED, FaultResult.NO_RESULT
    )
    async with person_at(sandbox, size=(100, 30)) as person:
        person.app.inspect("strength", SLUG)
        await person.until(lambda: rows(person))
        assert rows(person) == [
            "▾ 1. Make a.py",
            "    ✗ a.py:2 `<` became `<=` in: x = a < b",
            "    ✓ a.py:1 `<` became `<=`",
            "    – a.py:3 `<` became `<=`",
            "  2. Make b.txt",
        ]
        assert "50 % (1 of 2 faults noticed) · measured" in person.screen
        assert "1 of 2 noticed, 50 %" in person.screen
        person.time.pass_by(1)
        await person.press("home", "enter")
        await person.until(lambda: "? 1. Make a.py" in person.screen)


async def test_results_for_other_files_do_not_count(sandbox: Sandbox) -> None:
    await done(sandbox)
    measure(sandbox, FaultResult.NOTICED)
    (sandbox.root / "a.py").write_text("x = 1 > 2")
    async with person_at(sandbox, size=(100, 30)) as person:
        person.app.inspect("strength", SLUG)
        await person.until(lambda: "files have changed since" in person.screen)
        assert "m measure" in person.screen


async def test_a_measurement_names_its_limits_and_starts_after_enter(
    sandbox: Sandbox,
) -> None:
    await done(sandbox)
    async with person_at(sandbox, size=(100, 30)) as person:
        person.app.inspect("strength", SLUG)
        await person.until(lambda: "is not measured" in person.screen)
        person.time.pass_by(1)
        await person.press("m")
        await person.until(lambda: isinstance(person.app.screen, ActionScreen))
        effect = person.app.screen.query_one(Transcript)
        await person.until(lambda: "for at most" in effect.plain_text())
        assert "2 completed steps" in effect.plain_text()
        assert "in a copy of your files" in effect.plain_text()
        person.time.pass_by(1)
        await person.press("enter")
        await person.until(lambda: f"/verify {SLUG} --strength" in person.told)
        await person.until(lambda: not person.is_waiting)
