"""Find the environments of a Python project, and run commands in them. Nothing is
installed or created.

Environments in the project come first: in the command's folder, then in the folders
around it. If there is none, cdd asks the tool that keeps it elsewhere (poetry, hatch:
about a second). Those of tox and nox come last.
"""

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from cdd_agent.files.manifests import Manifests, ManifestUnreadable, section
from cdd_agent.process.programs import IS_WINDOWS, find_program, is_program
from cdd_agent.process.run import run_command
from cdd_agent.threads import waited_for

OWN_PROGRAMS = ("pytest", "python", "python3")
"""Programs that mean those of the project's environment."""
_IN_PROJECT = (".venv", "venv", ".pixi/envs/default")
_OF_TEST_TOOLS = (".tox", ".nox")
_ANSWER_SECONDS = 10.0
_KEPT_SECONDS = 10
"""Seconds for which a tool's answer is reused. A step needs it several times."""


class _EnvironmentTool(Struct, frozen=True):
    name: str
    files: tuple[str, ...]
    questions: tuple[tuple[str, ...], ...] = ()
    """Arguments that print the places of environments, one a line, without creating
    any.
    """


_TOOLS = (
    _EnvironmentTool(
        "poetry", ("poetry.lock", "poetry.toml"), (("env", "info", "-p"),)
    ),
    _EnvironmentTool("pipenv", ("Pipfile",), (("--venv",),)),
    _EnvironmentTool(
        "hatch", ("hatch.toml",), (("env", "find"), ("env", "find", "hatch-test"))
    ),
    _EnvironmentTool("pdm", ("pdm.lock", "pdm.toml")),
    _EnvironmentTool("uv", ("uv.lock", "uv.toml")),
)


def as_started(
    argv: Sequence[str], root: Path, folder: Path | None = None
) -> tuple[str, ...]:
    """Return the argv that starts a command in a folder of a project. The program
    becomes an absolute path if it exists.

    `pytest` and `python` come from the project's environment, else from the PATH, else
    from cdd's environment.
    """
    name, *rest = argv
    folder = folder or root
    if name == "pytest":
        return (*_pytest(root, folder), *rest)
    if name in OWN_PROGRAMS:  # many systems have only `python3`
        python = (
            own_python(root, folder)
            or find_program(name)
            or find_program("python3")
            or sys.executable
        )
        return (str(python), *rest)
    folders = [*own_folders(folder), *own_folders(root)]
    return (str(find_program(name, folders) or name), *rest)


def own_folders(root: Path) -> list[Path]:
    places = [_programs(root.absolute() / name) for name in _IN_PROJECT]
    return [place for place in places if place.is_dir()]


def own_python(root: Path, folder: Path | None = None) -> Path | None:
    for environment in _main_environments(root, folder or root):
        if python := _python(environment):
            return python
    return None


def activated(program: str) -> Mapping[str, str]:
    """Return the variables that activate the environment of a program, because tests
    start other programs from it.
    """
    folder = Path(program).parent
    environment = folder.parent
    is_own = str(environment) == sys.prefix
    if is_own or not (environment / "pyvenv.cfg").is_file():
        return {}
    path = os.pathsep.join((str(folder), *os.get_exec_path()))
    return {"VIRTUAL_ENV": str(environment), "PATH": path}


def pytest_environment(root: Path, folder: Path | None = None) -> Path | None:
    """Return the first environment of the project that has pytest."""
    folder = folder or root
    for environment in _main_environments(root, folder):
        if _has_pytest(environment):
            return environment
    for environment in _environments_of_test_tools(root, folder):
        if _has_pytest(environment) and not _has_copy_of_project(environment, folder):
            return environment
    return None


def _pytest(root: Path, folder: Path) -> tuple[str, ...]:
    environment = pytest_environment(root, folder)
    if environment is not None:
        return (str(_python(environment)), "-m", "pytest")
    elsewhere = find_program("pytest")
    if elsewhere:
        return (str(elsewhere),)
    return (sys.executable, "-m", "pytest")


def _main_environments(root: Path, folder: Path) -> Iterator[Path]:
    folders = _folders_to_root(root.absolute(), folder.absolute())
    for place in folders:
        for name in _IN_PROJECT:
            if (place / name).is_dir():
                yield place / name
    for place in _with_origins(folders):
        yield from _environments_elsewhere(place)


def _folders_to_root(root: Path, folder: Path) -> list[Path]:
    folders = [folder]
    while folders[-1] != root and root in folders[-1].parents:
        folders.append(folders[-1].parent)
    return folders


def _with_origins(folders: Sequence[Path]) -> list[Path]:
    """For a run in a separate tree (in the user's `.cdd`), add the same folders of the
    user's tree: environments outside version control exist only there.
    """
    root = folders[-1]
    for parent in root.parents:
        if parent.name == ".cdd":
            user_root = parent.parent
            origins = [user_root / folder.relative_to(root) for folder in folders]
            return [*folders, *origins]
    return [*folders]


def _environments_elsewhere(folder: Path) -> Iterator[Path]:
    chosen = Manifests(folder).data(".pdm-python").decode("utf-8", errors="replace")
    if chosen.strip() and is_program(Path(chosen.strip())):
        yield Path(chosen.strip()).parent.parent
    for tool in _tools_of(folder):
        program = find_program(tool.name)
        for question in tool.questions if program else ():
            words = (str(program), *question)
            answer = _ask(words, folder, int(time.monotonic() / _KEPT_SECONDS))
            yield from (Path(line) for line in answer if Path(line).is_dir())


def environment_tools(root: Path) -> tuple[str, ...]:
    """Return the tools that keep the project's environment and can run its tests:
    `poetry run pytest`.
    """
    return tuple(tool.name for tool in _tools_of(root))


def _tools_of(folder: Path) -> list[_EnvironmentTool]:
    manifests = Manifests(folder)
    try:
        tools = section(manifests.content("pyproject.toml"), "tool")
    except ManifestUnreadable:
        tools = {}
    return [tool for tool in _TOOLS if tool.name in tools or manifests.has(*tool.files)]


@lru_cache(16)
def _ask(words: tuple[str, ...], folder: Path, period: int) -> tuple[str, ...]:
    del period
    result = waited_for(run_command(words, cwd=folder, limit=_ANSWER_SECONDS))
    if result.return_code:
        return ()
    lines = [line.strip() for line in result.stdout.splitlines()]
    return tuple(line for line in lines if Path(line).is_absolute())


def _environments_of_test_tools(root: Path, folder: Path) -> Iterator[Path]:
    folders = _folders_to_root(root.absolute(), folder.absolute())
    for place in _with_origins(folders):
        for name in _OF_TEST_TOOLS:
            yield from sorted(
                (place / name).glob("*/"), key=_python_version, reverse=True
            )


def _python_version(environment: Path) -> tuple[int, ...]:
    for packages in environment.glob("lib/python*"):
        return tuple(int(number) for number in re.findall(r"\d+", packages.name))
    return ()


def _has_copy_of_project(environment: Path, folder: Path) -> bool:
    """True if the environment has a copy of a package in `src`. Tests would import the
    copy instead of the files that a step changes.
    """
    sources = {entry.name for entry in folder.glob("src/*") if entry.suffix != ".pth"}
    packages = environment.glob("lib/python*/site-packages/*")
    return any(entry.name in sources for entry in packages)


def _has_pytest(environment: Path) -> bool:
    if _python(environment) is None:
        return False
    return any(_programs(environment).glob("pytest*"))


def _python(environment: Path) -> Path | None:
    name = "python.exe" if IS_WINDOWS else "python"
    python = _programs(environment) / name
    return python if python.exists() else None


def _programs(environment: Path) -> Path:
    return environment / ("Scripts" if IS_WINDOWS else "bin")
