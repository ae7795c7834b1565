"""Jest, vitest and mocha: which commands they are, and how they are made to report."""

from pathlib import Path

import pytest

from cdd_agent.verification.outcomes import Selection
from cdd_agent.verification.runner import TestRunner
from cdd_agent.verification.runners.javascript import JAVASCRIPT_RUNNERS
from cdd_agent.verification.runners.lines import INJECTED
from tests.support.tables import each_row

REPORT = Path("/r/report")
RUNNERS: dict[str, TestRunner] = {runner.name: runner for runner in JAVASCRIPT_RUNNERS}


@each_row(
    ("command", "runner"),
    [
        ("jest", "jest"),
        ("npx jest test", "jest"),
        ("/x/node_modules/.bin/jest", "jest"),
        ("node node_modules/jest/bin/jest.js", "jest"),
        ("yarn jest --ci", "jest"),
        ("react-scripts test", "jest"),
        ("npx craco test --silent", "jest"),
        ("npx vitest", "vitest"),
        ("bunx vitest run", "vitest"),
        ("mocha test", "mocha"),
        ("nyc mocha", "mocha"),
        ("", None),
        ("cat jest", None),
        ("node run.js jest", None),
        ("npm run jest", None),
        ("docker run jest", None),
        ("react-scripts build", None),
        ("mochawesome", None),
    ],
)
def test_a_command_is_recognised(command: str, runner: str | None) -> None:
    known = [each.name for each in RUNNERS.values() if each.recognises(command.split())]
    assert known == ([runner] if runner else [])


@each_row(
    "command",
    [
        "jest --json",
        "jest --outputFile=x",
        "jest --reporters=x",
        "jest --watch",
        "jest --watchAll=true",
        "jest --listTests",
        "vitest --reporter=junit",
        "vitest --outputFile.json=x",
        "vitest -- x",
        "vitest watch",
        "vitest bench",
        "mocha -R json",
        "mocha --reporter=xunit",
        "mocha --reporter ./own.js",
        "mocha --reporter dot --watch",
        "vitest --reporter verbose --reporter json",
        "mocha --watch",
        "mocha --dry-run",
    ],
)
def test_a_command_that_asks_for_something_else_is_not_changed(command: str) -> None:
    runner = RUNNERS[command.split()[0]]
    assert runner.reporting(command.split(), REPORT) is None


@each_row(
    ("command", "words"),
    [
        ("jest", ["--reporters=default", "--bail=0", "--watchAll=false"]),
        ("jest --watchAll=false --ci", ["--reporters=default"]),
        ("vitest", ["--reporter=default", "--run"]),
        ("mocha -b", ["--no-bail"]),
        # reporters that only show a run
        ("mocha -R dot", ["--no-bail"]),
        ("mocha --reporter spec test", ["--no-bail"]),
        ("vitest --reporter=verbose", ["--reporter=default", "--run"]),
    ],
)
def test_a_command_reports_runs_to_the_end_and_ends(
    command: str, words: list[str]
) -> None:
    argv = tuple(command.split())
    reporting = RUNNERS[argv[0]].reporting(argv, REPORT)
    assert reporting
    assert reporting.argv[: len(argv)] == argv
    assert set(words) <= {*reporting.argv}
    assert any(str(INJECTED) in word for word in reporting.argv)
    assert str(REPORT) in reporting.env.values()


@each_row(
    ("words", "selection"),
    [
        ("", Selection()),
        ("run --coverage", Selection()),
        ("test/a.test.js", Selection(("test/a.test.js",))),
        ("run ./test", Selection(("test",))),
        ("-t adds test", Selection(("test",), ("-t adds",))),
        ("--root test", Selection((), ("--root test",))),
        ("nowhere", Selection((), ("nowhere",))),
    ],
)
def test_what_a_command_selects(
    tmp_path: Path, words: str, selection: Selection
) -> None:
    (tmp_path / "test").mkdir()
    (tmp_path / "test/a.test.js").touch()
    command = ["npx", "vitest", *words.split()]
    assert RUNNERS["vitest"].selection(command, tmp_path) == selection


@pytest.mark.parametrize("name", ["report.cjs", "jest_reporter.cjs"])
def test_the_reporters_are_a_part_of_the_package(name: str) -> None:
    assert (INJECTED / name).is_file()
