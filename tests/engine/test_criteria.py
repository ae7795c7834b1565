"""From an acceptance criterion to the steps, tests and files that serve it."""

import re
from pathlib import Path

import pytest
from textual.widgets import OptionList

from cdd_agent.engine.criteria import criteria_of
from cdd_agent.engine.step_details import StepDetails
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.ticket_events import CriteriaShown, CriterionProof
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.status import CriterionEdit
from cdd_agent.tui.criteria_screen import CriteriaScreen
from cdd_agent.tui.transcript.widget import Transcript
from tests.engine.calculator import ADD, CALC, FIXED, SUB, calculator, gives
from tests.support.projects import SLUG, SPEC, Sandbox, Step, run_all, says
from tests.tui.person import person_at

CRITERIA = SPEC.replace(
    "  - a.txt says good", "  - It subtracts\n  - It is described\n  - It is fast"
)


@pytest.fixture
def ticket(sandbox: Sandbox) -> Sandbox:
    """Three criteria, of which the first two are served by a step each, and the first
    one by the last step, too.
    """
    calculator(
        sandbox, Step("calc.py"), Step("notes.txt", "none"), Step("more.txt", "none")
    )
    (sandbox.ticket / "spec.yaml").write_text(CRITERIA)
    parts = (sandbox.ticket / "plan.md").read_text().split("**Dependencies:** None")
    served = ("**Serves:** 1", "**Serves:** 2", "**Serves:** 1")
    text = "".join(
        f"{part}**Dependencies:** None\n{serves}"
        for part, serves in zip(parts, served, strict=False)
    )
    (sandbox.ticket / "plan.md").write_text(text + parts[-1])
    return sandbox


def criteria(sandbox: Sandbox) -> CriteriaShown:
    ticket = sandbox.project.tickets.find(SLUG)
    return criteria_of(ticket.read_spec(), ticket, Redactor())


def test_before_a_run_it_is_known_who_is_to_serve_what(ticket: Sandbox) -> None:
    shown = criteria(ticket).criteria
    assert [[step.number for step in criterion.steps] for criterion in shown] == [
        [1, 3],
        [2],
        [],
    ]
    assert not any(
        criterion.is_seen or criterion.tests or criterion.files for criterion in shown
    )


def test_a_ticket_without_a_plan_has_its_criteria(ticket: Sandbox) -> None:
    planned = [criterion.text for criterion in criteria(ticket).criteria]
    (ticket.ticket / "plan.md").unlink()
    assert len(planned) == 3
    assert [criterion.text for criterion in criteria(ticket).criteria] == planned


async def test_it_is_seen_when_all_steps_that_serve_it_were_proven_by_tests(
    ticket: Sandbox,
) -> None:
    ticket.replies(gives(calc_dot_py=FIXED), says("notes.txt", "x"))
    await run_all(ticket)
    first, second, third = criteria(ticket).criteria
    assert not first.is_seen  # its last step was not done
    assert first.tests == (SUB,)
    assert ADD not in first.tests
    assert first.files == ("calc.py",)
    # done, and unverified
    assert (second.is_seen, second.tests, second.files) == (False, (), ("notes.txt",))
    assert (third.is_seen, third.steps) == (False, ())

    plan = ticket.ticket / "plan.md"
    plan.write_text(plan.read_text().split("### Step 2")[0])
    assert [criterion.is_seen for criterion in criteria(ticket).criteria] == [
        True,
        False,
        False,
    ]


async def test_what_was_undone_serves_nothing(ticket: Sandbox) -> None:
    await run_all(ticket.replies(gives(calc_dot_py=FIXED), says("notes.txt", "x")))
    engine = ticket.engine()
    await engine.undo(1)
    engine.close()
    assert (ticket.root / "calc.py").read_text() == CALC
    assert not any(
        criterion.tests or criterion.files for criterion in criteria(ticket).criteria
    )


async def test_in_the_shell_one_walks_from_a_criterion_to_the_lines(
    ticket: Sandbox,
) -> None:
    ticket.replies(
        gives(calc_dot_py=FIXED), says("notes.txt", "x"), says("more.txt", "x")
    )
    async with person_at(ticket, f"/exec {SLUG}", size=(120, 40)) as person:
        await person.say("continue")
        await person.press("f3")
        await person.until(lambda: isinstance(person.app.screen, CriteriaScreen))
        shown = person.app.screen.query_one(Transcript)
        await person.until(lambda: SUB in shown.plain_text())
        assert "+    return a - b" in shown.plain_text()
        # its last step is not done: changes are folded
        assert "▸ calc.py" in person.screen
        await person.press("ctrl+up", "ctrl+up", "enter")
        await person.until(lambda: "▾ calc.py" in person.screen)
        await person.press("down", "down")
        await person.until(lambda: "No step" in shown.plain_text())
        await person.press("escape")
        assert person.app.screen is person.app.home

        await person.say("/criteria")
        assert isinstance(person.app.screen, CriteriaScreen)


async def test_in_the_shell_a_changed_criterion_has_no_evidence_and_says_why(
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
        await person.until(lambda: isinstance(person.app.screen, CriteriaScreen))
        shown = person.app.screen.query_one(Transcript)
        await person.until(lambda: "Changed since" in shown.plain_text())
        assert SUB not in shown.plain_text()
        assert "a new step" in shown.plain_text()
        rows = [line for line in person.screen.split("\n") if ". It divides" in line]
        assert "changed" in rows[0]
        assert "step" not in rows[0]
    (first, second, third) = criteria(ticket).criteria
    assert first.edit is CriterionEdit.CHANGED_SINCE_VERIFIED
    assert (first.steps, first.tests, first.files) == ((), (), ())
    assert second.edit is None
    assert third.edit is CriterionEdit.CHANGED


async def test_without_a_ticket_the_key_says_what_is_missing(sandbox: Sandbox) -> None:
    Path(sandbox.root / ".cdd").mkdir(exist_ok=True)
    async with person_at(sandbox) as person:
        await person.press("f3")
        await person.until(lambda: person.app._notifications)


async def test_of_a_criterion_that_very_many_steps_serve_the_first_ones_are_read(
    ticket: Sandbox,
) -> None:
    views = tuple(StepSummary(number, f"Do part {number}") for number in range(1, 2001))
    read = list[int]()
    async with person_at(ticket) as person:
        assert person.app.session is not None
        session = person.app.session

        def look_at(number: int) -> StepDetails:
            read.append(number)
            return session.look_at_step(1, SLUG)

        proof = CriterionProof(1, "It is whole", views)
        screen = CriteriaScreen(CriteriaShown(SLUG, "All", (proof,)), look_at)
        await person.app.push_screen(screen)
        await person.until(
            lambda: "Do part 2000" in screen.query_one(Transcript).plain_text()
        )
    assert 0 < len(read) < 100


@pytest.mark.parametrize("size", [(20, 12), (200, 50)], ids=str)
async def test_each_criterion_is_one_row_however_long_and_however_many_steps_serve_it(
    ticket: Sandbox, size: tuple[int, int]
) -> None:
    views = tuple(StepSummary(number, f"Do part {number}") for number in range(1, 501))
    proofs = [
        CriterionProof(1, "It is whole", views),
        CriterionProof(2, "A long one. " * 60 + "The end.", views[:3]),
        CriterionProof(3, "One line\nand another"),
    ]
    async with person_at(ticket, size=size) as person:
        assert person.app.session is not None
        session = person.app.session
        screen = CriteriaScreen(
            CriteriaShown(SLUG, "All", tuple(proofs)),
            lambda _: session.look_at_step(1, SLUG),
        )
        await person.app.push_screen(screen)
        options = screen.query_one(OptionList)
        await person.until(lambda: options.size.height == len(proofs))
        rows = [
            row for row in person.screen.split("\n") if re.search(r"[○◐✓] \d\. ", row)
        ]
        assert [re.findall(r"\d\. \w+", row)[0] for row in rows[:3]] == [
            "1. It",
            "2. A",
            "3. One",
        ]
        assert ("500 steps" in rows[0]) == (size[0] >= 40)
        await person.press("down")
        await person.until(
            lambda: "The end." in screen.query_one(Transcript).plain_text()
        )
        await person.pilot.resize_terminal(60, 20)
        await person.until(lambda: options.size.height == len(proofs))
        assert options.highlighted == 1
