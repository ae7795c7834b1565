"""`commit: step`: each completed step is one commit on the user's branch, and what they
had staged stays theirs.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cdd_agent.errors import CddError, ExitCode
from cdd_agent.events.notices import NoticeKind
from cdd_agent.events.step_events import StepCommitted, StepsUndone, TestsFinished
from cdd_agent.events.stream import Event
from cdd_agent.git.commit_git import CommitFailed, CommitRefused
from cdd_agent.refusals.kinds import Refusal
from tests.engine.tool_steps import (
    FORMAT,
    calls,
    create,
    execute,
    read,
    replace,
    run_with,
)
from tests.support.listening import collect, told_to
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

TWO = (Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1"))
REPLIES = (says("a.txt", "good"), says("b.txt", "good"))


def git(root: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=root, check=True, capture_output=True, text=True
    ).stdout


def subjects(sandbox: Sandbox) -> list[str]:
    return git(sandbox.root, "log", "--format=%s").splitlines()


@pytest.fixture
def repository(sandbox: Sandbox) -> Sandbox:
    """A project under git, with something staged, where steps are committed."""
    sandbox.flags = {"commit": "step"}
    sandbox.write(*TWO)
    (sandbox.root / "mine.txt").write_text("one\n")
    for words in (
        ["init", "-q"],
        ["config", "user.name", "A"],
        ["config", "user.email", "a@localhost"],
    ):
        git(sandbox.root, *words)
    git(sandbox.root, "add", ".")
    git(sandbox.root, "commit", "-qm", "start")
    (sandbox.root / "mine.txt").write_text("two\n")
    git(sandbox.root, "add", "mine.txt")
    return sandbox


async def test_each_completed_step_is_a_commit_of_its_files_alone(
    repository: Sandbox,
) -> None:
    events = await run_all(repository.replies(*REPLIES))

    assert subjects(repository) == ["Make b.txt", "Make a.txt", "start"]
    assert (
        git(repository.root, "show", "--format=", "--name-status", "HEAD")
        == "A\tb.txt\n"
    )
    assert git(repository.root, "diff", "--cached", "--name-status") == "M\tmine.txt\n"
    names = [event.commit for event in events if isinstance(event, StepCommitted)]
    assert (
        names == git(repository.root, "log", "--format=%H", "--reverse", "-2").split()
    )
    assert [
        step["commit"] for step in repository.state()["step_executions"].values()
    ] == names
    assert f"Cdd-Step: {SLUG}/2/1" in git(repository.root, "log", "-1", "--format=%B")


async def test_a_failed_step_is_not_committed(repository: Sandbox) -> None:
    await run_all(repository.replies(says("a.txt", "bad")))
    assert subjects(repository) == ["start"]


async def test_undo_leaves_the_commit_on_the_branch_and_says_so(
    repository: Sandbox,
) -> None:
    await run_all(repository.replies(*REPLIES))
    engine = repository.engine()
    (undone,) = [
        event
        for event in await collect(engine.undo())
        if isinstance(event, StepsUndone)
    ]
    engine.close()
    assert undone.commits == (git(repository.root, "rev-parse", "HEAD").strip(),)
    assert git(repository.root, "status", "--porcelain", "b.txt") == " D b.txt\n"


async def test_where_nothing_can_be_committed_no_model_is_asked(
    repository: Sandbox,
) -> None:
    (repository.root / ".git/MERGE_HEAD").write_text(
        git(repository.root, "rev-parse", "HEAD")
    )
    engine = repository.replies(*REPLIES).engine()
    with pytest.raises(CddError, match="merge"):
        await collect(engine.run_all())
    engine.close()
    assert repository.model.requests == []


LOCKS_ONCE = (
    "import pathlib; git = pathlib.Path('.git'); (git / 'was-locked').exists() or"
    " (git / 'index.lock').touch(); (git / 'was-locked').touch()"
)


async def test_a_commit_that_git_cannot_make_leaves_the_step_pending(
    repository: Sandbox,
) -> None:
    """The next start makes the commit, and asks no model for the step."""
    repository.write(Step("a.txt", f'python -c "{LOCKS_ONCE}"'), TWO[1])
    engine = repository.replies(*REPLIES).engine()
    await collect(engine.recover())
    events = await collect(engine.run_all())
    engine.close()
    assert isinstance(engine.stopped_by, CommitFailed)
    assert engine.stopped_by.message in notice(events, NoticeKind.NOT_COMMITTED)
    assert engine.stopped_by.exit_code is ExitCode.FAILED
    # not that of a step that is completed without a commit
    assert engine.stopped_by.refusal is Refusal.COMMIT_FAILED
    assert repository.statuses() == ["pending", "pending"]
    assert not (repository.root / "a.txt").exists()

    (repository.root / ".git/index.lock").unlink()
    events = await run_all(repository.replies(REPLIES[1]))

    assert noticed(events) == [NoticeKind.SAVED_WORK]
    assert subjects(repository) == ["Make b.txt", "Make a.txt", "start"]
    assert repository.statuses() == ["completed", "completed"]


MAKES = (
    "python -c \"[open(name, 'a').write('x') for name in ('a.txt', 'c.txt',"
    " 'beside.txt') if open('a.txt')]\""
)


@each_row("with_tools", [False, True])
async def test_what_somebody_else_made_of_a_steps_file_is_not_committed_for_them(
    repository: Sandbox, with_tools: bool
) -> None:
    """After the check, as the user's own edit."""
    repository.write(Step("a.txt", check("a.txt"), also=("c.txt",)), TWO[1])
    first = (
        calls(create("a.txt", "good\n"), create("c.txt", "c\n"))
        if with_tools
        else says("a.txt", "good")
    )
    repository.replies(first, *(["Done."] if with_tools else []))

    def edit(event: Event) -> None:
        if isinstance(event, TestsFinished):
            with (repository.root / "a.txt").open("a") as file:
                file.write("half of an idea")

    with told_to(edit):
        events = await run_all(repository)
    assert subjects(repository) == ["start"]
    assert "a.txt" in notice(events, NoticeKind.NOT_COMMITTED)
    assert repository.statuses() == ["completed", "pending"]
    assert repository.text("a.txt").startswith("good\n")
    assert repository.text("a.txt") != "good\n"

    await run_all(repository.replies(REPLIES[1]))
    assert subjects(repository) == ["Make b.txt", "start"]


async def test_what_a_check_made_of_the_steps_files_is_committed_and_nothing_else(
    repository: Sandbox,
) -> None:
    """It was made while the step ran, on a path that the step declares or wrote."""
    repository.write(Step("a.txt", MAKES, also=("c.txt",)), TWO[1])
    events = await run_all(repository.replies(*REPLIES))
    assert noticed(events) == []
    assert subjects(repository) == ["Make b.txt", "Make a.txt", "start"]
    shown = git(repository.root, "show", "--format=", "--name-status", "HEAD^")
    assert shown == "A\ta.txt\nA\tc.txt\n"
    assert git(repository.root, "show", "HEAD:a.txt") == "good\nx"
    assert repository.text("beside.txt") == "x"


async def test_what_a_command_of_the_step_made_of_its_file_is_committed(
    repository: Sandbox,
) -> None:
    repository.write(TWO[0])
    await run_all(
        repository.replies(
            calls(create("a.txt", "good\n\n\n")), calls(execute(FORMAT)), "Done."
        )
    )
    assert git(repository.root, "show", "HEAD:a.txt") == "good\n"


async def test_an_edit_between_two_calls_is_not_committed(repository: Sandbox) -> None:
    repository.write(TWO[0])
    repository.replies(
        calls(create("a.txt", "good\n")), calls(create("c.txt", "c\n")), "Done."
    )
    mine = repository.root / "a.txt"
    events = await run_with(
        repository,
        "create_file(file_path=a.txt",
        lambda: mine.write_text("good, and mine\n"),
    )
    assert "a.txt" in notice(events, NoticeKind.NOT_COMMITTED)
    assert subjects(repository) == ["start"]


@pytest.mark.fork
def test_a_kill_between_the_commit_and_its_note_makes_no_second_one(
    repository: Sandbox,
) -> None:
    code = (
        "import os, signal, sys, asyncio\n"
        "from pathlib import Path\n"
        "from cdd_agent.tickets.state import ExecutionState\n"
        "from tests.engine.test_committing import REPLIES\n"
        "from tests.support.projects import Sandbox, run_all\n"
        "ExecutionState.completed = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"sandbox = Sandbox(Path({str(repository.root)!r}), flags={{'commit':"
        " 'step'}).replies(*REPLIES)\n"
        "asyncio.run(run_all(sandbox))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    died = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env=environment,
        timeout=60,
    )
    assert died.returncode == -signal.SIGKILL
    assert subjects(repository) == ["Make a.txt", "start"]
    first = git(repository.root, "rev-parse", "HEAD").strip()

    asyncio.run(run_all(repository.replies(REPLIES[1])))

    assert subjects(repository) == ["Make b.txt", "Make a.txt", "start"]
    assert repository.state()["step_executions"]["1"]["commit"] == first
    assert repository.statuses() == ["completed", "completed"]


async def test_a_file_that_is_written_through_a_link_to_a_folder_is_committed(
    repository: Sandbox,
) -> None:
    (repository.root / "real").mkdir()
    (repository.root / "real/a.txt").write_text("mine\n")
    (repository.root / "link").symlink_to("real")
    git(repository.root, "add", ".")
    git(repository.root, "commit", "-qm", "link")
    repository.write(Step("link/a.txt", check("link/a.txt"))).replies(
        says("link/a.txt", "good")
    )
    await run_all(repository)
    assert repository.statuses() == ["completed"]
    assert subjects(repository)[0] == "Make link/a.txt"
    assert git(repository.root, "show", "HEAD:real/a.txt") == "good\n"


# The user's index


def stage(root: Path, path: str, text: str, *how: str) -> None:
    (root / path).write_text(text)
    git(root, "add", *how, path)


@each_row("how", [("--intent-to-add",), ()], ids=["intent-to-add", "staged"])
async def test_a_declared_file_that_is_staged_is_refused_before_anything_is_paid(
    repository: Sandbox, how: tuple[str, ...]
) -> None:
    stage(repository.root, "a.txt", "mine\n", *how)
    engine = repository.replies(*REPLIES).engine()
    with pytest.raises(CommitRefused) as refused:
        await collect(engine.run_all())
    engine.close()
    assert "a.txt" in refused.value.message
    assert "git restore --staged a.txt" in refused.value.hint
    assert repository.model.requests == []
    assert repository.text("a.txt") == "mine\n"

    git(repository.root, "restore", "--staged", "a.txt")
    (repository.root / "a.txt").unlink()
    await run_all(repository.replies(*REPLIES))
    assert repository.statuses() == ["completed", "completed"]


async def test_side_by_side_all_declared_files_are_looked_at_before_the_first_call(
    repository: Sandbox,
) -> None:
    repository.flags["jobs"] = 2
    repository.write(TWO[0], Step("b.txt", check("b.txt")))
    stage(repository.root, "b.txt", "mine\n")
    engine = repository.replies(*REPLIES).engine()
    with pytest.raises(CommitRefused, match=r"b\.txt"):
        await collect(engine.run_all())
    engine.close()
    assert repository.model.requests == []


async def test_an_undeclared_file_that_is_staged_is_left_out_and_named(
    repository: Sandbox,
) -> None:
    stage(repository.root, "c.txt", "mine\n", "--intent-to-add")
    both = calls(
        read("c.txt"), create("a.txt", "good\n"), replace("c.txt", "mine", "ours")
    )
    events = await run_all(repository.replies(both, "Done.", REPLIES[1]))

    assert "c.txt" in notice(events, NoticeKind.LEFT_OUT_OF_COMMIT)
    assert repository.statuses() == ["completed", "completed"]
    assert subjects(repository) == ["Make b.txt", "Make a.txt", "start"]
    git(repository.root, "commit", "-qm", "mine")
    files = git(repository.root, "ls-tree", "--name-only", "HEAD").split()
    assert {"a.txt", "b.txt", "mine.txt"} <= {*files}
    assert "c.txt" not in files
    assert repository.text("c.txt") == "ours\n"


async def test_a_file_that_is_staged_during_the_step_is_committed_as_it_is_at_the_end(
    repository: Sandbox,
) -> None:
    repository.write(TWO[0])
    repository.replies(
        calls(create("a.txt", "good, at first\n")),
        calls(replace("a.txt", "good, at first", "good")),
        "Done.",
    )
    await run_with(
        repository,
        "create_file(file_path=a.txt",
        lambda: git(repository.root, "add", "a.txt"),
    )
    assert git(repository.root, "show", "HEAD:a.txt") == "good\n"
    assert git(repository.root, "status", "--porcelain", "a.txt") == ""


# Submodules


@pytest.fixture
def with_submodule(
    repository: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Sandbox:
    """The project with a submodule `lib`, on its branch, of which step 1 makes a
    file.
    """
    root, source = repository.root, tmp_path_factory.mktemp("source")
    git(source, "init", "-q", "-b", "main")
    name = ("-c", "user.name=A", "-c", "user.email=a@localhost")
    git(source, *name, "commit", "-q", "--allow-empty", "-m", "start")
    allowed = ("-c", "protocol.file.allow=always")
    git(root, *allowed, "submodule", "--quiet", "add", str(source), "lib")
    git(root / "lib", "config", "user.name", "A")
    git(root / "lib", "config", "user.email", "a@localhost")
    git(root, "commit", "-q", "-m", "lib", "lib", ".gitmodules")
    repository.write(Step("lib/a.txt", check("lib/a.txt"), also=("b.txt",)))
    return repository


LIB_REPLY = says("lib/a.txt", "good") + says("b.txt", "good")


async def test_a_step_in_a_submodule_is_a_commit_in_both_repositories(
    with_submodule: Sandbox,
) -> None:
    root = with_submodule.root
    events = await run_all(with_submodule.replies(LIB_REPLY))

    own, lib = (
        git(folder, "rev-parse", "HEAD").strip() for folder in (root, root / "lib")
    )
    (committed,) = [event for event in events if isinstance(event, StepCommitted)]
    assert (committed.commit, committed.submodule_commits) == (own, {"lib": lib})
    assert with_submodule.state()["step_executions"]["1"]["submodule_commits"] == {
        "lib": lib
    }
    assert git(root, "rev-parse", "HEAD:lib").strip() == lib
    assert git(root, "show", "HEAD:b.txt") == git(root / "lib", "show", "HEAD:a.txt")

    engine = with_submodule.engine()
    (undone,) = [
        event
        for event in await collect(engine.undo())
        if isinstance(event, StepsUndone)
    ]
    engine.close()
    assert undone.commits == (own, lib)


async def test_a_submodule_on_no_branch_is_refused_before_the_model_is_asked(
    with_submodule: Sandbox,
) -> None:
    git(with_submodule.root / "lib", "checkout", "-q", "--detach")
    engine = with_submodule.replies(LIB_REPLY).engine()
    with pytest.raises(CommitRefused, match="lib"):
        await collect(engine.run_all())
    engine.close()
    assert with_submodule.model.requests == []


KILLER = """\
#!/bin/sh
case "$*" in
    *update-ref\\ -m*) kill -9 $PPID ;;
    *) exec {git} "$@" ;;
esac
"""


@pytest.mark.fork
def test_a_kill_between_index_and_branch_is_made_good_by_the_next_start(
    with_submodule: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = with_submodule.root
    killer = tmp_path_factory.mktemp("bin") / "git"
    killer.write_text(KILLER.format(git=shutil.which("git")))
    killer.chmod(0o755)
    code = (
        "import asyncio\n"
        "from pathlib import Path\n"
        "from tests.engine.test_committing import LIB_REPLY\n"
        "from tests.support.projects import Sandbox, run_all\n"
        f"sandbox = Sandbox(Path({str(root)!r}), flags={{'commit': 'step'}})\n"
        "asyncio.run(run_all(sandbox.replies(LIB_REPLY)))\n"
    )
    top = Path(__file__).parents[2]
    path = os.pathsep.join((str(killer.parent), os.environ["PATH"]))
    environment = {**os.environ, "PYTHONPATH": str(top), "PATH": path}
    died = subprocess.run([sys.executable, "-c", code], cwd=top, env=environment)
    assert died.returncode == -signal.SIGKILL
    assert git(root / "lib", "diff", "--cached", "--name-only") == "a.txt\n"

    engine = with_submodule.engine()
    asyncio.run(collect(engine.recover()))
    engine.close()
    assert git(root / "lib", "diff", "--cached", "--name-only") == ""

    asyncio.run(run_all(with_submodule.replies()))
    assert with_submodule.statuses() == ["completed"]
    assert subjects(with_submodule) == ["Make lib/a.txt", "lib", "start"]
    assert git(root, "diff", "--cached", "--name-only") == "mine.txt\n"
    assert git(root / "lib", "status", "--porcelain") == ""
