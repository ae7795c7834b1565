"""The JSON lines about several runs: `cdd exec A B`, `cdd compare` and `cdd board`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from cdd_agent.events.base_event import event_name
from cdd_agent.events.stream import JSON_VERSION
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.tickets.step_tally import StepTally


class RunStatusLine(Struct, frozen=True):
    """One of several runs."""

    ticket: str
    run: str
    model: str | None
    branch: str
    state: RunState
    done: int
    """Steps that are over."""
    total: int
    """Steps; 0 while that is not known."""
    steps: tuple[int, ...]
    """The steps that are under way or failed."""
    labels: tuple[str, ...]
    attempts: int
    tests_passed: int | None
    tests_failed: int | None
    tokens: int
    usd: float | None
    estimated: bool
    seconds: float
    why: str
    """Why it stopped."""
    question: str
    """The question that the user must answer."""
    tally: StepTally
    """The steps of the plan by their outcomes."""

    @classmethod
    def from_row(cls, row: Row, unix_time: float) -> "RunStatusLine":
        return RunStatusLine(**_run_fields(row, unix_time))


class BoardLine(Struct, frozen=True, tag_field="event", tag=event_name):
    """A line about several runs. In JSON its name is under `event`."""


class RunsStarted(BoardLine, frozen=True):
    """The runs start."""

    runs: tuple[RunStatusLine, ...]


class TicketStarted(RunStatusLine, BoardLine, frozen=True):
    """One of the runs starts."""


class TicketFinished(RunStatusLine, BoardLine, frozen=True):
    """One of the runs stopped."""


class BoardShown(BoardLine, frozen=True):
    """All runs of the project, and their cost."""

    tokens: int
    usd: float | None
    estimated: bool
    runs: tuple[RunStatusLine, ...]


class RunsFinished(BoardLine, frozen=True):
    """All runs stopped. `exit_code` is that of the command."""

    exit_code: int
    tokens: int
    usd: float | None
    estimated: bool
    runs: tuple[RunStatusLine, ...]


class ComparedRun(RunStatusLine, frozen=True):
    """One of the compared runs."""

    diff: str | None = None
    """The path of a file with its changes."""


class Compared(BoardLine, frozen=True):
    """The comparison of models on one ticket."""

    runs: tuple[ComparedRun, ...]


AnyBoardLine = (
    RunsStarted | TicketStarted | TicketFinished | BoardShown | RunsFinished | Compared
)


def line_to_json(line: AnyBoardLine) -> dict[str, Any]:
    """Return the line as one JSON object, like `to_json` of an event."""
    return {"v": JSON_VERSION, **to_builtins(line)}


def runs_started(board: Board, unix_time: float) -> RunsStarted:
    return RunsStarted(_runs(board, unix_time))


def ticket_changed(row: Row, unix_time: float) -> TicketStarted | TicketFinished:
    fields = _run_fields(row, unix_time)
    return TicketFinished(**fields) if row.state.is_over else TicketStarted(**fields)


def board_shown(board: Board, unix_time: float) -> BoardShown:
    cost = board.cost
    return BoardShown(cost.tokens, cost.usd, cost.estimated, _runs(board, unix_time))


def runs_finished(board: Board, exit_code: int, unix_time: float) -> RunsFinished:
    cost = board.cost
    return RunsFinished(
        exit_code, cost.tokens, cost.usd, cost.estimated, _runs(board, unix_time)
    )


def compared(board: Board, diffs: Mapping[str, Path], unix_time: float) -> Compared:
    """`diffs` has the path of each run's changes, by the run's name."""
    runs = []
    for name, row in board.rows.items():
        diff = str(diffs[name]) if name in diffs else None
        runs.append(ComparedRun(**_run_fields(row, unix_time), diff=diff))
    return Compared(tuple(runs))


def _runs(board: Board, unix_time: float) -> tuple[RunStatusLine, ...]:
    return tuple(RunStatusLine.from_row(row, unix_time) for row in board.rows.values())


def _run_fields(row: Row, unix_time: float) -> dict[str, Any]:
    passed, failed = row.tests or (None, None)
    return {
        "ticket": row.job.slug,
        "run": row.job.name,
        "model": row.job.model,
        "branch": row.job.branch,
        "state": row.state,
        "done": row.tally.over,
        "total": row.tally.total,
        "steps": tuple(row.steps),
        "labels": tuple(row.label_of(number) for number in row.steps),
        "attempts": sum(row.tries.values()),
        "tests_passed": passed,
        "tests_failed": failed,
        "tokens": row.cost.tokens,
        "usd": row.cost.usd,
        "estimated": row.cost.estimated,
        "seconds": round(row.seconds(unix_time), 1),
        "why": row.why,
        "question": row.question,
        "tally": row.tally,
    }
