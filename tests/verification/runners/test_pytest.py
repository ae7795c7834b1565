"""Pytest is made to tell of each test, whatever a project's settings say, and its ids
are the same from run to run.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from cdd_agent.process.run import CommandResult
from cdd_agent.verification.outcomes import Result, Selection, SuiteRun
from cdd_agent.verification.runner import Reported, ReportUnreadable
from cdd_agent.verification.runners.pytest import Pytest
from tests.support.tables import each_row

RUNNER = Pytest()
PYTEST = ("pytest", "-q", "-p", "no:cacheprovider")


def files(root: Path, contents: dict[str, str]) -> Path:
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def ran(root: Path, *words: str, **env: str) -> SuiteRun:
    """The report of real pytest."""
    folder = Path(tempfile.mkdtemp(dir=root.parent))
    argv = [*PYTEST, *words]
    subprocess.run(
        RUNNER.reporting(argv, folder / "report").argv,
        cwd=root,
        env={**os.environ, **env},
        capture_output=True,
        timeout=60,
    )
    return read_back(folder, argv, root)


def read_back(folder: Path, argv: Sequence[str], root: Path) -> SuiteRun:
    return RUNNER.read(
        Reported(folder, CommandResult("", "", 0)), RUNNER.selection(argv, root), root
    )


@each_row(
    "command",
    [
        "pytest",
        "/x/.venv/bin/pytest -q tests",
        "py.test",
        "pytest.exe",
        "python -m pytest",
        "/usr/bin/python3.12 -X dev -m pytest tests",
        "python /x/bin/pytest",
        "poetry run pytest -q",
        "uv run --with x pytest",
        "poetry run python -m pytest",
        "coverage run -m pytest",
        "timeout 60 pytest",
    ],
)
def test_pytest_is_known(command: str) -> None:
    assert RUNNER.recognises(command.split())


@each_row(
    "command",
    [
        "npm test",
        "make pytest",
        "cat pytest",
        "python run.py pytest",
        "python -m unittest",
        "docker compose run app pytest",  # its files are elsewhere
        "docker run image pytest",
        "tox -e py -- pytest",
        "",
    ],
)
def test_what_only_names_pytest_is_not(command: str) -> None:
    assert not RUNNER.recognises(command.split())


@each_row(
    ("words", "paths", "options"),
    [
        ("", (), ()),
        (
            (
                "-q -vv -x -rA --tb=short --tb short -n 4 -n4 --maxfail 3 --durations=5"
                " --cov --cov-report=xml"
            ),
            (),
            (),
        ),
        ("--junitxml=own.xml --junit-xml other.xml --color=yes", (), ()),
        ("tests", ("tests",), ()),
        ("./tests/ tests/test_a.py", ("tests", "tests/test_a.py"), ()),
        (
            "tests/test_a.py::TestK::test_x[a/b]",
            ("tests/test_a.py::TestK::test_x[a/b]",),
            (),
        ),
        ("{root}/tests/test_a.py", ("tests/test_a.py",), ()),
        (".", (".",), ()),
        ("-k tests -m slow", (), ("-k tests", "-m slow")),
        ("-m slow -k tests", (), ("-k tests", "-m slow")),
        ("--lf tests", ("tests",), ("--lf",)),
        (
            "-W error --runslow --ds settings",
            (),
            ("--ds", "--runslow", "-W error", "settings"),
        ),
        ("-q -- tests", ("tests",), ()),
        ("nowhere/test_a.py", (), ("nowhere/test_a.py",)),
    ],
)
def test_what_a_command_selects(
    tmp_path: Path, words: str, paths: tuple[str, ...], options: tuple[str, ...]
) -> None:
    files(tmp_path, {"tests/test_a.py": ""})
    argv = ["python", "-m", "pytest", *words.format(root=tmp_path).split()]
    assert RUNNER.selection(argv, tmp_path) == Selection(paths, options)


def test_the_words_for_the_report_come_last_but_before_names_alone() -> None:
    last = RUNNER.reporting(["pytest", "-q", "--junitxml=own.xml"], Path("r.xml")).argv
    assert last[:3] == ("pytest", "-q", "--junitxml=own.xml")
    assert last[-1] == "--junitxml=r.xml"
    assert RUNNER.reporting(["pytest", "--", "tests"], Path("r.xml")).argv[-2:] == (
        "--",
        "tests",
    )


def test_where_the_report_is_is_not_told() -> None:
    file = Path("/tmp/x (1)/report")
    assert RUNNER.shown(f"------ generated xml file: {file} -------\n", file) == ""
    for line in ("..\n", "--- 2 passed ---\n", f"see {file}\n", "no end -", "--"):
        assert RUNNER.shown(line, file) == line


TESTS = """\
import pytest, unittest
from base import Base

class TestK:
    @pytest.mark.parametrize("x", ["a/b", "c::d", "e[f]", "\\x1b", "é.py", ""])
    def test_p(self, x): pass

class TestInherits(Base): pass

class TestUnit(unittest.TestCase):
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i): assert i != 1
    def test_exit(self): raise SystemExit(0)

@pytest.fixture
def bad():
    yield
    raise RuntimeError

def test_teardown(bad): pass
@pytest.mark.skip
def test_skip(): pass
@pytest.mark.xfail
def test_xfail(): assert 0
@pytest.mark.xfail
def test_xpass(): pass
@pytest.mark.xfail(strict=True)
def test_xpass_strict(): pass
"""
FAILED = ("test_sub", "test_exit", "test_teardown", "test_xpass_strict")
SETTINGS = """\
[pytest]
addopts = -x --maxfail=1 --junitxml=own.xml -o junit_family=xunit2
    --strict-config --strict-markers
junit_logging = all
"""


@pytest.mark.story
def test_the_ids_are_those_that_pytest_prints(tmp_path: Path) -> None:
    root = files(
        tmp_path / "p",
        {
            "tests/sub/test_a.py": TESTS,
            "tests/sub/base.py": "class Base:\n    def test_inherited(self): pass\n",
            "tests/test_broken.py": "import nothing_here\n",
            "tests/test_whole.py": (
                "import pytest\npytest.skip('no', allow_module_level=True)\n"
            ),
            "pytest.ini": SETTINGS,
        },
    )
    listed = subprocess.run(
        [*PYTEST, "--collect-only", "--maxfail=0"],
        cwd=root,
        capture_output=True,
        text=True,
    ).stdout
    tests = set(re.findall(r"^\S+::.+$", listed, re.MULTILINE))
    run = ran(root)
    assert {test for test in run.results if "::" in test} == tests
    assert run.results["tests/test_broken.py"] is Result.FAILED
    assert run.results["tests/test_whole.py"] is Result.SKIPPED
    assert {
        test.rpartition("::")[2] for test in run.having(Result.FAILED) if "::" in test
    } == set(FAILED)
    assert {
        test.rpartition("::")[2] for test in run.having(Result.SKIPPED) if "::" in test
    } == {
        "test_skip",
        "test_xfail",
    }
    assert "ModuleNotFoundError" in run.texts["tests/test_broken.py"]
    assert run.is_finished


@pytest.mark.story
def test_with_workers_the_ids_are_the_same(tmp_path: Path) -> None:
    root = files(
        tmp_path / "p",
        {
            "tests/test_a.py": (
                "class TestK:\n    def test_x(self): pass\ndef test_y(): assert 0\n"
            )
        },
    )
    alone = ran(root).results
    assert len(alone) == 2
    assert ran(root, "-p", "xdist", "-n", "1", PYTEST_ADDOPTS="-x").results == alone


@pytest.mark.story
@each_row(
    ("settings", "root", "words"),
    [
        ("pytest.ini", ".", ["pkg/tests"]),
        ("pkg/pytest.ini", ".", ["pkg/tests"]),
        ("pkg/pytest.ini", ".", ["pkg/tests/test_a.py"]),
        ("pytest.ini", "pkg", []),
        ("pytest.ini", "pkg", ["tests"]),
    ],
)
def test_ids_start_at_the_projects_root_also_where_pytests_own_is_elsewhere(
    tmp_path: Path, settings: str, root: str, words: list[str]
) -> None:
    files(
        tmp_path,
        {
            settings: "[pytest]\n",
            "pkg/tests/test_a.py": "def test_x(): pass\n",
            "tests/test_a.py": "",
        },
    )
    expected = (
        "pkg/tests/test_a.py::test_x" if root == "." else "tests/test_a.py::test_x"
    )
    assert set(ran(tmp_path / root, *words).results) == {expected}


def test_without_a_report_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(ReportUnreadable):
        read_back(tmp_path, PYTEST, tmp_path)


def test_a_huge_report_is_not_read(tmp_path: Path) -> None:
    huge = tmp_path / "report"
    with huge.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(ReportUnreadable, match="larger"):
        read_back(tmp_path, PYTEST, tmp_path)
