"""The private index of checkpoints: what it starts, holds and recovers from."""

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from cdd_agent.git.checkpoint import Checkpoints
from tests.git.checkpoints import Files, counting_git, opened, write
from tests.git.repositories import git


@pytest.mark.skipif(os.name == "nt", reason="the counting git is a shell script")
async def test_a_checkpoint_starts_few_programs(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {"a.py": "1\n", "pkg/b.py": "1\n", ".gitignore": "*.log\n"})
    checkpoints = await opened(project)
    await checkpoints.take("first")
    write(project, {"a.py": "2\n", "new/d.py": "1\n", "x.log": "1\n"})
    before = await checkpoints.take("second")

    started = counting_git(tmp_path / "counting", monkeypatch)
    again = await checkpoints.take("again")
    assert started() == ["add", "write-tree", "update-ref"]
    write(project, {"a.py": "3\n", "pkg/b.py": None, "new/e.py": "1\n"})
    after = await checkpoints.take("third")
    assert started()[3:] == ["add", "write-tree", "ls-files", "update-ref"]
    changes = await checkpoints.changes(before, after)
    assert started()[7:] == ["diff-tree"]
    assert [change.path for change in changes] == ["a.py", "new/e.py", "pkg/b.py"]
    assert again.is_same(before)
    assert await checkpoints.changes(before, again) == ()
    assert len(started()) == 8


async def test_a_file_that_came_and_was_then_ignored_is_held_by_the_next_process_too(
    project: Path,
) -> None:
    write(project, {"a.py": "1\n"})
    checkpoints = await opened(project)
    await checkpoints.take("first")
    write(project, {"b.log": "1\n"})
    await checkpoints.take("second")
    write(project, {".gitignore": "*.log\n"})
    third = await checkpoints.take("third")

    again = await (await opened(project)).take("fourth")
    assert "b.log" in git(project, "ls-tree", "--name-only", again.files).split()
    assert again.is_same(third)


async def test_of_what_was_asked_for_only_what_git_does_not_hold_is_noted(
    project: Path,
) -> None:
    write(project, {"a.py": "1\n", ".gitignore": "*.log\n"})
    asked, checkpoints = ["a.py", "b.py", "b.log"], await opened(project)
    first = await checkpoints.take("first")
    assert (await checkpoints.take("second", ["a.py"])).is_same(first)
    before = await checkpoints.take("before", asked)
    write(project, {"b.py": "1\n", "b.log": "1\n"})
    after = await checkpoints.take("after", asked)
    assert [change.path for change in await checkpoints.changes(before, after)] == [
        "b.log",
        "b.py",
    ]
    assert (before.also, after.also) == (("b.log", "b.py"), ("b.log",))


async def test_a_file_that_comes_together_with_a_rule_about_it_is_held(
    project: Path,
) -> None:
    write(project, {"a.py": "1\n"})
    asked, checkpoints = ["b.py", ".gitignore"], await opened(project)
    await checkpoints.take("first")
    before = await checkpoints.take("before", asked)
    write(project, {"b.py": "1\n", ".gitignore": "b.*\n"})
    after = await checkpoints.take("after", asked)
    assert [change.path for change in await checkpoints.changes(before, after)] == [
        ".gitignore",
        "b.py",
    ]
    write(project, {"b.py": "2\n"})
    later = await checkpoints.take("later", ["b.py"])
    assert [change.path for change in await checkpoints.changes(after, later)] == [
        "b.py"
    ]


async def test_in_a_folder_of_a_repository_the_rules_above_it_count(
    project: Path,
) -> None:
    root = project / "sub"
    write(root, {"a.py": "1\n"})
    checkpoints = await opened(root)
    await checkpoints.take("first")
    write(root, {"x.log": "1\n"})
    with_log = await checkpoints.take("second")
    write(project, {".gitignore": "*.txt\n", "sub/y.txt": "1\n"})
    assert (await checkpoints.take("third")).is_same(with_log)


@pytest.mark.parametrize("changed", [{}, {"b.py": "2\n", "c/d.py": "1\n"}])
async def test_a_content_that_was_removed_from_the_store_is_stored_again(
    project: Path, changed: Files
) -> None:
    write(project, {"a.py": "1\n", "b.py": "1\n", "c/a.py": "3\n"})
    checkpoints = await opened(project)
    await checkpoints.take("first")
    for name in git(project, "for-each-ref", "--format=%(refname)", "refs/cdd").split():
        git(project, "update-ref", "-d", name)
    git(project, "gc", "--prune=now", "--quiet")
    write(project, changed)
    again = await checkpoints.take("again")
    assert git(project, "cat-file", "-p", f"{again.files}:a.py") == "1"
    assert git(project, "cat-file", "-p", f"{again.files}:c/a.py") == "3"


async def test_a_link_is_left_out(project: Path, tmp_path: Path) -> None:
    write(project, {"a.py": "1\n"})
    (tmp_path / "modules").mkdir()
    checkpoints = await Checkpoints.open(
        project, project / ".cdd" / "runs" / "login", "login", (".cdd/runs", "linked")
    )
    without = await checkpoints.take("without")
    (project / "linked").symlink_to(tmp_path / "modules")
    assert (await checkpoints.take("with")).is_same(without)


async def test_a_checkpoint_is_on_the_disk_when_it_is_returned(
    project: Path, tmp_path: Path
) -> None:
    """Each program of git reports at its end how often it has waited for the disk."""
    write(project, {"a.py": "1\n"})
    checkpoints, told = await opened(project), tmp_path / "told"
    snapshots = checkpoints.snapshots
    for name in ("git", "references"):
        program = getattr(snapshots, name)
        env = {**program.env, "GIT_TRACE2_EVENT": str(told)}
        setattr(snapshots, name, replace(program, env=env))
    await checkpoints.take("first")
    waits = {}
    for event in map(json.loads, told.read_text().splitlines()):
        if event["event"] == "cmd_name":
            command = event["name"]
        if "hardware-flush" in str(event):
            waits[command] = int(event.get("value") or event.get("count"))
    if not waits:
        pytest.skip("this git does not report it")
    assert waits.keys() == {"add", "write-tree", "update-ref"}
    assert 0 not in waits.values()
