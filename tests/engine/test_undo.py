"""Going back: undo, undo of an undo, retry and skip restore everything a step changed,
and nothing a person did.
"""

import json
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import TypeVar

import pytest

from cdd_agent.engine.prompt import LAST_FAILED
from cdd_agent.engine.record import GoingBack
from cdd_agent.engine.run import Run
from cdd_agent.engine.undo import ChangesUnknown, NotCarriedOut
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.step_events import (
    ChangesPutBack,
    StepDiff,
    StepsRedone,
    StepsUndone,
)
from cdd_agent.events.stream import Event
from cdd_agent.git.restore import CheckpointGone
from tests.support.forked import ran
from tests.support.listening import collect
from tests.support.projects import (
    SLUG,
    Copied,
    Sandbox,
    Step,
    check,
    notice,
    run_all,
    says,
)
from tests.support.tables import each_row

BY_HAND = "good, by hand\n"

T = TypeVar("T")
THREE = (
    Step("a.txt", check("a.txt")),
    Step("b.txt", check("b.txt"), "Step 1"),
    Step("a.txt", check("a.txt", "better"), "Step 2"),
)
REPLIES = (says("a.txt", "good"), says("b.txt", "good"), says("a.txt", "better"))


async def back(sandbox: Sandbox, step: int | None = None) -> StepsUndone:
    engine = sandbox.engine()
    try:
        return only(StepsUndone, await collect(engine.undo(step)))
    finally:
        engine.close()


async def again(sandbox: Sandbox) -> list[Event]:
    engine = sandbox.engine()
    try:
        return await collect(engine.redo())
    finally:
        engine.close()


async def diff(sandbox: Sandbox, step: int | None = None) -> str:
    engine = sandbox.engine()
    try:
        return only(StepDiff, await collect(engine.diff(step))).diff
    finally:
        engine.close()


def kept(sandbox: Sandbox) -> dict[str, str]:
    """What was saved before it was discarded, by its path."""
    folder = sandbox.root / ".cdd/runs" / SLUG / "kept"
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def only(kind: type[T], events: list[Event]) -> T:
    (found,) = [event for event in events if isinstance(event, kind)]
    return found


def running(code: str) -> str:
    """A check that runs Python code in the project."""
    return f'python -c "{code}"'


async def carry_out_three(sandbox: Sandbox) -> None:
    await run_all(sandbox.write(*THREE).replies(*REPLIES))
    assert sandbox.statuses() == ["completed"] * 3


@pytest.fixture
async def done(copied: Copied) -> Sandbox:
    """A plan of three steps, carried out; the third changed what the first had made."""
    return await copied(carry_out_three)


async def test_undo_goes_back_to_before_the_last_step(done: Sandbox) -> None:
    undone = await back(done)
    assert (undone.steps, undone.restored, undone.kept) == ((3,), ("a.txt",), ())
    assert done.text("a.txt") == "good\n"
    assert done.statuses() == ["completed", "completed", "pending"]
    assert done.state()["completed_at"] is None


async def test_undo_of_a_step_takes_those_after_it_along(done: Sandbox) -> None:
    undone = await back(done, 1)
    assert (undone.steps, undone.restored) == ((1, 2, 3), ("a.txt", "b.txt"))
    assert not (done.root / "a.txt").exists()
    assert done.statuses() == ["pending"] * 3


async def test_undo_follows_the_order_in_which_steps_were_carried_out(
    sandbox: Sandbox,
) -> None:
    sandbox.write(
        Step("a.txt", check("a.txt"), "Step 2"), Step("b.txt", check("b.txt"))
    )
    await run_all(sandbox.replies(says("b.txt", "good"), says("a.txt", "good")))
    assert (await back(sandbox)).steps == (1,)
    assert (await back(sandbox)).steps == (2,)


async def test_an_undone_step_is_done_anew_with_a_new_reply(done: Sandbox) -> None:
    await back(done, 2)
    await run_all(done.replies(says("b.txt", "good"), says("a.txt", "better still")))
    assert len(done.model.requests) == 2
    assert LAST_FAILED not in done.prompt(0)
    assert (done.text("b.txt"), done.text("a.txt")) == ("good\n", "better still\n")


async def test_a_persons_later_edit_is_kept_and_named(done: Sandbox) -> None:
    (done.root / "b.txt").write_text("mine now\n")
    undone = await back(done, 1)
    assert (undone.restored, undone.kept) == (("a.txt",), ("b.txt",))
    assert done.text("b.txt") == "mine now\n"


async def test_what_a_person_edited_between_two_steps_is_theirs(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "notes.txt").write_text("one\n")
    sandbox.write(*THREE[:2])
    engine = sandbox.replies(*REPLIES[:2]).engine()
    step = engine.run.next_step
    assert step
    await collect(engine.run_step(step))
    (sandbox.root / "notes.txt").write_text("two\n")
    await collect(engine.run_all())
    assert only(StepsUndone, await collect(engine.undo(1))).kept == ()
    engine.close()
    assert sandbox.text("notes.txt") == "two\n"


async def test_redo_brings_back_what_was_undone_and_its_state(done: Sandbox) -> None:
    before = done.state()
    await back(done, 2)

    redone = only(StepsRedone, await again(done))

    assert (redone.steps, redone.restored) == ((2, 3), ("a.txt", "b.txt"))
    assert (done.text("a.txt"), done.text("b.txt")) == ("better\n", "good\n")
    assert done.state() == before


async def test_undos_are_undone_one_by_one_the_last_first(done: Sandbox) -> None:
    await back(done)
    await back(done)
    assert only(StepsRedone, await again(done)).steps == (2,)
    assert only(StepsRedone, await again(done)).steps == (3,)
    assert done.text("a.txt") == "better\n"
    assert [type(event).__name__ for event in await again(done)] == ["Notice"]


async def test_after_another_step_was_run_there_is_nothing_to_redo(
    done: Sandbox,
) -> None:
    await back(done)
    await run_all(done.replies(says("a.txt", "better yet")))
    assert [type(event).__name__ for event in await again(done)] == ["Notice"]
    assert done.text("a.txt") == "better yet\n"


async def test_redo_keeps_what_a_person_edited_after_the_undo(done: Sandbox) -> None:
    await back(done, 2)
    (done.root / "a.txt").write_text("mine\n")
    redone = only(StepsRedone, await again(done))
    assert (redone.restored, redone.kept) == (("b.txt",), ("a.txt",))
    assert done.text("a.txt") == "mine\n"


async def test_undo_covers_what_commands_did(sandbox: Sandbox) -> None:
    root = sandbox.root
    (root / "tool.sh").write_text("#!/bin/sh\n")
    (root / "tool.sh").chmod(0o755)
    (root / "data.bin").write_bytes(bytes(range(256)))
    (root / "gone.txt").write_text("x")
    (root / "link").symlink_to("gone.txt")
    code = (
        "import os; os.chmod('tool.sh', 0o644); open('data.bin', 'ab').write(b'!');"
        " os.remove('gone.txt'); os.remove('link'); os.symlink('a.txt', 'link');"
        " os.makedirs('made/deep'); open('made/deep/x', 'w').close()"
    )
    changed = ("data.bin", "gone.txt", "link", "made/deep/x", "tool.sh")
    await run_all(
        sandbox.write(Step("a.txt", running(code), also=changed)).replies(
            says("a.txt", "good")
        )
    )
    assert sandbox.statuses() == ["completed"]

    undone = await back(sandbox)

    assert (undone.restored, undone.others) == (("a.txt", *changed), ())
    assert stat.S_IMODE((root / "tool.sh").stat().st_mode) == 0o755
    assert (root / "data.bin").read_bytes() == bytes(range(256))
    assert (root / "gone.txt").read_text() == "x"
    assert (root / "link").readlink() == Path("gone.txt")
    assert not (root / "made").exists()


async def test_what_commands_did_beside_the_steps_files_stays_and_is_named(
    sandbox: Sandbox,
) -> None:
    """It may be the user's. What is no longer so is theirs anyway, and not named."""
    (sandbox.root / "gone.txt").write_text("x")
    (sandbox.root / "notes.txt").write_text("one\n")
    code = (
        "import os; os.remove('gone.txt'); open('made.txt', 'w').write('m');"
        " open('notes.txt', 'a').write('two\\n'); open('edited.txt', 'w').close()"
    )
    await run_all(
        sandbox.write(Step("a.txt", running(code))).replies(says("a.txt", "good"))
    )
    (sandbox.root / "edited.txt").write_text("mine\n")
    undone = await back(sandbox)
    assert undone.restored == ("a.txt",)
    assert undone.others == ("gone.txt", "made.txt", "notes.txt")
    assert not (sandbox.root / "gone.txt").exists()
    assert sandbox.text("made.txt") == "m"
    assert sandbox.text("notes.txt") == "one\ntwo\n"


async def test_an_edit_since_is_merged_by_undo_and_by_redo(sandbox: Sandbox) -> None:
    lines = "one\ntwo\nthree\nfour\nfive\nsix\n"
    (sandbox.root / "a.txt").write_text(lines)
    better = lines.replace("one", "good")
    await run_all(
        sandbox.write(Step("a.txt", check("a.txt"))).replies(
            says("a.txt", better.strip())
        )
    )
    (sandbox.root / "a.txt").write_text(better.replace("six", "mine"))
    undone = await back(sandbox)
    assert (undone.restored, undone.merged, undone.kept) == ((), ("a.txt",), ())
    assert sandbox.text("a.txt") == lines.replace("six", "mine")
    assert kept(sandbox) == {"a.txt": better.replace("six", "mine")}

    redone = only(StepsRedone, await again(sandbox))

    assert (redone.restored, redone.merged, redone.kept) == (("a.txt",), (), ())
    assert sandbox.text("a.txt") == better.replace("six", "mine")
    (sandbox.root / "a.txt").write_text(better.replace("six", "mine").upper())
    assert (await back(sandbox)).kept == ("a.txt",)


async def test_whatever_an_undo_discards_is_saved_first(done: Sandbox) -> None:
    await back(done, 1)
    assert kept(done) == {"a.txt": "better\n", "b.txt": "good\n"}


async def test_an_ignored_file_that_a_reply_wrote_is_taken_back_too(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".gitignore").write_text("*.log\n")
    await run_all(
        sandbox.write(Step("a.log", check("a.log"))).replies(says("a.log", "good"))
    )
    await back(sandbox)
    assert not (sandbox.root / "a.log").exists()
    await again(sandbox)
    assert sandbox.text("a.log") == "good\n"


async def test_also_after_the_checkpoints_index_was_lost(sandbox: Sandbox) -> None:
    (sandbox.root / ".gitignore").write_text("*.log\n")
    await run_all(
        sandbox.write(Step("a.log", check("a.log"))).replies(says("a.log", "good"))
    )
    for index in (sandbox.root / ".cdd/runs").glob("*/checkpoints.git/index-*"):
        index.unlink()
    assert (await back(sandbox)).restored == ("a.log",)
    await again(sandbox)
    assert sandbox.text("a.log") == "good\n"


async def test_undo_of_a_step_with_a_repair_goes_back_to_before_its_first_attempt(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text("old\n")
    leaves = (
        "import pathlib; p = pathlib.Path('runs.log'); p.write_text((p.read_text() if"
        " p.exists() else '') + 'x'); "
    )
    sandbox.write(
        Step(
            "a.txt",
            running(leaves + "raise SystemExit('good' not in open('a.txt').read())"),
            also=("runs.log",),
        )
    )
    await run_all(
        sandbox.replies(says("a.txt", "bad"), says("a.txt", "good")), attempts=2
    )
    # the first attempt's went with it
    assert sandbox.text("runs.log") == "x"

    undone = await back(sandbox)

    assert undone.restored == ("a.txt", "runs.log")
    assert sandbox.text("a.txt") == "old\n"
    assert not (sandbox.root / "runs.log").exists()
    await again(sandbox)
    assert (sandbox.text("a.txt"), sandbox.text("runs.log")) == ("good\n", "x")


async def test_a_failed_step_can_be_undone_and_is_pending_then(
    sandbox: Sandbox,
) -> None:
    await run_all(
        sandbox.write(Step("a.txt", check("a.txt"))).replies(says("a.txt", "bad"))
    )
    assert (await back(sandbox)).restored == ("a.txt",)
    assert sandbox.statuses() == ["pending"]


async def test_a_step_whose_check_removed_the_record_is_restored(
    sandbox: Sandbox,
) -> None:
    """As `git clean -fdx` does."""
    code = "import shutil; shutil.rmtree('.cdd/runs'); raise SystemExit(1)"
    sandbox.write(Step("a.txt", f'python -S -c "{code}"'))
    (sandbox.root / "a.txt").write_text("mine\n")
    events = await run_all(sandbox.replies(says("a.txt", "bad")))
    assert only(ChangesPutBack, events).restored == ("a.txt",)
    assert (sandbox.root / "a.txt").read_text() == "mine\n"
    assert sandbox.statuses() == ["failed"]


async def test_retry_takes_back_what_the_reply_wrote_and_keeps_a_persons_fix(
    sandbox: Sandbox,
) -> None:
    spoils = (
        "[open(p, 'w').close() for p in ('made.txt', 'beside.txt')];"
        " raise SystemExit('good' not in open('a.txt').read())"
    )
    sandbox.write(Step("a.txt", running(spoils), also=("b.txt", "made.txt")))
    await run_all(sandbox.replies(says("a.txt", "bad") + says("b.txt", "bad too")))
    (sandbox.root / "b.txt").write_text(BY_HAND)

    events = await run_all(sandbox.replies(says("a.txt", "good")))

    told = [event for event in events if isinstance(event, ChangesPutBack)]
    assert told == [ChangesPutBack(1, ("a.txt", "made.txt"), ("b.txt",))]
    assert BY_HAND in sandbox.prompt()
    assert sandbox.text("b.txt") == BY_HAND
    undone = await back(sandbox)
    assert (undone.restored, undone.kept) == (("a.txt", "made.txt"), ("b.txt",))
    assert undone.others == ("beside.txt",)
    assert sandbox.text("b.txt") == BY_HAND


async def test_skip_discards_what_the_reply_wrote_and_names_what_else_changed(
    sandbox: Sandbox,
) -> None:
    makes = "[open(p, 'w').close() for p in ('made.txt', 'beside.txt')]"
    fails = running(f"{makes}; raise SystemExit(1)")
    sandbox.write(Step("a.txt", fails, also=("made.txt",)))
    await run_all(sandbox.replies(says("a.txt", "bad")))
    engine = sandbox.engine()
    step = engine.run.next_step
    assert step
    events = await collect(engine.skip(step, "not needed", keep=False))
    engine.close()
    told = [event for event in events if isinstance(event, ChangesPutBack)]
    assert told == [ChangesPutBack(1, ("a.txt", "made.txt"), ())]
    assert not (sandbox.root / "a.txt").exists()
    assert not (sandbox.root / "made.txt").exists()
    left = notice(events, NoticeKind.LEFT_AS_IS)  # it may be the user's
    assert re.findall(r"\w+\.txt", left) == ["beside.txt"]
    undone = await back(sandbox)
    assert (undone.restored, undone.others) == ((), ("beside.txt",))
    assert sandbox.statuses() == ["pending"]
    await again(sandbox)
    assert (sandbox.root / "beside.txt").exists()
    assert not (sandbox.root / "a.txt").exists()  # it was discarded
    assert sandbox.statuses() == ["skipped"]


async def test_a_step_that_was_skipped_before_any_attempt_is_undone_and_redone(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"), Step("b.txt"))
    engine = sandbox.engine()
    await collect(engine.skip(engine.run.plan.steps[0], "no", keep=False))
    engine.close()

    assert (await back(sandbox)).steps == (1,)
    assert sandbox.statuses() == ["pending", "pending"]

    await again(sandbox)
    assert sandbox.statuses() == ["skipped", "pending"]


async def test_diff_shows_what_a_step_changed_commands_included(
    sandbox: Sandbox,
) -> None:
    makes = "[open(p, 'w').write('by a command') for p in ('made.txt', 'beside.txt')]"
    sandbox.write(Step("a.txt", running(makes), also=("made.txt",)), Step(None))
    await run_all(sandbox.replies(says("a.txt", "good"), "Nothing to do."))
    shown = await diff(sandbox, 1)
    assert "+good" in shown
    assert "+by a command" in shown
    assert re.findall(r"^diff .* b/(.*)", shown, re.MULTILINE) == ["a.txt", "made.txt"]
    assert "execution-state" not in shown
    assert await diff(sandbox) == ""
    record = sandbox.root / ".cdd/runs/feature-words/step-01/attempt-1/changes.diff"
    assert record.read_text() == shown


async def test_a_step_that_was_not_carried_out_is_refused_with_those_that_were(
    done: Sandbox,
) -> None:
    engine = done.engine()
    for going in (engine.undo(7), engine.diff(7)):
        with pytest.raises(NotCarriedOut, match="Step 7") as caught:
            await collect(going)
        assert "1, 2, 3" in caught.value.hint
    engine.close()


async def test_where_nothing_was_carried_out_there_is_nothing_to_go_back_to(
    sandbox: Sandbox,
) -> None:
    engine = sandbox.write(*THREE).engine()
    for going in (engine.undo(), engine.redo(), engine.diff()):
        assert [type(event).__name__ for event in await collect(going)] == ["Notice"]
    engine.close()


async def test_an_undo_that_was_killed_in_the_middle_is_brought_to_its_end(
    done: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Run, "save", _killed)
        with pytest.raises(KeyboardInterrupt):
            await back(done, 2)
    # the files are back, the state does not know yet
    assert done.statuses() == ["completed"] * 3
    assert not (done.root / "b.txt").exists()

    events = await run_all(done.replies(says("b.txt", "good"), says("a.txt", "better")))

    assert only(StepsUndone, events).steps == (2, 3)
    assert len(done.model.requests) == 2
    assert done.statuses() == ["completed"] * 3


async def test_an_undo_that_was_killed_after_its_end_is_not_done_twice(
    done: Sandbox,
) -> None:
    await back(done)
    done_engine = done.engine()
    done_engine.run.record.save_going_back(
        GoingBack(id=done.state()["undone"][0]["id"], steps=(3,))
    )
    assert await collect(done_engine.recover()) == []
    done_engine.close()
    assert (await back(done)).steps == (2,)
    assert done.statuses() == ["completed", "pending", "pending"]


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.fork
def test_undo_redo_and_diff_from_the_command_line(done: Sandbox) -> None:
    def cdd(*words: str) -> subprocess.CompletedProcess[str]:
        return ran(*words, cwd=done.root)

    patch = cdd("diff", "feature-words", "--step", "2").stdout
    assert patch.splitlines()[0].endswith(" b/b.txt")
    assert re.search(r"\b2, 3\b", cdd("undo", "feature-words", "--step", "2").stdout)
    assert not (done.root / "b.txt").exists()
    subprocess.run(
        ["git", "apply", "-"], input=patch, cwd=done.root, text=True, check=True
    )
    assert done.text("b.txt") == "good\n"
    (done.root / "b.txt").unlink()
    assert (
        json.loads(cdd("redo", "feature-words", "--json").stdout)["event"]
        == "steps_redone"
    )
    assert done.text("a.txt") == "better\n"
    refused = cdd("undo", "feature-words", "--step", "9")
    assert (refused.returncode, "no step 9" in refused.stderr) == (2, True)


async def test_undo_keeps_what_a_person_edited_between_two_attempts(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text("original\n")
    sandbox.write(Step("b.txt", check("b.txt"), also=("a.txt",)))
    await run_all(sandbox.replies(says("a.txt", "touched") + says("b.txt", "bad")))
    (sandbox.root / "a.txt").write_text("by hand\n")
    await run_all(sandbox.replies(says("b.txt", "good")))
    assert sandbox.statuses() == ["completed"]
    undone = await back(sandbox)
    assert (undone.restored, undone.kept) == (("b.txt",), ("a.txt",))
    assert sandbox.text("a.txt") == "by hand\n"


@each_row("last", ["better", "worse"])
async def test_undo_goes_beyond_a_later_steps_attempts_that_were_restored(
    sandbox: Sandbox, last: str
) -> None:
    (sandbox.root / "a.txt").write_text("old\n")
    sandbox.write(
        Step("a.txt", check("a.txt")), Step("a.txt", check("a.txt", "better"), "Step 1")
    )
    await run_all(
        sandbox.replies(
            says("a.txt", "good"), says("a.txt", "bad"), says("a.txt", last)
        ),
        attempts=2,
    )
    undone = await back(sandbox, 1)
    assert (undone.steps, undone.restored, undone.kept) == ((1, 2), ("a.txt",), ())
    assert sandbox.text("a.txt") == "old\n"
    await again(sandbox)
    assert sandbox.text("a.txt") == f"{last}\n"


async def test_what_was_edited_between_two_steps_is_what_undo_goes_back_to_and_is_named(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text("old\n")
    await run_all(sandbox.write(THREE[0]).replies(REPLIES[0]))
    (sandbox.root / "a.txt").write_text(BY_HAND)
    await run_all(sandbox.write(*THREE).replies(*REPLIES[1:]))
    undone = await back(sandbox, 1)
    assert (undone.restored, undone.kept, undone.edited) == (("b.txt",), (), ("a.txt",))
    assert sandbox.text("a.txt") == BY_HAND
    await again(sandbox)
    assert sandbox.text("a.txt") == "better\n"


async def test_redo_brings_back_what_the_undo_found_and_not_what_was_put_back_before(
    sandbox: Sandbox,
) -> None:
    sandbox.write(THREE[0], Step("a.txt", check("a.txt", "better"), "Step 1"))
    await run_all(sandbox.replies(REPLIES[0], says("a.txt", "bad")))
    # the failed attempt is restored, and the next one writes nothing
    await run_all(sandbox.replies("I would rather not."))
    assert sandbox.text("a.txt") == "good\n"
    assert (await back(sandbox, 1)).restored == ("a.txt",)
    assert not (sandbox.root / "a.txt").exists()
    await again(sandbox)
    assert sandbox.text("a.txt") == "good\n"


async def test_what_a_person_edits_while_a_check_runs_survives_a_retry_and_a_skip(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "README").write_text("one\n")
    edits = (
        "open('README', 'a').write('two\\n'); open('idea.txt', 'w').write('mine');"
        " raise SystemExit(1)"
    )
    await run_all(
        sandbox.write(Step("a.txt", running(edits))).replies(says("a.txt", "bad"))
    )

    await run_all(
        sandbox.write(Step("a.txt", running("raise SystemExit(1)"))).replies(
            says("a.txt", "bad")
        )
    )  # once more
    assert sandbox.text("README") == "one\ntwo\n"
    engine = sandbox.engine()
    step = engine.run.next_step
    assert step
    await collect(engine.skip(step, "no", keep=False))
    engine.close()

    assert (sandbox.text("README"), sandbox.text("idea.txt")) == ("one\ntwo\n", "mine")


async def test_redo_after_a_skip_has_nothing_to_bring_back(done: Sandbox) -> None:
    await back(done)
    engine = done.engine()
    step = engine.run.next_step
    assert step
    await collect(engine.skip(step, "no", keep=False))
    engine.close()
    assert [type(event).__name__ for event in await again(done)] == ["Notice"]
    assert (await back(done)).steps == (3,)
    assert done.statuses() == ["completed", "completed", "pending"]


async def test_an_undone_steps_entries_are_not_used_again(done: Sandbox) -> None:
    await back(done, 2)
    # by hand, and just what the step had written
    (done.root / "b.txt").write_text("good\n")
    engine = done.replies().engine()
    await collect(engine.run_all())
    engine.close()
    assert done.text("b.txt") == "good\n"


async def test_an_undo_that_was_stopped_goes_on_before_anything_else(
    done: Sandbox,
) -> None:
    engine = done.replies(says("b.txt", "good"), says("a.txt", "better")).engine()
    engine.run.record.save_going_back(GoingBack(id="x", steps=(2, 3)))
    events = await collect(engine.run_all())
    engine.close()
    assert only(StepsUndone, events).steps == (2, 3)
    assert done.statuses() == ["completed"] * 3


async def test_an_undo_that_was_killed_and_is_typed_again_is_done_once(
    done: Sandbox,
) -> None:
    engine = done.engine()
    engine.run.record.save_going_back(GoingBack(id="x", steps=(3,)))
    assert only(StepsUndone, await collect(engine.undo())).steps == (3,)
    engine.close()
    assert done.statuses() == ["completed", "completed", "pending"]


async def test_the_plan_and_other_tickets_are_no_part_of_what_a_step_changed(
    sandbox: Sandbox,
) -> None:
    edits = (
        "open('tickets/feature-words/plan.md', 'a').write('\\n'); open('tickets/x',"
        " 'w').close()"
    )
    await run_all(
        sandbox.write(Step("a.txt", running(edits))).replies(says("a.txt", "good"))
    )
    assert (await back(sandbox)).restored == ("a.txt",)
    assert (sandbox.root / "tickets/x").exists()


async def test_where_the_record_is_gone_nothing_is_undone(done: Sandbox) -> None:
    shutil.rmtree(done.root / ".cdd/runs")
    engine = done.engine()
    with pytest.raises(ChangesUnknown, match="Step 2"):
        await collect(engine.undo(2))
    assert "are unknown" in str(await collect(engine.diff()))
    engine.close()
    assert done.statuses() == ["completed"] * 3


async def test_without_checkpoints_steps_are_undone_and_carried_out(
    sandbox: Sandbox,
) -> None:
    """The way back needs the contents in the run's own folder alone."""
    (sandbox.root / "a.txt").write_text("old\n")
    sandbox.write(*THREE[:2])
    await run_all(sandbox.replies(says("a.txt", "good"), says("b.txt", "bad")))
    shutil.rmtree(sandbox.root / ".cdd/runs/feature-words/checkpoints.git")
    await run_all(sandbox.replies(says("b.txt", "good")))
    assert sandbox.statuses() == ["completed", "completed"]
    shutil.rmtree(sandbox.root / ".cdd/runs/feature-words/checkpoints.git")
    assert (await back(sandbox, 1)).restored == ("a.txt", "b.txt")
    assert sandbox.text("a.txt") == "old\n"


async def test_without_the_contents_nothing_is_undone_and_a_step_can_be_skipped(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "a.txt").write_text("old\n")
    await run_all(
        sandbox.write(THREE[0]).replies(says("a.txt", "bad") + says("b.txt", "x"))
    )
    before = sandbox.state()
    shutil.rmtree(sandbox.root / ".cdd/runs/feature-words/versions")
    engine = sandbox.engine()
    for going in (engine.undo(1), engine.preview_undo(1)):
        with pytest.raises(CheckpointGone, match="checkpoint of this run is missing"):
            await collect(going)
    engine.close()
    assert sandbox.state() == before
    assert (sandbox.text("a.txt"), sandbox.text("b.txt")) == ("bad\n", "x\n")
    engine = sandbox.engine()
    await collect(engine.skip(engine.run.plan.steps[0], "no", keep=True))
    engine.close()
    assert sandbox.statuses() == ["skipped"]


async def test_redo_under_another_plan_is_refused(done: Sandbox) -> None:
    await back(done, 1)
    done.write(Step("x.txt", check("x.txt")))
    engine = done.engine()
    with pytest.raises(BadInput, match="another plan"):
        await collect(engine.redo())
    engine.close()
    done.engine().close()


async def test_the_reason_of_a_skip_is_kept_without_secrets(sandbox: Sandbox) -> None:
    engine = sandbox.write(Step("a.txt")).engine()
    step = engine.run.next_step
    assert step
    await collect(
        engine.skip(step, "sk-abcdefghijklmnopqrstuvwx1234567890 is wrong", keep=False)
    )
    engine.close()
    assert "sk-abc" not in str(sandbox.state())


@pytest.mark.usefixtures("in_git")
async def test_what_is_in_no_checkpoint_is_named_once(sandbox: Sandbox) -> None:
    subprocess.run(["git", "init", "--quiet", "inner"], cwd=sandbox.root, check=True)
    (sandbox.root / "inner/.git/config").write_text("[damaged\n")
    events = await run_all(sandbox.write(*THREE[:2]).replies(*REPLIES[:2]))
    assert "inner" in notice(events, NoticeKind.NOT_IN_CHECKPOINT)


async def test_a_declared_file_behind_a_linked_folder_is_the_steps(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "real").mkdir()
    (sandbox.root / "link").symlink_to("real")
    sandbox.write(Step("link/a.txt", running("open('link/a.txt', 'a').write('x')")))
    await run_all(sandbox.replies(says("link/a.txt", "good")))
    assert sandbox.text("real/a.txt") == "good\nx"
    undone = await back(sandbox)
    assert (undone.restored, undone.others) == (("real/a.txt",), ())
    assert not (sandbox.root / "real/a.txt").exists()
