"""Files go back as they were, of whatever kind and name, and what a person did
meanwhile stays.
"""

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.files.atomic import _temporary
from cdd_agent.git import restore as restoring
from cdd_agent.git.restore import RestoreResult
from tests.git.checkpoints import (
    Files,
    check_there_and_back,
    opened,
    restore,
    skip_where_all_is_allowed,
    state,
    write,
)
from tests.git.repositories import git

IN_THE_WAY = "in the way"


# Bytes


ATTRIBUTES = (
    "* text=auto",
    "* text eol=crlf",
    "* filter=broken",
    "* text working-tree-encoding=UTF-16",
    "* ident",
    "* -diff",
)


async def test_attributes_convert_nothing(project: Path) -> None:
    git(project, "config", "filter.broken.clean", "false")
    git(project, "config", "filter.broken.required", "true")
    changes: Files = {}
    for number, attributes in enumerate(ATTRIBUTES):
        write(
            project,
            {
                f"{number}/.gitattributes": f"{attributes}\n",
                f"{number}/a.txt": "a\r\nb\n$Id$\n",
                f"{number}/b.bin": b"\0\xff\r\n",
            },
        )
        changes |= {f"{number}/a.txt": "b\n$Id: x$\r\n", f"{number}/b.bin": None}
    await check_there_and_back(project, changes)
    await check_there_and_back(
        project, {f"{number}/.gitattributes": None for number in range(3)}
    )


async def test_settings_of_the_user_convert_and_hide_nothing(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "ignored").write_text("*.bak\n")
    names = {
        "core.autocrlf": "true",
        "core.safecrlf": "true",
        "core.fileMode": "false",
        "core.checkStat": "minimal",
        "core.trustCtime": "false",
        "core.excludesFile": str(tmp_path / "ignored"),
        "user.useConfigOnly": "true",
        "core.logAllRefUpdates": "always",
        "diff.noprefix": "true",
        "core.sparseCheckout": "true",
    }
    for name, value in names.items():
        git(project, "config", "--global", name, value)
    write(project, {"a.txt": "a\r\nb\n", "x.bak": "1\n", "run.sh": "#!\n"})
    checkpoints = await opened(project)
    before, was = await checkpoints.take("before"), state(project)
    write(project, {"a.txt": "b\n"})
    (project / "run.sh").chmod(0o755)
    after = await checkpoints.take("after")

    assert [change.path for change in await checkpoints.changes(before, after)] == [
        "a.txt",
        "run.sh",
    ]
    await restore(checkpoints, before, after)
    assert state(project) == was


async def test_what_this_copy_of_a_repository_ignores(
    project: Path, tmp_path: Path
) -> None:
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
    folders = [
        path for path in (project / ".git/objects").iterdir() if len(path.name) == 2
    ]
    assert folders
    assert all(path.stat().st_mode & stat.S_IWGRP for path in folders)


@pytest.mark.parametrize("root", ["project", "plain"])
async def test_names_of_any_kind(request: pytest.FixtureRequest, root: str) -> None:
    names = [
        "a b",
        "line\nend",
        'quo"te',
        "it's",
        "-rf",
        "*",
        "[a]",
        "a\\b",
        ":(top)x",
        "ümläut",
        "tab\t",
        " ",
        "git~1",
        "!x",
        "#x",
        os.fsdecode(b"\xff\xfe"),
        "x" * 250,
        "\x1b[31m",
        "deep/" * 40 + "x",
    ]
    folder = request.getfixturevalue(root)
    write(folder, dict.fromkeys(names, "1\n"))
    changed = dict.fromkeys(names, "2\n") | {
        "-rf": None,
        "line\nend": None,
        os.fsdecode(b"new\xff"): "3\n",
    }
    undone = await check_there_and_back(folder, changed)
    assert undone.restored == tuple(sorted(changed))


async def test_names_that_git_keeps_for_itself_are_left_out_and_named(
    project: Path,
) -> None:
    write(project, {".GIT/x": "1\n", "a.txt": "1\n"})
    (project / ".gitmodules").symlink_to("a.txt")
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a.txt": "2\n", ".GIT/x": "2\n"})

    assert await restore(
        checkpoints, before, await checkpoints.take("after")
    ) == RestoreResult(("a.txt",))
    assert checkpoints.unseen == {".GIT/x", ".gitmodules"}


async def test_empty_binary_and_large_files(project: Path) -> None:
    write(
        project,
        {
            "empty": b"",
            "binary": bytes(range(256)) * 9,
            "large": os.urandom(5 << 20),
            "filled": "x",
        },
    )
    await check_there_and_back(
        project,
        {"empty": "no more", "binary": b"\0", "large": None, "filled": b"", "new": b""},
    )


async def test_an_empty_project(plain: Path) -> None:
    await check_there_and_back(plain, {"a/b.txt": "b\n"})
    checkpoints = await opened(plain)
    before = await checkpoints.take("before")
    write(plain, {"a": None})
    assert (
        await restore(checkpoints, before, await checkpoints.take("after"))
    ).restored == ("a/b.txt",)


async def test_an_edit_in_the_same_moment_and_of_the_same_length_is_seen(
    project: Path,
) -> None:
    write(project, {"a.txt": "1\n"})
    before = await (await opened(project)).take("before")
    # git cannot tell by its times, and looks at it for that reason
    (project / "a.txt").write_text("2\n")
    time.sleep(1.1)
    checkpoints = await opened(project)
    assert [
        change.path
        for change in await checkpoints.changes(before, await checkpoints.take("after"))
    ] == ["a.txt"]


# Links, folders and permissions


def edit_links(root: Path) -> None:
    write(
        root,
        dict.fromkeys(
            (
                "file-to-link",
                "link-to-file",
                "folder-to-link",
                "link-to-folder",
                "other",
            )
        ),
    )
    write(root, {"file-to-folder": None, "folder-to-file": None})
    (root / "file-to-link").symlink_to("nowhere")
    (root / "folder-to-link").symlink_to("../outside")
    (root / "other").symlink_to("/")
    write(
        root,
        {
            "link-to-file": "file\n",
            "link-to-folder/x": "x\n",
            "file-to-folder/a/b": "b\n",
        },
    )
    write(root, {"folder-to-file": "file\n"})


@pytest.mark.parametrize("kind", ["project", "plain"])
async def test_files_folders_and_links_that_take_each_others_places(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    root = request.getfixturevalue(kind)
    write(tmp_path, {"outside/x": "not mine\n"})
    write(
        root,
        {
            "file-to-link": "1\n",
            "folder-to-link/x": "x\n",
            "file-to-folder": "1\n",
            "folder-to-file/a/b": "b\n",
        },
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
    assert state(tmp_path / "outside") == {
        "x": (oct((tmp_path / "outside/x").stat().st_mode & 0o777), b"not mine\n")
    }


async def test_nothing_is_written_or_removed_through_a_link_that_a_person_made(
    project: Path, tmp_path: Path
) -> None:
    write(project, {"folder/changed": "1\n", "folder/deleted": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(
        project,
        {"folder/changed": "2\n", "folder/deleted": None, "folder/created": "2\n"},
    )
    after = await checkpoints.take("after")
    (project / "folder").rename(tmp_path / "moved")
    (project / "folder").symlink_to(tmp_path / "moved")
    was = state(tmp_path / "moved")

    assert await restore(checkpoints, before, after) == RestoreResult(
        (), ("folder/changed", "folder/deleted")
    )
    assert state(tmp_path / "moved") == was


async def test_permissions_come_back(project: Path) -> None:
    write(
        project,
        dict.fromkeys(
            ("deleted", "replaced", "opened", "closed", "run.sh", "stop.sh"), "1\n"
        ),
    )
    for name, mode in {
        "deleted": 0o600,
        "replaced": 0o640,
        "opened": 0o600,
        "stop.sh": 0o755,
    }.items():
        (project / name).chmod(mode)
    checkpoints = await opened(project)
    before, was = await checkpoints.take("before"), state(project)
    write(project, {"deleted": None, "replaced": "2\n", "closed": "1\n"})
    for name, mode in {
        "opened": 0o644,
        "closed": 0o600,
        "run.sh": 0o755,
        "stop.sh": 0o644,
    }.items():
        (project / name).chmod(mode)
    after, now = await checkpoints.take("after"), state(project)

    assert (await restore(checkpoints, before, after)).kept == ()
    assert state(project) == was
    await restore(checkpoints, after, before)
    assert state(project) == now


async def test_a_file_that_a_person_closed_meanwhile_stays_closed(
    project: Path,
) -> None:
    write(project, {"a.txt": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    (project / "a.txt").chmod(0o640)
    after = await checkpoints.take("after")
    (project / "a.txt").chmod(0o600)

    assert await restore(checkpoints, before, after) == RestoreResult((), ("a.txt",))
    assert (project / "a.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name == "nt", reason="there are none")
async def test_pipes_and_sockets_are_no_files(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    write(
        project,
        {
            "file": "1\n",
            "folder/x": "1\n",
            "later": "1\n",
            "later-folder/x": "1\n",
            "a.txt": "1\n",
        },
    )
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
    assert sorted(state_names(project)) == [
        "a.txt",
        "file",
        "folder/x",
        "later",
        "later-folder/x",
    ]


def state_names(root: Path) -> list[str]:
    found = (
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if not path.is_dir()
    )
    return [path for path in found if not path.startswith((".git/", ".cdd/"))]


# Taking back, and what a person does meanwhile


async def test_what_a_person_changed_since_is_kept_and_named(project: Path) -> None:
    names = ("changed", "deleted", IN_THE_WAY, "only-mine", "theirs", "not-theirs")
    write(project, dict.fromkeys(names, "1\n"))
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(
        project,
        {
            **dict.fromkeys(names, "2\n"),
            IN_THE_WAY: None,
            "not-theirs": "1\n",
            "new": "2\n",
            "gone": "2\n",
        },
    )
    after = await checkpoints.take("after")
    write(
        project,
        {
            "changed": "3\n",
            "deleted": None,
            f"{IN_THE_WAY}/mine": "3\n",
            "not-theirs": "3\n",
            "new": "3\n",
        },
    )
    write(project, {"gone": None, "only-theirs": "3\n"})

    taken = await restore(checkpoints, before, after)
    assert taken == RestoreResult(
        ("only-mine", "theirs"), ("changed", "deleted", IN_THE_WAY, "new")
    )
    assert await restore(checkpoints, before, after) == RestoreResult((), taken.kept)
    texts = {name: (project / name).read_text() for name in state(project)}
    assert texts == dict.fromkeys(
        ("changed", f"{IN_THE_WAY}/mine", "not-theirs", "new", "only-theirs"), "3\n"
    ) | dict.fromkeys(("only-mine", "theirs"), "1\n")

    redone = await restore(checkpoints, after, before)
    assert redone == RestoreResult(
        ("gone", "only-mine", "theirs"), ("changed", "deleted", "new")
    )


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

    assert await restore(checkpoints, before, after) == RestoreResult(
        ("a", "b", "b/link")
    )
    assert sorted(state(project)) == ["a", "b"]


async def test_a_folder_of_a_persons_in_a_files_place_keeps_all_that_is_in_it(
    project: Path,
) -> None:
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
        {
            "file-to-link": "1\n",
            "folder-to-link/x": "x\n",
            "file-to-folder": "1\n",
            "folder-to-file/a/b": "b\n",
        },
    )
    checkpoints = await opened(project)
    before, was = await checkpoints.take("before"), state(project)
    edit_links(project)
    after = await checkpoints.take("after")

    writes = 0

    def cut_at_second(original: Callable[..., None]) -> Callable[..., None]:
        def write_or_stop(*arguments: Any) -> None:
            nonlocal writes
            writes += 1
            if writes > 1:
                raise KeyboardInterrupt
            original(*arguments)

        return write_or_stop

    with monkeypatch.context() as patch:
        for name in ("remove", "put_link", "put_file"):
            patch.setattr(restoring, name, cut_at_second(getattr(restoring, name)))
        for _ in range(5):
            writes = 0
            with pytest.raises(KeyboardInterrupt):
                await restore(checkpoints, before, after)

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
    kept = project.with_name("kept")
    kept.mkdir()
    (kept / torn.name).write_text("half a f")

    await checkpoints.restore(await checkpoints.changes(before, after), kept)
    assert sorted(state(project)) == ["a.txt"]
    assert sorted(state(kept)) == ["a.txt"]
