"""From an acceptance criterion to the steps, tests and files that serve it."""

import pytest

from cdd_agent.engine.criteria import criteria_of
from cdd_agent.events.ticket_events import CriteriaShown
from cdd_agent.text.redaction import Redactor
from tests.engine.calculator import ADD, CALC, FIXED, SUB, calculator, gives
from tests.support.projects import SLUG, SPEC, Sandbox, Step, run_all, says

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
