"""The details of one step, for the step screen: from the plan, the state and the run's
record.
"""

from pathlib import Path

from msgspec import Struct

from cdd_agent.engine.accepted import KnownTests
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.files.json_file import read_text
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.state import ExecutionState, StepExecution, load_state
from cdd_agent.tickets.store import Ticket
from cdd_agent.verification.outcomes import Result


class SeenTest(Struct, frozen=True):
    """One test in a check. `before` is its earlier result; None if there is none."""

    name: str
    result: Result
    before: Result | None


class AttemptDetails(Struct, frozen=True):
    """One attempt. Texts that were not saved are empty."""

    number: int
    guidance: str
    request: str
    reply: str
    """The model's reply, with its tool calls."""
    failure: str
    diff: str
    output: str
    """The output of its checks."""
    tests: tuple[SeenTest, ...]


class StepDetails(Struct, frozen=True):
    """One step of the plan, its summary, and its attempts in order."""

    ticket_slug: str
    step: PlanStep
    view: StepSummary
    attempts: tuple[AttemptDetails, ...]
    depends_on: tuple[str, ...] = ()
    """The labels of the steps that it depends on."""


def step_details(
    root: Path, ticket: Ticket, number: int, redactor: Redactor
) -> StepDetails:
    """Read the details, without the ticket's lock and without the record of other
    steps. Raises `BadInput` if there is no such step, or a file is damaged.
    """
    plan = ticket.read_plan()
    step = plan.step(number)
    if step is None:
        raise BadInput(f"{ticket.shown(ticket.plan_path)} has no step {number}")
    state = load_state(ticket, plan) or ExecutionState(ticket_slug=ticket.slug)
    record, now = RunRecord.of_ticket(ticket, redactor), state.step(number)
    return StepDetails(
        ticket.slug,
        step,
        StepSummary.from_state(now, plan),
        tuple(
            _attempt(record.attempt(now.folder, n), n, state, record, now)
            for n in range(1, now.attempts + 1)
        ),
        plan.labels_of(step.dependencies),
    )


def _attempt(
    attempt: Attempt,
    number: int,
    state: ExecutionState,
    record: RunRecord,
    now: StepExecution,
) -> AttemptDetails:
    failure = attempt.failure
    return AttemptDetails(
        number,
        attempt.guidance,
        read_text(attempt.folder / "request.md") or "",
        attempt.said,
        failure.detail if failure else "",
        read_text(attempt.folder / "changes.diff") or "",
        attempt.outputs,
        _seen_by_check(record, state, now, number),
    )


def _seen_by_check(
    record: RunRecord, state: ExecutionState, step: StepExecution, attempt: int
) -> tuple[SeenTest, ...]:
    """Return the tests in an attempt's check, each with its earlier result. The order:
    new failures, newly passed tests, old failures, the rest.
    """
    saved = record.attempt(step.folder, attempt)
    if (tests := saved.tests) is None:
        return ()
    before = saved.tests_before
    # an older record does not have them: they follow from the steps before
    if before is None:
        before = (
            KnownTests(record).so_far(state, before=step).reference.otherwise(tests)
        )

    def rank(test: SeenTest) -> int:
        match test.result, test.before:
            case Result.FAILED, before:
                return 2 if before is Result.FAILED else 0
            case Result.PASSED, Result.FAILED | None:
                return 1
            case _:
                return 3

    seen = (
        SeenTest(test, result, before.get(test, result))
        for test, result in tests.results.items()
    )
    return tuple(sorted(seen, key=rank))
