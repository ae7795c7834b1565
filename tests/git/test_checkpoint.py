"""Checkpoints with real git: they hold a project whole, and leave the user's repository
alone.
"""

import asyncio
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import NotWritten
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.git.command import GitUnusable
from cdd_agent.git.restore import CheckpointGone, RestoreResult
from tests.git.checkpoints import (
    check_there_and_back,
    opened,
    restore,
    skip_where_all_is_allowed,
    state,
    write,
)
from tests.git.repositories import git
from tests.git.test_status import commit

IS_ROOT = os.name == "posix" and os.geteuid() == 0


def kept(repository: Path) -> set[str]:
    """The ids of the checkpoints that it has references to."""
    return set(
        git(repository, "for-each-ref", "--format=%(objectname)", "refs/cdd").split()
    )


# The user's repository


async def test_nothing_that_the_user_knows_of_the_repository_changes(
    project: Path,
) -> None:
    commit(project, "one", a_txt="a\n", b_txt="b\n")
    write(project, {"a.txt": "stashed\n"})
    git(project, "stash")
    write(project, {"a.txt": "staged\n", "new.txt": "new\n"})
    git(project, "add", "a.txt")
    write(project, {"a.txt": "not staged\n"})
    for hook in (
        "reference-transaction",
        "post-index-change",
        "pre-commit",
        "post-checkout",
        "pre-auto-gc",
    ):
        script = project / ".git" / "hooks" / hook
        script.write_text(f"#!/bin/sh\ntouch {project}/hook-was-run\n")
        script.chmod(0o755)

    def seen() -> tuple[object, ...]:
        asked = (
            ["log", "--all", "--oneline"],
            ["stash", "list"],
            ["branch", "--all", "-vv"],
            ["tag"],
        )
        answers = [
            git(project, "-c", "core.hooksPath=/dev/null", *words) for words in asked
        ]
        status = git(
            project, "--no-optional-locks", "status", "--porcelain", "--", ":!.cdd"
        )
        kept = [
            (project / ".git" / name).read_bytes()
            for name in ("HEAD", "index", "config", "logs/HEAD")
        ]
        return *answers, status, *kept

    was = seen()
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a.txt": "changed\n", "b.txt": None, "c.txt": "c\n"})
    await restore(checkpoints, before, await checkpoints.take("after"))

    assert seen() == was
    assert not (project / "hook-was-run").exists()


async def test_cleaning_the_repository_up_keeps_checkpoints(project: Path) -> None:
    write(project, {"a.txt": "once\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a.txt": None})
    after = await checkpoints.take("after")

    git(project, "gc", "--quiet", "--prune=now")
    git(project, "repack", "-adq")
    git(project, "prune", "--expire=now")

    assert (await restore(await opened(project), before, after)).restored == ("a.txt",)
    assert (project / "a.txt").read_text() == "once\n"


async def test_checkpoints_removed_by_hand_do_not_keep_new_ones_from_being_whole(
    project: Path,
) -> None:
    write(project, {"folder/a.txt": "a\n"})
    await (await opened(project)).take("before")
    for reference in git(
        project, "for-each-ref", "--format=%(refname)", "refs/cdd"
    ).split():
        git(project, "update-ref", "-d", reference)
    git(project, "gc", "--quiet", "--prune=now")

    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"folder": None})
    await restore(checkpoints, before, await checkpoints.take("after"))

    assert (project / "folder/a.txt").read_text() == "a\n"


async def test_a_checkpoint_whose_contents_are_gone_is_said_to_be_so(
    project: Path,
) -> None:
    write(project, {"a.txt": "a\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a.txt": "b\n"})
    after = await checkpoints.take("after")
    name = git(project, "rev-parse", f"{before.files}:a.txt")
    (project / ".git/objects" / name[:2] / name[2:]).unlink()

    with pytest.raises(CheckpointGone, match="checkpoint of this run is missing"):
        await restore(checkpoints, before, after)
    assert (project / "a.txt").read_text() == "b\n"


async def test_in_the_environment_of_a_hook_it_is_still_the_project_that_counts(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, str(tmp_path / "other"))
    write(project, {"a.txt": "a\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a.txt": "b\n"})

    assert (
        await restore(checkpoints, before, await checkpoints.take("after"))
    ).restored == ("a.txt",)
    assert not (tmp_path / "other").exists()


# Kinds of repository


async def test_a_folder_without_git_becomes_no_repository(plain: Path) -> None:
    write(plain, {"a.txt": "a\n", "debug.log": "log\n", ".gitignore": "*.log\n"})
    await check_there_and_back(
        plain, {"a.txt": "b\n", "b/c.txt": "c\n", "debug.log": "log\n"}
    )
    assert not (plain / ".git").exists()
    assert sorted(path.name for path in plain.iterdir()) == [
        ".cdd",
        ".gitignore",
        "a.txt",
        "b",
        "debug.log",
    ]


async def test_a_project_that_becomes_a_repository_keeps_its_checkpoints(
    plain: Path,
) -> None:
    write(plain, {"a.txt": "a\n"})
    before = await (await opened(plain)).take("before")
    git(plain, "init", "--quiet")
    write(plain, {"a.txt": "b\n"})

    checkpoints = await opened(plain)
    await restore(checkpoints, before, await checkpoints.take("after"))
    assert (plain / "a.txt").read_text() == "a\n"


async def test_of_a_repository_only_the_projects_folder_counts(project: Path) -> None:
    inner, other = project / "packages" / "[app]*", project / "packages" / "other"
    write(
        project,
        {
            ".gitignore": "*.log\n",
            "packages/.gitignore": "*.tmp\n",
            "outside.txt": "o\n",
        },
    )
    for folder in (inner, other):
        write(folder, {"a.txt": "a\n", "x.log": "log\n", "x.tmp": "tmp\n"})
    checkpoints, others = await opened(inner), await opened(other)
    before, theirs = await checkpoints.take("before"), await others.take("before")
    write(project, {"outside.txt": "changed\n"})
    for folder in (inner, other):
        write(
            folder,
            {"a.txt": f"{folder.name}\n", "x.log": "changed\n", "x.tmp": "changed\n"},
        )
    after = await checkpoints.take("after")

    assert kept(project) >= {before.id, theirs.id, after.id}
    assert [change.path for change in await checkpoints.changes(before, after)] == [
        "a.txt"
    ]
    assert await restore(checkpoints, before, after) == RestoreResult(("a.txt",))
    assert (other / "a.txt").read_text() == "other\n"
    assert (project / "outside.txt").read_text() == "changed\n"


async def test_an_empty_project_inside_a_repository(project: Path) -> None:
    commit(project, "one", a_txt="a\n")
    inner = project / "inner"
    inner.mkdir()
    await check_there_and_back(inner, {"a.txt": "a\n"})


async def test_a_project_that_its_repository_ignores(project: Path) -> None:
    write(project, {".gitignore": "/inner/\n", "inner/a.txt": "a\n"})
    await check_there_and_back(project / "inner", {"a.txt": "b\n"})
    assert git(project, "for-each-ref") == ""


async def test_worktrees_have_their_own_checkpoints(
    project: Path, tmp_path: Path
) -> None:
    commit(project, "one", a_txt="a\n")
    tree = tmp_path / "tree"
    git(project, "worktree", "add", "--quiet", str(tree))
    (project / ".git/info/exclude").write_text("*.log\n")
    here, there = await opened(project), await opened(tree)
    ours, before = await here.take("before"), await there.take("before")
    write(tree, {"a.txt": "b\n", "x.log": "log\n"})
    after = await there.take("after")
    git(project, "gc", "--quiet", "--prune=now")

    assert kept(project) == {ours.id, before.id, after.id}
    assert await restore(there, before, after) == RestoreResult(("a.txt",))
    assert git(tree, "status", "--porcelain", "--", ":!.cdd") == ""


async def test_a_repository_with_longer_names_of_objects(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "long")
    root = tmp_path / "long"
    write(root, {"a.txt": "a\n", "b.txt": "b\n"})
    await check_there_and_back(root, {"a.txt": "b\n", "b.txt": None})


async def test_a_git_file_that_leads_nowhere(plain: Path) -> None:
    for text in ("", "gitdir: nowhere\n", "nonsense"):
        write(plain, {".git": text, "a.txt": "a\n", ".cdd": None})
        await check_there_and_back(plain, {"a.txt": "b\n"})


async def test_an_empty_or_bare_git_folder(plain: Path) -> None:
    (plain / ".git").mkdir()
    write(plain, {"a.txt": "a\n"})
    await check_there_and_back(plain, {"a.txt": "b\n"})
    shutil.rmtree(plain / ".cdd")
    git(plain, "init", "--quiet", "--bare", ".git")
    await check_there_and_back(plain, {"a.txt": "c\n"})


async def test_a_submodule_reached_by_a_git_file(project: Path, tmp_path: Path) -> None:
    commit(project, "one", a_txt="a\n")
    git(tmp_path, "init", "--quiet", "parent")
    git(tmp_path / "parent", "submodule", "--quiet", "add", str(project), "sub")
    await check_there_and_back(
        tmp_path / "parent" / "sub", {"a.txt": "b\n", "b.txt": "b\n"}
    )


@pytest.mark.parametrize("with_commit", [True, False])
async def test_a_repository_within_that_becomes_a_plain_folder_loses_no_files(
    project: Path, with_commit: bool
) -> None:
    git(project, "init", "--quiet", "inner")
    write(project, {"inner/a.txt": "worth keeping\n", "b.txt": "b\n"})
    if with_commit:
        commit(project / "inner", "one")
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"inner/.git": None, "b.txt": None})

    assert await restore(
        checkpoints, before, await checkpoints.take("after")
    ) == RestoreResult(("b.txt",))
    assert (project / "inner/a.txt").read_text() == "worth keeping\n"


# Nothing that a repository brings along is run


async def test_a_hostile_repository_runs_nothing(project: Path, tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\ncat\n")
    evil.chmod(0o755)
    git(project, "init", "--quiet", "inner")
    commit(project / "inner", "one", a_txt="a\n")
    write(project, {"a.txt": "a\n", ".gitattributes": "* filter=evil diff=evil\n"})
    write(project, {"inner/.gitattributes": "* filter=evil\n"})
    for folder in (project, project / "inner"):
        for name in (
            "core.fsmonitor",
            "core.pager",
            "core.editor",
            "filter.evil.clean",
            "filter.evil.process",
            "diff.external",
            "diff.evil.command",
            "diff.evil.textconv",
            "core.sshCommand",
        ):
            git(folder, "config", name, str(evil))
        for name in ("add", "write-tree", "update-ref"):
            git(folder, "config", f"alias.{name}", f"!{evil}")
        git(folder, "config", "core.hooksPath", str(tmp_path))
        shutil.copy(evil, tmp_path / "reference-transaction")
    (tmp_path / "was-run").unlink(missing_ok=True)
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a.txt": "b\n"})
    (project / "inner/a.txt").write_text("changed\n")
    after = await checkpoints.take("after")

    assert "+b" in await checkpoints.diff(before, after)
    restored = (await restore(checkpoints, before, after)).restored
    assert restored == ("a.txt", "inner/a.txt")
    assert not (tmp_path / "was-run").exists()


async def test_a_repository_that_claims_to_be_elsewhere(
    project: Path, tmp_path: Path
) -> None:
    write(tmp_path, {"elsewhere/b.txt": "b\n"})
    for place in (str(tmp_path / "elsewhere"), "../nowhere"):
        (project / ".git/config").write_text(
            f"[core]\nworktree = {place}\nbare = false\n"
        )
        write(project, {"a.txt": "a\n"})
        await check_there_and_back(project, {"a.txt": "b\n"})
    assert (tmp_path / "elsewhere/b.txt").read_text() == "b\n"


# What belongs to a project


async def test_what_is_ignored_is_let_be_but_for_what_is_tracked(project: Path) -> None:
    write(
        project, {"kept.log": "kept\n", "other.log": "other\n", ".gitignore": "*.log\n"}
    )
    git(project, "add", "--force", "kept.log")
    undone = await check_there_and_back(project, {"kept.log": "changed\n"})
    assert undone == RestoreResult(("kept.log",))

    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"other.log": "changed\n"})
    assert await checkpoints.changes(before, await checkpoints.take("after")) == ()


async def test_ignored_files_that_are_asked_for_are_held(project: Path) -> None:
    write(
        project,
        {".gitignore": "*.log\n/build/\n", "changed.log": "1\n", "deleted.log": "1\n"},
    )
    also = [
        "changed.log",
        "deleted.log",
        "build/created.log",
        "../outside",
        "/etc/passwd",
        ".git/config",
        "missing/x",
    ]
    checkpoints = await opened(project)
    before = await checkpoints.take("before", also)
    write(
        project,
        {
            "changed.log": "2\n",
            "deleted.log": None,
            "build/created.log": "2\n",
            "build/other": "2\n",
        },
    )
    after = await checkpoints.take("after", also)

    found = {
        change.path: (bool(change.before), bool(change.after))
        for change in await checkpoints.changes(before, after)
    }
    assert found == {
        "changed.log": (True, True),
        "deleted.log": (True, False),
        "build/created.log": (False, True),
    }
    assert (await restore(checkpoints, before, after)).restored == tuple(sorted(found))
    assert sorted(state(project)) == [
        ".gitignore",
        "build/other",
        "changed.log",
        "deleted.log",
    ]


async def test_an_ignored_file_that_was_asked_for_too_late_is_not_taken_for_a_new_one(
    project: Path,
) -> None:
    write(project, {".gitignore": ".env\n", ".env": "worth keeping\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {".env": "changed\n", "new.txt": "new\n"})
    after = await checkpoints.take("after", [".env", "new.txt"])

    assert await restore(checkpoints, before, after) == RestoreResult(("new.txt",))
    assert (project / ".env").read_text() == "changed\n"


@pytest.mark.parametrize("inside", ["", "packages/app/"])
async def test_what_was_ignored_and_no_longer_is_counts_as_no_new_file(
    project: Path, inside: str
) -> None:
    """Or else, taking back a change of `.gitignore` would remove a person's secrets and
    installed packages.
    """
    root = project / inside
    write(project, {".gitignore": "*.secret\n"})
    write(
        root,
        {
            "sub/.gitignore": "/data/\n",
            "b/.gitignore": "",
            "sub/data/a": "a\n",
            "b/c.secret": "c\n",
        },
    )
    checkpoints = await opened(root)
    before = await checkpoints.take("before")
    write(
        root,
        {"sub/.gitignore": None, "b/.gitignore": "!*.secret\n", "new\n.txt": "new\n"},
    )
    after = await checkpoints.take("after")

    taken = await restore(checkpoints, before, after)
    assert taken == RestoreResult(("b/.gitignore", "new\n.txt", "sub/.gitignore"))
    assert (root / "sub/data/a").read_text() == "a\n"
    assert (root / "b/c.secret").read_text() == "c\n"


async def test_what_was_deleted_and_then_ignored_comes_back(project: Path) -> None:
    write(project, {"dist/app.js": "1\n", "a.log": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"dist": None, "a.log": "2\n", ".gitignore": "/dist/\n*.log\n"})
    after = await checkpoints.take("after")

    assert await restore(checkpoints, before, after) == RestoreResult(
        (".gitignore", "a.log", "dist/app.js")
    )
    assert (
        (project / "dist/app.js").read_text()
        == (project / "a.log").read_text()
        == "1\n"
    )


async def test_what_is_left_out_is_no_part_of_it(project: Path) -> None:
    root = project / "we[i]rd*"
    write(
        root,
        {
            "tickets/a/state.yaml": "1\n",
            "tickets/a/spec.yaml": "1\n",
            "logs/x": "1\n",
            "a.txt": "1\n",
        },
    )
    git(root, "add", "--force", "logs/x")
    write(project, {".gitignore": "logs\n"})
    checkpoints = await Checkpoints.open(
        root, root / "private", "t", ("tickets/*/state.yaml", "logs")
    )
    before = await checkpoints.take("before")
    write(
        root,
        {
            "tickets/a/state.yaml": "2\n",
            "tickets/a/spec.yaml": "2\n",
            "logs/x": "2\n",
            "private/x": "2\n",
        },
    )

    changes = await checkpoints.changes(before, await checkpoints.take("after"))
    assert [change.path for change in changes] == ["tickets/a/spec.yaml"]


# A predecessor that was killed, and disks that refuse


async def test_a_killed_predecessor_is_in_nobodys_way(project: Path) -> None:
    write(project, {".gitignore": "*.log\n", "a.txt": "1\n", "x.log": "1\n"})
    git(project, "add", "--force", "x.log")
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    folder = checkpoints.snapshots.folder
    index = next(folder.glob("index-*"))
    for torn in (
        index,
        folder / "index-dead.lock",
        folder / "input",
        folder / "changes",
    ):
        torn.write_bytes(b"torn")
    lock = next((project / ".git/refs/cdd").rglob("before")).with_name("after.lock")
    lock.touch()
    lock.with_name("never-taken-again.lock").touch()
    write(project, {"a.txt": "2\n", "x.log": "2\n"})

    checkpoints = await opened(project)
    after = await checkpoints.take("after")
    assert (await restore(checkpoints, before, after)).restored == ("a.txt", "x.log")
    assert not list(folder.glob("*.lock"))
    assert not list((project / ".git/refs/cdd").rglob("*.lock"))


async def test_a_git_killed_in_the_middle_leaves_no_lock_for_the_next_checkpoint(
    project: Path,
) -> None:
    write(project, {"a.txt": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    Path(f"{checkpoints.snapshots.index}.lock").touch()
    write(project, {"a.txt": "2\n"})
    assert (await checkpoints.changes(before, await checkpoints.take("after")))[
        0
    ].path == "a.txt"


async def test_a_file_too_large_for_the_disk_makes_no_checkpoint(project: Path) -> None:
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"small.txt": "1\n", "large.bin": os.urandom(2 << 20)})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(CddError):
            await checkpoints.take("after")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert kept(project) == {before.id}
    assert len(await checkpoints.changes(before, await checkpoints.take("after"))) == 2


@pytest.mark.skipif(
    not IS_ROOT or sys.platform != "linux", reason="needs a disk of its own"
)
@pytest.mark.parametrize("where", [".git/objects", ".cdd/runs"])
async def test_a_full_disk_makes_no_checkpoint(project: Path, where: str) -> None:
    (project / where).mkdir(parents=True, exist_ok=True)
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(project / where)],
        check=False,
    ).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        if where == ".git/objects":
            (project / where / "info").mkdir()
            (project / where / "pack").mkdir()
        checkpoints = await opened(project)
        write(project, {f"file-{number}": os.urandom(9000) for number in range(60)})
        if where == ".cdd/runs":
            (project / where / "filler").write_bytes(bytes(200 << 10))
            write(project, {f"{'long' * 50}{number}": "1\n" for number in range(900)})
        with pytest.raises(CddError, match=r"No space left|could not|failed") as raised:
            await checkpoints.take("before")
        assert raised.value.hint
        assert kept(project) == set()
    finally:
        subprocess.run(["umount", "--lazy", str(project / where)], check=True)


async def test_a_folder_that_cannot_be_made_is_said(project: Path) -> None:
    write(project, {".cdd": "a file\n"})
    with pytest.raises(CddError, match=r"\.cdd"):
        await opened(project)


@pytest.mark.skipif(os.name == "nt", reason="permissions are another thing there")
async def test_a_read_only_folder_is_said(project: Path) -> None:
    skip_where_all_is_allowed(project)
    write(project, {"folder/a.txt": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"folder/a.txt": "2\n", "b.txt": "2\n"})
    after = await checkpoints.take("after")
    for place in (project / "folder", project / ".git/objects"):
        place.chmod(0o555)
    try:
        with pytest.raises(NotWritten):
            await restore(checkpoints, before, after)
        write(project, {"c.txt": "3\n"})
        with pytest.raises(GitUnusable) as raised:
            await checkpoints.take("later")
        assert raised.value.hint
    finally:
        for place in (project / "folder", project / ".git/objects"):
            place.chmod(0o755)


# Differences


async def test_a_difference_is_shown_and_cut(project: Path) -> None:
    write(
        project,
        {"a.txt": "a\n", "b.txt": "line\n" * 20, "x[1].txt": "1\n", "x1.txt": "1\n"},
    )
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(
        project,
        {
            "a.txt": "b\n",
            "b.txt": None,
            "c.txt": "line\n" * 20,
            "x[1].txt": "2\n",
            "x1.txt": "2\n",
        },
    )
    after = await checkpoints.take("after")

    assert "\nrename to" in await checkpoints.diff(before, after)
    assert "x1.txt" not in await checkpoints.diff(before, after, ["x[1].txt"])
    assert await checkpoints.diff(before, before) == ""
    write(project, {"large.txt": "line\n" * 500_000})
    cut = await checkpoints.diff(after, await checkpoints.take("large"))
    assert cut.splitlines()[-1].startswith("… ")


async def test_nothing_is_written_after_an_opening_was_cancelled(
    tmp_path: Path,
) -> None:
    project, folder = tmp_path / "project", tmp_path / "record"
    project.mkdir()
    git(project, "init", "--quiet")
    for moment in range(40):
        opening = asyncio.ensure_future(Checkpoints.open(project, folder, "login"))
        await asyncio.sleep(moment / 2_000)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        shutil.rmtree(folder, ignore_errors=True)
        await asyncio.sleep(0.01)
        assert not folder.exists()
