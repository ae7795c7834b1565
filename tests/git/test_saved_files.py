"""Ignored files that were asked for, and checkpoints of version 0.1."""

import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from cdd_agent.git.checkpoint import Checkpoint, Checkpoints
from cdd_agent.git.restore import CheckpointGone, RestoreResult
from cdd_agent.git.snapshot import LARGEST_SAVED
from tests.git.checkpoints import opened, restore, state, write
from tests.git.repositories import git


def all_objects(root: Path) -> set[str]:
    listed = git(root, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return set(listed.split())


async def test_contents_of_ignored_files_never_enter_git(project: Path) -> None:
    write(project, {".gitignore": "*.secret\n", "a.secret": "before\n"})
    also = ["a.secret", "b.secret", "link.secret"]
    checkpoints = await opened(project)
    before, was = await checkpoints.take("before", also), state(project)
    write(project, {"a.secret": "after\n", "b.secret": "created\n"})
    (project / "link.secret").symlink_to("nowhere")
    (project / "a.secret").chmod(0o600)
    after, now = await checkpoints.take("after", also), state(project)
    diff = await checkpoints.diff(before, after)

    secret = [entry.content for entry in (before.saved | after.saved).values()]
    assert not all_objects(project) & set(secret)
    assert all(checkpoints.snapshots.store.has(name) for name in secret)
    assert "-before\n+after\n" in diff
    assert (await restore(checkpoints, before, after)).restored == tuple(also)
    assert state(project) == was
    assert (await restore(checkpoints, after, before)).restored == tuple(also)
    assert state(project) == now


async def test_a_large_ignored_file_is_named_and_never_changed(project: Path) -> None:
    write(project, {".gitignore": "*.bin\n", "fits.bin": b"\0" * LARGEST_SAVED})
    write(project, {"large.bin": b"\0" * (LARGEST_SAVED + 1), "grows.bin": b"\0"})
    also = ["fits.bin", "large.bin", "grows.bin"]
    checkpoints = await opened(project)
    before = await checkpoints.take("before", also)
    assert list(checkpoints.uncovered) == ["large.bin"]
    write(project, {"fits.bin": b"1", "large.bin": b"1"})
    write(project, {"grows.bin": b"\0" * (LARGEST_SAVED + 1)})
    after = await checkpoints.take("after", also)

    assert sorted(checkpoints.uncovered) == ["grows.bin", "large.bin"]
    assert await restore(checkpoints, before, after) == RestoreResult(("fits.bin",))
    assert checkpoints.unseen == frozenset()


async def test_an_ignored_file_whose_content_stayed_elsewhere_is_named(
    project: Path,
) -> None:
    write(project, {".gitignore": "*.log\n", "x.log": "1\n", "a.txt": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before", ["x.log"])
    write(project, {"x.log": "2\n", "a.txt": "2\n"})
    after = await checkpoints.take("after")
    for file in checkpoints.snapshots.store.folder.iterdir():
        file.unlink()

    assert await restore(checkpoints, before, after) == RestoreResult(("a.txt",))
    assert list(checkpoints.uncovered) == ["x.log"]


async def test_a_file_that_is_ignored_during_a_step_or_no_longer_is_comes_back(
    project: Path,
) -> None:
    write(project, {".gitignore": "a.*\n", "a.txt": "1\n", "b.txt": "1\n"})
    also = ["a.txt", "b.txt", "new.txt"]
    checkpoints = await opened(project)
    before, was = await checkpoints.take("before", also), state(project)
    write(project, {".gitignore": "b.*\nnew.*\n"})
    write(project, dict.fromkeys(also, "2\n"))
    after, now = await checkpoints.take("after", also), state(project)

    await restore(checkpoints, before, after)
    assert state(project) == was
    await restore(checkpoints, after, before)
    assert state(project) == now


async def test_what_is_left_out_is_not_saved_either(project: Path) -> None:
    write(project, {".cdd/runs/x": "1\n", "tickets/a/state": "1\n"})
    checkpoints = await Checkpoints.open(
        project, project / ".cdd/runs/login", "login", (".cdd/runs", "tickets")
    )
    asked = [".cdd/runs/x", "tickets/a/state"]
    assert (await checkpoints.take("before", asked)).saved == {}


async def test_checkpoints_are_found_by_name_whole(project: Path) -> None:
    write(project, {".gitignore": "*.log\n", "x.log": "1\n", "a.txt": "1\n"})
    (project / "a.txt").chmod(0o600)
    taken = await (await opened(project)).take("step-01/before", ["x.log"])
    checkpoints = await opened(project)

    assert await checkpoints.find("step-01/before") == taken
    assert await checkpoints.all() == [taken]
    assert await checkpoints.find("step-01/after") is None
    await checkpoints.rename("signup")
    assert await (await opened(project)).find("step-01/before") is None
    renamed = await Checkpoints.open(project, project / ".cdd/runs/login", "signup")
    assert await renamed.find("step-01/before") == taken


async def test_a_checkpoint_without_its_reference_is_not_found(project: Path) -> None:
    write(project, {"a.txt": "1\n"})
    checkpoints = await opened(project)
    await checkpoints.take("side/base")
    await checkpoints.forget("side")
    assert await checkpoints.find("side/base") is None
    assert not list((checkpoints.snapshots.folder / "notes").rglob("*.json"))


@pytest.mark.parametrize(
    "wrong", ["../x", "/x", "a/../../x", ".git/config", "sub/.GIT/hooks/x"]
)
def test_a_saved_checkpoint_with_a_path_elsewhere_is_refused(wrong: str) -> None:
    entry = {"mode": "100644", "content": "0" * 40}
    for field in ({"modes": {wrong: 1}}, {"saved": {wrong: entry}}, {"also": [wrong]}):
        text = msgspec.json.encode({"name": "a", "id": "0" * 40, "form": 2, **field})
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text, type=Checkpoint)


# Version 0.1


def store_old(root: Path, name: str, **lists: str) -> Checkpoint:
    """Store a checkpoint of the files as version 0.1 did."""
    index = {**os.environ, "GIT_INDEX_FILE": str(root / ".git" / "old-index")}

    def ask(*words: str, text: str = "") -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=root,
            env=index,
            input=text,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    ask("add", "--all", "--force", ":!.cdd")
    items = f"040000 tree {ask('write-tree')}\tfiles\n"
    for kind, text in lists.items():
        blob = ask("hash-object", "-w", "--stdin", text=text)
        items += f"100644 blob {blob}\t{kind}\n"
    tree = ask("mktree", text=items)
    # the project's namespace: the first worktree, at its top
    git(root, "update-ref", f"refs/cdd/e7ac0786/login/{name}", tree)
    saved = msgspec.json.encode({"name": name, "id": tree})
    return msgspec.json.decode(saved, type=Checkpoint)


async def test_checkpoints_of_version_0_1_are_undone_and_redone(project: Path) -> None:
    files = {"a.txt": "1\n", "b.txt": "1\n", ".gitignore": "*.log\n", "x.log": "1\n"}
    write(project, {**files, "unseen.txt": "1\n"})
    (project / "b.txt").chmod(0o600)
    notes = {"also": "x.log\0y.log\0", "unseen": "unseen.txt\0"}
    before, was = (
        store_old(project, "before", modes="600 b.txt\0", **notes),
        state(project),
    )
    write(project, {"a.txt": "2\n", "x.log": "2\n", "y.log": "2\n", "new.txt": "2\n"})
    write(project, {"unseen.txt": "2\n"})
    (project / "b.txt").chmod(0o644)
    after, now = store_old(project, "after", **notes), state(project)

    checkpoints = await opened(project)
    assert await checkpoints.find("before") == before
    found = {change.path for change in await checkpoints.changes(before, after)}
    assert found == {"a.txt", "b.txt", "new.txt", "x.log", "y.log"}
    assert "+2" in await checkpoints.diff(before, after, ["x.log"])
    assert set(await checkpoints.find_files(before, ["a.txt", "unseen.txt"])) == {
        "a.txt"
    }
    assert await checkpoints.ignored(before, ["z.log", "z.txt"]) == {"z.log"}
    await restore(checkpoints, before, after)
    assert state(project) == {**was, "unseen.txt": now["unseen.txt"]}
    await restore(checkpoints, after, before)
    assert state(project) == now


async def test_a_checkpoint_of_now_is_compared_with_one_of_version_0_1(
    project: Path,
) -> None:
    write(project, {"a.txt": "1\n", ".gitignore": "*.log\n", "x.log": "1\n"})
    before = store_old(project, "before", also="x.log\0y.log\0")
    write(project, {"a.txt": "2\n", "x.log": "2\n", "y.log": "2\n"})
    checkpoints = await opened(project)
    after = await checkpoints.take("after", ["x.log", "y.log"])

    restored = (await restore(checkpoints, before, after)).restored
    assert restored == ("a.txt", "x.log", "y.log")
    assert (project / "x.log").read_text() == "1\n"
    assert len(await checkpoints.all()) == 2


async def test_a_checkpoint_of_version_0_1_that_is_gone_is_reported(
    project: Path,
) -> None:
    checkpoints = await opened(project)
    after = await checkpoints.take("after")
    with pytest.raises(CheckpointGone):
        await checkpoints.changes(Checkpoint("before", "1" * 40), after)
