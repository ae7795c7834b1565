"""A step's text, summary and attempts."""

from __future__ import annotations

from msgspec import Struct

from cdd_agent.engine.accepted import KnownTests
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.saved_run import SavedRun
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.files.json_file import read_text
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.plan import NoSuchStep, PlanStep
from cdd_agent.tickets.state import StepExecution
from cdd_agent.tickets.store import Ticket
from cdd_agent.verification.outcomes import Result


class SeenTest(Struct, frozen=True):
    """A test in a check, with its earlier result, if any."""

    name: str
    result: Result
    before: Result | None

    @property
    def importance(self) -> int:
        """0 for a new failure, 1 for a newly passed test, 2 for an old failure."""
        if self.result is Result.FAILED:
            return 2 if self.before is Result.FAILED else 0
        if self.result is Result.PASSED and self.before in (Result.FAILED, None):
            return 1
        return 3


class AttemptDetails(Struct, frozen=True):
    """Unsaved texts are empty."""

    number: int
    guidance: str
    request: str
    reply: str
    """With its tool calls."""
    failure: str
    diff: str
    output: str
    tests: tuple[SeenTest, ...]
    """Most important first."""


class StepDetails(Struct, frozen=True):
    ticket_slug: str
    step: PlanStep
    view: StepSummary
    attempts: tuple[AttemptDetails, ...]
    depends_on: tuple[str, ...] = ()

    @property
    def diff(self) -> str:
        """The diff of the last attempt with changes."""
        for attempt in reversed(self.attempts):
            if attempt.diff:
                return attempt.diff
        return ""


def step_details(ticket: Ticket, number: int, redactor: Redactor) -> StepDetails:
    """Read without the ticket's lock and other steps' records. Raises `BadInput` if
    there is no such step, or a file is damaged.
    """
    run = SavedRun.load(ticket, redactor)
    step = run.plan.step(number)
    if step is None:
        raise NoSuchStep(str(number), run.plan)
    saved = run.state.step(number)
    attempts = []
    for place in range(1, saved.attempts + 1):
        attempt = run.record.attempt(saved.folder, place)
        attempts.append(_read_attempt(attempt, run, saved))
    return StepDetails(
        ticket.slug,
        step,
        StepSummary.from_state(saved, run.plan),
        tuple(attempts),
        run.plan.labels_of(step.dependencies),
    )


def _read_attempt(
    attempt: Attempt, run: SavedRun, step: StepExecution
) -> AttemptDetails:
    failure = attempt.failure
    return AttemptDetails(
        attempt.number,
        attempt.guidance,
        read_text(attempt.folder / "request.md") or "",
        attempt.said,
        failure.detail if failure else "",
        read_text(attempt.folder / "changes.diff") or "",
        attempt.outputs,
        _read_tests(attempt, run, step),
    )


def _read_tests(
    attempt: Attempt, run: SavedRun, step: StepExecution
) -> tuple[SeenTest, ...]:
    tests = attempt.tests
    if tests is None:
        return ()
    before = attempt.tests_before
    # older records lack it, so derive it from earlier steps
    if before is None:
        results = KnownTests(run.record).so_far(run.state, before=step)
        before = results.reference.otherwise(tests)
    seen = [
        SeenTest(name, result, before.get(name, result))
        for name, result in tests.results.items()
    ]
    return tuple(sorted(seen, key=lambda test: test.importance))
