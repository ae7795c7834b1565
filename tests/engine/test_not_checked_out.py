"""A tracked file that is not checked out is replaced by no one: a step that declares it
is refused, and so is a reply, a tool or a command line that writes it.
"""

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cdd_agent.changes.build import creation
from cdd_agent.changes.model import ReplyRefused
from cdd_agent.cli.main import main
from cdd_agent.engine.step_commit import expect_checked_out
from cdd_agent.errors import BadInput
from cdd_agent.events.step_events import AttemptFailed
from tests.engine.tool_steps import calls, create, problems
from tests.git.repositories import git
from tests.support.listening import collect
from tests.support.projects import Sandbox, Step, run_all, says
from tests.support.tables import each_row

OLD = "old/a.txt"
CONTENT = "what nobody was shown\n"


def fresh(root: Path) -> Path:
    """Git leaves files of a copied project on the disk: they look edited."""
    git(root, "update-index", "--refresh")
    return root


def cone(root: Path) -> None:
    git(root, "sparse-checkout", "set", "--cone", "src", "tickets")


def sparse_index(root: Path) -> None:
    git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "src", "tickets")


def patterns(root: Path) -> None:
    git(root, "sparse-checkout", "set", "--no-cone", "/*", "!/old/")


def flag(root: Path) -> None:
    git(root, "update-index", "--skip-worktree", OLD, "old/b.txt")
    for name in ("a.txt", "b.txt"):
        (root / "old" / name).unlink()


def submodule(root: Path) -> None:
    git(root, "rm", "-r", "--quiet", "old")
    source = root.parent / f"source of {root.name}"
    subprocess.run(["git", "init", "--quiet", str(source)], check=True)
    for name in ("a.txt", "b.txt"):
        (source / name).write_text(CONTENT)
    git(source, "add", ".")
    git(source, "commit", "--quiet", "--message=start")
    git(root, "submodule", "--quiet", "add", str(source), "old")
    git(root, "commit", "--quiet", "--message=submodule")
    git(root, "submodule", "--quiet", "deinit", "--force", "old")


WAYS = (cone, sparse_index, patterns, flag, submodule)


@pytest.fixture
def repository(sandbox: Sandbox) -> Sandbox:
    root = sandbox.root
    for name in (OLD, "old/b.txt", "src/c.txt"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(CONTENT)
    git(root, "init", "--quiet")
    git(root, "config", "user.name", "A")
    git(root, "config", "user.email", "a@localhost")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message=start")
    return sandbox


each_way = each_row("leave_out", WAYS, ids=lambda way: way.__name__)


@each_way
async def test_a_step_that_declares_the_file_is_refused_before_anything_is_paid(
    repository: Sandbox, leave_out: Callable[[Path], None]
) -> None:
    leave_out(fresh(repository.root))
    for commit in ("off", "step"):
        for path in (OLD, "old/*.txt", "old/"):
            repository.flags = {"commit": commit}
            repository.write(Step(path))
            engine = repository.replies(says(OLD, "new")).engine()
            with pytest.raises(BadInput, match="not checked out here") as refused:
                await collect(engine.run_all())
            engine.close()
            assert "old" in refused.value.message
            assert repository.model.requests == []
    (command, *more) = refused.value.hint.split("`")[1::2]
    for words in (command, *more):
        allowed = ("-c", "protocol.file.allow=always")
        git(repository.root, *allowed, *shlex.split(words)[1:])
    assert repository.text(OLD) == CONTENT
    repository.write(Step(OLD))
    engine = repository.engine()
    expect_checked_out(repository.root, engine.run.plan.steps)
    engine.close()


@each_way
async def test_an_undeclared_file_is_written_by_no_reply_and_no_tool(
    repository: Sandbox, leave_out: Callable[[Path], None]
) -> None:
    leave_out(fresh(repository.root))
    repository.write(Step("src/c.txt"))
    reply = says("src/d.txt", "new") + says(OLD, "new")
    events = await run_all(repository.replies(reply))
    (failed,) = [event for event in events if isinstance(event, AttemptFailed)]
    assert OLD in failed.error
    assert "not checked out here" in failed.error

    events = await run_all(
        repository.replies(
            calls(create("src/d.txt", "new\n"), create(OLD, "new\n")), "Done."
        )
    )
    assert [OLD in problem for problem in problems(events)] == [False, True]
    assert not (repository.root / OLD).exists()
    assert git(repository.root, "status", "--porcelain", "old") == ""


@each_way
def test_the_file_is_written_by_no_command_line(
    repository: Sandbox,
    leave_out: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = repository.root
    leave_out(fresh(root))
    (root / "reply.md").write_text(says(OLD, "new"))
    assert (
        main(["--project", str(root), "apply", "--json", str(root / "reply.md")]) == 1
    )
    with pytest.raises(ReplyRefused, match="not checked out here"):
        creation(root, OLD, "new\n", lambda place: False)
    (failed,) = json.loads(capsys.readouterr().out)["failed"]
    assert failed["path"] == OLD
    assert not (root / OLD).exists()


async def test_a_pattern_declares_the_files_that_are_checked_out(
    repository: Sandbox,
) -> None:
    git(repository.root, "update-index", "--skip-worktree", OLD)
    (repository.root / OLD).unlink()
    repository.write(Step("old/"))
    engine = repository.engine()
    expect_checked_out(repository.root, engine.run.plan.steps)
    engine.close()


async def test_a_flag_of_a_file_on_the_disk_and_a_deleted_file_refuse_nothing(
    repository: Sandbox,
) -> None:
    root = repository.root
    git(root, "update-index", "--skip-worktree", OLD)
    (root / "old/b.txt").unlink()
    repository.write(Step(OLD, also=("old/b.txt",)))
    engine = repository.engine()
    expect_checked_out(root, engine.run.plan.steps)
    engine.close()
