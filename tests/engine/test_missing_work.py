"""A run whose steps are over is done only in a tree that has its work."""

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.commands.criteria import criteria_events
from cdd_agent.commands.registry import handle
from cdd_agent.commands.ticket_commands import status_events
from cdd_agent.engine.log import RunLog
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import ExitCode
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.run_events import RunFinished
from cdd_agent.events.stream import Event, to_json
from cdd_agent.events.ticket_events import CriteriaShown, PlanOpened
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.status import MissingWork, RunStatus
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.outcomes import Reference, Result, SuiteRun
from tests.engine.together import Together
from tests.engine.tool_steps import calls, create, execute, read, replace
from tests.git.repositories import git
from tests.support.commandline import cdd, script
from tests.support.commandline import events as events_of
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, noticed, says
from tests.support.tables import each_row

TEST = "def test_new():\n    assert 1 + 1 == 2\n"
NO_OLD = "import os\n\n\ndef test_old():\n    assert not os.path.exists('old.txt')\n"
OTHER_TEST = "def test_other():\n    assert True\n"
PYTEST = "python -m pytest -q tests"
STEPS = (
    Step("new.txt", tested="good"),
    Step("app.txt", tested="good"),
    Step("old.txt (deleted)", "pytest old_is_gone.py"),
    Step("tests/test_new.py", PYTEST),
)
DELETES = "*** Begin Patch\n*** Delete File: old.txt\n*** End Patch\n"
REPLIES = (
    says("new.txt", "good"),
    says("app.txt", "good"),
    DELETES,
    says("tests/test_new.py", TEST),
)
TEST_ID = "tests/test_new.py::test_new"

pytestmark = pytest.mark.usefixtures("in_git")
Ended = tuple[ExitCode, list[Event]]
Lost = dict[str, dict[str, tuple[str, ...]]]
"""By the label of a step, the fields of `MissingWork` that are not empty."""


def begin_repository(sandbox: Sandbox) -> Sandbox:
    """A project with one commit on `main`, whose tickets are not in git."""
    root = sandbox.root
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "A")
    git(root, "config", "user.email", "a@localhost")
    git(root, "config", "core.autocrlf", "false")
    (root / ".git" / "info" / "exclude").write_text("tickets/\n.cdd/\n")
    (root / "app.txt").write_text("before\n")
    (root / "old.txt").write_text("old\n")
    (root / "old_is_gone.py").write_text(NO_OLD)
    (root / "tests").mkdir()
    (root / "tests" / "test_other.py").write_text(OTHER_TEST)
    git(root, "add", "--all")
    git(root, "commit", "-qm", "start")
    return sandbox


async def carry_out(sandbox: Sandbox, *replies: Any, **flags: str) -> Ended:
    """Run `cdd exec` in this process: its exit code and events."""
    sandbox.flags = {**sandbox.flags, **flags}
    engine = sandbox.replies(*replies).engine()
    try:
        events = await collect(_recorded(engine))
        return engine.exit_code, events
    finally:
        engine.close()


async def _recorded(engine: Any) -> None:
    with engine.recording():
        await engine.carry_out(attempts=1)


def lost(events: list[Event]) -> Lost:
    (finished,) = (event for event in events if isinstance(event, RunFinished))
    return {work.label: fields(work) for work in finished.missing}


def fields(work: MissingWork) -> dict[str, tuple[str, ...]]:
    names = ("missing", "reverted", "restored", "tests")
    return {name: getattr(work, name) for name in names if getattr(work, name)}


@pytest.fixture
async def done(sandbox: Sandbox) -> Sandbox:
    """All four steps are done, and committed on the branch `work`."""
    begin_repository(sandbox.write(*STEPS))
    git(sandbox.root, "switch", "-qc", "work")
    code, events = await carry_out(sandbox, *REPLIES)
    assert (code, lost(events)) == (ExitCode.DONE, {})
    git(sandbox.root, "add", "--all")
    git(sandbox.root, "commit", "-qm", "work")
    return sandbox


NEW: Lost = {"1": {"missing": ("new.txt",)}}
APP: Lost = {"2": {"reverted": ("app.txt",)}}
NO_APP: Lost = {"2": {"missing": ("app.txt",)}}
OLD: Lost = {"3": {"restored": ("old.txt",)}}
TESTS: Lost = {"4": {"missing": ("tests/test_new.py",), "tests": (TEST_ID,)}}
NO_OTHER: Lost = {"4": {"tests": ("tests/test_other.py::test_other",)}}
TEST_GONE: Lost = {"4": {"tests": (TEST_ID,)}}
ALL = NEW | APP | OLD | TESTS
WITHOUT_RECORD = NEW | OLD | {"4": {"missing": ("tests/test_new.py",)}}


def switch(root: Path) -> None:
    git(root, "switch", "-q", "main")


def reset_commit(root: Path) -> None:
    git(root, "reset", "-q", "--hard", "HEAD~1")


def reset_uncommitted(root: Path) -> None:
    git(root, "reset", "-q", "--soft", "HEAD~1")
    git(root, "reset", "-q", "--hard")


def stash(root: Path) -> None:
    git(root, "reset", "-q", "--mixed", "HEAD~1")
    git(root, "stash", "-q", "-u")


def revert(root: Path) -> None:
    git(root, "revert", "--no-edit", "HEAD")


def remove_created(root: Path) -> None:
    (root / "new.txt").unlink()


def remove_modified(root: Path) -> None:
    (root / "app.txt").unlink()


def remove_test_file(root: Path) -> None:
    (root / "tests" / "test_new.py").unlink()


def remove_earlier_test_file(root: Path) -> None:
    (root / "tests" / "test_other.py").unlink()


def remove_folder(root: Path) -> None:
    shutil.rmtree(root / "tests")


def remove_test_alone(root: Path) -> None:
    (root / "tests" / "test_new.py").write_text("def helper():\n    return 1\n")


def folder_in_its_place(root: Path) -> None:
    (root / "new.txt").unlink()
    (root / "new.txt").mkdir()


def check_out_modified(root: Path) -> None:
    git(root, "checkout", "-q", "HEAD~1", "--", "app.txt")


def check_out_deleted(root: Path) -> None:
    git(root, "checkout", "-q", "HEAD~1", "--", "old.txt")


def reset_with_other_line_ends(root: Path) -> None:
    (root / "app.txt").write_bytes(b"before\r\n")


def recreate_deleted(root: Path) -> None:
    (root / "old.txt").write_text("something else\n")


def forget_record(root: Path) -> None:
    shutil.rmtree(root / ".cdd" / "runs")
    switch(root)


def forget_checkpoints(root: Path) -> None:
    references = git(root, "for-each-ref", "--format=%(refname)", "refs/cdd").split()
    assert references
    for line in references:
        git(root, "update-ref", "-d", line)
    git(root, "gc", "-q", "--prune=now")
    # git keeps those that are the tree of a commit
    for ledger in (root / ".cdd" / "runs").rglob("ledger.jsonl"):
        text = re.sub(r'"id":"\w{10}', '"id":"0000000000', ledger.read_text())
        ledger.write_text(text)
    switch(root)


FAMILY: tuple[tuple[Callable[[Path], None], Lost], ...] = (
    (switch, ALL),
    (reset_commit, ALL),
    (reset_uncommitted, ALL),
    (stash, ALL),
    (revert, ALL),
    (remove_created, NEW),
    (remove_modified, NO_APP),
    (remove_test_file, TESTS),
    (remove_earlier_test_file, NO_OTHER),
    (
        remove_folder,
        {
            "4": {
                "missing": ("tests/test_new.py",),
                "tests": (TEST_ID, "tests/test_other.py::test_other"),
            }
        },
    ),
    (remove_test_alone, TEST_GONE),
    (folder_in_its_place, NEW),
    (check_out_modified, APP),
    (check_out_deleted, OLD),
    (reset_with_other_line_ends, APP),
    (recreate_deleted, OLD),
    (forget_record, WITHOUT_RECORD),
    (forget_checkpoints, ALL),
)


@each_row("change, expected", FAMILY, ids=lambda each: getattr(each, "__name__", ""))
async def test_exec_reports_work_that_is_not_in_this_tree(
    done: Sandbox, change: Callable[[Path], None], expected: Lost
) -> None:
    change(done.root)
    for flags in ({}, {"require": "verified"}):
        code, events = await carry_out(done, **flags)
        assert (code, lost(events)) == (ExitCode.FAILED, expected), flags
        assert NoticeKind.ALL_DONE not in noticed(events)
        report = (done.root / ".cdd" / "runs" / SLUG / "report.json").read_text()
        assert '"status": "failed"' in report


@pytest.mark.long
@each_row("change, expected", FAMILY, ids=lambda each: getattr(each, "__name__", ""))
async def test_the_shell_does_not_say_that_it_is_done(
    done: Sandbox, change: Callable[[Path], None], expected: Lost
) -> None:
    session = done.session()
    await collect(session.engage("executor", session.project.tickets.find(SLUG)))
    change(done.root)
    for line in ("continue", "status", "all"):
        events = await collect(handle(session, line))
        assert lost(events) == expected, line
        assert NoticeKind.ALL_DONE not in noticed(events), line
    ticket = session.project.tickets.find(SLUG)
    events = await collect(session.engage("executor", ticket))
    assert lost(events) == expected
    assert NoticeKind.ALL_DONE not in noticed(events)


async def test_a_lost_state_is_written_again_only_where_the_work_is(
    done: Sandbox,
) -> None:
    """A new file would keep git from switching back to the branch that has it."""
    state = done.ticket / "execution-state.json"
    written = state.read_bytes()
    state.unlink()
    switch(done.root)

    code, events = await carry_out(done)
    assert (code, lost(events)) == (ExitCode.FAILED, ALL)
    assert not state.exists()

    git(done.root, "switch", "-q", "work")
    code, events = await carry_out(done)
    assert (code, lost(events)) == (ExitCode.DONE, {})
    assert state.read_bytes() == written


async def test_a_run_that_ends_in_a_tree_without_its_earlier_steps_is_not_done(
    sandbox: Sandbox,
) -> None:
    """The other branch was checked out before the last step was carried out."""
    begin_repository(sandbox.write(*STEPS))
    git(sandbox.root, "switch", "-qc", "work")
    await carry_out(sandbox, *REPLIES)
    git(sandbox.root, "add", "--all")
    git(sandbox.root, "commit", "-qm", "work")
    switch(sandbox.root)
    sandbox.write(*STEPS, Step("last.txt", check("last.txt")))

    code, events = await carry_out(sandbox, says("last.txt", "good"))

    assert sandbox.statuses() == ["completed"] * 5
    assert (code, lost(events)) == (ExitCode.FAILED, ALL)
    git(sandbox.root, "stash", "-q", "-u")
    git(sandbox.root, "switch", "-q", "work")
    git(sandbox.root, "stash", "pop", "-q")
    code, events = await carry_out(sandbox)
    assert (code, lost(events)) == (ExitCode.DONE, {})


async def test_a_change_that_the_next_step_did_not_find_is_missed(
    sandbox: Sandbox,
) -> None:
    steps = (Step("app.txt", "none"), Step("app.txt", "none", description="Again."))
    begin_repository(sandbox.write(steps[0]))
    await carry_out(sandbox, says("app.txt", "first"))
    git(sandbox.root, "checkout", "-q", "--", "app.txt")
    sandbox.write(*steps)
    code, events = await carry_out(sandbox, says("app.txt", "second"))
    assert (code, lost(events)) == (
        ExitCode.FAILED,
        {"1": {"reverted": ("app.txt",)}},
    )


async def test_a_clone_and_a_tree_with_the_state_alone_are_looked_at(
    done: Sandbox, tmp_path: Path
) -> None:
    for branch, expected in (("main", WITHOUT_RECORD), ("work", {})):
        clone = tmp_path / f"clone-{branch}"
        git(done.root, "clone", "-q", "-b", branch, str(done.root), str(clone))
        shutil.copytree(done.ticket, clone / "tickets" / SLUG)
        (clone / ".cdd").mkdir()
        code, events = await carry_out(done.at(clone))
        is_done = ExitCode.FAILED if expected else ExitCode.DONE
        assert (code, lost(events)) == (is_done, expected), branch


# --- No false alarm -------------------------------------------------------------------


def nothing(root: Path) -> None:
    pass


def there_and_back(root: Path) -> None:
    git(root, "switch", "-q", "main")
    git(root, "switch", "-q", "work")


def there_and_back_with_other_line_ends(root: Path) -> None:
    git(root, "config", "core.autocrlf", "true")
    there_and_back(root)
    assert b"\r\n" in (root / "app.txt").read_bytes()


def edit_all(root: Path) -> None:
    for path in ("new.txt", "app.txt", "tests/test_new.py"):
        with (root / path).open("a") as file:
            file.write("\n# more\n")


def rename_test(root: Path) -> None:
    path = root / "tests" / "test_new.py"
    path.write_text(path.read_text().replace("test_new", "test_sum"))


def move_test_into_a_class(root: Path) -> None:
    (root / "tests" / "test_new.py").write_text(
        "class TestNew:\n    def test_new(self):\n        assert 1 + 1 == 2\n"
    )


def change_mode(root: Path) -> None:
    (root / "new.txt").chmod(0o755)


def lie_in_a_linked_folder(root: Path) -> None:
    (root / "tests").rename(root / "checks")
    (root / "tests").symlink_to("checks")


def remove_other_files(root: Path) -> None:
    (root / "mine.txt").write_text("mine\n")
    (root / "mine.txt").unlink()


NO_ALARM = (
    nothing,
    there_and_back,
    there_and_back_with_other_line_ends,
    edit_all,
    rename_test,
    move_test_into_a_class,
    change_mode,
    lie_in_a_linked_folder,
    remove_other_files,
)


@each_row("change", NO_ALARM, ids=lambda change: change.__name__)
async def test_a_tree_with_the_work_is_done(
    done: Sandbox, change: Callable[[Path], None]
) -> None:
    change(done.root)
    code, events = await carry_out(done, require="verified")
    assert lost(events) == {}
    assert NoticeKind.ALL_DONE in noticed(events)
    assert code is ExitCode.DONE


async def test_what_is_undone_or_skipped_is_not_missed(done: Sandbox) -> None:
    engine = done.engine()
    await engine.undo(4)
    step = engine.run.next_step
    assert step
    await engine.skip(step, "not now", keep=False)
    engine.close()
    code, events = await carry_out(done)
    assert (code, lost(events)) == (ExitCode.DONE, {})


async def test_undone_and_redone_work_is_there(done: Sandbox) -> None:
    engine = done.engine()
    await engine.undo(2)
    await engine.redo()
    engine.close()
    code, events = await carry_out(done)
    assert (code, lost(events)) == (ExitCode.DONE, {})


async def test_a_renamed_step_keeps_its_work(done: Sandbox) -> None:
    text = (done.ticket / "plan.md").read_text()
    text = text.replace("Step 1: Make new.txt", "Step 1: Make the new file")
    (done.ticket / "plan.md").write_text(text)
    code, events = await carry_out(done)
    assert (code, lost(events)) == (ExitCode.DONE, {})
    switch(done.root)
    _, events = await carry_out(done)
    assert lost(events) == ALL


async def test_work_of_a_step_that_left_the_plan_is_not_missed(done: Sandbox) -> None:
    done.write(*STEPS[1:])
    switch(done.root)
    _, events = await carry_out(done)
    assert "new.txt" not in str(lost(events))


AGAIN = Step("a.txt", "none", description="Again.")
LATER_STEPS: dict[str, tuple[tuple[Step, ...], tuple[Any, ...]]] = {
    "a later step reverts it": (
        (Step("app.txt", "none"), Step("app.txt", "none", description="Back.")),
        (says("app.txt", "other"), says("app.txt", "before")),
    ),
    "a later step deletes it": (
        (
            Step("old.txt", "none"),
            Step("old.txt (deleted)", "none", description="Remove `old.txt`."),
        ),
        (says("old.txt", "new"), DELETES),
    ),
    "a later step makes what one deleted": (
        (Step("old.txt (deleted)", "none"), Step("old.txt", "none", description="x")),
        (DELETES, says("old.txt", "new")),
    ),
    "the step's own check reverts it": (
        (
            Step(
                "app.txt",
                "python -c \"open('app.txt', 'w').write('before' + chr(10))\"",
            ),
        ),
        (says("app.txt", "other"),),
    ),
    "the step's own check removes it": (
        (Step("a.txt", "python -c \"import os; os.remove('a.txt')\""),),
        (says("a.txt", "good"),),
    ),
    "a later step's command removes it": (
        (Step("a.txt", "none"), Step("b.txt", "none")),
        (
            calls(create("a.txt", "good\n")),
            "Done.",
            calls(
                execute("python -c \"import os; os.remove('a.txt')\""),
                create("b.txt", "good\n"),
            ),
            "Done.",
        ),
    ),
    "a later step deletes a test file": (
        (
            Step("tests/test_new.py", PYTEST),
            Step(
                "tests/test_new.py (deleted)",
                "none",
                description="Remove it.\n**Removes tests:** tests/test_new.py",
            ),
        ),
        (REPLIES[3], DELETES.replace("old.txt", "tests/test_new.py")),
    ),
    "the same content": (
        (Step("app.txt", "python -c pass"),),
        (says("app.txt", "before"),),
    ),
}


@each_row("steps, replies", LATER_STEPS.values(), ids=list(LATER_STEPS))
async def test_what_the_run_itself_did_is_not_missed(
    sandbox: Sandbox, steps: tuple[Step, ...], replies: tuple[Any, ...]
) -> None:
    begin_repository(sandbox.write(*steps))
    has_tools = len(replies) > len(steps)
    if has_tools:
        sandbox.flags = {"tool_calls": "on", "commands": {"mode": "unsafe"}}
    code, events = await carry_out(sandbox, *replies)
    assert sandbox.statuses() == ["completed"] * len(steps), events
    assert (code, lost(events)) == (ExitCode.DONE, {})
    assert (await carry_out(sandbox))[0] is ExitCode.DONE
    # what commands did is known from checkpoints alone
    if not has_tools and "open(" not in str(steps) and "os." not in str(steps):
        forget_checkpoints(sandbox.root)
        assert lost((await carry_out(sandbox))[1]) == {}


async def test_a_step_that_changed_line_ends_alone_is_not_missed(
    sandbox: Sandbox,
) -> None:
    """Git may have converted them back."""
    begin_repository(sandbox.write(Step("app.txt", "none")))
    sandbox.flags = {"tool_calls": "on", "commands": {"mode": "unsafe"}}
    code = "open('app.txt', 'wb').write(b'before' + bytes([13, 10]))"
    edit = replace("app.txt", "before", "after")
    both = calls(read("app.txt"), edit, execute(f'python -c "{code}"'))
    await carry_out(sandbox, both, "Done.")
    assert (sandbox.root / "app.txt").read_bytes() == b"before\r\n"
    assert sandbox.statuses() == ["completed"]
    (sandbox.root / "app.txt").write_bytes(b"before\n")
    assert lost((await carry_out(sandbox))[1]) == {}


async def test_only_the_step_that_made_a_file_again_misses_it(
    sandbox: Sandbox,
) -> None:
    steps, replies = LATER_STEPS["a later step makes what one deleted"]
    begin_repository(sandbox.write(*steps))
    await carry_out(sandbox, *replies)
    (sandbox.root / "old.txt").unlink()
    assert lost((await carry_out(sandbox))[1]) == {"2": {"missing": ("old.txt",)}}
    shutil.rmtree(sandbox.root / ".cdd" / "runs")
    assert lost((await carry_out(sandbox))[1]) == {"2": {"missing": ("old.txt",)}}


def record_tests(sandbox: Sandbox, step: int, **results: Result) -> None:
    """Let the check of a step have seen these tests, by their file's stem."""
    ticket = RunRecord.of(sandbox.root, SLUG, Redactor())
    run = SuiteRun(
        results={f"tests/{file}.py::test": it for file, it in results.items()}
    )
    ticket.attempt(step, 1).save_checks([CheckRun("pytest", 0, tests=run)], Reference())


async def test_only_tests_that_passed_last_in_files_that_were_there_are_missed(
    done: Sandbox,
) -> None:
    for name in ("skipped", "failed", "passed"):
        (done.root / "tests" / f"test_{name}.py").write_text("def test(): pass\n")
    record_tests(done, 1, test_skipped=Result.PASSED, test_passed=Result.PASSED)
    record_tests(done, 2, test_failed=Result.FAILED, test_passed=Result.PASSED)
    record_tests(
        done,
        4,
        test_skipped=Result.SKIPPED,
        test_failed=Result.FAILED,
        made_up=Result.PASSED,
    )
    assert lost((await carry_out(done))[1]) == {}
    forget_checkpoints(done.root)
    git(done.root, "switch", "-q", "work")
    for name in ("skipped", "failed", "passed"):
        (done.root / "tests" / f"test_{name}.py").unlink()
    assert lost((await carry_out(done))[1]) == {
        "1": {"tests": ("tests/test_passed.py::test",)},
        "4": {"tests": ("tests/made_up.py::test",)},
    }


async def test_after_an_undo_nothing_is_missed_any_more(done: Sandbox) -> None:
    switch(done.root)
    engine = done.engine()
    await engine.carry_out()
    assert engine.run.summary().missing
    await engine.undo(1)
    assert not engine.run.summary().missing
    engine.close()


async def test_a_file_with_another_spelling_of_its_name_is_no_deleted_one(
    sandbox: Sandbox,
) -> None:
    """On a disk where `old.txt` and `OLD.txt` are one file; here by a link."""
    begin_repository(sandbox.write(Step("old.txt", "none"), Step("OLD.txt", "none")))
    await carry_out(sandbox, DELETES, says("OLD.txt", "new"))
    assert sandbox.statuses() == ["completed"] * 2
    os.link(sandbox.root / "OLD.txt", sandbox.root / "old.txt")
    assert lost((await carry_out(sandbox))[1]) == {}
    (sandbox.root / "old.txt").unlink()
    (sandbox.root / "old.txt").write_text("old\n")
    assert lost((await carry_out(sandbox))[1]) == {"1": {"restored": ("old.txt",)}}


# --- Other trees ----------------------------------------------------------------------


async def test_files_outside_the_checkpoints_are_looked_for(sandbox: Sandbox) -> None:
    """An ignored file of an earlier process, and one in a repository within."""
    paths = ("made.log", "lib/in.txt", "core/in.txt", "b.txt")
    steps = tuple(Step(path, "none") for path in paths)
    begin_repository(sandbox.write(*steps[:1]))
    (sandbox.root / ".gitignore").write_text("*.log\n")
    for name in ("lib", "core"):
        (sandbox.root / name).mkdir()
        git(sandbox.root / name, "init", "-q")
    git(sandbox.root / "core", "commit", "-qm", "core", "--allow-empty")
    for count, path in enumerate(paths, 1):
        sandbox.write(*steps[:count])
        code, events = await carry_out(sandbox, says(path, "good"))
        assert (code, lost(events)) == (ExitCode.DONE, {}), path
    for path in paths[:3]:
        (sandbox.root / path).unlink()
    assert lost((await carry_out(sandbox))[1]) == {
        str(number): {"missing": (path,)} for number, path in enumerate(paths[:3], 1)
    }


async def test_a_file_behind_a_linked_folder_is_found_where_it_is(
    sandbox: Sandbox,
) -> None:
    begin_repository(sandbox.write(Step("link/a.txt", "none")))
    (sandbox.root / "real").mkdir()
    (sandbox.root / "link").symlink_to("real")
    code, events = await carry_out(sandbox, says("link/a.txt", "good"))
    assert (code, lost(events)) == (ExitCode.DONE, {})
    (sandbox.root / "real" / "a.txt").unlink()
    expected = {"1": {"missing": ("real/a.txt",)}}
    assert lost((await carry_out(sandbox))[1]) == expected


async def test_a_file_behind_a_link_in_a_circle_is_missing(sandbox: Sandbox) -> None:
    begin_repository(sandbox.write(Step("lib/a.txt", "none")))
    code, events = await carry_out(sandbox, says("lib/a.txt", "good"))
    assert (code, lost(events)) == (ExitCode.DONE, {})
    shutil.rmtree(sandbox.root / "lib")
    (sandbox.root / "lib").symlink_to("lib")
    expected = {"1": {"missing": ("lib/a.txt",)}}
    assert lost((await carry_out(sandbox))[1]) == expected


@pytest.mark.long
@each_row("repository", ["none", "sha256", "a folder of it"])
async def test_it_is_the_same_in_other_repositories(
    sandbox: Sandbox, repository: str
) -> None:
    if repository == "a folder of it":
        git(sandbox.root, "init", "-q")
        (sandbox.root / "part").mkdir()
        sandbox = sandbox.at(sandbox.root / "part")
    elif repository == "sha256":
        git(sandbox.root, "init", "-q", "--object-format=sha256")
    (sandbox.root / "app.txt").write_text("before\n")
    (sandbox.root / "old.txt").write_text("old\n")
    (sandbox.root / "old_is_gone.py").write_text(NO_OLD)
    sandbox.write(*STEPS)
    code, events = await carry_out(sandbox, *REPLIES)
    assert (code, lost(events)) == (ExitCode.DONE, {})
    (sandbox.root / "app.txt").write_text("before\n")
    (sandbox.root / "old.txt").write_text("old\n")
    (sandbox.root / "new.txt").unlink()
    (sandbox.root / "tests" / "test_new.py").unlink()
    assert lost((await carry_out(sandbox))[1]) == ALL


async def test_steps_side_by_side_are_looked_for_in_the_users_tree(
    sandbox: Sandbox,
) -> None:
    steps = (STEPS[0], STEPS[1])
    begin_repository(sandbox.write(*steps))
    sandbox.flags = {"jobs": 2}
    sandbox.real_model = Together(dict(enumerate(REPLIES[:2], 1)), at_once=2)
    code, events = await carry_out(sandbox)
    assert sandbox.statuses() == ["completed"] * 2
    assert (code, lost(events)) == (ExitCode.DONE, {})
    git(sandbox.root, "stash", "-q", "-u")
    code, events = await carry_out(sandbox)
    assert (code, lost(events)) == (ExitCode.FAILED, NEW | APP)


async def test_a_run_with_its_own_tree_is_looked_for_there(sandbox: Sandbox) -> None:
    begin_repository(sandbox.write(*STEPS))
    session = sandbox.replies(*REPLIES).session()
    for line in (f"/exec {SLUG} --worktree", "all"):
        events = await collect(handle(session, line))
    assert lost(events) == {}
    assert not (sandbox.root / "new.txt").exists()
    there = sandbox.root / ".cdd" / "runs" / SLUG / "tree"
    assert NoticeKind.ALL_DONE in noticed(await collect(handle(session, "continue")))
    (there / "new.txt").unlink()
    assert lost(await collect(handle(session, "continue"))) == NEW


# --- Where it is shown ----------------------------------------------------------------


async def test_events_of_older_logs_have_no_missing_work(done: Sandbox) -> None:
    switch(done.root)
    _, events = await carry_out(done)
    data = to_json(next(event for event in events if isinstance(event, RunFinished)))
    assert [work["label"] for work in data["missing"]] == ["1", "2", "3", "4"]
    assert data["status"] == RunStatus.FAILED


async def test_a_log_from_before_the_field_is_read(done: Sandbox) -> None:
    log = done.root / ".cdd" / "runs" / SLUG / "events.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.pop("missing", None)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    entries = RunLog(log).entries()
    (finished,) = (e.event for e in entries if isinstance(e.event, RunFinished))
    assert finished.missing == ()


@pytest.mark.story
def test_the_command_line_shows_what_is_missing(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    begin_repository(sandbox.write(*STEPS))
    git(sandbox.root, "switch", "-qc", "work")
    model = script(sandbox, *REPLIES)
    assert cdd(sandbox, "exec", SLUG, "--model", model) == 0
    git(sandbox.root, "add", "--all")
    git(sandbox.root, "commit", "-qm", "work")
    git(sandbox.root, "switch", "-q", "main")
    capsys.readouterr()
    for flags in ((), ("--require", "verified")):
        assert cdd(sandbox, "exec", SLUG, "--model", model, "--json", *flags) == 1
        (finished,) = (e for e in events_of(capsys) if e["event"] == "run_finished")
        assert [work["label"] for work in finished["missing"]] == ["1", "2", "3", "4"]
    git(sandbox.root, "switch", "-q", "work")
    assert cdd(sandbox, "exec", SLUG, "--model", model) == 0


async def test_what_the_run_of_another_ticket_did_is_not_missed(done: Sandbox) -> None:
    """It deletes one file, and reverts another; once it is undone, both are there."""
    other = replace_ticket(done, "feature-other")
    other.write(
        Step("new.txt (deleted)", "python -c pass"), Step("app.txt", "python -c pass")
    )
    delete = DELETES.replace("old.txt", "new.txt")
    code, _ = await carry_out(other, delete, says("app.txt", "before"))
    assert code is ExitCode.DONE
    assert not (done.root / "new.txt").exists()
    code, events = await carry_out(done)
    assert (code, lost(events)) == (ExitCode.DONE, {})

    engine = other.engine()
    await engine.undo(1)
    engine.close()
    assert done.text("new.txt") == "good\n"
    (done.root / "new.txt").unlink()
    code, events = await carry_out(done)
    assert (code, lost(events)) == (ExitCode.FAILED, NEW)


def replace_ticket(sandbox: Sandbox, slug: str) -> Sandbox:
    other = sandbox.at(sandbox.root)
    other.slug = slug
    return other


async def test_status_shows_files_that_are_not_in_this_tree(done: Sandbox) -> None:
    """It asks neither git nor for the lock; which tests are gone it does not know."""
    git(done.root, "switch", "-q", "main")
    files = {
        label: {name: paths for name, paths in kinds.items() if name != "tests"}
        for label, kinds in ALL.items()
    }
    with closing(done.engine()):
        (opened, *_) = status_events(done.project, SLUG)
    assert isinstance(opened, PlanOpened)
    assert {work.label: fields(work) for work in opened.missing} == files
    git(done.root, "switch", "-q", "work")
    (opened, *_) = status_events(done.project, SLUG)
    assert isinstance(opened, PlanOpened)
    assert not opened.missing


async def test_a_criterion_whose_files_are_gone_is_not_seen(sandbox: Sandbox) -> None:
    begin_repository(
        sandbox.write(
            Step("app.txt", tested="good", description="Make it.\n**Serves:** 1")
        )
    )
    assert (await carry_out(sandbox, says("app.txt", "good")))[0] is ExitCode.DONE

    def missing() -> tuple[str, ...]:
        (shown,) = criteria_events(sandbox.project, SLUG)
        assert isinstance(shown, CriteriaShown)
        (criterion,) = shown.criteria
        assert criterion.files == ("app.txt",)
        assert criterion.is_seen is not bool(criterion.missing)
        return criterion.missing

    assert missing() == ()
    for text in ("before\n", None):
        (sandbox.root / "app.txt").unlink()
        if text is not None:
            (sandbox.root / "app.txt").write_text(text)
        assert missing() == ("app.txt",)
    (sandbox.root / "app.txt").write_text("good, and more\n")
    assert missing() == ()
