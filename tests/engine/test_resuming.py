"""Coming back: to a state that is torn, a plan that was changed, a run that somebody
else holds.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from cdd_agent.engine.lock import LockGone
from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.step_events import ChangesPutBack, CommandOutput, StepStarted
from cdd_agent.events.stream import Event
from cdd_agent.git.command import NoGit
from tests.engine.half_done import TWO
from tests.support.forked import ran
from tests.support.listening import collect, stop_at, told_to
from tests.support.projects import (
    SLUG,
    Sandbox,
    Step,
    check,
    notice,
    noticed,
    run_all,
    says,
)
from tests.support.tables import each_row

WHOLE = (
    '{"ticket_slug": "feature-words", "current_step": 2, "status": "in_progress",'
    ' "started_at": null, "completed_at": null, "step_executions": {}}'
)


def started(events: list[Event]) -> list[int]:
    return [event.step for event in events if isinstance(event, StepStarted)]


def state_file(sandbox: Sandbox) -> Path:
    return sandbox.ticket / "execution-state.json"


@each_row(
    "damage",
    [
        "",
        '{"ticket_slug": "feature-wo',
        "[]",
        "\0" * 100,
        '{"ticket_slug": "bug-other", "step_executions": {}}',
        WHOLE.replace("feature-words", "bug-other"),
        WHOLE.replace(', "step_executions": {}', ""),
        WHOLE.replace("{}", '{"1": {"step_number": 1, "status": "completed"}}'),
        WHOLE.replace("{}", "[]"),
    ],
)
async def test_a_state_that_is_torn_or_foreign_is_set_aside_and_rebuilt(
    half: Sandbox, damage: str
) -> None:
    before = half.state()
    state_file(half).write_text(damage)

    engine = half.engine()
    events = await collect(engine.recover())
    engine.close()

    assert half.state() == before
    assert [path.read_text() for path in half.ticket.glob("*.aside-*")] == [damage]
    assert "1 of 2" in notice(events, NoticeKind.STATE_RECOVERED)


async def test_a_state_that_is_gone_is_rebuilt_and_nothing_is_done_twice(
    half: Sandbox,
) -> None:
    before = half.state()
    state_file(half).unlink()
    engine = half.engine()
    assert "1 of 2" in notice(
        await collect(engine.recover()), NoticeKind.STATE_RECOVERED
    )
    engine.close()
    assert half.state() == before


async def test_a_state_that_is_older_than_the_record_counts_and_that_is_told(
    half: Sandbox,
) -> None:
    older = state_file(half).read_bytes()
    await run_all(half.replies(says("b.txt", "good")))
    state_file(half).write_bytes(older)  # as `git checkout` would
    events = await run_all(half.replies(says("b.txt", "good again")))
    assert "2 of 2" in notice(events, NoticeKind.STATE_RECOVERED)
    assert started(events) == [2]


async def test_a_rebuilt_run_goes_on_where_it_was(half: Sandbox) -> None:
    state_file(half).write_bytes(b"\xff\xfe")
    events = await run_all(half.replies(says("b.txt", "good")))
    assert started(events) == [2]
    assert half.statuses() == ["completed", "completed"]


async def test_where_there_is_nothing_to_rebuild_from_nothing_is_started(
    half: Sandbox,
) -> None:
    state_file(half).write_text("torn")
    (half.root / ".cdd/runs" / SLUG / "state.json").write_text("torn too")
    with pytest.raises(BadInput, match="renamed"):
        half.engine()
    assert [path.read_text() for path in half.ticket.glob("*.aside-*")] == ["torn"]


async def test_where_the_file_is_gone_and_its_copy_is_torn_nothing_is_started(
    half: Sandbox,
) -> None:
    state_file(half).unlink()
    (half.root / ".cdd/runs" / SLUG / "state.json").write_text("torn")
    with pytest.raises(BadInput, match="renamed"):
        half.engine()
    assert [
        path.read_text()
        for path in (half.root / ".cdd/runs" / SLUG).glob("state.aside-*")
    ] == ["torn"]


async def test_a_done_step_whose_text_was_changed_stays_done_and_is_marked(
    half: Sandbox,
) -> None:
    half.write(Step("a.txt", check("a.txt"), description="Make it blue."), TWO[1])
    events = await run_all(half.replies(says("b.txt", "good")))
    assert "step 1" in notice(events, NoticeKind.STEP_CHANGED)
    engine = half.engine()
    assert [step.changed for step in engine.run.opened().steps] == [True, False]
    engine.close()
    assert half.statuses() == ["completed", "completed"]


async def test_a_step_that_was_changed_before_it_was_done_is_carried_out_as_it_is_now(
    half: Sandbox,
) -> None:
    half.write(TWO[0], Step("c.txt", check("c.txt")), Step("d.txt", check("d.txt")))
    events = await run_all(half.replies(says("c.txt", "good"), says("d.txt", "good")))
    assert NoticeKind.STEP_CHANGED not in noticed(events)
    assert half.statuses() == ["completed"] * 3
    assert not (half.root / "b.txt").exists()  # what the failed attempt had left


async def test_a_removed_step_is_told_and_kept_as_history(half: Sandbox) -> None:
    await run_all(half.replies(says("b.txt", "good")))
    half.write(TWO[0])
    events = await run_all(half.replies())
    assert "Step 2" in notice(events, NoticeKind.STEP_CHANGED)
    known = half.state()["step_executions"] | half.state().get("former_steps", {})
    assert known["2"]["status"] == "completed"
    assert half.text("b.txt") == "good\n"


async def test_another_plan_is_refused_with_the_choice_to_start_over(
    half: Sandbox,
) -> None:
    before = half.state()
    half.write(Step("x.txt", check("x.txt")), TWO[1])
    with pytest.raises(BadInput) as caught:
        half.engine()
    assert "Make a.txt" in caught.value.message
    assert "--start-over" in caught.value.hint
    assert half.state() == before


async def test_starting_over_keeps_the_old_run_and_does_every_step_anew(
    half: Sandbox,
) -> None:
    before = half.state()
    half.write(Step("x.txt", check("x.txt")))

    events = await run_all(half.replies(says("x.txt", "good")), start_over=True)

    assert NoticeKind.STARTED_OVER in noticed(events)
    (earlier,) = (half.root / ".cdd/runs" / SLUG).glob("earlier-*")
    assert json.loads((earlier / "execution-state.json").read_text()) == before
    assert (earlier / "step-01/attempt-1/reply.md").exists()
    assert half.statuses() == ["completed"]
    assert (half.text("a.txt"), half.text("b.txt")) == ("good\n", "bad\n")


async def test_a_run_that_waits_for_a_persons_edit_says_so_and_goes_on_when_asked_again(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("killed") / "project"
    await interrupted_with(sandbox, copy, edit="by hand\n")

    assert await exit_code(sandbox.replies()) is ExitCode.NOT_APPROVED
    assert sandbox.text("a.txt") == "by hand\n"

    sandbox.replies(says("a.txt", "good"))
    assert await exit_code(sandbox) is ExitCode.DONE
    assert "by hand" in sandbox.prompt()


async def exit_code(sandbox: Sandbox) -> ExitCode:
    """Carry the plan out, as `cdd exec` does."""
    engine = sandbox.engine()
    try:
        await engine.carry_out()
    finally:
        engine.close()
    return engine.exit_code


async def test_what_else_changed_while_a_killed_step_ran_is_named_and_left(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("killed") / "project"
    await interrupted_with(sandbox, copy, edit=None)
    (sandbox.root / "other.txt").write_text("whose?\n")

    engine = sandbox.engine()
    events = await collect(engine.recover())
    engine.close()

    assert "other.txt" in notice(events, NoticeKind.CHANGED_BESIDE)
    assert [
        event.restored for event in events if isinstance(event, ChangesPutBack)
    ] == [("a.txt",)]
    assert sandbox.text("other.txt") == "whose?\n"
    assert engine.stopped_by is None


async def interrupted_with(sandbox: Sandbox, copy: Path, edit: str | None) -> None:
    """A run that was killed in the middle of its check, after which the user edited the
    step's file, or did not.
    """
    hangs = "python -c \"import time; print('running'); time.sleep(600)\""
    sandbox.write(Step("a.txt", hangs)).replies(says("a.txt", "bad"))

    def is_checked(event: Event) -> bool:
        if isinstance(event, CommandOutput):
            shutil.copytree(sandbox.root, copy, symlinks=True)
        return isinstance(event, CommandOutput)

    engine = sandbox.engine()
    await stop_at(engine.run_all(), is_checked)
    engine.close()
    # the disk as a kill leaves it
    shutil.rmtree(sandbox.root)
    copy.rename(sandbox.root)
    assert sandbox.statuses() == ["in_progress"]
    sandbox.write(Step("a.txt", check("a.txt")))
    if edit is not None:
        (sandbox.root / "a.txt").write_text(edit)


OUTLIVES = """
import os, pathlib, signal, subprocess, sys, time
import psutil

known = pathlib.Path("known")
if not known.exists():
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    away = subprocess.Popen(sleeper, start_new_session=True)
    known.write_text(f"{os.getpid()} {away.pid}")
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)
for pid in map(int, known.read_text().split()):
    if psutil.pid_exists(pid):
        assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
"""
"""A check that kills its run and goes on, with a process that left its group; the next
one sees that they are gone.
"""


@pytest.mark.fork
@pytest.mark.skipif(
    os.name != "posix", reason="sessions, and a process that ends another by SIGKILL"
)
async def test_a_check_that_outlived_its_run_is_ended_before_the_run_goes_on(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "check.py").write_text(OUTLIVES)
    sandbox.write(Step("a.txt", "python check.py"))
    (sandbox.root / "script.yaml").write_text(
        f"replies:\n  - reply: {json.dumps(says('a.txt', 'good'))}\n"
    )
    killed = ran("exec", SLUG, "--model", "script:script.yaml", cwd=sandbox.root)
    assert killed.returncode == -signal.SIGKILL

    events = await run_all(sandbox)

    assert NoticeKind.COMMAND_ENDED in noticed(events)
    assert sandbox.statuses() == ["completed"]
    assert not [*(sandbox.root / ".cdd/runs" / SLUG).glob("running-*")]


def test_whoever_holds_a_ticket_is_named(sandbox: Sandbox) -> None:
    engine = sandbox.write(*TWO).engine()
    with pytest.raises(BadInput, match=f" {os.getpid()} "):
        sandbox.engine()
    engine.close()
    sandbox.engine().close()


@pytest.mark.fork
def test_the_lock_of_a_dead_process_is_taken_over(sandbox: Sandbox) -> None:
    sandbox.write(*TWO)
    code = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from tests.support.projects import Sandbox\n"
        f"Sandbox(Path({str(sandbox.root)!r})).engine()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    died = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], timeout=60
    )
    assert died.returncode == -signal.SIGKILL
    folder = sandbox.root / ".cdd/runs" / SLUG
    assert (folder / "holder.json").exists()
    sandbox.engine().close()
    assert not (folder / "holder.json").exists()


def test_a_disk_that_refuses_does_not_keep_a_ticket_locked(sandbox: Sandbox) -> None:
    engine = sandbox.write(*TWO).engine()
    holder = sandbox.root / ".cdd/runs" / SLUG / "holder.json"
    holder.unlink()
    holder.mkdir()  # nobody can remove it as a file
    with pytest.raises(BadInput, match="could not be removed"):
        engine.close()
    holder.rmdir()
    sandbox.engine().close()


@pytest.mark.usefixtures("in_git")
async def test_without_git_no_step_begins(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(sandbox.root))
    sandbox.write(Step("a.txt", "none")).replies(says("a.txt", "good"))
    engine = sandbox.engine()
    with pytest.raises(NoGit) as caught:
        await collect(engine.run_all())
    engine.close()
    assert "Install git" in caught.value.hint
    assert sandbox.model.requests == []


async def test_a_plan_that_is_edited_while_it_runs_is_taken_up(
    sandbox: Sandbox,
) -> None:
    sandbox.write(TWO[0])
    engine = sandbox.replies(says("a.txt", "good"), says("c.txt", "good")).engine()

    def edit(event: Event) -> None:
        if isinstance(event, StepStarted) and event.step == 1:
            sandbox.write(TWO[0], Step("c.txt", check("c.txt")))

    with told_to(edit):
        events = await collect(engine.run_all())
    engine.close()
    assert NoticeKind.PLAN_EDITED in noticed(events)
    assert sandbox.statuses() == ["completed", "completed"]


async def test_starting_over_puts_back_a_step_that_was_killed(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("killed") / "project"
    await interrupted_with(sandbox, copy, edit=None)
    assert sandbox.text("a.txt") == "bad\n"
    engine = sandbox.engine(start_over=True)
    events = await collect(engine.recover())
    engine.close()
    assert [
        event.restored for event in events if isinstance(event, ChangesPutBack)
    ] == [("a.txt",)]
    assert not (sandbox.root / "a.txt").exists()


def copy_of_another_plan(sandbox: Sandbox) -> Path:
    file = sandbox.root / ".cdd/runs" / SLUG / "state.json"
    state = json.loads(file.read_text())
    state["step_executions"]["1"] |= {"title": "Another", "fingerprint": "another"}
    file.write_text(json.dumps(state))
    return file


async def test_a_copy_of_another_plan_is_no_copy_beside_a_good_state(
    half: Sandbox,
) -> None:
    copy_of_another_plan(half)
    events = await run_all(half.replies(says("b.txt", "good")))
    assert NoticeKind.STATE_RECOVERED not in noticed(events)
    assert half.statuses() == ["completed", "completed"]


@each_row("content", [None, "torn"])
async def test_a_copy_of_another_plan_is_not_passed_over_where_it_is_all_there_is(
    half: Sandbox, content: str | None
) -> None:
    copy = copy_of_another_plan(half)
    before = copy.read_text()
    state_file(half).unlink()
    if content is not None:
        state_file(half).write_text(content)
    for _ in range(2):
        with pytest.raises(BadInput, match="another plan"):
            half.engine()
    assert copy.read_text() == before


async def test_a_rebuild_that_is_killed_in_the_middle_leaves_something_to_be_rebuilt(
    half: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_file(half).write_text("torn")
    with monkeypatch.context() as patched:
        patched.setattr("cdd_agent.engine.load_state.save_state", _killed)
        with pytest.raises(KeyboardInterrupt):
            half.engine()
    engine = half.engine()
    assert NoticeKind.STATE_RECOVERED in noticed(await collect(engine.recover()))
    engine.close()
    assert half.statuses() == ["completed", "failed"]


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


async def test_when_the_runs_folder_is_removed_no_step_begins(half: Sandbox) -> None:
    engine = half.replies(says("b.txt", "good")).engine()
    shutil.rmtree(half.root / ".cdd/runs")
    with pytest.raises(LockGone):
        await collect(engine.run_all())
    engine.close()
    assert half.model.requests == []


async def test_another_tickets_run_in_the_same_project_is_named_once(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO).replies(says("a.txt", "good"), says("b.txt", "good"))
    for other in ("bug-other", "bug-third"):
        shutil.copytree(sandbox.ticket, sandbox.root / "tickets" / other)
        (sandbox.root / "tickets" / other / "plan.md").write_text(
            (sandbox.ticket / "plan.md").read_text().replace(SLUG, other)
        )
    find, wiring = sandbox.project.tickets.find, sandbox.wiring()
    first, killed = wiring.engine(find("bug-other")), wiring.engine(find("bug-third"))
    note = (sandbox.root / ".cdd/runs/bug-third/holder.json").read_bytes()
    killed.close()
    # as a kill leaves it
    (sandbox.root / ".cdd/runs/bug-third/holder.json").write_bytes(note)
    try:
        events = await run_all(sandbox)
    finally:
        first.close()
    company = notice(events, NoticeKind.OTHER_RUN)
    assert company.startswith("bug-other ")
    assert f" {os.getpid()}" in company
    assert sandbox.statuses() == ["completed", "completed"]


def test_a_look_at_who_is_at_work_stops_nobody(sandbox: Sandbox) -> None:
    """It has the lock of a dead process for a moment."""
    sandbox.write(*TWO).engine().close()
    looking = FileLock(sandbox.root / ".cdd/runs" / SLUG / "lock", thread_local=False)
    looking.acquire()
    threading.Timer(0.05, looking.release).start()
    sandbox.engine().close()


async def test_a_run_that_is_alone_is_not_told_of_company(half: Sandbox) -> None:
    assert NoticeKind.OTHER_RUN not in noticed(
        await run_all(half.replies(says("b.txt", "good")))
    )
