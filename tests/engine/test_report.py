"""The report of a run: right counts however often it was interrupted, and a page that
no text can break.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from cdd_agent.engine.effort import RunEffort
from cdd_agent.engine.log import LogEntry
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.engine.report import Counts, Report, StepReport
from cdd_agent.engine.report_page import save, to_markdown
from cdd_agent.events.dialogue_events import (
    ReplyDelta,
    ReplyFinished,
    ReplyLost,
    ReplyRestarted,
    ReplyStarted,
    ThinkingFinished,
    ToolFinished,
    ToolStarted,
)
from cdd_agent.events.notices import Notice
from cdd_agent.events.question_events import ChangesProposed
from cdd_agent.events.run_events import (
    BaselineTaken,
    QuestionAnswered,
    QuestionAsked,
)
from cdd_agent.events.step_events import (
    AttemptFailed,
    ChangesApplied,
    ChangesPutBack,
    CommandOutput,
    StepStarted,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.llm.port import AuthenticationFailed, Usage
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.tickets.status import RunStatus, StepStatus, Verification
from tests.support.listening import stop_at
from tests.support.projects import Sandbox, Step, check, says
from tests.support.tables import each_row

# --- What a run took ------------------------------------------------------------------

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def opened(*, resumed: bool) -> PlanOpened:
    return PlanOpened("feature-x", "x", (), resumed)


def finished(step: int, status: StepStatus = StepStatus.COMPLETED) -> StepFinished:
    return StepFinished(step, "x", status, None, None, None, (), (), done=1, total=2)


def at(*events: tuple[float, Event]) -> Iterator[LogEntry]:
    return (
        LogEntry(NOON + timedelta(seconds=second), event) for second, event in events
    )


def failed(step: int) -> AttemptFailed:
    return AttemptFailed(step, 1, "no", will_retry=True)


def passed(step: int) -> TestsFinished:
    return TestsFinished(step, Verification.PASSED, "passed", 1.0)


ASKED = ((0, StepStarted(1, "x", 1)), (1, ReplyStarted(1, "m")))
ANSWERED = (*ASKED, (10, ReplyFinished(1, Usage(100, 20))))
KILLED = (
    (1000, Notice("Step 1 was interrupted.")),
    (1000, ChangesPutBack(1, (), ())),
    (1000, opened(resumed=True)),
)
GOES_ON = ((1001, StepStarted(1, "x", 1)), (1002, ReplyStarted(1, "", saved=True)))
ASKED_AGAIN = ((20, StepStarted(1, "x", 2)), (21, ReplyStarted(1, "m")))
ANSWER = RunEffort(
    10.0, model_calls=1, counted_calls=1, prompt_tokens=100, completion_tokens=20
)


@each_row(
    ("events", "efforts"),
    [
        ([], {}),
        (
            [*ANSWERED, (15, passed(1)), (16, finished(1))],
            {1: replace(ANSWER, seconds=16)},
        ),
        (
            [*ASKED, (9, ThinkingFinished(1, 6.0, 12, estimated=False)), *ANSWERED[2:]],
            {1: replace(ANSWER, thinking_seconds=6.0, thinking_tokens=12)},
        ),
        # Waiting for a person is no work.
        (
            [
                *ANSWERED,
                (11, ChangesProposed(1, (), ())),
                (900, ChangesApplied(1, (), (), ())),
                (903, passed(1)),
            ],
            {1: replace(ANSWER, seconds=14)},
        ),
        # Also in the middle of a tool's call, where the question is told with its
        # answer.
        (
            [
                *ANSWERED,
                (11, ToolStarted(1, "create_file(…)")),
                (900, ChangesProposed(1, (), ())),
                (900, ToolFinished(1, "create_file(…)", "")),
                (903, passed(1)),
            ],
            {1: replace(ANSWER, seconds=14)},
        ),
        # Killed while the model wrote: the call was made, nobody knows its tokens.
        ([*ASKED, *KILLED], {1: RunEffort(1.0, model_calls=1)}),
        # The same by a version that says how much was asked: at least that was taken.
        (
            [*ASKED[:1], (1, ReplyStarted(1, "m", prompt_tokens=90)), *KILLED],
            {
                1: RunEffort(
                    1.0,
                    model_calls=1,
                    counted_calls=1,
                    prompt_tokens=90,
                    estimated_calls=1,
                )
            },
        ),
        # Stopped by a person, asked again; a reply that was lost is a call that was
        # made.
        (
            [
                *ASKED,
                (5, ReplyLost(Usage(90, 5, estimated=True))),
                *ASKED_AGAIN,
                (25, ReplyLost(Usage(90, 0))),
                (26, ReplyRestarted(1)),
                (30, ReplyFinished(1, Usage(100, 20, usd=0.5))),
                (31, finished(1)),
            ],
            {
                1: RunEffort(
                    12.0,
                    3,
                    3,
                    prompt_tokens=280,
                    completion_tokens=25,
                    estimated_calls=1,
                    usd=0.5,
                )
            },
        ),
        # What a cache gave and took, and what of the reply were thoughts.
        (
            [
                *ASKED,
                (10, ReplyFinished(1, Usage(100, 20, False, 0.5, 60, 30, 5, 0.25))),
                (11, finished(1)),
            ],
            {1: RunEffort(11.0, 1, 1, 100, 20, 0, 0.5, 0.0, 0, 60, 30, 0.25)},
        ),
        # A provider that asked to come back later took nothing.
        (
            [
                *ASKED[:1],
                (1, ReplyStarted(1, "m", prompt_tokens=90)),
                (2, finished(1, StepStatus.PENDING)),
                *KILLED,
            ],
            {1: RunEffort(2.0, model_calls=1)},
        ),
        # Killed later, and on from the saved reply: one call.
        (
            [
                *ANSWERED,
                *KILLED,
                *GOES_ON,
                (1002, TestsStarted(1, "t")),
                (1005, passed(1)),
                (1005, finished(1)),
            ],
            {1: replace(ANSWER, seconds=14)},
        ),
        # Skipped after a kill, or long after it was stopped: nobody worked meanwhile.
        ([*ANSWERED, *KILLED, (2000, finished(1, StepStatus.SKIPPED))], {1: ANSWER}),
        ([*ANSWERED, (2000, finished(1, StepStatus.SKIPPED))], {1: ANSWER}),
        # A failed attempt, and a second one.
        (
            [
                *ANSWERED,
                (12, failed(1)),
                *ASKED_AGAIN,
                (25, ReplyFinished(1, None)),
                (26, finished(1)),
            ],
            {
                1: RunEffort(
                    18.0,
                    model_calls=2,
                    counted_calls=1,
                    prompt_tokens=100,
                    completion_tokens=20,
                )
            },
        ),
        # Questions, with an hour between them in which nobody worked; and one that the
        # provider refused.
        (
            [
                *(
                    (0, QuestionAsked(1, "Why?")),
                    (1, ReplyStarted(1, "m")),
                    (10, ReplyFinished(1, Usage(100, 20))),
                ),
                *(
                    (10, QuestionAnswered(1)),
                    (3600, QuestionAsked(1, "So?")),
                    (3601, ReplyStarted(1, "m")),
                ),
                *((3602, ReplyFinished(1, Usage(1, 1))), (3602, QuestionAnswered(1))),
                *(
                    (7200, QuestionAsked(1, "No?")),
                    (7200, ReplyStarted(1, "m", prompt_tokens=90)),
                ),
                (7201, QuestionAnswered(1)),
            ],
            {
                1: RunEffort(
                    12.0,
                    model_calls=3,
                    counted_calls=2,
                    prompt_tokens=101,
                    completion_tokens=21,
                )
            },
        ),
        # Killed while it was answered: the call was made.
        (
            [
                (0, QuestionAsked(1, "Why?")),
                (1, ReplyStarted(1, "m", prompt_tokens=90)),
                *KILLED,
            ],
            {
                1: RunEffort(
                    1.0,
                    model_calls=1,
                    counted_calls=1,
                    prompt_tokens=90,
                    estimated_calls=1,
                )
            },
        ),
        # A run whose state is gone is another run.
        (
            [
                *ANSWERED,
                (50, opened(resumed=False)),
                (60, StepStarted(2, "x", 1)),
                (61, finished(2)),
            ],
            {2: RunEffort(1.0)},
        ),
        (
            [(0, BaselineTaken(1, "t", 0, 5, 0, 0, 7.5, "")), *ANSWERED],
            {1: replace(ANSWER, seconds=17.5)},
        ),
        # A clock that was set back.
        ([(10, StepStarted(1, "x", 1)), (0, finished(1))], {1: RunEffort()}),
    ],
)
def test_what_a_step_took(
    events: list[tuple[float, Event]], efforts: dict[int, RunEffort]
) -> None:
    assert LoggedRun.of_entries(at(*events)).efforts == efforts


# --- The report of real runs ----------------------------------------------------------


async def go_on(sandbox: Sandbox, until: type[Event] | None = None) -> dict[str, Any]:
    """Run to the end as a process would, or until a kind of event; then what the report
    says.
    """
    engine = sandbox.engine()

    async def whole() -> None:
        with engine.recording():
            await engine.recover()
            engine.run.emit(engine.run.opened())
            await engine.run_all()

    if until is None:
        await whole()
    else:
        await stop_at(whole(), lambda event: isinstance(event, until))
    engine.close()
    report: dict[str, Any] = json.loads(
        (sandbox.root / ".cdd/runs/feature-words/report.json").read_text()
    )
    return report


def pick(report: dict[str, Any], *names: str) -> list[Any]:
    return [report[name] for name in names]


CALLS = ("model_calls", "calls_without_usage")


async def test_a_run_that_is_stopped_and_goes_on_counts_every_call_once(
    sandbox: Sandbox,
) -> None:
    sandbox.write(
        Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1")
    )
    # none is used up by a stop
    sandbox.replies(says("a.txt", "good"), says("b.txt", "bad"), says("b.txt", "good"))

    stopped_in_the_reply = await go_on(sandbox, ReplyDelta)
    stopped_in_the_check = await go_on(sandbox, CommandOutput)
    stopped_again = await go_on(sandbox, CommandOutput)
    with_a_failed_step = await go_on(sandbox)
    at_the_end = await go_on(sandbox)

    assert pick(stopped_in_the_reply, "status", "calls_estimated", *CALLS) == [
        "in_progress",
        1,
        1,
        0,
    ]
    assert pick(stopped_in_the_check, "status", *CALLS) == ["in_progress", 2, 0]
    assert pick(stopped_again, *CALLS) == [2, 0]
    assert pick(with_a_failed_step, "status", *CALLS) == ["failed", 3, 0]
    assert pick(at_the_end, "status", "calls_estimated", *CALLS) == [
        "completed",
        1,
        4,
        0,
    ]
    first, second = at_the_end["steps"]
    assert pick(first, "status", "verification", "attempts", *CALLS) == [
        "completed",
        "exit_code",
        1,
        2,
        0,
    ]
    assert pick(second, "attempts", "error", *CALLS) == [2, None, 2, 0]
    assert (
        at_the_end["prompt_tokens"]
        == first["prompt_tokens"] + second["prompt_tokens"]
        > 0
    )
    assert pick(at_the_end, "files_created", "files_modified") == [
        ["a.txt", "b.txt"],
        [],
    ]


async def test_what_a_failed_step_left_does_not_stand(sandbox: Sandbox) -> None:
    sandbox.write(
        Step("a.txt", check("a.txt")), Step("a.txt", check("a.txt", "better"), "Step 1")
    )
    report = await go_on(sandbox.replies(says("a.txt", "good"), says("a.txt", "bad")))
    assert pick(report["steps"][1], "status", "files_modified") == ["failed", ["a.txt"]]
    assert "`python -S -c" in report["steps"][1]["error"]
    assert pick(report, "files_created", "files_modified") == [["a.txt"], []]


async def test_a_model_that_gave_no_answer_was_asked(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    report = await go_on(sandbox.replies(AuthenticationFailed("no")))
    assert pick(report, *CALLS) == [1, 1]
    # it is no failure of the step
    assert pick(report["steps"][0], "status", "error") == ["pending", None]


async def test_a_run_that_starts_over_does_not_count_the_one_before(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    await go_on(sandbox.replies(says("a.txt", "bad")))
    (sandbox.ticket / "execution-state.json").unlink()
    (sandbox.root / ".cdd/runs/feature-words/state.json").unlink()
    report = await go_on(sandbox.replies(says("a.txt", "good")))
    assert pick(report, *CALLS) == [1, 0]


async def test_tests_are_counted_before_and_after(sandbox: Sandbox) -> None:
    (sandbox.root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (sandbox.root / "test_old.py").write_text(
        "def test_a():\n    pass\n\n\ndef test_b():\n    assert False\n"
    )
    sandbox.write(Step("test_new.py", "pytest test_new.py"))
    report = await go_on(
        sandbox.replies("```python:test_new.py\ndef test_c():\n    pass\n```\n")
    )
    assert report["steps"][0]["tests"] == {"passed": 1, "failed": 0, "skipped": 0}
    assert report["tests_before"] == {"passed": 1, "failed": 1, "skipped": 0}
    assert report["tests_after"] == {"passed": 2, "failed": 1, "skipped": 0}


async def test_before_anything_was_run_there_is_no_report(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt")))
    engine = sandbox.engine()
    engine.save_report()
    engine.close()
    assert not list(sandbox.root.rglob("report.*"))


async def test_a_person_who_stops_a_run_is_told_that_and_not_what_came_of_the_report(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    engine = sandbox.engine()
    (engine.run.record.folder / "report.json").mkdir()

    async def run() -> None:
        with engine.recording():
            await engine.run_all()

    await stop_at(run(), lambda event: isinstance(event, CommandOutput))
    engine.close()
    assert sandbox.statuses() == ["pending"]


# --- The page -------------------------------------------------------------------------


def a_step(
    number: int,
    title: str,
    status: StepStatus = StepStatus.COMPLETED,
    why: str | None = None,
) -> StepReport:
    verification = Verification.PASSED if status is StepStatus.COMPLETED else None
    effort = RunEffort(75.2, 2, 1, 12000, 345)
    return StepReport(
        number,
        title,
        status,
        verification,
        why,
        why,
        ("a.py",),
        attempts=2,
        tests=Counts(5, 0, 1),
        effort=effort,
    )


def a_report(*steps: StepReport, files: tuple[str, ...] = ("a.py",)) -> Report:
    status = (
        RunStatus.FAILED
        if any(step.status is StepStatus.FAILED for step in steps)
        else RunStatus.COMPLETED
    )
    effort = RunEffort(150.4, 4, 2, 24000, 690)
    before, after = Counts(4, 1, 0), Counts(9, 0, 1)
    return Report(
        "feature-x",
        "Say | words",
        status,
        NOON,
        None,
        steps,
        files,
        (),
        before,
        after,
        effort,
    )


def parsed(report: Report) -> list[Token]:
    return (
        MarkdownIt("commonmark")
        .enable(["table", "strikethrough"])
        .parse(to_markdown(report))
    )


def words(inline: Token) -> str:
    assert all(
        child.type in ("text", "text_special") for child in inline.children or ()
    ), inline.children
    return "".join(child.content for child in inline.children or ())


def rows(tokens: list[Token]) -> list[list[Token]]:
    found: list[list[Token]] = []
    for before, token in pairwise(tokens):
        if token.type == "tr_open":
            found.append([])
        elif before.type in ("th_open", "td_open"):
            found[-1].append(token)
    return found


def seen(text: str) -> str:
    """Text as a reader sees it in one line."""
    return sanitize_for_display(" ".join(text.split()))


UGLY = st.text(
    st.sampled_from("ab1 |\\`*_[]()<>#~!&;-+=.:/\n\r\t\x1b\u202e\u2028é"), max_size=30
) | st.text(max_size=20)


@each_row(
    "title",
    [
        "a | b",
        "`__init__.py`",
        "**x** [y](z) <b>",
        "&amp; \\| ~~no~~",
        "x\n\n# y",
        "a #",
        "_x_",
    ],
)
def test_a_title_is_read_as_it_is(title: str) -> None:
    table = rows(parsed(a_report(a_step(1, title), a_step(2, "b"))))
    assert [len(row) for row in table] == [9, 9, 9, 9]
    assert words(table[1][0]) == f"1. {seen(title)}"


@given(UGLY, UGLY, UGLY)
def test_no_text_breaks_the_page(title: str, error: str, path: str) -> None:
    report = a_report(
        a_step(1, title),
        a_step(2, title, StepStatus.FAILED, f"no {error}"),
        files=(f"p/{path}",),
    )
    tokens = parsed(report)
    assert [len(row) for row in rows(tokens)] == [9, 9, 9, 9]
    assert words(rows(tokens)[1][0]) == f"1. {seen(title)}".strip()
    kinds = [token.type for token in tokens if token.level == 0 and token.nesting >= 0]
    failures, files = ["heading_open", "fence"], ["heading_open", "bullet_list_open"]
    assert kinds == [
        "heading_open",
        "bullet_list_open",
        "table_open",
        *failures,
        *files,
    ]
    fence = next(token for token in tokens if token.type == "fence")
    assert fence.content.splitlines()[0].startswith("no")
    assert words(next(t for t in reversed(tokens) if t.type == "inline")) == seen(
        f"p/{path}"
    )


def test_both_files_are_written(sandbox: Sandbox) -> None:
    save(a_report(a_step(1, "\ud800 é")), sandbox.root)
    assert json.loads(sandbox.text("report.json"))["steps"][0]["title"] == "? é"
    assert "? é" in sandbox.text(
        "report.md"
    ) or "\N{REPLACEMENT CHARACTER} é" in sandbox.text("report.md")
