"""Which environment the programs of a Python project come from."""

import os
import sys
from pathlib import Path

import pytest

from cdd_agent.process.environments import (
    activated,
    as_started,
    environment_tools,
    own_python,
    pytest_environment,
)
from cdd_agent.process.policy import CommandRunner
from tests.support.tables import each_row

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the fake programs are scripts")


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what the test makes there."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def program(file: Path, text: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def environment(folder: Path, *, has_pytest: bool = True, python: str = "3.11") -> Path:
    """Make an environment; its Python does nothing."""
    program(folder / "bin/python")
    (folder / f"lib/python{python}/site-packages").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("")
    if has_pytest:
        program(folder / "bin/pytest")
    return folder


def with_pytest(folder: Path) -> tuple[str, ...]:
    """The words that start pytest in an environment."""
    return (str(folder / "bin/python"), "-m", "pytest")


def test_the_nearest_environment_with_pytest_runs_it(
    root: Path, bare_path: Path
) -> None:
    def words() -> tuple[str, ...]:
        return as_started(("pytest",), root, root / "backend")

    (root / "backend").mkdir()
    assert words() == (sys.executable, "-m", "pytest")
    elsewhere = program(bare_path / "pytest")
    assert words() == (str(elsewhere),)
    assert words() == as_started(["pytest"], root)
    for place in (".nox/tests", "venv", "backend/.venv"):
        environment(root / place)
        assert words() == with_pytest(root / place)
    assert as_started(["pytest"], root) == with_pytest(root / "venv")
    # the same for every command, and the options stay
    judged = CommandRunner(root).judge("pytest -q", root / "backend")
    assert judged.argv == (*words(), "-q")


def test_an_environment_without_pytest_runs_python_alone(
    root: Path, bare_path: Path
) -> None:
    own = environment(root / ".venv", has_pytest=False)
    assert own_python(root) == own / "bin/python"
    assert as_started(["pytest"], root) == (sys.executable, "-m", "pytest")
    assert pytest_environment(root) is None
    assert as_started(["python", "x.py"], root) == (str(own / "bin/python"), "x.py")


@each_row(
    ("tool", "files"),
    [
        ("poetry", {"poetry.lock": ""}),
        ("poetry", {"pyproject.toml": "[tool.poetry]"}),
        ("pipenv", {"Pipfile": ""}),
        ("hatch", {"pyproject.toml": "[tool.hatch.envs.x]"}),
    ],
)
def test_the_tool_of_a_project_is_asked_for_its_environment(
    root: Path,
    bare_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    files: dict[str, str],
) -> None:
    monkeypatch.setenv("PATH", str(bare_path))  # each row has a copy
    for name, text in files.items():
        (root / name).write_text(text)
    place = environment(bare_path / "elsewhere")
    assert environment_tools(root) == (tool,)
    assert as_started(["pytest"], root)[0] == sys.executable
    program(bare_path / tool, f"echo a warning; echo {place}")
    assert as_started(["pytest"], root) == with_pytest(place)
    assert own_python(root) == place / "bin/python"
    # an environment in the project comes first, and nothing is asked
    program(bare_path / tool, "exit 1")
    own = environment(root / ".venv")
    assert as_started(["pytest"], root) == with_pytest(own)


def test_a_runs_own_tree_has_the_environments_of_the_users_tree(
    root: Path, bare_path: Path
) -> None:
    tree = root / ".cdd/runs/x/tree"
    (tree / "api").mkdir(parents=True)
    (tree / "api/poetry.lock").write_text("")
    (root / "api").mkdir()
    (root / "api/poetry.lock").write_text("")
    place = environment(bare_path / "elsewhere")
    program(bare_path / "poetry", f'test "$PWD" = {root}/api && echo {place}')
    assert as_started(["pytest"], tree, tree / "api") == with_pytest(place)
    assert as_started(["pytest"], tree)[0] == sys.executable
    own = environment(root / ".tox/py")
    assert as_started(["pytest"], tree) == with_pytest(own)


def test_a_tool_that_knows_no_environment_changes_nothing(
    root: Path, bare_path: Path
) -> None:
    (root / "poetry.lock").write_text("")
    for text in ("exit 1", "echo /no/such/folder", "echo", "echo x >&2; exit 3"):
        program(bare_path / "poetry", text)
        assert as_started(["pytest"], root) == (sys.executable, "-m", "pytest")


def test_pdm_names_its_python_in_a_file(root: Path, bare_path: Path) -> None:
    place = environment(bare_path.parent / "elsewhere")
    (root / ".pdm-python").write_text(f"{place}/bin/python\n")
    assert as_started(["pytest"], root) == with_pytest(place)
    (root / ".pdm-python").write_text("/no/such/python")
    assert as_started(["pytest"], root)[0] == sys.executable


def test_of_toxs_environments_the_newest_python_without_a_copy_runs_the_tests(
    root: Path, bare_path: Path
) -> None:
    old = environment(root / ".tox/py39", python="3.9")
    assert as_started(["pytest"], root) == with_pytest(old)
    new = environment(root / ".tox/django", python="3.13")
    environment(root / ".tox/.pkg", has_pytest=False, python="3.14")
    assert as_started(["pytest"], root) == with_pytest(new)
    # tests would import the copy, and a step's change would have no effect
    (root / "src/shop").mkdir(parents=True)
    (new / "lib/python3.13/site-packages/shop").mkdir()
    assert as_started(["pytest"], root) == with_pytest(old)


def test_a_program_of_an_environment_runs_as_if_it_was_activated(
    root: Path, bare_path: Path
) -> None:
    own = environment(root / ".venv")
    variables = activated(str(own / "bin/python"))
    assert variables["VIRTUAL_ENV"] == str(own)
    assert variables["PATH"].split(os.pathsep) == [str(own / "bin"), str(bare_path)]
    assert activated(sys.executable) == {}
    assert activated("pytest") == activated(str(program(bare_path / "pytest"))) == {}
