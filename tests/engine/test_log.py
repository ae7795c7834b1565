"""The log of a run: one line an event, only ever added to, and readable whatever
happened to it.
"""

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdd_agent.changes.file_diff import FileDiff
from cdd_agent.cost import Cost
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.log import LogEntry, RunLog
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.errors import BadInput
from cdd_agent.events.dialogue_events import (
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    ToolFinished,
)
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.step_events import (
    ChangesApplied,
    CommandOutput,
    FailedTest,
    StepStarted,
    TestsFinished,
)
from cdd_agent.events.step_summary import StepFinished, StepSummary
from cdd_agent.events.stream import Event, to_json
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.files.atomic import NotRead, NotWritten
from cdd_agent.llm.port import Usage
from cdd_agent.tickets.status import StepStatus, Verification
from tests.support.listening import collect, stop_at
from tests.support.projects import Sandbox, Step, check, says
from tests.support.tables import each_row

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
EVENTS: list[Event] = [
    PlanOpened(
        "feature-x",
        "Say words",
        (StepSummary(1, "Ünï | `x`"), StepSummary(2, "b")),
        resumed=False,
    ),
    StepStarted(1, "two\nlines \u2028 and \x00", 1),
    ReplyFinished(1, Usage(1200, 300)),
    ReplyFinished(1, None),
    StepFinished(
        1,
        "a",
        StepStatus.COMPLETED,
        Verification.PASSED,
        None,
        None,
        ("a.py",),
        (),
        done=1,
        total=2,
    ),
]


def log_with(path: Path, events: list[Event]) -> RunLog:
    log = RunLog(path / "events.jsonl", lambda: NOW)
    for event in events:
        log.add(event)
    return log


def test_events_come_back_as_they_were_with_their_time(tmp_path: Path) -> None:
    log = log_with(tmp_path / "new" / "folder", EVENTS)
    assert [entry.event for entry in log.entries()] == EVENTS
    assert {entry.time for entry in log.entries()} == {NOW}


def test_a_line_is_the_event_as_scripts_know_it_and_its_time(tmp_path: Path) -> None:
    log = log_with(tmp_path, [EVENTS[1]])
    assert json.loads(log.path.read_text()) == {
        "time": "2026-11-21T10:00:00+00:00",
        **to_json(EVENTS[1]),
    }


def test_what_streams_is_not_logged(tmp_path: Path) -> None:
    log = log_with(tmp_path, [ReplyDelta(1, "x"), CommandOutput(1, "y")])
    assert list(log.entries()) == []
    assert not log.path.exists()


def test_of_what_is_long_the_log_has_the_figures(tmp_path: Path) -> None:
    file = FileDiff("a.py", 1, 0, "@@ -0,0 +1 @@\n+x\n")
    failure = FailedTest(
        "test_a.py::test_a",
        "assert 1 == 2",
        "test_a.py:2",
        "def test_a(): ...",
        is_old=False,
    )
    log = log_with(
        tmp_path,
        [
            ToolFinished(
                1,
                "edit_file(…)",
                "",
                "edit_file",
                "a.py",
                output="very much",
                files=(file,),
            ),
            ChangesApplied(1, ("a.py",), (), (), files=(file,)),
            TestsFinished(1, None, "failed", 1.0, (), "pytest", 0, 1, 0, (failure,)),
        ],
    )
    short = FileDiff("a.py", 1, 0, "")
    tool, changes, tests = (entry.event for entry in log.entries())
    assert tool == ToolFinished(
        1, "edit_file(…)", "", "edit_file", "a.py", files=(short,)
    )
    assert changes == ChangesApplied(1, ("a.py",), (), (), files=(short,))
    assert isinstance(tests, TestsFinished)
    assert tests.failures == (
        FailedTest(
            "test_a.py::test_a", "assert 1 == 2", "test_a.py:2", "", is_old=False
        ),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_log_cut_anywhere_reads_and_goes_on(
    tmp_path: Path, data: st.DataObject
) -> None:
    log = RunLog(tmp_path / "events.jsonl", lambda: NOW)
    log.path.unlink(missing_ok=True)
    content = log_with(tmp_path, EVENTS).path.read_bytes()
    cut = content[: data.draw(st.integers(0, len(content)))]
    log.path.write_bytes(cut)

    left = [entry.event for entry in log.entries()]
    log.add(Notice("after a kill"))

    assert left == EVENTS[: len(left)]
    assert len(left) >= cut.count(b"\n")
    assert [entry.event for entry in log.entries()] == [*left, Notice("after a kill")]
    assert log.path.read_bytes().startswith(cut)


@each_row(
    "line",
    [
        b"",
        b"\xff\x00",
        b"[]",
        b"7",
        b"{}",
        (
            b'{"time": "2026-11-21T10:00:00+00:00", "event": "from_a_later_version",'
            b' "x": 1}'
        ),
        b'{"time": "2026-11-21T10:00:00+00:00", "event": ["a"]}',
        b'{"time": "yesterday", "event": "notice", "text": "x"}',
        b'{"time": "2026-11-21T10:00:00", "event": "notice", "text": "x"}',
        (
            b'{"time": "2026-11-21T10:00:00+00:00", "event": "step_started", "step":'
            b' "one"}'
        ),
        b"[" * 100_000,
        b"x" * 9_000_000,
    ],
    ids=lambda line: repr(line[:30]),
)
def test_lines_that_are_no_entries_are_left_out(tmp_path: Path, line: bytes) -> None:
    log = log_with(tmp_path, EVENTS[:1])
    with log.path.open("ab") as file:
        file.write(line + b"\n")
    log.add(EVENTS[2])
    assert [entry.event for entry in log.entries()] == [EVENTS[0], EVENTS[2]]


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    log = RunLog(tmp_path)  # a folder is in the way
    with pytest.raises(NotWritten):
        log.add(EVENTS[0])
    with pytest.raises(NotRead):
        list(log.entries())


@pytest.mark.skipif(
    not os.path.exists("/dev/full"),  # noqa: PTH110
    reason="only Linux has a disk that is always full",
)
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").symlink_to("/dev/full")
    with pytest.raises(BadInput, match="No space left"):
        log_with(tmp_path, EVENTS)


# --- Logs of earlier versions ---------------------------------------------------------

OLDER = Path(__file__).parent / "logs" / "events-0.1.jsonl"
"""Each kind of event, and each kind of notice, as version 0.1 wrote them."""


def test_every_line_of_an_older_log_is_read() -> None:
    lines = [json.loads(line) for line in OLDER.read_text().splitlines()]
    entries = list(RunLog(OLDER).decoded_lines())
    unread = [
        line["event"]
        for line, entry in zip(lines, entries, strict=True)
        if entry is None or to_json(entry.event)["event"] != line["event"]
    ]
    assert unread == []
    run = LoggedRun.read(RunLog(OLDER))
    assert (run.damaged_lines, run.effort.model_calls) == (0, 2)
    assert run.effort.cost == Cost(1506)


@each_row(
    ("fields", "kind"),
    [
        ({"about": "going_on"}, NoticeKind.RESUMED),
        ({"about": "next_step"}, NoticeKind.WHAT_NEXT),
        ({"about": "no_budget"}, NoticeKind.NO_BUDGET),
        ({"about": "set_aside"}, None),
        ({"about": None}, None),
        ({"about": ["a"]}, None),
        ({"kind": "no_budget"}, NoticeKind.NO_BUDGET),
        ({"kind": "of_a_later_version"}, None),
        ({}, None),
    ],
)
def test_a_notice_of_another_version_keeps_its_text(
    tmp_path: Path, fields: dict[str, object], kind: NoticeKind | None
) -> None:
    log = RunLog(tmp_path / "events.jsonl")
    line = {"time": NOW.isoformat(), "event": "notice", "text": "x", **fields}
    log.path.write_text(json.dumps(line) + "\n")
    assert list(log.entries()) == [LogEntry(NOW, Notice("x", kind=kind))]


@pytest.mark.long
def test_one_reading_of_a_long_log_has_all_figures_and_counts_damaged_lines(
    tmp_path: Path,
) -> None:
    log = log_with(
        tmp_path,
        [
            EVENTS[0],
            StepStarted(1, "a", 1),
            ReplyStarted(1, "any/model"),
            ReplyFinished(1, Usage(7, 3)),
        ],
    )
    opening, start, asked, answered = log.path.read_bytes().splitlines(keepends=True)
    damaged = asked[:40] + b"\n"
    call = asked + answered
    log.path.write_bytes(opening + start + (call * 2 + damaged) * 40_000)
    run = LoggedRun.read(log)
    assert run.damaged_lines == 40_000
    assert run.effort.model_calls == 80_000
    assert run.effort.cost == Cost(800_000)
    assert run.step(1).models == {"any/model": None}


# --- A whole run ----------------------------------------------------------------------

TOKEN = "c29tZSByYW5kb20gYnl0ZXM"
GONE = "[redacted: DEPLOY_TOKEN]"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", TOKEN)


async def run(engine: Engine, guidance: str = "") -> list[Event]:
    step = engine.run.next_step
    assert step
    try:
        with engine.recording():
            return await collect(engine.run_step(step, guidance=guidance))
    finally:
        engine.close()


def logged(sandbox: Sandbox) -> list[str]:
    path = sandbox.root / ".cdd/runs/feature-words/events.jsonl"
    return [json.loads(line)["event"] for line in path.read_text().splitlines()]


async def test_what_was_shown_was_logged_before(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    engine = sandbox.engine()
    step = engine.run.next_step
    assert step
    await stop_at(engine.run_step(step), lambda event: isinstance(event, ReplyFinished))
    engine.close()
    assert logged(sandbox) == [
        "step_started",
        "prompt_made",
        "reply_started",
        "reply_finished",
    ]
    assert sandbox.statuses() == ["pending"]


async def test_a_log_that_cannot_be_written_ends_the_step_without_a_trace(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    engine = sandbox.engine()
    engine.run.record.log.path.mkdir()
    with pytest.raises(NotWritten):
        await run(engine)
    assert not (sandbox.root / "a.txt").exists()
    assert sandbox.statuses() == ["pending"]


async def test_a_secret_is_neither_shown_nor_stored_and_the_projects_files_keep_it(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text(f"before {TOKEN}\n")
    sandbox.write(Step("a.txt", check("a.txt"), description=f"Not {TOKEN}."))
    sandbox.replies(says("a.txt", f"bad {TOKEN}", words=f"Yes: {TOKEN}"))

    shown = await run(sandbox.engine(), guidance=f"Use {TOKEN}.")

    assert sandbox.text("a.txt") == f"bad {TOKEN}\n"
    assert TOKEN not in str(shown)
    assert f"Yes: {GONE}" in "".join(
        event.text for event in shown if isinstance(event, ReplyDelta)
    )
    assert f"bad {GONE}" in "".join(
        event.text for event in shown if isinstance(event, CommandOutput)
    )
    runs = sandbox.root / ".cdd/runs/feature-words"
    texts = [
        path
        for path in runs.rglob("*")
        if path.is_file() and "checkpoints.git" not in path.parts
    ]
    with_secret = {path.name for path in texts if TOKEN in path.read_text()}
    # contents of the project's files are saved as they are, for the user's eyes alone
    versions = {path.name for path in (runs / "versions").iterdir()}
    assert versions < with_secret
    assert with_secret - versions == {"reply.md"}
    assert stat.S_IMODE((runs / "versions").stat().st_mode) == 0o700
    for name in ("guidance.md", "request.md", "output.txt", "failure.json"):
        assert GONE in next(runs.rglob(name)).read_text()


async def test_guidance_with_a_secret_is_kept_without_it_and_its_reply_stays_of_use(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    engine = sandbox.engine()
    step = engine.run.next_step
    assert step
    work = engine.run_step(step, guidance=f"Use {TOKEN}.")
    await stop_at(work, lambda event: isinstance(event, CommandOutput))
    engine.close()
    assert sandbox.prompt().endswith(f"Use {GONE}.")

    await run(sandbox.replies().engine())

    assert sandbox.model.requests == []
    assert sandbox.statuses() == ["completed"]


async def test_an_error_with_a_secret_is_kept_without_it_in_the_state(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(says(f"../{TOKEN}.txt", "x"))
    await run(sandbox.engine())
    assert f"{GONE}.txt" in sandbox.state()["step_executions"]["1"]["error"]
