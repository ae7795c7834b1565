"""Pytest behind make, tox, nox and the like."""

from pathlib import Path, PurePosixPath

import pytest

from cdd_agent.changes.change_set import FileChange
from cdd_agent.process.run import CommandResult
from cdd_agent.verification.harness import changes_of_harness
from cdd_agent.verification.invocation import invocation
from cdd_agent.verification.outcomes import Result, SuiteRun
from cdd_agent.verification.runner import Reported, ReportUnreadable
from tests.support.tables import each_row

SUMMARY = "===== 1 passed, 1 warning in 0.12s =====\n"


def write_report(folder: Path, name: str, test: str) -> None:
    (folder / name).write_text(
        '<?xml version="1.0"?><testsuites><testsuite name="pytest">'
        f'<testcase classname="test_a" name="{test}" file="test_a.py"/>'
        "</testsuite></testsuites>"
    )


def read(root: Path, output: str) -> SuiteRun:
    tests = invocation(["/usr/bin/tox"], root)
    assert tests
    return tests.read(Reported(root, CommandResult(output, "", 0)))


@each_row(
    ("command", "runner"),
    [
        ("make test", "pytest"),
        ("/usr/bin/tox -e py311", "pytest"),
        ("nox -s tests", "pytest"),
        ("hatch test", "pytest"),
        ("uv run poe test", "pytest"),
        ("poetry run test", "pytest"),
        ("uv run python -m unittest", "unittest"),
        ("cmake --build build", None),
        ("cat Makefile", None),
    ],
)
def test_a_program_that_may_start_pytest_is_recognised(
    command: str, runner: str | None
) -> None:
    found = invocation(command.split(), Path())
    assert (found.runner.name if found else None) == runner


def test_pytest_is_asked_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:cacheprovider")
    monkeypatch.setenv("TOX_OVERRIDE", "testenv.deps=x")
    tests = invocation(["tox"], Path())
    assert tests
    made = tests.reporting(Path("/r/report"))
    assert made
    assert made.argv == ("tox",)
    assert made.env["PYTEST_ADDOPTS"].startswith("-p no:cacheprovider ")
    assert "--junitxml=/r/report-$TOX_ENV_NAME" in made.env["PYTEST_ADDOPTS"]
    assert made.env["TOX_OVERRIDE"] == (
        "testenv.deps=x;testenv.pass_env+=PYTEST_ADDOPTS"
    )


def test_the_reports_of_all_environments_are_merged(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").touch()
    write_report(tmp_path, "report-py311", "test_x")
    write_report(tmp_path, "report-py312", "test_y")
    run = read(tmp_path, SUMMARY + "1 passed in 65.32s (0:01:05)\n")
    assert run.results == dict.fromkeys(
        ("test_a.py::test_x", "test_a.py::test_y"), Result.PASSED
    )


@each_row(
    ("reports", "output"),
    [
        (0, ""),
        (0, SUMMARY),
        (1, ""),
        (1, SUMMARY * 2),
        (1, f"{SUMMARY}no tests ran in 0.01s\n"),
        (2, SUMMARY),
        (1, f"!!! stopping after 1 failures !!!\n{SUMMARY}"),
    ],
)
def test_reports_that_may_lack_tests_do_not_count(
    tmp_path: Path, reports: int, output: str
) -> None:
    (tmp_path / "test_a.py").touch()
    for number in range(reports):
        write_report(tmp_path, f"report-{number}", "test_x")
    with pytest.raises(ReportUnreadable):
        read(tmp_path, output)


@each_row(
    ("path", "decides"),
    [
        ("Makefile", True),
        ("tox.ini", True),
        ("pytest.ini", True),
        ("jest.config.js", True),
        ("justfile", True),
        ("app.py", False),
    ],
)
def test_the_settings_of_any_runner_decide(path: str, decides: bool) -> None:
    change = FileChange(PurePosixPath(path), b"a", b"b")
    tests = invocation(["make", "test"], Path())
    assert bool(changes_of_harness([change], tests)) == decides
