"""Jest and vitest: which commands they are, and reading the JSON that both write."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.verification.outcomes import Result, Selection, SuiteRun
from cdd_agent.verification.runner import ReportUnreadable
from cdd_agent.verification.runners.jest import Jest, Vitest, read_report
from tests.support.tables import each_row

ROOT = Path("/project")
CONTENT: dict[str, Any] = {
    "numTotalTests": 4,
    "testResults": [
        {
            "name": "/project/test/a.test.js",
            "status": "failed",
            "message": "● adding › fails",
            "assertionResults": [
                {
                    "ancestorTitles": ["adding"],
                    "title": "two numbers",
                    "status": "passed",
                    "failureMessages": [],
                },
                {
                    "ancestorTitles": ["adding"],
                    "title": "fails",
                    "status": "failed",
                    "failureMessages": ["1 is not 2"],
                },
                {"ancestorTitles": [], "title": "off", "status": "pending"},
                {"ancestorTitles": [], "title": "later", "status": "todo"},
            ],
        },
        {
            "name": "/project/test/b.test.js",
            "status": "failed",
            "message": "no module",
            "assertionResults": [],
        },
        {
            "name": "/project/test/c.test.js",
            "status": "passed",
            "message": "",
            "assertionResults": [],
        },
    ],
    "wasInterrupted": False,
}
WHOLE = json.dumps(CONTENT).encode()


def read(data: bytes) -> SuiteRun:
    return read_report(data, Selection(), ROOT)


def test_each_test_is_known_by_its_file_its_groups_and_its_title() -> None:
    run = read(WHOLE)
    assert run.results == {
        "test/a.test.js::adding > two numbers": Result.PASSED,
        "test/a.test.js::adding > fails": Result.FAILED,
        "test/a.test.js::off": Result.SKIPPED,
        "test/a.test.js::later": Result.SKIPPED,
        "test/b.test.js": Result.FAILED,
    }
    assert run.texts == {
        "test/a.test.js::adding > fails": "1 is not 2",
        "test/b.test.js": "no module",
    }
    assert run.is_finished


def test_an_interrupted_run_did_not_come_to_its_end() -> None:
    assert not read(
        json.dumps({**CONTENT, "wasInterrupted": True}).encode()
    ).is_finished


@each_row(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"[" * 100_000,
        b"1" * 5000,
        b"\xff",
        WHOLE[:-1],
        WHOLE + b"{}",
        WHOLE.replace(b'"numTotalTests": 4', b'"numTotalTests": 5'),
        WHOLE.replace(b'"passed", "failureMessages"', b'"fine", "failureMessages"'),
        WHOLE.replace(b'["adding"]', b"7"),
        json.dumps({"numTotalTests": 0, "testResults": 3}).encode(),
        json.dumps({"numTotalTests": 0, "testResults": [[]]}).encode(),
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ReportUnreadable):
        read(data)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*CONTENT, "name", "status", "assertionResults", "title"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.binary(max_size=200), VALUES)
def test_any_bytes_are_a_report_or_refused(data: bytes, value: object) -> None:
    inside = json.dumps({**CONTENT, "testResults": value}).encode()
    for candidate in (data, json.dumps(value).encode(), inside):
        with contextlib.suppress(ReportUnreadable):
            assert isinstance(read(candidate), SuiteRun)


@each_row(
    "command",
    [
        "jest",
        "npx jest test",
        "/x/node_modules/.bin/jest",
        "node node_modules/jest/bin/jest.js",
        "yarn jest --ci",
    ],
)
def test_jest_is_known(command: str) -> None:
    assert Jest().recognises(command.split())


@each_row(
    "command",
    [
        "",
        "cat jest",
        "node run.js jest",
        "npm run jest",
        "npx vitest",
        "docker run jest",
    ],
)
def test_what_only_names_jest_is_not(command: str) -> None:
    assert not Jest().recognises(command.split())


@each_row(
    "command",
    [
        "jest --json",
        "jest --outputFile=x",
        "jest --watch",
        "vitest --reporter=junit",
        "vitest -- x",
    ],
)
def test_a_report_of_the_persons_own_is_left_alone(command: str) -> None:
    runner = Jest() if command.startswith("jest") else Vitest()
    assert runner.reporting(command.split(), Path("/r/report")) is None


def test_jest_writes_the_report_where_asked_whatever_the_settings_say() -> None:
    """A vitest config may name one file for all reporters, and then no file for one
    reporter counts.
    """
    reporting = Vitest().reporting(["vitest", "run"], Path("/r/report"))
    assert reporting
    assert "--outputFile=/r/report" in reporting.argv


def test_where_the_report_is_is_not_told() -> None:
    report = Path("/tmp/check-x/report")
    assert Vitest().shown(f"JSON report written to {report}\n", report) == ""
    assert Jest().shown("Test results written to: ../check-x/report\n", report) == ""
    assert Jest().shown("Test results written to: own.json\n", report) != ""


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
    assert Vitest().selection(["npx", "vitest", *words.split()], tmp_path) == selection
