"""Runners of tests that other packages add."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest

from cdd_agent.process.run import CommandResult
from cdd_agent.verification.invocation import invocation
from cdd_agent.verification.outcomes import Result
from cdd_agent.verification.runner import Reported, ReportUnreadable, whole
from cdd_agent.verification.runners import added, all_runners
from tests.support.commandline import STEPS, cdd
from tests.support.packages import read_example, write_package
from tests.support.projects import Sandbox
from tests.support.tables import each_row

HEAD = """\
from pathlib import Path, PurePosixPath
from cdd_agent.verification.outcomes import Result, Results, Selection, SuiteRun
from cdd_agent.verification.runner import Reporting, TestRunner
class Runner(TestRunner):
    name = "shrimp"
    ends_with = frozenset((0,))
    def place(self, argv): return 0 if argv[:1] == ("shrimp",) else None
    def reporting(self, argv, report): return Reporting(argv)
    def selection(self, argv, root): return Selection()
    def read(self, reported, selection, root): return SuiteRun()
"""
Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with a module that has a class `Runner`."""
    folder = tmp_path / "site"
    write_package(folder, "cdd_agent.test_runners", "shrimp = shrimp_runner:Runner")
    monkeypatch.syspath_prepend(str(folder))

    def write(text: str) -> None:
        (folder / "shrimp_runner.py").write_text(text)
        forget()

    yield write
    monkeypatch.undo()
    forget()


def forget() -> None:
    sys.modules.pop("shrimp_runner", None)
    all_runners.cache_clear()
    added.left_out.clear()


def test_the_runner_of_the_page_reads_what_bats_writes(
    tmp_path: Path, install: Install
) -> None:
    install(f"{read_example('A test runner')}\nRunner = Bats\n")
    tests = invocation(["/usr/bin/bats", "test"], tmp_path)
    assert tests
    reporting = tests.reporting(tmp_path / "report")
    assert reporting
    assert reporting.argv[-1] == str(tmp_path)
    (tmp_path / "report.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites time="0.02">\n'
        '<testsuite name="calc.bats" tests="2" failures="1" errors="0" skipped="0">\n'
        '<testcase classname="calc.bats" name="adds" time="0.01" />\n'
        '<testcase classname="calc.bats" name="subtracts" time="0.01">\n'
        '<failure type="failure">(in test file calc.bats, line 7)</failure>\n'
        "</testcase></testsuite></testsuites>"
    )
    run = tests.read(Reported(tmp_path, CommandResult("", "", 1)))
    assert run.results == {
        "calc.bats::adds": Result.PASSED,
        "calc.bats::subtracts": Result.FAILED,
    }
    assert added.left_out == {}


@each_row(
    "fault",
    [
        "raise RuntimeError('no')",
        "import nothing_here",
        "Runner = 3",
        "Runner = object",
        "class Runner(TestRunner): pass",
        "Runner.name = 3",
        "del Runner.name",
        "Runner.ends_with = ['0']",
        "Runner.__init__ = lambda self, more: None",
        "Runner.place = lambda self, argv: 1 / 0",
        "Runner.place = lambda self, argv: 'shrimp'",
        "Runner.place = lambda self, argv: 7",
    ],
)
def test_a_runner_that_cannot_be_used_is_named_and_left_out(
    install: Install, fault: str
) -> None:
    install(f"{HEAD}\n{fault}\n")
    assert invocation(["shrimp"], Path()) is None
    assert list(added.left_out) == ["shrimp of shrimp-tests"]
    assert invocation(["pytest"], Path())


@each_row(
    "fault",
    [
        "Runner.reporting = lambda self, argv, report: ['shrimp']",
        "Runner.reporting = lambda self, argv, report: Reporting((1,))",
        "Runner.reporting = lambda self, argv, report: 1 / 0",
    ],
)
def test_a_runner_that_makes_no_command_is_left_out(
    install: Install, fault: str
) -> None:
    install(f"{HEAD}\n{fault}\n")
    tests = invocation(["shrimp"], Path())
    assert tests
    assert tests.reporting(Path("/r/report")) is None
    assert "shrimp of shrimp-tests" in added.left_out
    assert invocation(["shrimp"], Path()) is None


@each_row(
    "read",
    [
        "1 / 0",
        "None",
        "SuiteRun(results={'a': 'passed'})",
        "SuiteRun(results={1: Result.PASSED})",
        "SuiteRun(results=None)",
        "Path('/nothing/here').read_text()",
    ],
)
def test_a_report_that_a_runner_cannot_read_is_unreadable(
    install: Install, tmp_path: Path, read: str
) -> None:
    install(f"{HEAD}\nRunner.read = lambda self, *all: {read}\n")
    tests = invocation(["shrimp"], Path())
    assert tests
    with pytest.raises(ReportUnreadable, match="shrimp of shrimp-tests"):
        tests.read(Reported(tmp_path, CommandResult("", "", 0)))
    assert "shrimp of shrimp-tests" in added.left_out


def test_other_faults_of_a_runner_end_nothing(install: Install) -> None:
    install(
        f"{HEAD}\n"
        "Runner.selection = lambda self, argv, root: 3\n"
        "Runner.shown = lambda self, line, report: 3\n"
        "Runner.what_matters = lambda self, path: lambda text: 1 / 0\n"
    )
    tests = invocation(["shrimp"], Path())
    assert tests
    assert tests.selection.options == ("shrimp",)
    assert tests.shown("line", Path()) == "line"
    matters = tests.what_matters(PurePosixPath("a"))
    assert matters
    assert matters is not whole
    assert matters("a") != matters("a")


def test_doctor_names_a_runner_that_is_left_out(
    sandbox: Sandbox, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox.write(STEPS[0])
    install("raise RuntimeError('broken')")
    cdd(sandbox, "doctor")
    lines = capsys.readouterr().out.splitlines()
    assert any("shrimp of shrimp-tests" in line and "broken" in line for line in lines)
