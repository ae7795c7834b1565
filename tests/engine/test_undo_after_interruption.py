"""A step that was interrupted: of its own files nothing remains. They are there again
from the ledger when it continues, and no command runs twice. What its commands changed
beside its own files stays, and is named.
"""

import asyncio
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cdd_agent.engine.undo import NotCarriedOut, Undoing
from cdd_agent.events.dialogue_events import ReplyDelayed
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.step_events import ChangesPutBack, StepsUndone
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import ConnectionFailed
from tests.engine.tool_steps import (
    calls,
    create,
    execute,
    run,
    run_with,
    stopped_after,
)
from tests.engine.tool_steps import replace as edit
from tests.support.listening import collect, stop_at
from tests.support.projects import SLUG, Sandbox, Step, check, notice, noticed, says
from tests.support.tables import each_row

STEP = Step("a.txt", check("a.txt"), also=("made.txt",))
TO_ITS_END = (calls(edit("a.txt", "", "good\n")), "Done.")
"""Of the dialogue, which continues: a reply without calls would begin another one."""
GONE = [ConnectionFailed("gone")] * 9
MAKE = (
    "python -c \"open('made.txt', 'a').write('by a command\\n');"
    " open('beside.txt', 'a').write('x')\""
)
"""It changes a file that the step declares, and one that it does not."""
SLOW = (
    "python -c \"import time; open('made.txt', 'w').write('half');"
    " open('beside.txt', 'w').write('half'); time.sleep(60)\""
)


async def undo(sandbox: Sandbox, step: int | None = None) -> StepsUndone:
    engine = sandbox.engine()
    try:
        (undone,) = [
            event
            for event in await collect(engine.undo(step))
            if isinstance(event, StepsUndone)
        ]
        return undone
    finally:
        engine.close()


async def stop(sandbox: Sandbox, seen: str) -> list[Event]:
    """Run, and stop as Esc does; what is told then."""
    engine = sandbox.engine()
    events = await stopped_after(engine, seen)
    engine.close()
    return events


async def skip(sandbox: Sandbox) -> list[Event]:
    engine = sandbox.engine()
    events = await collect(engine.skip(engine.run.plan.steps[0], "no", keep=False))
    engine.close()
    return events


async def killed(
    sandbox: Sandbox, folder: Path, seen: str, then: Callable[[], object] = lambda: None
) -> Sandbox:
    """The project as a kill leaves it just when a tool was used that is shown so: a
    copy, as it is on the disk.
    """

    def copy() -> None:
        then()
        shutil.copytree(sandbox.root, folder, symlinks=True)

    await run_with(sandbox, seen, copy)
    return sandbox.at(folder)


async def stop_slow(sandbox: Sandbox, copy_to: Path | None = None) -> None:
    """Stop the run, as Esc does, while `SLOW` runs. The copy is as after a kill."""
    engine = sandbox.engine()
    running = asyncio.ensure_future(collect(engine.run_all()))
    while not (sandbox.root / "beside.txt").exists():
        await asyncio.sleep(0.05)
    if copy_to is not None:
        shutil.copytree(sandbox.root, copy_to, symlinks=True)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    engine.close()


def put_back(events: list[Event]) -> list[ChangesPutBack]:
    return [event for event in events if isinstance(event, ChangesPutBack)]


def told(events: list[Event]) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Notice))


def names(text: str) -> list[str]:
    return re.findall(r"\w+\.txt", text)


def files(sandbox: Sandbox) -> dict[str, str]:
    return {path.name: path.read_text() for path in sandbox.root.glob("*.txt")}


async def test_a_stopped_step_leaves_what_its_commands_did_beside_its_files(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "made.txt").write_text("old\n")
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n")), calls(execute(MAKE)), "never said"
    )
    events = await stop(sandbox, "execute_command")
    assert put_back(events) == [ChangesPutBack(1, ("a.txt", "made.txt"), ())]
    assert names(notice(events, NoticeKind.LEFT_AS_IS)) == ["beside.txt"]
    assert files(sandbox) == {"made.txt": "old\n", "beside.txt": "x"}
    kept = sandbox.root / ".cdd/runs" / SLUG / "kept"
    assert (kept / "made.txt").read_text() == "old\nby a command\n"


@each_row("ended_by", ["stop", "no answer", "kill"])
async def test_a_step_that_continues_has_its_files_again_and_runs_no_command_twice(
    sandbox: Sandbox, ended_by: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n")), calls(execute(MAKE)), *GONE
    )
    if ended_by == "kill":
        folder = tmp_path_factory.mktemp("killed") / "project"
        # the round that was killed continues, too
        sandbox.replies(
            calls(create("a.txt", "go\n")),
            calls(execute(MAKE)),
            calls(create("b.txt", "b\n")),
            *GONE,
        )
        sandbox = await killed(sandbox, folder, "b.txt")
    elif ended_by == "stop":
        engine = sandbox.engine()
        await stop_at(engine.run_all(), _is_asked_again)
        engine.close()
    else:
        await run(sandbox)
    if ended_by != "kill":
        assert files(sandbox) == {"beside.txt": "x"}

    await run(sandbox.replies(*TO_ITS_END))

    assert sandbox.statuses() == ["completed"]
    more = {"b.txt": "b\n"} if ended_by == "kill" else {}
    own = {"a.txt": "good\n", **more, "made.txt": "by a command\n"}
    assert files(sandbox) == {**own, "beside.txt": "x"}
    created = sandbox.state()["step_executions"]["1"]["files_created"]
    assert created == list(own)
    undone = await undo(sandbox)
    assert undone.restored == tuple(own)
    assert (undone.kept, undone.others) == ((), ("beside.txt",))
    assert files(sandbox) == {"beside.txt": "x"}


async def test_of_several_interruptions_nothing_of_the_step_is_left_after_undo(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "made.txt").write_text("old\n")
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n")), calls(execute(MAKE)), "never said"
    )
    await stop(sandbox, "execute_command")
    await run(sandbox.replies(calls(create("b.txt", "b\n")), *GONE))
    await run(
        sandbox.replies(
            calls(create("c.txt", "c\n")),
            calls(create("a.txt", "x"), execute(MAKE)),
            says("d.txt", "d"),
        )
    )
    await run(sandbox.replies(says("a.txt", "good")))
    assert sandbox.statuses() == ["completed"]

    undone = await undo(sandbox)

    assert (undone.kept, undone.others) == ((), ("beside.txt",))
    assert files(sandbox) == {"made.txt": "old\n", "beside.txt": "xx"}


async def test_an_interrupted_step_is_not_undone_but_the_one_before_it(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("one.txt"), STEP).replies(
        says("one.txt", "one"), calls(execute(MAKE)), "never said"
    )
    await stop(sandbox, "execute_command")
    with pytest.raises(NotCarriedOut, match="Step 2"):
        await undo(sandbox, 2)
    undone = await undo(sandbox)
    assert (undone.steps, undone.restored) == ((1,), ("one.txt",))
    assert files(sandbox) == {"beside.txt": "x"}

    await run(sandbox.replies(says("one.txt", "one"), says("a.txt", "good")))
    assert sandbox.statuses() == ["completed", "completed"]


async def test_after_a_kill_an_edit_since_stays_and_what_changed_beside_is_named(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n")), calls(execute(MAKE)), "Done."
    )
    left = await killed(
        sandbox, tmp_path_factory.mktemp("killed") / "project", "execute_command"
    )
    (left.root / "made.txt").write_text("mine now\n")
    (left.root / "mine.txt").write_text("mine\n")

    engine = left.engine()
    events = await collect(engine.recover())
    engine.close()
    assert put_back(events) == [ChangesPutBack(1, ("a.txt",), ("made.txt",))]
    assert names(notice(events, NoticeKind.CHANGED_BESIDE)) == ["mine.txt"]
    assert names(notice(events, NoticeKind.LEFT_AS_IS)) == ["beside.txt"]
    assert engine.stopped_by is not None  # an edit of a step's file waits for a look
    assert engine.stopped_by.message.startswith("You edited made.txt since")

    await run(left.replies(calls(create("b.txt", "b\n")), says("a.txt", "good")))

    assert left.statuses() == ["completed"]
    undone = await undo(left)
    assert undone.restored == ("a.txt", "b.txt")
    assert left.text("made.txt") == "mine now\n"
    assert left.text("mine.txt") == "mine\n"


async def test_what_a_stopped_command_made_is_told_apart_and_of_a_killed_one_is_kept(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sandbox.write(STEP).replies(calls(create("a.txt", "go\n")), calls(execute(SLOW)))
    left = sandbox.at(tmp_path_factory.mktemp("killed") / "project")
    await stop_slow(sandbox, left.root)

    # there was time to look: what is the step's went with it
    assert files(sandbox) == {"beside.txt": "half"}
    # nobody looked: both may be the user's
    events = await run(left.replies(says("a.txt", "good")))
    assert names(notice(events, NoticeKind.CHANGED_BESIDE)) == [
        "beside.txt",
        "made.txt",
    ]
    assert (await undo(left)).restored == ("a.txt",)
    assert files(left) == {"beside.txt": "half", "made.txt": "half"}


async def test_what_a_killed_command_made_of_a_steps_file_may_be_its_own(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sandbox.write(STEP).replies(calls(create("a.txt", "go\n")), calls(execute(SLOW)))
    left = sandbox.at(tmp_path_factory.mktemp("killed") / "project")
    await stop_slow(sandbox, left.root)
    (left.root / "a.txt").write_text("half\n")
    engine = left.engine()
    await collect(engine.recover())
    engine.close()
    assert engine.stopped_by is not None
    who = "You or the interrupted command edited a.txt since"
    assert engine.stopped_by.message.startswith(who)


async def test_new_guidance_begins_without_what_the_interrupted_attempt_made(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(calls(execute(MAKE)), "never said")
    await stop(sandbox, "execute_command")
    engine = sandbox.replies(says("a.txt", "good")).engine()
    step = engine.run.next_step
    assert step is not None
    await collect(engine.run_step(step, guidance="shorter"))
    engine.close()
    assert files(sandbox) == {"a.txt": "good\n", "beside.txt": "x"}
    undone = await undo(sandbox)
    assert (undone.restored, undone.others) == (("a.txt",), ("beside.txt",))


async def test_what_an_interrupted_step_left_is_named_when_it_is_skipped(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(calls(execute(MAKE)), "never said")
    await stop(sandbox, "execute_command")
    events = await skip(sandbox)
    assert names(notice(events, NoticeKind.LEFT_AS_IS)) == ["beside.txt"]
    undone = await undo(sandbox)
    assert (undone.restored, undone.others) == ((), ("beside.txt",))


async def test_where_an_interrupted_step_left_nothing_nothing_is_named(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(calls(create("a.txt", "go\n")), "never said")
    assert told(await stop(sandbox, "create_file")) == ""
    assert NoticeKind.LEFT_AS_IS not in noticed(await skip(sandbox))


async def test_what_a_stopped_check_made_of_the_steps_files_goes_with_them(
    sandbox: Sandbox,
) -> None:
    sandbox.write(replace(STEP, verify=SLOW)).replies(says("a.txt", "good"))
    await stop_slow(sandbox)
    assert files(sandbox) == {"beside.txt": "half"}
    await run(sandbox.write(STEP).replies(says("a.txt", "good")))
    assert sandbox.statuses() == ["completed"]
    assert (await undo(sandbox)).restored == ("a.txt",)


async def test_a_second_kill_while_the_step_is_put_back_loses_no_word_on_a_persons_edit(
    sandbox: Sandbox,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandbox.write(STEP).replies(calls(create("a.txt", "go\n")), "Done.")
    left = await killed(
        sandbox, tmp_path_factory.mktemp("killed") / "project", "create_file"
    )
    (left.root / "a.txt").write_text("mine\n")
    with monkeypatch.context() as patched:
        patched.setattr(Undoing, "report_other_changes", _killed)
        with pytest.raises(KeyboardInterrupt):
            await run(left)

    engine = left.engine()
    assert "a.txt" in told(await collect(engine.recover()))
    assert engine.stopped_by is not None
    engine.close()
    assert left.statuses() == ["pending"]
    await run(left.replies(says("b.txt", "x")))
    assert left.text("a.txt") == "mine\n"


async def test_a_step_that_was_carried_out_before_an_interrupted_one_is_undone_alone(
    sandbox: Sandbox,
) -> None:
    """Step 2 is interrupted; then the plan is edited, and step 3 runs before it."""
    sandbox.write(Step("one.txt"), STEP, Step("three.txt"))
    await stop(
        sandbox.replies(says("one.txt", "one"), calls(execute(MAKE)), "never said"),
        "execute_command",
    )
    sandbox.write(Step("one.txt"), replace(STEP, depends="Step 3"), Step("three.txt"))
    engine = sandbox.replies(says("three.txt", "three")).engine()
    await collect(engine.run_step(engine.run.plan.steps[2]))
    engine.close()
    undone = await undo(sandbox, 3)
    assert (undone.steps, undone.restored) == ((3,), ("three.txt",))

    await run(sandbox.replies(says("three.txt", "three"), says("a.txt", "good")))
    assert sandbox.statuses() == ["completed"] * 3
    undone = await undo(sandbox, 3)
    assert (undone.steps, undone.kept) == ((3, 2), ())
    assert undone.restored == ("a.txt", "three.txt")
    assert files(sandbox) == {"one.txt": "one\n", "beside.txt": "x"}


def _is_asked_again(event: Event) -> bool:
    return isinstance(event, ReplyDelayed)


def _killed(*_: object) -> None:
    raise KeyboardInterrupt
