"""Checkpoints with real git: they hold a project whole, go back without harm, and leave the user's repository alone."""

import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import NotWritten, _temporary
from cdd_agent.git import restore as restoring
from cdd_agent.git.checkpoint import Checkpoint, Checkpoints
from cdd_agent.git.command import GitUnusable
from cdd_agent.git.restore import CheckpointGone, RestoreResult
from tests.git.test_status import commit, git

IN_THE_WAY = "in the way"

IS_ROOT = os.name == "posix" and os.geteuid() == 0
Files = dict[str, str | bytes | None]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    return root


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A project that is in no repository."""
    root = tmp_path / "plain"
    root.mkdir()
    return root


async def opened(root: Path, ticket: str = "login") -> Checkpoints:
    return await Checkpoints.open(root, root / ".cdd" / "runs" / ticket, ticket, (".cdd/runs",))


def write(root: Path, files: Files) -> None:
    """Make these files, or remove those that are None, and whatever is in their way."""
    for name, content in files.items():
        place = root / name
        if place.is_symlink() or place.is_file():
            place.unlink()
        elif place.is_dir():
            shutil.rmtree(place)
        if content is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)


def state(root: Path) -> dict[str, tuple[str, object]]:
    """All files and links of a project, but for git's and the runs' own."""
    found: dict[str, tuple[str, object]] = {}
    for folder, folders, files in os.walk(root):
        for name in [*files, *(name for name in folders if Path(folder, name).is_symlink())]:
            place = Path(folder, name)
            path = str(place.relative_to(root))
            if path.startswith((".git/", ".cdd/runs/")):
                continue
            if place.is_symlink():
                found[path] = ("link", place.readlink())
            elif place.is_file():
                found[path] = (oct(place.stat().st_mode & 0o777), place.read_bytes())
        folders[:] = [name for name in folders if name != ".git"]
    return found


def kept(repository: Path) -> set[str]:
    """The ids of the checkpoints that it has references to."""
    return set(git(repository, "for-each-ref", "--format=%(objectname)", "refs/cdd").split())


async def restore(checkpoints: Checkpoints, before: Checkpoint, after: Checkpoint) -> RestoreResult:
    """Take back what changed from `before` to `after`; with the two exchanged, do it again."""
    return await checkpoints.restore(await checkpoints.changes(before, after))


async def check_there_and_back(root: Path, files: Files) -> RestoreResult:
    """Changes are restored whole, and done again whole."""
    checkpoints = await opened(root)
    before, was = await checkpoints.take("before"), state(root)
    write(root, files)
    after, now = await checkpoints.take("after"), state(root)

    undone = await restore(checkpoints, before, after)
    assert undone.kept == ()
    assert state(root) == was
    assert await checkpoints.changes(before, await checkpoints.take("undone")) == ()
    assert (await restore(checkpoints, after, before)).kept == ()
    assert state(root) == now
    return undone


# The user's repository


async def test_nothing_that_the_user_knows_of_the_repository_changes(project: Path) -> None:
    commit(project, "one", a_txt="a\n", b_txt="b\n")
    write(project, {"a.txt": "stashed\n"})
    git(project, "stash")
    write(project, {"a.txt": "staged\n", "new.txt": "new\n"})
    git(project, "add", "a.txt")
    write(project, {"a.txt": "not staged\n"})
    for hook in ("reference-transaction", "post-index-change", "pre-commit", "post-checkout", "pre-auto-gc"):
        script = project / ".git" / "hooks" / hook
        script.write_text(f"#!/bin/sh\ntouch {project}/hook-was-run\n")
        script.chmod(0o755)

    def seen() -> tuple[object, ...]:
        asked = (["log", "--all", "--oneline"], ["stash", "list"], ["branch", "--all", "-vv"], ["tag"])
        answers = [git(project, "-c", "core.hooksPath=/dev/null", *words) for words in asked]
        status = git(project, "--no-optional-locks", "status", "--porcelain", "--", ":!.cdd")
        kept = [(project / ".git" / name).read_bytes() for name in ("HEAD", "index", "config", "logs/HEAD")]
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


async def test_checkpoints_that_were_removed_by_hand_do_not_keep_new_ones_from_being_whole(project: Path) -> None:
    write(project, {"folder/a.txt": "a\n"})
    await (await opened(project)).take("before")
    for reference in git(project, "for-each-ref", "--format=%(refname)", "refs/cdd").split():
        git(project, "update-ref", "-d", reference)
    git(project, "gc", "--quiet", "--prune=now")

    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"folder": None})
    await restore(checkpoints, before, await checkpoints.take("after"))

    assert (project / "folder/a.txt").read_text() == "a\n"


async def test_a_checkpoint_whose_contents_are_gone_is_said_to_be_so(project: Path) -> None:
    write(project, {"a.txt": "a\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a.txt": "b\n"})
    after = await checkpoints.take("after")
    name = git(project, "rev-parse", f"{before.files}/a.txt")
    (project / ".git/objects" / name[:2] / name[2:]).unlink()

    with pytest.raises(CheckpointGone, match="no longer there"):
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

    assert (await restore(checkpoints, before, await checkpoints.take("after"))).restored == ("a.txt",)
    assert not (tmp_path / "other").exists()


# Kinds of repository


async def test_a_folder_without_git_becomes_no_repository(plain: Path) -> None:
    write(plain, {"a.txt": "a\n", "debug.log": "log\n", ".gitignore": "*.log\n"})
    await check_there_and_back(plain, {"a.txt": "b\n", "b/c.txt": "c\n", "debug.log": "log\n"})
    assert not (plain / ".git").exists()
    assert sorted(path.name for path in plain.iterdir()) == [".cdd", ".gitignore", "a.txt", "b", "debug.log"]


async def test_a_project_that_becomes_a_repository_keeps_its_checkpoints(plain: Path) -> None:
    write(plain, {"a.txt": "a\n"})
    before = await (await opened(plain)).take("before")
    git(plain, "init", "--quiet")
    write(plain, {"a.txt": "b\n"})

    checkpoints = await opened(plain)
    await restore(checkpoints, before, await checkpoints.take("after"))
    assert (plain / "a.txt").read_text() == "a\n"


async def test_of_a_repository_only_the_projects_folder_counts(project: Path) -> None:
    inner, other = project / "packages" / "[app]*", project / "packages" / "other"
    write(project, {".gitignore": "*.log\n", "packages/.gitignore": "*.tmp\n", "outside.txt": "o\n"})
    for folder in (inner, other):
        write(folder, {"a.txt": "a\n", "x.log": "log\n", "x.tmp": "tmp\n"})
    checkpoints, others = await opened(inner), await opened(other)
    before, theirs = await checkpoints.take("before"), await others.take("before")
    write(project, {"outside.txt": "changed\n"})
    for folder in (inner, other):
        write(folder, {"a.txt": f"{folder.name}\n", "x.log": "changed\n", "x.tmp": "changed\n"})
    after = await checkpoints.take("after")

    assert kept(project) >= {before.id, theirs.id, after.id}
    assert [change.path for change in await checkpoints.changes(before, after)] == ["a.txt"]
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


async def test_worktrees_have_their_own_checkpoints(project: Path, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("text", ["", "gitdir: nowhere\n", "nonsense"])
async def test_a_git_file_that_leads_nowhere(plain: Path, text: str) -> None:
    write(plain, {".git": text, "a.txt": "a\n"})
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
    await check_there_and_back(tmp_path / "parent" / "sub", {"a.txt": "b\n", "b.txt": "b\n"})


async def test_repositories_within_are_left_alone(project: Path) -> None:
    for name in ("full", "hollow"):
        git(project, "init", "--quiet", name)
    commit(project / "full", "one", a_txt="a\n")
    write(project, {"hollow/a.txt": "a\n", "a.txt": "a\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before", also=["full/a.txt", "hollow/a.txt"])
    write(project, {"a.txt": "b\n", "hollow/a.txt": "b\n"})
    commit(project / "full", "two", a_txt="b\n")
    commit(project / "hollow", "one", a_txt="b\n")

    assert checkpoints.unseen == {"hollow"}
    assert await restore(checkpoints, before, await checkpoints.take("after")) == RestoreResult(("a.txt",))
    assert (project / "full/a.txt").read_text() == (project / "hollow/a.txt").read_text() == "b\n"


@pytest.mark.parametrize("with_commit", [True, False])
async def test_a_repository_within_that_becomes_a_plain_folder_loses_no_files(project: Path, with_commit: bool) -> None:
    git(project, "init", "--quiet", "inner")
    write(project, {"inner/a.txt": "worth keeping\n", "b.txt": "b\n"})
    if with_commit:
        commit(project / "inner", "one")
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"inner/.git": None, "b.txt": None})

    assert await restore(checkpoints, before, await checkpoints.take("after")) == RestoreResult(("b.txt",))
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
        for name in ("core.fsmonitor", "core.pager", "core.editor", "filter.evil.clean", "filter.evil.process",
                     "diff.external", "diff.evil.command", "diff.evil.textconv", "core.sshCommand"):  # fmt: skip
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
    assert (await restore(checkpoints, before, after)).restored == ("a.txt",)
    assert not (tmp_path / "was-run").exists()


async def test_a_repository_that_claims_to_be_elsewhere(project: Path, tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/b.txt": "b\n"})
    for place in (str(tmp_path / "elsewhere"), "../nowhere"):
        (project / ".git/config").write_text(f"[core]\nworktree = {place}\nbare = false\n")
        write(project, {"a.txt": "a\n"})
        await check_there_and_back(project, {"a.txt": "b\n"})
    assert (tmp_path / "elsewhere/b.txt").read_text() == "b\n"


# What belongs to a project


async def test_what_is_ignored_is_let_be_but_for_what_is_tracked(project: Path) -> None:
    write(project, {"kept.log": "kept\n", "other.log": "other\n", ".gitignore": "*.log\n"})
    git(project, "add", "--force", "kept.log")
    undone = await check_there_and_back(project, {"kept.log": "changed\n"})
    assert undone == RestoreResult(("kept.log",))

    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"other.log": "changed\n"})
    assert await checkpoints.changes(before, await checkpoints.take("after")) == ()


async def test_ignored_files_that_are_asked_for_are_held(project: Path) -> None:
    write(project, {".gitignore": "*.log\n/build/\n", "changed.log": "1\n", "deleted.log": "1\n"})
    also = ["changed.log", "deleted.log", "build/created.log", "../outside", "/etc/passwd", "missing/x"]
    checkpoints = await opened(project)
    before = await checkpoints.take("before", also)
    write(project, {"changed.log": "2\n", "deleted.log": None, "build/created.log": "2\n", "build/other": "2\n"})
    after = await checkpoints.take("after", also)

    found = {
        change.path: (bool(change.before), bool(change.after)) for change in await checkpoints.changes(before, after)
    }
    assert found == {"changed.log": (True, True), "deleted.log": (True, False), "build/created.log": (False, True)}
    assert (await restore(checkpoints, before, after)).restored == tuple(sorted(found))
    assert sorted(state(project)) == [".gitignore", "build/other", "changed.log", "deleted.log"]


async def test_an_ignored_file_that_was_asked_for_too_late_is_not_taken_for_a_new_one(project: Path) -> None:
    write(project, {".gitignore": ".env\n", ".env": "worth keeping\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {".env": "changed\n", "new.txt": "new\n"})
    after = await checkpoints.take("after", [".env", "new.txt"])

    assert await restore(checkpoints, before, after) == RestoreResult(("new.txt",))
    assert (project / ".env").read_text() == "changed\n"


@pytest.mark.parametrize("inside", ["", "packages/app/"])
async def test_what_was_ignored_and_no_longer_is_counts_as_no_new_file(project: Path, inside: str) -> None:
    """Or else, taking back a change of `.gitignore` would remove a person's secrets and installed packages."""
    root = project / inside
    write(project, {".gitignore": "*.secret\n"})
    write(root, {"sub/.gitignore": "/data/\n", "b/.gitignore": "", "sub/data/a": "a\n", "b/c.secret": "c\n"})
    checkpoints = await opened(root)
    before = await checkpoints.take("before")
    write(root, {"sub/.gitignore": None, "b/.gitignore": "!*.secret\n", "new\n.txt": "new\n"})
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

    assert await restore(checkpoints, before, after) == RestoreResult((".gitignore", "a.log", "dist/app.js"))
    assert (project / "dist/app.js").read_text() == (project / "a.log").read_text() == "1\n"


async def test_what_is_left_out_is_no_part_of_it(project: Path) -> None:
    root = project / "we[i]rd*"
    write(root, {"tickets/a/state.yaml": "1\n", "tickets/a/spec.yaml": "1\n", "logs/x": "1\n", "a.txt": "1\n"})
    git(root, "add", "--force", "logs/x")
    write(project, {".gitignore": "logs\n"})
    checkpoints = await Checkpoints.open(root, root / "private", "t", ("tickets/*/state.yaml", "logs"))
    before = await checkpoints.take("before")
    write(root, {"tickets/a/state.yaml": "2\n", "tickets/a/spec.yaml": "2\n", "logs/x": "2\n", "private/x": "2\n"})

    changes = await checkpoints.changes(before, await checkpoints.take("after"))
    assert [change.path for change in changes] == ["tickets/a/spec.yaml"]


# Bytes


@pytest.mark.parametrize(
    "attributes",
    ["* text=auto", "* text eol=crlf", "* filter=broken", "* text working-tree-encoding=UTF-16", "* ident", "* -diff"],
)
async def test_attributes_convert_nothing(project: Path, attributes: str) -> None:
    git(project, "config", "filter.broken.clean", "false")
    git(project, "config", "filter.broken.required", "true")
    write(project, {".gitattributes": f"{attributes}\n", "a.txt": "a\r\nb\n$Id$\n", "b.bin": b"\0\xff\r\n"})
    await check_there_and_back(project, {"a.txt": "b\n$Id: x$\r\n", "b.bin": None, ".gitattributes": None})


async def test_settings_of_the_user_convert_and_hide_nothing(project: Path, tmp_path: Path) -> None:
    (tmp_path / "ignored").write_text("*.bak\n")
    names = {"core.autocrlf": "true", "core.safecrlf": "true", "core.fileMode": "false", "core.checkStat": "minimal",
             "core.trustCtime": "false", "core.excludesFile": str(tmp_path / "ignored"), "user.useConfigOnly": "true",
             "core.logAllRefUpdates": "always", "diff.noprefix": "true", "core.sparseCheckout": "true"}  # fmt: skip
    for name, value in names.items():
        git(project, "config", "--global", name, value)
    write(project, {"a.txt": "a\r\nb\n", "x.bak": "1\n", "run.sh": "#!\n"})
    checkpoints = await opened(project)
    before, was = await checkpoints.take("before"), state(project)
    write(project, {"a.txt": "b\n"})
    (project / "run.sh").chmod(0o755)
    after = await checkpoints.take("after")

    assert [change.path for change in await checkpoints.changes(before, after)] == ["a.txt", "run.sh"]
    await restore(checkpoints, before, after)
    assert state(project) == was


async def test_what_this_copy_of_a_repository_ignores(project: Path, tmp_path: Path) -> None:
    (tmp_path / "ignored").write_text("*.bak\n")
    git(project, "config", "core.excludesFile", str(tmp_path / "ignored"))
    (project / ".git/info").mkdir(exist_ok=True)
    (project / ".git/info/exclude").write_text("*.old\n")
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"x.bak": "1\n", "x.old": "1\n"})
    assert await checkpoints.changes(before, await checkpoints.take("after")) == ()


async def test_a_shared_repository_stays_writable_for_the_group(project: Path) -> None:
    git(project, "config", "core.sharedRepository", "group")
    write(project, {"a.txt": "a\n"})
    await (await opened(project)).take("before")
    folders = [path for path in (project / ".git/objects").iterdir() if len(path.name) == 2]
    assert folders
    assert all(path.stat().st_mode & stat.S_IWGRP for path in folders)


@pytest.mark.parametrize("root", ["project", "plain"])
async def test_names_of_any_kind(request: pytest.FixtureRequest, root: str) -> None:
    names = ["a b", "line\nend", 'quo"te', "it's", "-rf", "*", "[a]", "a\\b", ":(top)x", "ümläut", "tab\t", " ",
             "git~1", "!x", "#x", os.fsdecode(b"\xff\xfe"), "x" * 250, "\x1b[31m", "deep/" * 40 + "x"]  # fmt: skip
    folder = request.getfixturevalue(root)
    write(folder, dict.fromkeys(names, "1\n"))
    changed = dict.fromkeys(names, "2\n") | {"-rf": None, "line\nend": None, os.fsdecode(b"new\xff"): "3\n"}
    undone = await check_there_and_back(folder, changed)
    assert undone.restored == tuple(sorted(changed))


async def test_names_that_git_keeps_for_itself_are_left_out_and_named(project: Path) -> None:
    write(project, {".GIT/x": "1\n", "a.txt": "1\n"})
    (project / ".gitmodules").symlink_to("a.txt")
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a.txt": "2\n", ".GIT/x": "2\n"})

    assert await restore(checkpoints, before, await checkpoints.take("after")) == RestoreResult(("a.txt",))
    assert checkpoints.unseen == {".GIT/x", ".gitmodules"}


async def test_empty_binary_and_large_files(project: Path) -> None:
    write(project, {"empty": b"", "binary": bytes(range(256)) * 9, "large": os.urandom(5 << 20), "filled": "x"})
    await check_there_and_back(project, {"empty": "no more", "binary": b"\0", "large": None, "filled": b"", "new": b""})


async def test_an_empty_project(plain: Path) -> None:
    await check_there_and_back(plain, {"a/b.txt": "b\n"})
    checkpoints = await opened(plain)
    before = await checkpoints.take("before")
    write(plain, {"a": None})
    assert (await restore(checkpoints, before, await checkpoints.take("after"))).restored == ("a/b.txt",)


async def test_an_edit_in_the_same_moment_and_of_the_same_length_is_seen(project: Path) -> None:
    write(project, {"a.txt": "1\n"})
    before = await (await opened(project)).take("before")
    (project / "a.txt").write_text("2\n")  # git cannot tell by its times, and looks at it for that reason
    time.sleep(1.1)
    checkpoints = await opened(project)
    assert [change.path for change in await checkpoints.changes(before, await checkpoints.take("after"))] == ["a.txt"]


# Links, folders and permissions


def edit_links(root: Path) -> None:
    write(root, dict.fromkeys(("file-to-link", "link-to-file", "folder-to-link", "link-to-folder", "other")))
    write(root, {"file-to-folder": None, "folder-to-file": None})
    (root / "file-to-link").symlink_to("nowhere")
    (root / "folder-to-link").symlink_to("../outside")
    (root / "other").symlink_to("/")
    write(root, {"link-to-file": "file\n", "link-to-folder/x": "x\n", "file-to-folder/a/b": "b\n"})
    write(root, {"folder-to-file": "file\n"})


@pytest.mark.parametrize("kind", ["project", "plain"])
async def test_files_folders_and_links_that_take_each_others_places(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    root = request.getfixturevalue(kind)
    write(tmp_path, {"outside/x": "not mine\n"})
    write(
        root, {"file-to-link": "1\n", "folder-to-link/x": "x\n", "file-to-folder": "1\n", "folder-to-file/a/b": "b\n"}
    )
    (root / "link-to-file").symlink_to("file-to-link")
    (root / "link-to-folder").symlink_to("../outside")
    (root / "other").symlink_to("nowhere")
    checkpoints = await opened(root)
    before, was = await checkpoints.take("before"), state(root)
    edit_links(root)
    after, now = await checkpoints.take("after"), state(root)

    assert (await restore(checkpoints, before, after)).kept == ()
    assert state(root) == was
    assert (await restore(checkpoints, after, before)).kept == ()
    assert state(root) == now
    assert state(tmp_path / "outside") == {"x": (oct((tmp_path / "outside/x").stat().st_mode & 0o777), b"not mine\n")}


async def test_nothing_is_written_or_removed_through_a_link_that_a_person_made(project: Path, tmp_path: Path) -> None:
    write(project, {"folder/changed": "1\n", "folder/deleted": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"folder/changed": "2\n", "folder/deleted": None, "folder/created": "2\n"})
    after = await checkpoints.take("after")
    (project / "folder").rename(tmp_path / "moved")
    (project / "folder").symlink_to(tmp_path / "moved")
    was = state(tmp_path / "moved")

    assert await restore(checkpoints, before, after) == RestoreResult((), ("folder/changed", "folder/deleted"))
    assert state(tmp_path / "moved") == was


async def test_permissions_come_back(project: Path) -> None:
    write(project, dict.fromkeys(("deleted", "replaced", "opened", "closed", "run.sh", "stop.sh"), "1\n"))
    for name, mode in {"deleted": 0o600, "replaced": 0o640, "opened": 0o600, "stop.sh": 0o755}.items():
        (project / name).chmod(mode)
    checkpoints = await opened(project)
    before, was = await checkpoints.take("before"), state(project)
    write(project, {"deleted": None, "replaced": "2\n", "closed": "1\n"})
    for name, mode in {"opened": 0o644, "closed": 0o600, "run.sh": 0o755, "stop.sh": 0o644}.items():
        (project / name).chmod(mode)
    after, now = await checkpoints.take("after"), state(project)

    assert (await restore(checkpoints, before, after)).kept == ()
    assert state(project) == was
    await restore(checkpoints, after, before)
    assert state(project) == now


async def test_a_file_that_a_person_closed_meanwhile_stays_closed(project: Path) -> None:
    write(project, {"a.txt": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    (project / "a.txt").chmod(0o640)
    after = await checkpoints.take("after")
    (project / "a.txt").chmod(0o600)

    assert await restore(checkpoints, before, after) == RestoreResult((), ("a.txt",))
    assert (project / "a.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name == "nt", reason="there are none")
async def test_pipes_and_sockets_are_no_files(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, {"became-pipe": "1\n", "a.txt": "1\n"})
    os.mkfifo(project / "pipe")
    monkeypatch.chdir(project)  # a socket's whole path has to be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"became-pipe": None, "a.txt": "2\n"})
    os.mkfifo(project / "became-pipe")
    after = await checkpoints.take("after")

    assert checkpoints.unseen == {"became-pipe"}
    assert (await restore(checkpoints, before, after)).restored == ("a.txt",)


@pytest.mark.skipif(os.name == "nt", reason="permissions are another thing there")
async def test_what_may_not_be_read_is_named_and_never_removed(project: Path) -> None:
    skip_where_all_is_allowed(project)
    write(project, {"file": "1\n", "folder/x": "1\n", "later": "1\n", "later-folder/x": "1\n", "a.txt": "1\n"})
    (project / "file").chmod(0)
    (project / "folder").chmod(0)
    checkpoints = await opened(project)
    before = await checkpoints.take("before", ["file"])
    assert checkpoints.unseen == {"file", "folder"}

    (project / "file").chmod(0o644)
    (project / "folder").chmod(0o755)
    write(project, {"a.txt": "2\n"})
    (project / "later").chmod(0)
    (project / "later-folder").chmod(0)
    after = await checkpoints.take("after")

    assert await restore(checkpoints, before, after) == RestoreResult(("a.txt",))
    (project / "later-folder").chmod(0o755)
    assert sorted(state_names(project)) == ["a.txt", "file", "folder/x", "later", "later-folder/x"]


def skip_where_all_is_allowed(root: Path) -> None:
    (root / "probe").touch(mode=0)
    is_allowed = os.access(root / "probe", os.R_OK)
    (root / "probe").unlink()
    if is_allowed:
        pytest.skip("root may do everything")


def state_names(root: Path) -> list[str]:
    found = (path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())
    return [path for path in found if not path.startswith((".git/", ".cdd/"))]


# Taking back, and what a person does meanwhile


async def test_what_a_person_changed_since_is_kept_and_named(project: Path) -> None:
    names = ("changed", "deleted", IN_THE_WAY, "only-mine", "theirs", "not-theirs")
    write(project, dict.fromkeys(names, "1\n"))
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {**dict.fromkeys(names, "2\n"), IN_THE_WAY: None, "not-theirs": "1\n", "new": "2\n", "gone": "2\n"})
    after = await checkpoints.take("after")
    write(project, {"changed": "3\n", "deleted": None, f"{IN_THE_WAY}/mine": "3\n", "not-theirs": "3\n", "new": "3\n"})
    write(project, {"gone": None, "only-theirs": "3\n"})

    taken = await restore(checkpoints, before, after)
    assert taken == RestoreResult(("only-mine", "theirs"), ("changed", "deleted", IN_THE_WAY, "new"))
    assert await restore(checkpoints, before, after) == RestoreResult((), taken.kept)
    texts = {name: (project / name).read_text() for name in state(project)}
    assert texts == dict.fromkeys(
        ("changed", f"{IN_THE_WAY}/mine", "not-theirs", "new", "only-theirs"), "3\n"
    ) | dict.fromkeys(("only-mine", "theirs"), "1\n")

    redone = await restore(checkpoints, after, before)
    assert redone == RestoreResult(("gone", "only-mine", "theirs"), ("changed", "deleted", "new"))


async def test_an_empty_folder_is_not_in_the_way_of_a_file(project: Path) -> None:
    write(project, {"a": "a\n", "b": "b\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a": None, "b": None})
    (project / "a" / "deep").mkdir(parents=True)
    (project / "b").mkdir()
    (project / "b" / "link").symlink_to(".")
    after = await checkpoints.take("after")
    (project / "b" / "mine").mkdir()

    assert await restore(checkpoints, before, after) == RestoreResult(("a", "b", "b/link"))
    assert sorted(state(project)) == ["a", "b"]


async def test_a_folder_of_a_persons_in_a_files_place_keeps_all_that_is_in_it(project: Path) -> None:
    write(project, {"a": "a\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a": None})
    after = await checkpoints.take("after")
    write(project, {"a/mine": "mine\n"})
    (project / "a" / "empty").mkdir()

    assert await restore(checkpoints, before, after) == RestoreResult((), ("a",))
    assert sorted(path.name for path in (project / "a").iterdir()) == ["empty", "mine"]


async def test_taking_a_file_back_to_a_folder_twice(project: Path) -> None:
    write(project, {"a/b": "b\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a": "a\n"})
    after = await checkpoints.take("after")

    assert (await restore(checkpoints, before, after)).restored == ("a", "a/b")
    assert await restore(checkpoints, before, after) == RestoreResult()


async def test_what_was_interrupted_is_taken_back_by_doing_it_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        project,
        {"file-to-link": "1\n", "folder-to-link/x": "x\n", "file-to-folder": "1\n", "folder-to-file/a/b": "b\n"},
    )
    checkpoints = await opened(project)
    before, was = await checkpoints.take("before"), state(project)
    edit_links(project)
    after = await checkpoints.take("after")

    original, restored = restoring._restore_one, []

    def cut(*arguments: Any) -> restoring._Fate:
        if restored:
            raise KeyboardInterrupt
        fate = original(*arguments)
        if fate is restoring._Fate.RESTORED:
            restored.append(arguments)
        return fate

    for _ in range(5):
        monkeypatch.setattr(restoring, "_restore_one", cut)
        with pytest.raises(KeyboardInterrupt):
            await restore(checkpoints, before, after)
        restored.clear()

    monkeypatch.setattr(restoring, "_restore_one", original)
    assert (await restore(checkpoints, before, after)).kept == ()
    assert state(project) == was


async def test_leftovers_of_a_killed_restoring_are_removed(project: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    write(project, {"a.txt": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a.txt": "2\n"})
    after = await checkpoints.take("after")
    torn = _temporary(project / "a.txt")
    torn = torn.with_name(torn.name.replace(f"-{os.getpid()}-", f"-{dead.pid}-"))
    torn.write_text("half a f")

    await restore(checkpoints, before, after)
    assert sorted(state(project)) == ["a.txt"]


# A predecessor that was killed, and disks that refuse


async def test_a_killed_predecessor_is_in_nobodys_way(project: Path) -> None:
    write(project, {".gitignore": "*.log\n", "a.txt": "1\n", "x.log": "1\n"})
    git(project, "add", "--force", "x.log")
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    folder = checkpoints.snapshots.folder
    index = next(folder.glob("index-*"))
    for torn in (index, folder / "index-dead.lock", folder / "input", folder / "changes"):
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


async def test_a_git_that_was_killed_in_the_middle_leaves_no_lock_for_the_next_checkpoint(project: Path) -> None:
    write(project, {"a.txt": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    Path(f"{checkpoints.snapshots.index}.lock").touch()
    write(project, {"a.txt": "2\n"})
    assert (await checkpoints.changes(before, await checkpoints.take("after")))[0].path == "a.txt"


async def test_a_file_too_large_for_the_disk_makes_no_checkpoint(project: Path) -> None:
    import resource

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


@pytest.mark.skipif(not IS_ROOT or sys.platform != "linux", reason="needs a disk of its own")
@pytest.mark.parametrize("where", [".git/objects", ".cdd/runs"])
async def test_a_full_disk_makes_no_checkpoint(project: Path, where: str) -> None:
    (project / where).mkdir(parents=True, exist_ok=True)
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(project / where)], check=False
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
    write(project, {"a.txt": "a\n", "b.txt": "line\n" * 20, "x[1].txt": "1\n", "x1.txt": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a.txt": "b\n", "b.txt": None, "c.txt": "line\n" * 20, "x[1].txt": "2\n", "x1.txt": "2\n"})
    after = await checkpoints.take("after")

    assert "\nrename to" in await checkpoints.diff(before, after)
    assert "x1.txt" not in await checkpoints.diff(before, after, ["x[1].txt"])
    assert await checkpoints.diff(before, before) == ""
    write(project, {"large.txt": "line\n" * 500_000})
    cut = await checkpoints.diff(after, await checkpoints.take("large"))
    assert cut.splitlines()[-1].startswith("… ")
