"""The board: progress and cost of several runs, as a value made from their events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct, convert, field
from msgspec.structs import replace

from cdd_agent.cost import NO_COST, Cost
from cdd_agent.errors import ExitCode
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.fleet.job import Ending, TicketJob
from cdd_agent.tickets.status import StepOutcome, StepStatus
from cdd_agent.tickets.step_tally import NO_STEPS, StepTally

EventFields = Mapping[str, Any]
"""An event, as `cdd exec --json` prints it."""
T = TypeVar("T")


class RunState(StrEnum):
    """The state of one run."""

    WAITING = "waiting"
    """Not begun yet."""
    RUNNING = "running"
    DONE = "done"
    COMPLETED = "completed"
    """All steps are over, some of them unverified or skipped."""
    FAILED = "failed"
    REFUSED = "refused"
    """It could not begin or resume."""
    NEEDS_YOU = "needs you"
    """It stopped because no one approved its next action."""
    NO_BUDGET = "no budget"
    LATER = "later"
    """The provider asks to come back later."""
    STOPPED = "stopped"

    @property
    def is_over(self) -> bool:
        return self not in (RunState.WAITING, RunState.RUNNING)

    @property
    def is_completed(self) -> bool:
        """True if all steps are over."""
        return self in (RunState.DONE, RunState.COMPLETED)


_BY_CODE = {
    ExitCode.DONE: RunState.DONE,
    ExitCode.FAILED: RunState.FAILED,
    ExitCode.BAD_INPUT: RunState.REFUSED,
    ExitCode.NOT_APPROVED: RunState.NEEDS_YOU,
    ExitCode.COME_BACK_LATER: RunState.LATER,
    ExitCode.INTERRUPTED: RunState.STOPPED,
}
_WORST_FIRST = (
    (RunState.FAILED, ExitCode.FAILED),
    (RunState.REFUSED, ExitCode.BAD_INPUT),
    (RunState.NEEDS_YOU, ExitCode.NOT_APPROVED),
    (RunState.NO_BUDGET, ExitCode.NOT_APPROVED),
    (RunState.LATER, ExitCode.COME_BACK_LATER),
    (RunState.STOPPED, ExitCode.INTERRUPTED),
    (RunState.WAITING, ExitCode.INTERRUPTED),
)


class Row(Struct, frozen=True):
    """One run."""

    job: TicketJob
    state: RunState = RunState.WAITING
    tally: StepTally = NO_STEPS
    """The plan's steps by outcome; empty if unknown."""
    steps: Mapping[int, str] = field(default_factory=dict)
    """Titles of the steps that are running or failed."""
    labels: Mapping[int, str] = field(default_factory=dict)
    """The steps' numbers, as the plan writes them."""
    wait: str = ""
    """Why the run waits, or empty."""
    tests: tuple[int, int] | None = None
    """Passed and failed tests of the last check that reported them."""
    why: str = ""
    """Why the run stopped."""
    question: str = ""
    """The question that the user must answer before the run continues."""
    costs: Mapping[int, Cost] = field(default_factory=dict)
    """By step; 0 is for steps that the plan no longer has."""
    unsaved: Mapping[int, Cost] = field(default_factory=dict)
    """Costs of calls in running steps, by step."""
    tries: Mapping[int, int] = field(default_factory=dict)
    """Attempts by step."""
    earlier: float = 0.0
    """Seconds that the run took in earlier processes."""
    worked: float = 0.0
    """Seconds of its steps so far, without waiting for the user."""
    began: float | None = None
    """Unix time."""
    ended: float | None = None

    @property
    def cost(self) -> Cost:
        return sum((*self.costs.values(), *self.unsaved.values()), NO_COST)

    def label_of(self, number: int) -> str:
        return self.labels.get(number, str(number))

    def seconds(self, unix_time: float) -> float:
        if self.began is None:
            return self.earlier
        return self.earlier + (self.ended or unix_time) - self.began

    def after_event(self, event: EventFields) -> Row:
        """Return the row after an event, as `cdd exec --json` prints it. Raises
        `LookupError`, `TypeError` or `ValueError` if the event lacks fields.
        """
        update = _UPDATES.get(event["event"])
        return self if update is None else update(self, event)

    def after_end(self, ending: Ending, unix_time: float) -> Row:
        state = _BY_CODE[ending.exit_code]
        if ending.budget_used_up:
            state = RunState.NO_BUDGET
        if state is RunState.DONE and self.tally.has_gaps:
            state = RunState.COMPLETED
        why = "" if state.is_completed else ending.words or self.why
        question = self.question if state is RunState.NEEDS_YOU else ""
        return replace(
            self, state=state, ended=unix_time, wait="", why=why, question=question
        )


def _open_plan(row: Row, event: EventFields) -> Row:
    worked, tests = 0.0, row.tests
    outcomes = list[StepOutcome]()
    costs = {0: _cost(event["former_cost"])}
    tries, labels = dict[int, int](), dict[int, str]()
    for step in event["steps"]:
        number = step["number"]
        summary = convert(step, StepSummary)
        outcomes.append(summary.outcome)
        evidence = summary.evidence
        if evidence is not None and evidence.passed is not None:
            tests = evidence.passed, evidence.failed
        worked += step["seconds"] or 0.0
        costs[number] = _cost(step["cost"])
        tries[number] = step["attempts"]
        labels[number] = step["label"]
    return replace(
        row,
        tally=StepTally.count(outcomes),
        tests=tests,
        costs=costs,
        tries=tries,
        labels=labels,
        earlier=worked,
        worked=worked,
        unsaved={},
    )


def _start_step(row: Row, event: EventFields) -> Row:
    number = event["step"]
    return replace(
        row,
        steps={**row.steps, number: event["title"]},
        tries={**row.tries, number: event["attempt"]},
        wait="",
        question="",
        why="",
    )


def _delay_reply(row: Row, event: EventFields) -> Row:
    seconds, reason = event["seconds"], event["reason"]
    return replace(row, wait=f"Retrying in {seconds:.0f} s: {reason}")


def _continue_reply(row: Row, event: EventFields) -> Row:
    del event
    return replace(row, wait="") if row.wait else row


def _finish_reply(row: Row, event: EventFields) -> Row:
    row, usage = _continue_reply(row, event), event["usage"]
    if usage is None:
        return row
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]
    cost = Cost(tokens, usage["usd"], usage["estimated"])
    number = event["step"]
    before = row.unsaved.get(number, NO_COST)
    return replace(row, unsaved={**row.unsaved, number: before + cost})


def _propose_changes(row: Row, event: EventFields) -> Row:
    paths = [*event["created"], *event["modified"], *event["deleted"]]
    return replace(row, question=f"changes of {', '.join(paths)}")


def _propose_command(row: Row, event: EventFields) -> Row:
    return replace(row, question=f"`{event['command']}`")


def _finish_tests(row: Row, event: EventFields) -> Row:
    if event["passed"] is None or event["failed"] is None:
        return row
    return replace(row, tests=(event["passed"], event["failed"]))


def _finish_step(row: Row, event: EventFields) -> Row:
    number = event["step"]
    row = replace(
        row,
        tally=convert(event["tally"], StepTally),
        wait="",
        costs={**row.costs, number: _cost(event["cost"])},
        unsaved=_without(row.unsaved, number),
        why=event["error"] or "",
    )
    if not StepStatus(event["status"]).is_over:
        return row
    return replace(row, steps=_without(row.steps, number), question="")


def _finish_run(row: Row, event: EventFields) -> Row:
    reasons = list[str]()
    for criterion in event.get("edited_criteria", ()):
        reasons.append(f"criterion {criterion['place']} is {criterion['edit']}")
    why = "; ".join(reasons) or row.why
    tally = convert(event["tally"], StepTally)
    return replace(row, worked=event["seconds"] or 0.0, why=why, tally=tally)


def _note(row: Row, event: EventFields) -> Row:
    if event["tone"] not in ("warning", "error"):
        return row
    return replace(row, why=event["text"])


_UPDATES: Mapping[str, Callable[[Row, EventFields], Row]] = {
    "plan_opened": _open_plan,
    "step_started": _start_step,
    "reply_delayed": _delay_reply,
    "reply_started": _continue_reply,
    "reply_delta": _continue_reply,
    "reply_restarted": _continue_reply,
    "reply_finished": _finish_reply,
    "changes_proposed": _propose_changes,
    "command_proposed": _propose_command,
    "tests_finished": _finish_tests,
    "step_finished": _finish_step,
    "run_finished": _finish_run,
    "notice": _note,
}
"""The changes of a row by event. Other events do not change it."""


class Board(Struct, frozen=True):
    """All runs, in the order in which the user named them."""

    rows: Mapping[str, Row]

    def with_row(self, row: Row) -> Board:
        return Board({**self.rows, row.job.name: row})

    @property
    def cost(self) -> Cost:
        return sum((row.cost for row in self.rows.values()), NO_COST)

    def count(self, *states: RunState) -> int:
        return sum(row.state in states for row in self.rows.values())

    @property
    def exit_code(self) -> ExitCode:
        """0 if all runs are done, else that of the worst (`_WORST_FIRST`)."""
        states = {row.state for row in self.rows.values()}
        for state, code in _WORST_FIRST:
            if state in states:
                return code
        return ExitCode.DONE


def _cost(fields: Mapping[str, Any]) -> Cost:
    return Cost(fields["tokens"], fields["usd"], fields["estimated"])


def _without(values: Mapping[int, T], number: int) -> dict[int, T]:
    return {key: value for key, value in values.items() if key != number}
