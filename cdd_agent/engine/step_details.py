"""Everything that is known of one step, for a person to look at: read from the plan,
the state and the run's record.
"""

from pathlib import Path

from msgspec import Struct

from cdd_agent.engine.accepted import KnownTests
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.events import StepView
from cdd_agent.files.json_file import read_text
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.state import ExecutionState, StepExecution, load_state
from cdd_agent.tickets.store import Ticket
from cdd_agent.verification.outcomes import Result


class SeenTest(Struct, frozen=True):
    """One test as a check saw it. `before` is None where nothing was known of it."""

    name: str
    result: Result
    before: Result | None


class AttemptDetails(Struct, frozen=True):
    """One attempt; what was not kept, or never was, is empty."""

    number: int
    guidance: str
    request: str
    reply: str
    """The model's words; where it used tools, with its calls."""
    failure: str
    diff: str
    output: str
    """Of its checks."""
    tests: tuple[SeenTest, ...]


class StepDetails(Struct, frozen=True):
    """One step as the plan has it, where it stands, and its attempts, the first one
    first.
    """

    ticket_slug: str
    step: PlanStep
    view: StepView
    attempts: tuple[AttemptDetails, ...]
    depends_on: tuple[str, ...] = ()
    """The labels of the steps that it depends on."""


def step_details(
    root: Path, ticket: Ticket, number: int, redactor: Redactor
) -> StepDetails:
    """Reads only, without the ticket's lock, and nothing of other steps' record. Raises
    `BadInput` where there is no such step, or a file is damaged.
    """
    plan = ticket.read_plan()
    step = plan.step(number)
    if step is None:
        raise BadInput(f"{ticket.shown(ticket.plan_path)} has no step {number}")
    state = load_state(ticket, plan) or ExecutionState(ticket_slug=ticket.slug)
    record, now = RunRecord.of_ticket(ticket, redactor), state.step(number)
    was_changed = now.status.is_over and not now.identity.is_unchanged(step)
    return StepDetails(
        ticket.slug,
        step,
        StepView.of(now, plan, changed=was_changed),
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
    """The tests that the check of a step's attempt saw, beside what was known of each
    before the step. What changed first: new failures, then what is green and was not,
    then old failures, then the rest.
    """
    saved = record.attempt(step.folder, attempt)
    if (tests := saved.tests) is None:
        return ()
    before = saved.tests_before
    # an older record: it is found out from those of all steps before
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
