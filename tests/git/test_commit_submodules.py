"""Commits of files in submodules: inside first, then the pointer, or nothing."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cdd_agent.git.commit import (
    already_committed,
    commit_files,
    expect_ready,
    settle_commits,
)
from cdd_agent.git.commit_git import CommitRefused
from tests.git.repositories import git
from tests.git.test_commit_and_index import (
    MESSAGE,
    add_submodule,
    commit_all,
    start,
)
from tests.support.commandline import wait_for
from tests.support.tables import each_row

CORE = "lib/core"
FILE = f"{CORE}/other.txt"
DEEP = f"{CORE}/vendor/deep"
TRAILER = "Cdd-Step: feature-x/1/"


@pytest.fixture(autouse=True)
def no_settings(isolate_from_user: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a submodule, on its branch."""
    return add_submodule(start(tmp_path / "project"), CORE)


def heads(root: Path, *folders: str) -> list[str]:
    return [git(root / folder, "rev-parse", "HEAD") for folder in ("", *folders)]


def statuses(root: Path, *folders: str) -> list[str]:
    return [git(root / folder, "status", "--porcelain") for folder in ("", *folders)]


def files_of(folder: Path, commit: str = "HEAD") -> list[str]:
    return git(folder, "show", "--format=", "--name-only", commit).split()


async def test_files_are_committed_inside_first_and_the_pointer_with_the_others(
    project: Path,
) -> None:
    add_submodule(project / CORE, "vendor/deep")
    commit_all(project)
    paths = ["mine.txt", FILE, f"{CORE}/new.txt", f"{DEEP}/other.txt"]
    for path in paths:
        (project / path).write_text("step\n")
    (project / CORE / "not-named.txt").write_text("the user's\n")

    await expect_ready(project, paths)
    done = await commit_files(project, paths, MESSAGE)

    own, core, deep = heads(project, CORE, DEEP)
    assert (done.name, dict(done.inside)) == (own, {CORE: core, DEEP: deep})
    assert not done.left_out
    assert files_of(project) == [CORE, "mine.txt"]
    assert files_of(project / CORE) == ["new.txt", "other.txt", "vendor/deep"]
    assert files_of(project / DEEP) == ["other.txt"]
    assert statuses(project, CORE, DEEP) == [f"M {CORE}", "?? not-named.txt", ""]
    assert git(project / CORE, "symbolic-ref", "HEAD") == "refs/heads/main"
    message = git(project / DEEP, "log", "-1", "--format=%B")
    assert MESSAGE.trailer in message


async def test_a_project_in_a_folder_of_the_repository_and_a_pointer_that_is_ignored(
    tmp_path: Path,
) -> None:
    repository = start(tmp_path / "repository")
    add_submodule(repository, f"packages/app/{CORE}")
    ignore = f"submodule.packages/app/{CORE}.ignore"
    git(repository, "config", "--file=.gitmodules", ignore, "all")
    commit_all(repository)
    root = repository / "packages/app"
    (root / FILE).write_text("step\n")

    done = await commit_files(root, [FILE], MESSAGE)

    own, core = heads(root, CORE)
    assert (done.name, dict(done.inside)) == (own, {CORE: core})
    listed = git(repository, "rev-parse", f"HEAD:packages/app/{CORE}")
    assert listed == core


# Submodules in which nothing can be committed


def detach(root: Path) -> None:
    git(root / CORE, "checkout", "--quiet", "--detach")


def move(root: Path) -> None:
    git(root / CORE, "commit", "--quiet", "--allow-empty", "--message=theirs")


def stage_pointer(root: Path) -> None:
    move(root)
    git(root, "add", CORE)


def begin_merge(root: Path) -> None:
    folder = Path(git(root / CORE, "rev-parse", "--absolute-git-dir"))
    (folder / "MERGE_HEAD").write_text(heads(root, CORE)[1])


def forget_name(root: Path) -> None:
    (Path(os.environ["HOME"]) / ".gitconfig").write_text("[user]\nuseConfigOnly=true\n")
    git(root / CORE, "config", "--unset", "user.email")


NOT_READY: dict[str, Callable[[Path], None]] = {
    "detached": detach,
    "dirty pointer": move,
    "staged pointer": stage_pointer,
    "merge": begin_merge,
    "no name": forget_name,
}


@each_row("begin", NOT_READY.values(), ids=NOT_READY)
async def test_a_submodule_that_is_not_ready_is_refused_or_left_out(
    tmp_path: Path, begin: Callable[[Path], None]
) -> None:
    project = add_submodule(start(tmp_path / "project"), CORE)
    begin(project)
    before = heads(project, CORE)
    await expect_ready(project, ["other.txt"])
    with pytest.raises(CommitRefused, match=CORE) as refused:
        await expect_ready(project, ["other.txt", FILE])
    assert refused.value.hint

    for path in ("other.txt", FILE):
        (project / path).write_text("step\n")
    entries = statuses(project, CORE)
    with pytest.raises(CommitRefused, match=CORE):
        await commit_files(project, ["other.txt", FILE], MESSAGE, {FILE}.__contains__)
    assert heads(project, CORE) == before
    assert statuses(project, CORE) == entries

    done = await commit_files(project, ["other.txt", FILE], MESSAGE)
    assert [*done.left_out] == [FILE]
    assert not done.inside
    assert files_of(project) == ["other.txt"]
    assert heads(project, CORE) == [done.name, before[1]]
    assert statuses(project, CORE)[1] == entries[1]


async def test_a_file_that_is_staged_in_a_submodule_is_refused(project: Path) -> None:
    (project / FILE).write_text("the user's\n")
    git(project / CORE, "add", "other.txt")
    for paths in ([FILE], [f"{CORE}/absent.txt"]):
        with pytest.raises(CommitRefused, match=FILE):
            await expect_ready(project, paths, lambda path: path == FILE)


async def test_a_nested_clone_and_a_submodule_that_is_not_there_are_left_out(
    project: Path,
) -> None:
    git(project, "clone", "--quiet", "lib/core", "clone")
    git(project, "submodule", "--quiet", "deinit", "--force", CORE)
    before = heads(project, "clone")[1]
    paths = ["other.txt", "clone/other.txt", FILE]
    for path in paths:
        (project / path).write_text("step\n")
    await expect_ready(project, paths[:2])

    done = await commit_files(project, paths, MESSAGE)

    assert [*done.left_out] == ["clone/other.txt", FILE]
    assert files_of(project) == ["other.txt"]
    assert heads(project, "clone")[1] == before


async def test_a_lock_around_a_submodule_is_reported_with_the_commit_inside(
    project: Path,
) -> None:
    for path in ("other.txt", FILE):
        (project / path).write_text("step\n")
    (project / ".git/HEAD.lock").touch()
    with pytest.raises(CommitRefused, match="locked") as refused:
        await commit_files(project, ["other.txt", FILE], MESSAGE)
    assert heads(project, CORE)[1][:10] in refused.value.message
    assert "pointer" in refused.value.hint
    assert git(project, "diff", "--cached", "--name-only") == ""


# Kills

MAIN = """\
import asyncio, pathlib
from cdd_agent.git.commit import commit_files
from tests.git.test_commit_submodules import FILE, MESSAGE
asyncio.run(commit_files(pathlib.Path({root!r}), [FILE, "other.txt"], MESSAGE))
"""
COUNTING = """\
#!/bin/sh
case "$*" in
    *{command}*)
        echo x >> {count}
        test $(wc -l < {count}) = {which} || exec {git} "$@"
        test {when} = before && kill -9 $PPID
        {git} "$@"; touch {over}; kill -9 $PPID ;;
    *) exec {git} "$@" ;;
esac
"""


POINTS = {
    "note": ("update-ref\\ refs/worktree", (1, 2)),
    # the second one writes the pointer into the private index of the outer commit
    "index": ("--index-info", (1, 3)),
    "branch": ("update-ref\\ -m", (1, 2)),
}


@pytest.mark.crash
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("is_outer", [False, True], ids=["inside", "around"])
@pytest.mark.parametrize("point", POINTS)
async def test_after_a_kill_each_repository_has_the_one_commit(
    project: Path, tmp_path: Path, point: str, is_outer: bool, when: str
) -> None:
    command, calls = POINTS[point]
    over, count = tmp_path / "over", tmp_path / "count"
    killer = tmp_path / "bin/git"
    killer.parent.mkdir()
    killer.write_text(
        COUNTING.format(
            command=command,
            when=when,
            which=calls[is_outer],
            git=shutil.which("git"),
            over=over,
            count=count,
        )
    )
    killer.chmod(0o755)
    before = {path: (project / path).read_text() for path in ("other.txt", FILE)}
    for path in before:
        (project / path).write_text("step\n")
    path = os.pathsep.join((str(killer.parent), os.environ["PATH"]))
    main = [sys.executable, "-c", MAIN.format(root=str(project))]
    environment = {**os.environ, "PATH": path, "TMPDIR": str(tmp_path)}
    died = subprocess.run(main, env=environment, cwd=Path(__file__).parents[2])
    assert died.returncode == -signal.SIGKILL
    wait_for(over.exists)  # a git that was started continues

    # the engine restores the files, and carries the step out again
    await settle_commits(project)
    for name, text in before.items():
        (project / name).write_text(text)
    await expect_ready(project, before, trailers=[TRAILER])
    assert git(project, "diff", "--cached", "--name-only") == ""
    assert git(project / CORE, "diff", "--cached", "--name-only") == ""
    for name in before:
        (project / name).write_text("step\n")
    done = await commit_files(project, [*before], MESSAGE)
    name = done.name or await already_committed(project, MESSAGE.trailer)

    own, core = heads(project, CORE)
    assert (name, dict(done.inside)) == (own, {CORE: core})
    assert git(project / CORE, "rev-list", "--count", "HEAD") == "2"
    assert git(project, "rev-parse", f"HEAD:{CORE}") == core
    assert files_of(project) == [CORE, "other.txt"]
    assert statuses(project, CORE) == ["", ""]
    for folder in (project, project / CORE):
        assert git(folder, "for-each-ref", "refs/worktree") == ""


async def test_a_commit_that_is_cancelled_is_made_in_full_or_not_at_all(
    project: Path,
) -> None:
    for number in range(12):
        (project / "other.txt").write_text(f"step {number}\n")
        before = heads(project)
        task = asyncio.create_task(commit_files(project, ["other.txt"], MESSAGE))
        await asyncio.sleep(0.01 * number)
        task.cancel()
        await asyncio.wait([task])
        is_made = heads(project) != before
        expected = "" if is_made else "M other.txt"
        assert statuses(project)[0] == expected
        assert git(project, "diff", "--cached", "--name-only") == ""
        assert git(project, "for-each-ref", "refs/worktree") == ""
