"""The environments that the real tools make are found, and their pytest runs."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from cdd_agent.process.environments import as_started, pytest_environment
from cdd_agent.process.policy import CommandRunner

pytestmark = pytest.mark.real

PROJECT = '[project]\nname = "shop"\nversion = "0.1"\nrequires-python = ">=3.11"\n'
NOX = """\
import nox

@nox.session
def tests(session):
    session.install("pytest")
"""
HERE = dict(os.environ)
"""Before tests get a home of their own: the tools are on the real PATH."""


@pytest.mark.parametrize(
    ("tool", "files", "commands"),
    [
        (
            "poetry",
            {"pyproject.toml": f"{PROJECT}[tool.poetry]\npackage-mode = false\n"},
            ["poetry env use python3", "poetry run python -m pip install pytest"],
        ),
        (
            "pipenv",
            {"Pipfile": "[packages]\n"},
            ["pipenv --python 3 run python -m pip install pytest"],
        ),
        (
            "hatch",
            {
                "pyproject.toml": (
                    f"{PROJECT}[tool.hatch.envs.default]\nskip-install = true\n"
                    'dependencies = ["pytest"]\n'
                )
            },
            ["hatch env create"],
        ),
        (
            "pdm",
            {"pyproject.toml": PROJECT},
            ["pdm venv create --with-pip", "pdm run python -m pip install pytest"],
        ),
        (
            "uv",
            {"pyproject.toml": f'{PROJECT}[dependency-groups]\ndev = ["pytest"]\n'},
            ["uv sync"],
        ),
        (
            "tox",
            {"tox.ini": "[testenv]\nskip_install = true\ndeps = pytest\n"},
            ["tox run -e py --notest"],
        ),
        ("nox", {"noxfile.py": NOX}, ["nox -s tests"]),
    ],
)
async def test_pytest_runs_in_the_environment_of_the_tool(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    files: dict[str, str],
    commands: Sequence[str],
) -> None:
    if shutil.which(tool, path=HERE["PATH"]) is None:
        pytest.skip(f"{tool} is not installed")
    monkeypatch.setenv("PATH", HERE["PATH"])
    root = tmp_path / "shop"
    root.mkdir()
    test = "import sys\n\ndef test_it():\n    print('PREFIX', sys.prefix)\n"
    for name, text in {**files, "test_it.py": test}.items():
        (root / name).write_text(text)
    for command in commands:
        done = subprocess.run(command.split(), cwd=root, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    found = pytest_environment(root)
    assert found is not None
    assert as_started(["pytest"], root)[0].startswith(str(found))
    judged = CommandRunner(root).judge("pytest -s")
    result = await CommandRunner(root).start(judged, limit=60)
    assert f"PREFIX {found.resolve()}" in result.stdout
