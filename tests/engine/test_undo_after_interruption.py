"""A step that was interrupted: what its commands made besides is known, and goes when
it is undone.
"""

import asyncio
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cdd_agent.engine.undo import NotCarriedOut, Undoing
from cdd_agent.events import (
    About,
    CommandOutput,
    Event,
    Notice,
    StepsRedone,
    StepsUndone,
)
from cdd_agent.llm.port import ConnectionFailed
from tests.engine.tool_steps import (
    STEP,
    calls,
    create,
    execute,
    run,
    run_with,
    stopped_after,
)
from tests.support.listening import collect, stop_at
from tests.support.projects import Sandbox, Step, check, notice, says

GONE = [ConnectionFailed("gone")] * 9
MAKE = "python -c \"open('made.txt', 'w').write('by a command\\n')\""
MAKE_AND_CHANGE = (
    "python -c \"open('made.txt', 'w').write('x'); open('old.txt',"
    " 'a').write('more\\n')\""
)
SLOW = "python -c \"import time; open('made.txt', 'w').write('half'); time.sleep(60)\""


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


def told(events: list[Event]) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Notice))


async def test_undo_takes_back_what_commands_made_before_the_interruption(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "old.txt").write_text("old\n")
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n")), calls(execute(MAKE_AND_CHANGE)), "never said"
    )
    left = notice(await stop(sandbox, "execute_command"), About.LEFT_AS_IS)
    assert re.findall(r"\w+\.txt", left) == ["made.txt", "old.txt"]
    await run(sandbox.replies(calls(create("b.txt", "b\n")), *GONE))
    await run(
        sandbox.replies(
            calls(create("c.txt", "c\n")),
            calls(create("a.txt", "x"), execute(MAKE)),
            says("d", "d"),
        )
    )
    await run(sandbox.replies(says("a.txt", "good")))
    assert sandbox.statuses() == ["completed"]

    undone = await undo(sandbox)

    assert undone.kept == ()
    assert sandbox.text("old.txt") == "old\n"
    for path in ("a.txt", "b.txt", "c.txt", "d", "made.txt"):
        assert not (sandbox.root / path).exists()


async def test_an_interrupted_step_can_be_undone_before_it_goes_on_and_done_again(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("one.txt"), STEP).replies(
        says("one.txt", "one"), calls(execute(MAKE)), "never said"
    )
    await stop(sandbox, "execute_command")
    undone = await undo(sandbox)
    assert (undone.steps, undone.restored) == ((2,), ("made.txt",))
    assert sandbox.statuses() == ["completed", "pending"]

    engine = sandbox.engine()
    (redone,) = [
        event
        for event in await collect(engine.redo())
        if isinstance(event, StepsRedone)
    ]
    engine.close()
    assert redone.restored == ("made.txt",)

    assert (await undo(sandbox)).steps == (2,)
    assert (await undo(sandbox)).steps == (1,)  # of step 2 nothing is left
    await run(sandbox.replies(says("one.txt", "one"), says("a.txt", "good")))
    assert sandbox.statuses() == ["completed", "completed"]
    assert "by a command" not in sandbox.prompt()


async def test_undo_of_an_earlier_step_takes_what_the_interrupted_one_left_along(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("one.txt"), STEP).replies(
        says("one.txt", "one"), calls(execute(MAKE)), "never said"
    )
    await stop(sandbox, "execute_command")
    undone = await undo(sandbox, 1)
    assert (undone.steps, undone.restored) == ((1, 2), ("made.txt", "one.txt"))


async def test_where_an_interrupted_step_left_nothing_undo_goes_to_the_one_before(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("one.txt"), STEP).replies(
        says("one.txt", "one"), calls(create("a.txt", "go\n")), "never said"
    )
    assert told(await stop(sandbox, "create_file")) == ""
    with pytest.raises(NotCarriedOut, match="Step 2"):
        await undo(sandbox, 2)
    assert (await undo(sandbox)).steps == (1,)


async def test_after_a_kill_what_commands_had_made_is_known_and_later_edits_stay(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (sandbox.root / "old.txt").write_text("old\n")
    sandbox.write(STEP).replies(
        calls(create("a.txt", "go\n")), calls(execute(MAKE_AND_CHANGE)), "Done."
    )
    left = await killed(
        sandbox, tmp_path_factory.mktemp("killed") / "project", "execute_command"
    )
    (left.root / "old.txt").write_text("mine now\n")
    (left.root / "mine.txt").write_text("mine\n")

    events = await run(
        left.replies(calls(create("b.txt", "b\n")), says("a.txt", "good"))
    )

    assert re.findall(r"\w+\.txt", notice(events, About.CHANGED_BESIDE)) == [
        "mine.txt",
        "old.txt",
    ]
    assert "made.txt" in notice(events, About.LEFT_AS_IS)
    assert left.statuses() == ["completed"]
    undone = await undo(left)
    assert undone.restored == ("a.txt", "b.txt", "made.txt")
    assert left.text("old.txt") == "mine now\n"
    assert left.text("mine.txt") == "mine\n"


async def test_after_a_kill_in_a_command_nobody_knows_whose_its_files_are(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sandbox.write(STEP).replies(calls(create("a.txt", "go\n")), calls(execute(SLOW)))
    engine = sandbox.engine()
    running = asyncio.ensure_future(collect(engine.run_all()))
    while not (sandbox.root / "made.txt").exists():
        await asyncio.sleep(0.05)
    left = sandbox.at(tmp_path_factory.mktemp("killed") / "project")
    shutil.copytree(sandbox.root, left.root, symlinks=True)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    engine.close()

    # that one was stopped, and had time to look
    assert (await undo(sandbox)).restored == ("made.txt",)
    events = await run(left.replies(says("a.txt", "good")))
    assert "made.txt" in notice(events, About.CHANGED_BESIDE)
    assert (await undo(left)).restored == ("a.txt",)
    assert (left.root / "made.txt").exists()


async def test_a_step_that_begins_anew_with_guidance_takes_what_was_left_along(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(calls(execute(MAKE)), "never said")
    await stop(sandbox, "execute_command")
    engine = sandbox.replies(says("a.txt", "good")).engine()
    step = engine.run.next_step
    assert step is not None
    await collect(engine.run_step(step, guidance="shorter"))
    engine.close()
    assert (await undo(sandbox)).restored == ("a.txt", "made.txt")


async def test_what_an_interrupted_step_left_is_named_when_it_is_skipped(
    sandbox: Sandbox,
) -> None:
    sandbox.write(STEP).replies(calls(execute(MAKE)), "never said")
    await stop(sandbox, "execute_command")
    engine = sandbox.engine()
    events = await collect(engine.skip(engine.run.plan.steps[0], "no", keep=False))
    engine.close()
    assert "made.txt" in notice(events, About.LEFT_AS_IS)
    assert (await undo(sandbox)).restored == ("made.txt",)


async def test_what_a_stopped_check_made_is_taken_back_too(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", SLOW)).replies(says("a.txt", "good"))
    engine = sandbox.engine()
    running = asyncio.ensure_future(collect(engine.run_all()))
    while not (sandbox.root / "made.txt").exists():
        await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    engine.close()
    await run(
        sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "good"))
    )
    assert sandbox.statuses() == ["completed"]
    assert (await undo(sandbox)).restored == ("a.txt", "made.txt")


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
        patched.setattr(Undoing, "tell_what_is_left", _killed)
        with pytest.raises(KeyboardInterrupt):
            await run(left)

    engine = left.engine()
    assert "a.txt" in told(await collect(engine.recover()))
    assert engine.stopped_by is not None
    engine.close()
    assert left.statuses() == ["pending"]
    await run(left.replies(says("b.txt", "x")))
    assert left.text("a.txt") == "mine\n"


async def test_a_file_of_the_step_that_was_kept_as_a_persons_is_not_taken_back(
    sandbox: Sandbox,
) -> None:
    said = (
        "import time; open('made.txt', 'w').close(); print('now', flush=True);"
        " time.sleep(60)"
    )
    sandbox.write(Step("a.txt", f'python -c "{said}"')).replies(says("a.txt", "good"))
    engine = sandbox.engine()

    def is_checked(event: Event) -> bool:
        if isinstance(event, CommandOutput):
            (sandbox.root / "a.txt").write_text("mine\n")
        return isinstance(event, CommandOutput)

    await stop_at(engine.run_all(), is_checked)
    engine.close()
    assert (await undo(sandbox)).restored == ("made.txt",)
    assert sandbox.text("a.txt") == "mine\n"


async def _interrupted_and_another_done(sandbox: Sandbox) -> None:
    """Step 2 is interrupted; then the plan is edited, and step 3 is carried out before
    it.
    """
    sandbox.write(Step("one.txt"), STEP, Step("three.txt"))
    await stop(
        sandbox.replies(says("one.txt", "one"), calls(execute(MAKE)), "never said"),
        "execute_command",
    )
    sandbox.write(Step("one.txt"), replace(STEP, depends="Step 3"), Step("three.txt"))
    engine = sandbox.replies(says("three.txt", "three")).engine()
    await collect(engine.run_step(engine.run.plan.steps[2]))
    engine.close()


async def test_a_step_that_was_carried_out_after_an_interrupted_one_is_undone_whole(
    sandbox: Sandbox,
) -> None:
    await _interrupted_and_another_done(sandbox)
    undone = await undo(sandbox, 3)
    assert (undone.steps, undone.restored, undone.kept) == (
        (3, 2),
        ("made.txt", "three.txt"),
        (),
    )


async def test_what_a_step_did_before_and_after_another_one_is_undone_with_that_one(
    sandbox: Sandbox,
) -> None:
    await _interrupted_and_another_done(sandbox)
    await run(sandbox.replies(says("a.txt", "good")))
    assert sandbox.statuses() == ["completed"] * 3
    undone = await undo(sandbox, 3)
    assert (undone.steps, undone.restored, undone.kept) == (
        (3, 2),
        ("a.txt", "made.txt", "three.txt"),
        (),
    )


def _killed(*_: object) -> None:
    raise KeyboardInterrupt
