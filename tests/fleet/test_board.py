"""The board: a value that the events of runs change, and its lines."""

from typing import Any

from msgspec.structs import replace
from rich.cells import cell_len

from cdd_agent.cost import Cost
from cdd_agent.errors import ExitCode
from cdd_agent.events.dialogue_events import ReplyDelayed, ReplyDelta, ReplyFinished
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.question_events import CommandProposed
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.step_events import StepStarted, TestsFinished
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.events.stream import Event, to_json
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.job import Ending, TicketJob
from cdd_agent.fleet.table import comparison, duration, summary, table
from cdd_agent.llm.budget import Limit
from cdd_agent.llm.port import Usage
from cdd_agent.tickets.outcome_words import remarks_on
from cdd_agent.tickets.status import RunStatus, StepStatus, Verification
from cdd_agent.tickets.step_tally import StepTally
from tests.support.tables import each_row

STEPS = (
    StepSummary(
        *(1, "Make a", StepStatus.COMPLETED, Verification.PASSED),
        attempts=2,
        seconds=3.0,
        cost=Cost(100, 0.5),
    ),
    StepSummary(2, "Make b"),
)
OPENED = PlanOpened("feature-a", "Words", STEPS, resumed=True)
STARTED = StepStarted(2, "Make b", 1)
DONE = StepFinished(
    *(2, "Make b", StepStatus.COMPLETED, Verification.PASSED, None, None, (), ()),
    done=2,
    total=2,
    tally=StepTally(passed=2),
    cost=Cost(70, 0.2),
)


def told(*events: Event) -> Row:
    row = Row(TicketJob("feature-a"), RunState.RUNNING, began=0.0)
    for event in events:
        row = row.after_event(to_json(event))
    return row


def test_a_run_that_goes_on_begins_with_what_was_done_and_spent() -> None:
    row = told(OPENED)
    assert (row.tally.over, row.tally.total) == (1, 2)
    assert (row.cost, row.worked) == (Cost(100, 0.5), 3.0)
    assert row.seconds(unix_time=4.0) == 7.0


def test_calls_count_when_they_are_made_and_once() -> None:
    row = told(OPENED, STARTED, ReplyFinished(2, Usage(40, 10, usd=0.1)))
    assert row.cost == Cost(150, 0.6)
    row = row.after_event(to_json(DONE))
    assert row.cost == Cost(170, 0.7)
    assert (row.tally.over, row.steps, row.tries) == (2, {}, {1: 2, 2: 1})


def test_a_wait_is_shown_until_the_reply_goes_on() -> None:
    row = told(OPENED, STARTED, ReplyDelayed(2, 12.0, "Too many requests."))
    assert row.wait == "Retrying in 12 s: Too many requests."
    assert (
        told(
            OPENED, STARTED, ReplyDelayed(2, 12.0, "Too many."), ReplyDelta(2, "x")
        ).wait
        == ""
    )


@each_row(
    ("ending", "state"),
    [
        (Ending(ExitCode.DONE), RunState.DONE),
        (Ending(ExitCode.FAILED), RunState.FAILED),
        (Ending(ExitCode.BAD_INPUT), RunState.REFUSED),
        (Ending(ExitCode.NOT_APPROVED), RunState.NEEDS_YOU),
        (Ending(ExitCode.NOT_APPROVED, budget_used_up=True), RunState.NO_BUDGET),
        (Ending(ExitCode.COME_BACK_LATER), RunState.LATER),
        (Ending(ExitCode.INTERRUPTED), RunState.STOPPED),
    ],
)
def test_an_ending_is_a_state(ending: Ending, state: RunState) -> None:
    row = told(OPENED, STARTED).after_end(ending, 9.0)
    assert row.state is state
    assert row.seconds(unix_time=100.0) == 12.0


@each_row(
    ("tally", "state"),
    [
        (StepTally(passed=1, exit_code=1), RunState.DONE),
        (StepTally(passed=1, old_failures=1), RunState.DONE),
        (StepTally(passed=1, unverified=1), RunState.COMPLETED),
        (StepTally(passed=1, skipped=1), RunState.COMPLETED),
    ],
)
def test_a_run_with_unverified_or_skipped_steps_is_not_called_done(
    tally: StepTally, state: RunState
) -> None:
    finished = RunFinished(
        *("feature-a", RunStatus.COMPLETED, 2, 0, 0, 2, 1.0, ()), tally=tally
    )
    row = told(OPENED, finished).after_end(Ending(ExitCode.DONE), 9.0)
    assert row.state is state
    assert Board({"a": row}).exit_code is ExitCode.DONE
    text, tone = table(Board({"a": row}), 9.0, 100)[-1]
    assert "2/2" in text
    assert (tone is Tone.GOOD) is (state is RunState.DONE)
    assert ", ".join(remarks_on(tally)) in text


def test_what_nobody_approved_is_a_question_that_waits() -> None:
    row = told(
        OPENED, STARTED, CommandProposed("rm -r build", "`rm` is not on the list")
    )
    assert "rm -r build" in row.after_end(Ending(ExitCode.NOT_APPROVED), 1.0).question
    assert row.after_end(Ending(ExitCode.FAILED), 1.0).question == ""


def test_why_it_stopped_is_the_ending_s_word_or_the_last_warning() -> None:
    row = told(OPENED, Notice("The disk is full.", Tone.WARNING))
    assert row.after_end(Ending(ExitCode.FAILED), 1.0).why == "The disk is full."
    assert (
        row.after_end(Ending(ExitCode.FAILED, "It crashed."), 1.0).why == "It crashed."
    )
    assert row.after_end(Ending(ExitCode.DONE), 1.0).why == ""


def board(*states: RunState) -> Board:
    jobs = [
        TicketJob(f"feature-{number}-of-a-long-name") for number in range(len(states))
    ]
    rows = (
        replace(Row(job), state=state, began=0.0)
        for job, state in zip(jobs, states, strict=True)
    )
    return Board({row.job.name: row for row in rows})


@each_row(
    ("states", "code"),
    [
        ("done done", 0),
        ("done failed later", 1),
        ("refused failed", 1),
        ("refused needs_you", 2),
        ("no_budget later stopped", 3),
        ("later waiting", 75),
        ("done stopped", 130),
        ("done waiting", 130),
    ],
)
def test_the_exit_code_is_that_of_the_worst(states: str, code: int) -> None:
    assert board(*(RunState[name.upper()] for name in states.split())).exit_code == code


EVERY = tuple(RunState)


@each_row("width", [30, 40, 80, 200])
@each_row("height", [None, 6])
def test_no_line_is_wider_and_the_table_no_higher_than_there_is_room(
    width: int, height: int | None
) -> None:
    rows = board(*EVERY, *EVERY).rows
    why = (
        "a reason\n"
        "of two lines with \x1b[31m a colour"
        " 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字"
    )
    rows = {
        name: replace(row, why=why, costs={1: Cost(123_456, 1.5, estimated=True)})
        for name, row in rows.items()
    }
    lines = table(Board(rows), 5000.0, width, height, Limit(500_000, 20.0))
    assert all(cell_len(text) <= width for text, _ in lines)
    assert all("\x1b" not in text and "\n" not in text for text, _ in lines)
    assert height is None or len(lines) <= height


def test_where_there_is_little_room_what_is_done_or_waits_gives_way() -> None:
    many = board(*[RunState.DONE] * 20, RunState.FAILED, *[RunState.WAITING] * 20)
    shown = "\n".join(text for text, _ in table(many, 1.0, 80, 6))
    assert "feature-20-" in shown
    assert "more" in shown


def test_of_a_long_name_the_end_is_seen_too() -> None:
    rows = [
        Row(TicketJob("feature-user-authentication", f"compare-model-{number}"))
        for number in (1, 2)
    ]
    lines = [
        text for text, _ in table(Board({row.job.name: row for row in rows}), 1.0, 40)
    ]
    assert lines[1].endswith("-model-1")
    assert lines[2].endswith("-model-2")


def test_the_summary_counts_runs_and_shows_the_budget() -> None:
    words = summary(
        board(RunState.DONE, RunState.DONE, RunState.RUNNING),
        61.0,
        Limit(tokens=9_000, usd=2.0),
    )
    assert (
        words == "3 runs · 1 running · 2 done · 0 tokens of 9,000 · $0 of $2.00 · 1:01"
    )
    assert duration(3_725) == "1:02:05"


def test_a_comparison_has_the_results_of_each_model() -> None:
    finished = RunFinished("feature-a", RunStatus.COMPLETED, 2, 0, 0, 2, 61.0, ())
    tested = TestsFinished(2, Verification.PASSED, "", 1.0, passed=12, failed=1)
    row = replace(
        told(OPENED, STARTED, tested, DONE, finished),
        job=TicketJob("feature-a", "compare-m", "some/m"),
    )
    done = Board({"m": row.after_end(Ending(ExitCode.DONE), 9.0)})
    line: Any = comparison(done, 100)[-1].split()
    assert line == [
        "some/m",
        "2/2",
        "passed",
        "3",
        "12",
        "passed,",
        "1",
        "failed",
        "170",
        "$0.7000",
        "1:01",
    ]
    assert all(len(text) <= 40 for text in comparison(done, 40))
