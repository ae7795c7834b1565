"""The criteria tab: from a criterion to the steps, tests and lines that serve it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cdd_agent.engine.criteria import criteria_of
from cdd_agent.engine.step_details import StepDetails
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.ticket_events import CriterionProof
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import CriterionEdit, StepStatus, Verification
from cdd_agent.tui.inspector.criteria_tab import CriteriaTab, criterion_state
from cdd_agent.tui.inspector.row_list import RowList
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.inspector.source import InspectorTab
from tests.engine.calculator import FIXED, SUB, gives
from tests.engine.test_criteria import CRITERIA, ticket
from tests.support.projects import SLUG, Sandbox, run_all, says
from tests.support.tables import each_row
from tests.tui.inspector.examples import FakeRun, inspection_of, inspector
from tests.tui.person import Person, person_at

__all__ = ["ticket"]

DONE = StepSummary(1, "Do it", StepStatus.COMPLETED, Verification.PASSED)
OPEN = StepSummary(2, "Do more")


@each_row(
    ("criterion", "state"),
    [
        (CriterionProof(1, "a", (DONE,)), "verified"),
        (CriterionProof(1, "a", (DONE, OPEN)), "1 of 2 steps verified"),
        (CriterionProof(1, "a", (DONE,), missing=("a.txt",)), "files missing"),
        (CriterionProof(1, "a"), "not covered"),
        (CriterionProof(1, "a", edit=CriterionEdit.NEW), "new"),
        (
            CriterionProof(1, "a", edit=CriterionEdit.CHANGED_SINCE_VERIFIED),
            "changed since it was verified",
        ),
    ],
)
def test_a_criterion_has_a_state_in_words(
    criterion: CriterionProof, state: str
) -> None:
    assert criterion_state(criterion) == state


def rows_of(person: Person) -> RowList:
    return person.app.screen.query_one("#pane-criteria RowList", RowList)


def evidence(person: Person) -> str:
    tabs = person.app.screen.query(CriteriaTab)
    return tabs.first().transcript.plain_text() if tabs else ""


async def test_from_a_criterion_to_the_lines_and_to_the_step(ticket: Sandbox) -> None:
    ticket.replies(
        gives(calc_dot_py=FIXED), says("notes.txt", "x"), says("more.txt", "x")
    )
    async with person_at(ticket, f"/exec {SLUG}", size=(120, 40)) as person:
        await person.say("continue")
        await person.press("f3")
        await person.until(lambda: SUB in evidence(person))
        person.time.pass_by(1)
        assert "+    return a - b" in evidence(person)
        assert "0 of 3 criteria verified" in person.screen
        assert [text.split("  ")[-1].strip() for text in rows_of(person).texts] == [
            "▾ ◐ 1. It subtracts",
            "✓ 1. Make calc.py",
            "○ 3. Make more.txt",
            "▾ ○ 2. It is described",
            "○ 2. Make notes.txt",
            "○ 3. It is fast",
        ]
        await person.press("end")
        await person.until(lambda: "No step" in evidence(person))
        await person.press("home", "down", "enter")
        screen = person.app.screen
        assert isinstance(screen, InspectorScreen)
        assert screen.tab is InspectorTab.STEP
        await person.until(lambda: "✓ 1. Make calc.py" in person.screen)
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)

        await person.say("/criteria")
        assert isinstance(person.app.screen, InspectorScreen)
        assert person.app.screen.tab is InspectorTab.CRITERIA


async def test_a_changed_criterion_has_no_evidence_and_says_why(
    ticket: Sandbox,
) -> None:
    ticket.replies(
        gives(calc_dot_py=FIXED), says("notes.txt", "x"), says("more.txt", "x")
    )
    await run_all(ticket)
    spec = ticket.ticket / "spec.yaml"
    text = CRITERIA.replace("It subtracts", "It divides").replace("It is fast", "Fast")
    spec.write_text(text)
    async with person_at(ticket, size=(120, 40)) as person:
        await person.say(f"/criteria {SLUG}")
        await person.until(lambda: "Changed since" in evidence(person))
        assert SUB not in evidence(person)
        assert "a new step" in evidence(person)
        rows = [line for line in person.screen.split("\n") if ". It divides" in line]
        assert "changed since it was verified" in rows[0]
        assert "step" not in rows[0]
    read = ticket.project.tickets.find(SLUG)
    shown = criteria_of(read.read_spec(), read, Redactor())
    (first, second, third) = shown.criteria
    assert first.edit is CriterionEdit.CHANGED_SINCE_VERIFIED
    assert (first.steps, first.tests, first.files) == ((), (), ())
    assert second.edit is None
    assert third.edit is CriterionEdit.CHANGED


async def test_without_a_ticket_the_key_says_what_is_missing(sandbox: Sandbox) -> None:
    Path(sandbox.root / ".cdd").mkdir(exist_ok=True)
    async with person_at(sandbox) as person:
        await person.press("f3")
        await person.until(lambda: person.app._notifications)


def details_of(number: int) -> StepDetails:
    view = StepSummary(number, f"Do part {number}")
    return StepDetails(SLUG, PlanStep(number, view.title, "Do it."), view, ())


async def test_of_a_criterion_that_very_many_steps_serve_the_first_ones_are_read(
    sandbox: Sandbox,
) -> None:
    views = tuple(StepSummary(number, f"Do part {number}") for number in range(1, 2001))
    criteria = (CriterionProof(1, "It is whole", views),)
    run = FakeRun(replace(inspection_of(views), criteria=criteria), details_of)
    async with person_at(sandbox) as person:
        await person.app.push_screen(inspector(run, InspectorTab.CRITERIA))
        await person.until(lambda: "and 1,980 more steps" in evidence(person))
        assert "and 1,980 more steps" in rows_of(person).texts[-1]
    assert 0 < len(run.steps_read) < 100


@pytest.mark.parametrize("size", [(20, 12), (60, 20), (200, 50)], ids=str)
async def test_each_criterion_is_one_row_however_long_and_however_many_steps_serve_it(
    sandbox: Sandbox, size: tuple[int, int]
) -> None:
    views = tuple(StepSummary(number, f"Do part {number}") for number in range(1, 501))
    criteria = (
        CriterionProof(1, "It is whole", views),
        CriterionProof(2, "A long one. " * 60 + "The end.", views[:3]),
        CriterionProof(3, "One line\nand another"),
    )
    run = FakeRun(replace(inspection_of(views), criteria=criteria), details_of)
    async with person_at(sandbox, size=size) as person:
        await person.app.push_screen(inspector(run, InspectorTab.CRITERIA))
        await person.until(lambda: "Do part 20" in evidence(person))
        await person.press("home", "left")
        assert rows_of(person).texts[0] == "▸ ○ 1. It is whole"
        assert rows_of(person).texts[-1] == "  ○ 3. One line and another"
        await person.press("down")
        await person.until(lambda: "The end." in evidence(person))
        await person.pilot.resize_terminal(60, 20)
        await person.pilot.pause()
        row = rows_of(person).row
        assert row is not None
        assert row.text.startswith("○ 2. A long one.")
