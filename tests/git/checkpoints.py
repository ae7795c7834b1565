"""Checkpoints of a project, and all that is in its folder, for tests."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cdd_agent.git.checkpoint import Checkpoint, Checkpoints
from cdd_agent.git.restore import RestoreResult

Files = dict[str, str | bytes | None]


async def opened(root: Path, ticket: str = "login") -> Checkpoints:
    return await Checkpoints.open(
        root, root / ".cdd" / "runs" / ticket, ticket, (".cdd/runs",)
    )


def counting_git(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[str]]:
    """From now on the git processes that this one starts are counted: a function that
    says which commands they are.
    """
    folder.mkdir()
    log, program = folder / "log", folder / "git"
    program.write_text(
        f'#!/bin/sh\necho "$@" >>{log}\nexec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return lambda: re.findall(
        r"^(?:-c \S+ |--\S+ )*(\S+)",
        log.read_text() if log.exists() else "",
        re.MULTILINE,
    )


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
        for name in [
            *files,
            *(name for name in folders if Path(folder, name).is_symlink()),
        ]:
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


async def restore(
    checkpoints: Checkpoints, before: Checkpoint, after: Checkpoint
) -> RestoreResult:
    """Take back what changed from `before` to `after`; with the two exchanged, do it
    again.
    """
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


def skip_where_all_is_allowed(root: Path) -> None:
    (root / "probe").touch(mode=0)
    is_allowed = os.access(root / "probe", os.R_OK)
    (root / "probe").unlink()
    if is_allowed:
        pytest.skip("root may do everything")
