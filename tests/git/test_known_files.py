"""Checkpoints of files that are known from the last one: what is found by looking at
times is what git finds.
"""

import asyncio
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.git.objects import GitObjects, TreeItem
from cdd_agent.threads import in_thread
from tests.git.checkpoints import Files, counting_git, opened, write
from tests.git.repositories import git
from tests.git.test_checkpoint_properties import Edit, apply, project
from tests.support.examples import fewer

PATHS = (
    "a",
    "a/b",
    "a/b/c",
    "a-b",
    "b/a",
    "c d",
    ".gitignore",
    "a/.gitignore",
    "x.log",
    "a/x.log",
    "ä\n",
)
RULES = (b"*.log\n", b"/a/\n", b"b\n!b/a\n", b".gitignore\n", b"")
EDITS = st.lists(
    st.tuples(
        st.sampled_from(("write", "write", "remove", "link", "mode", "folder")),
        st.sampled_from(PATHS),
        st.sampled_from(RULES),
    ),
    max_size=6,
)


async def by_git(checkpoints: Checkpoints) -> str:
    """The same files, looked at by git."""
    checkpoints.snapshots.known.forget()
    return (await checkpoints.take("by-git")).id


@fewer(8)
@given(steps=st.lists(EDITS, min_size=2, max_size=4), in_git=st.booleans())
def test_whatever_changes_it_is_what_git_would_find(
    steps: list[list[Edit]], in_git: bool
) -> None:
    async def story(root: Path) -> None:
        checkpoints = await opened(root)
        for number, step in enumerate(steps):
            apply(root, step)
            taken = await checkpoints.take(f"step-{number}")
        assert await by_git(checkpoints) == taken.id
        checkpoints.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(story(project(folder, in_git)))


@pytest.mark.skipif(os.name == "nt", reason="there git looks by itself")
async def test_usual_changes_start_no_git(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        project,
        {
            "a.py": "1\n",
            "pkg/b.py": "1\n",
            "pkg/deep/c.py": "1\n",
            ".gitignore": "*.log\n",
        },
    )
    checkpoints = await opened(project)
    await checkpoints.take("first")
    write(project, {"a.py": "2\n", "new/d.py": "1\n", "x.log": "1\n"})
    before = await checkpoints.take("second")

    started = counting_git(tmp_path / "counting", monkeypatch)
    write(
        project,
        {"a.py": "3\n", "pkg/deep/c.py": None, "new/e.py": "1\n", "y.log": "1\n"},
    )
    (project / "pkg/b.py").chmod(0o755)
    after = await checkpoints.take("third")
    changes = await checkpoints.changes(before, after)
    again = await checkpoints.take("fourth")
    assert started() == ["diff-tree"]  # which stays
    assert [change.path for change in changes] == [
        "a.py",
        "new/e.py",
        "pkg/b.py",
        "pkg/deep/c.py",
    ]
    assert again.id == after.id == await by_git(checkpoints)
    checkpoints.close()


UNUSUAL: dict[str, Files] = {
    "a repository within": {
        "inner/.git/HEAD": "ref: refs/heads/main\n",
        "inner/a": "1\n",
    },
    "a name of git's own": {".GIT/a": "1\n", "sub/.gitmodules": "1\n"},
    "many files": {f"many/{number}": f"{number}\n" for number in range(250)},
    "an ignored file that was asked for": {"late.log": "1\n"},
}


@pytest.mark.parametrize("what", UNUSUAL)
async def test_what_is_unusual_is_left_to_git(project: Path, what: str) -> None:
    write(project, {"a.py": "1\n", ".gitignore": "*.log\n"})
    checkpoints = await opened(project)
    await checkpoints.take("first", ["late.log"])
    write(project, UNUSUAL[what])
    taken = await checkpoints.take("second")
    assert await by_git(checkpoints) == taken.id
    checkpoints.close()


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
    checkpoints.close()

    checkpoints = await opened(project)
    again = await checkpoints.take("fourth")
    assert "b.log" in git(project, "ls-tree", "--name-only", again.files).split()
    assert again.id == third.id
    checkpoints.close()


async def test_of_what_was_asked_for_only_what_is_ignored_is_noted(
    project: Path,
) -> None:
    write(project, {"a.py": "1\n", ".gitignore": "*.log\n"})
    asked, checkpoints = ["a.py", "b.py", "b.log"], await opened(project)
    first = await checkpoints.take("first")
    assert (await checkpoints.take("second", ["a.py", "b.py"])).id == first.id
    before = await checkpoints.take("before", asked)
    write(project, {"b.py": "1\n", "b.log": "1\n"})
    after = await checkpoints.take("after", asked)
    assert [change.path for change in await checkpoints.changes(before, after)] == [
        "b.log",
        "b.py",
    ]
    assert (await checkpoints.snapshots.notes(before.id)).also == {"b.log"}
    checkpoints.close()


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
    assert await by_git(checkpoints) == later.id
    checkpoints.close()


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
    assert (
        (await checkpoints.take("third")).id == with_log.id == await by_git(checkpoints)
    )
    checkpoints.close()


@pytest.mark.parametrize("changed", [{}, {"b.py": "2\n", "c/d.py": "1\n"}])
async def test_a_content_that_was_removed_from_the_store_is_stored_again(
    project: Path, changed: Files
) -> None:
    write(project, {"a.py": "1\n", "b.py": "1\n", "c/a.py": "3\n"})
    checkpoints = await opened(project)
    await checkpoints.take("first")
    git(
        project,
        "update-ref",
        "-d",
        next(name for name in refs(project) if name.endswith("/first")),
    )
    git(project, "gc", "--prune=now", "--quiet")
    write(project, changed)
    again = await checkpoints.take("again")
    assert git(project, "cat-file", "-p", f"{again.id}:files/a.py") == "1"
    assert git(project, "cat-file", "-p", f"{again.id}:files/c/a.py") == "3"
    checkpoints.close()


async def test_a_program_that_was_killed_is_started_again(project: Path) -> None:
    write(project, {"a.py": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("first")
    checkpoints.close()
    write(project, {"a.py": "2\n"})
    after = await checkpoints.take("second")
    assert [change.path for change in await checkpoints.changes(before, after)] == [
        "a.py"
    ]
    checkpoints.close()


def refs(root: Path) -> list[str]:
    return git(root, "for-each-ref", "--format=%(refname)", "refs/cdd").split()


async def test_many_new_files_with_long_names_are_asked_about_in_turns(
    project: Path,
) -> None:
    """All the questions together, or all the answers, are more than a pipe holds."""
    write(project, {"a.py": "1\n", ".gitignore": "*.log\n"})
    checkpoints = await opened(project)
    await checkpoints.take("first")
    folder = "/".join(letter * 250 for letter in "abcdefg")
    names = [
        f"{folder}/{number}{'x' * 200}.{kind}"
        for number in range(60)
        for kind in ("py", "log")
    ]
    asked = [os.fsencode(name) for name in names]
    async with asyncio.timeout(60):
        found = await in_thread(
            lambda: checkpoints.snapshots.objects.ignored(asked), name="ignored"
        )
    assert found == {name for name in asked if name.endswith(b".log")}
    checkpoints.close()


async def test_a_link_is_left_out_by_git_too(project: Path, tmp_path: Path) -> None:
    write(project, {"a.py": "1\n"})
    (tmp_path / "modules").mkdir()
    checkpoints = await Checkpoints.open(
        project, project / ".cdd" / "runs" / "login", "login", (".cdd/runs", "linked")
    )
    without = await checkpoints.take("without")
    (project / "linked").symlink_to(tmp_path / "modules")
    assert (await checkpoints.take("known")).id == without.id
    assert await by_git(checkpoints) == without.id
    checkpoints.close()


async def test_what_is_stored_is_on_the_disk_when_its_name_is_returned(
    project: Path, tmp_path: Path
) -> None:
    """Each program of git tells at its end how often it has waited for the disk."""
    checkpoints = await opened(project)
    told, objects = tmp_path / "told", checkpoints.snapshots.objects
    git = replace(objects.git, env={**objects.git.env, "GIT_TRACE2_EVENT": str(told)})
    objects = GitObjects(git, git, objects.folder)
    objects.tree([TreeItem("100644", objects.blob(b"new\n"), b"new")])
    objects.close()
    checkpoints.close()
    events = map(json.loads, told.read_text().splitlines())
    waits = [
        event.get("value") or event.get("count")
        for event in events
        if "hardware-flush" in str(event)
    ]
    if not waits:
        pytest.skip("this git does not tell")
    assert [int(times) for times in waits] == [1, 1]
