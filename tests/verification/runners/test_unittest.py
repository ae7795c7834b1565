"""Python's unittest is made to tell of each test, as `python -m unittest` runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

from cdd_agent.process.run import CommandResult
from cdd_agent.verification.outcomes import Result, Selection, SuiteRun
from cdd_agent.verification.runner import Reported, ReportUnreadable
from cdd_agent.verification.runners.unittest import Unittest
from tests.support.tables import each_row

RUNNER = Unittest()
TESTS = """\
import unittest
from tests.base import Base

class TestK(unittest.TestCase):
    def test_ok(self):
        "Words that are shown instead of its name."
        print("noise\\\\n... ok")
    def test_bad(self): self.assertEqual(1, 2)
    def test_error(self): raise RuntimeError
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
    @unittest.skip("no")
    def test_skip(self): pass
    @unittest.expectedFailure
    def test_xfail(self): self.fail()
    @unittest.expectedFailure
    def test_xpass(self): pass
    def test_exit(self): raise SystemExit(0)

class TestInherits(Base, unittest.TestCase): pass

class TestSetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError("set-up")
    def test_x(self): pass

class TestSkippedSetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no")
    def test_x(self): pass
"""
FILES = {
    "tests/__init__.py": "",
    "tests/base.py": "class Base:\n    def test_inherited(self): pass\n",
    "tests/test_a.py": TESTS,
    "tests/test_broken.py": "import nothing_here\n",
}
A = "tests/test_a.py"
SEEN = {
    f"{A}::TestK::test_ok": Result.PASSED,
    f"{A}::TestK::test_bad": Result.FAILED,
    f"{A}::TestK::test_error": Result.FAILED,
    f"{A}::TestK::test_sub": Result.FAILED,
    f"{A}::TestK::test_skip": Result.SKIPPED,
    f"{A}::TestK::test_xfail": Result.SKIPPED,
    f"{A}::TestK::test_xpass": Result.FAILED,
    f"{A}::TestK::test_exit": Result.FAILED,
    f"{A}::TestInherits::test_inherited": Result.PASSED,
    f"{A}::TestSetUp": Result.FAILED,
    f"{A}::TestSkippedSetUp": Result.SKIPPED,
    "tests/test_broken.py": Result.FAILED,
}


def written(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def ran(root: Path, *words: str) -> SuiteRun:
    argv = [sys.executable, "-m", "unittest", *words]
    report = root.parent / "report"
    reporting = RUNNER.reporting(argv, report)
    assert reporting
    plain = subprocess.run(argv, cwd=root, capture_output=True, timeout=60).returncode
    assert (
        subprocess.run(
            reporting.argv, cwd=root, capture_output=True, timeout=60
        ).returncode
        == plain
    )
    return RUNNER.read(
        Reported(root.parent, CommandResult("", "", plain)),
        RUNNER.selection(argv, root),
        root,
    )


@each_row(
    "words", ["", "-f -b", "discover -s tests -t .", "tests.test_a tests.test_broken"]
)
def test_each_test_is_known_however_it_is_found(tmp_path: Path, words: str) -> None:
    run = ran(written(tmp_path / "p", FILES), *words.split())
    assert run.results == SEEN
    assert "set-up" in run.texts[f"{A}::TestSetUp"]
    assert "nothing_here" in run.texts["tests/test_broken.py"]
    assert run.is_finished


def test_a_test_that_ends_the_program_leaves_a_report_without_an_end(
    tmp_path: Path,
) -> None:
    tests = "    def test_a(self): pass\n    def test_b(self): os._exit(0)\n"
    text = f"import os, unittest\nclass T(unittest.TestCase):\n{tests}"
    run = ran(written(tmp_path / "p", {"test_x.py": text}))
    assert run.results == {"test_x.py::T::test_a": Result.PASSED}
    assert not run.is_finished


def test_a_module_that_ends_the_program_leaves_none(tmp_path: Path) -> None:
    with pytest.raises(ReportUnreadable):
        ran(written(tmp_path / "p", {"test_x.py": "import os\nos._exit(0)\n"}))


def test_modules_come_from_the_project_and_not_from_where_our_program_is(
    tmp_path: Path,
) -> None:
    text = (
        "import unittest, helper\n"
        "class T(unittest.TestCase):\n"
        "    def test_a(self): pass\n"
    )
    files = {"helper.py": "x = 1\n", "test_x.py": text}
    assert ran(written(tmp_path / "p", files)).results == {
        "test_x.py::T::test_a": Result.PASSED
    }


@each_row(
    ("command", "known"),
    [
        ("python -m unittest", True),
        ("/x/python3.12 -X dev -m unittest -v", True),
        ("coverage run -m unittest discover", True),
        ("poetry run python -m unittest", True),
        ("python unittest", False),
        ("python run.py unittest", False),
        ("docker run x python -m unittest", False),
        ("", False),
    ],
)
def test_unittest_is_known(command: str, known: bool) -> None:
    assert RUNNER.recognises(command.split()) is known


def test_what_a_command_selects(tmp_path: Path) -> None:
    written(tmp_path, {"tests/test_a.py": ""})
    argv = [
        "python",
        "-m",
        "unittest",
        "-v",
        "tests/test_a.py",
        "-s",
        "tests",
        "tests.test_a",
    ]
    assert RUNNER.selection(argv, tmp_path) == Selection(
        ("tests/test_a.py",), ("-s tests", "tests.test_a")
    )
