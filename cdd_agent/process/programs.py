"""Which program a command's first word means in a project, looked up before the
command's own variables hold.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from cdd_agent.files.manifests import Manifests, ManifestUnreadable, section

OWN_PROGRAMS = ("pytest", "python", "python3")
"""These mean the project's own, wherever its environment is."""
_OWN_ENVIRONMENTS = (".venv", "venv")
_WINDOWS = os.name == "nt"


def find_program(name: str, first: Sequence[Path] = ()) -> Path | None:
    """Where a program of this name is: in one of the folders `first`, or on this
    process's own PATH.

    Only absolute folders count: one such as `.` would mean another program in each
    folder.
    """
    if Path(name).name != name:
        return None
    on_path = _absolute(tuple(os.get_exec_path()))
    endings = [""]
    if _WINDOWS:
        known = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";")
        endings = [""] if Path(name).suffix.upper() in known else known
    files = (
        folder / f"{name}{ending}"
        for folder in (*first, *on_path)
        for ending in endings
    )
    return next((file for file in files if _is_program(file)), None)


def as_started(argv: Sequence[str], root: Path) -> tuple[str, ...]:
    """The words that start a command in a project, with the program's absolute path
    where there is such a program.

    `pytest` and `python` are the project's own environment's; else those on the PATH;
    else this program's own.
    """
    name, *rest = argv
    if name == "pytest":
        return (*_pytest(root), *rest)
    if name in OWN_PROGRAMS:  # many systems have only `python3`
        python = (
            own_python(root)
            or find_program(name)
            or find_program("python3")
            or sys.executable
        )
        return (str(python), *rest)
    return (_found(name, root) or name, *rest)


def own_folders(root: Path) -> list[Path]:
    """Where the project's own environment keeps its programs; it need not have one."""
    inside = "Scripts" if _WINDOWS else "bin"
    return [
        folder
        for name in _OWN_ENVIRONMENTS
        if (folder := root.absolute() / name / inside).is_dir()
    ]


def own_python(root: Path) -> Path | None:
    """The Python of the project's own environment."""
    name = "python.exe" if _WINDOWS else "python"
    return next(
        (folder / name for folder in own_folders(root) if (folder / name).exists()),
        None,
    )


def _found(name: str, root: Path) -> str | None:
    found = find_program(name, own_folders(root))
    return str(found) if found else None


def _pytest(root: Path) -> tuple[str, ...]:
    """How pytest is run in this project: its own environment first, this program's own
    as the last resort.
    """
    manifests, uses_poetry = Manifests(root), False
    with contextlib.suppress(ManifestUnreadable):
        uses_poetry = manifests.has("poetry.lock") or "poetry" in section(
            manifests.content("pyproject.toml"), "tool"
        )
    if uses_poetry and (poetry := _found("poetry", root)):
        return (poetry, "run", "pytest")
    if manifests.has("uv.lock") and (uv := _found("uv", root)):
        return (uv, "run", "pytest")
    own = own_python(root)
    if own and any(own.parent.glob("pytest*")):
        return (str(own), "-m", "pytest")
    elsewhere = find_program("pytest")
    return (str(elsewhere),) if elsewhere else (sys.executable, "-m", "pytest")


@lru_cache(8)
def _absolute(path: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(folder for folder in map(Path, path) if folder.is_absolute())


def _is_program(file: Path) -> bool:
    try:
        return file.is_file() and os.access(file, os.X_OK)
    except (OSError, ValueError):  # a name that no disk can hold
        return False
