"""Reading what our own reporters write: whole, or refused."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.verification.outcomes import Result, Selection, SuiteRun
from cdd_agent.verification.runner import ReportUnreadable
from cdd_agent.verification.runners.lines import read_lines
from tests.support.tables import each_row

ROOT = Path("/project")
WHOLE = b"""\
{"file": "/project/test/a.test.js", "names": ["adding", "two numbers"], "result": "passed", "text": ""}
{"file": "file:///project/test/a%20b.test.js", "names": ["odd \\ud800\\n"], "result": "skipped", "text": ""}
{"file": "/project/test/b.test.js", "names": ["/project/test/b.test.js"], "result": "failed", "text": "no"}
{"end": true}
"""


def read(data: bytes) -> SuiteRun:
    return read_lines([data], Selection(), ROOT, " > ")


def test_each_line_is_a_test() -> None:
    run = read(WHOLE)
    assert run.results == {
        "test/a.test.js::adding > two numbers": Result.PASSED,
        "test/a b.test.js::odd ��": Result.SKIPPED,
        "test/b.test.js": Result.FAILED,
    }
    assert run.texts == {"test/b.test.js": "no"}
    assert run.is_finished


@each_row("left", [1, 2, 3])
def test_a_report_without_its_last_line_is_of_a_run_that_was_cut_short(
    left: int,
) -> None:
    run = read(b"".join(WHOLE.splitlines(keepends=True)[:left]))
    assert len(run.results) == left
    assert not run.is_finished


def test_the_reports_of_several_processes_are_one() -> None:
    other = WHOLE.replace(b"a.test.js", b"c.test.js")
    run = read_lines([WHOLE, other], Selection(), ROOT, " > ")
    assert len(run.results) == 4
    assert run.is_finished
    unfinished = b"".join(other.splitlines(keepends=True)[:3])
    for reports in ([WHOLE, unfinished], [unfinished, WHOLE]):
        assert not read_lines(reports, Selection(), ROOT, " > ").is_finished


@each_row(
    "data",
    [
        b"",
        b"\n",
        b"ok",
        b"[]",
        b"1" * 5000,
        b"[" * 100_000,
        b"{}",
        WHOLE[:-5],
        WHOLE[:50],
        WHOLE.replace(b"passed", b"fine"),
        WHOLE.replace(b'"passed"', b"[]"),
        WHOLE.replace(b'["adding", "two numbers"]', b"3"),
        WHOLE.replace(b'"/project/test/a.test.js"', b"null"),
        b"\xff\xfe",
    ],
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ReportUnreadable):
        read(data)


@given(st.binary(max_size=200), st.integers(0, len(WHOLE)))
def test_any_bytes_are_a_report_or_refused(data: bytes, at: int) -> None:
    for candidate in (data, WHOLE[:at] + data + WHOLE[at:]):
        with contextlib.suppress(ReportUnreadable):
            assert isinstance(read(candidate), SuiteRun)
