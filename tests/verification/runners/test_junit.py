"""Reading pytest's report: ids as people write them, and nothing but a whole and plain
report.
"""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.verification.outcomes import Result, SuiteRun
from cdd_agent.verification.runner import ReportUnreadable
from cdd_agent.verification.runners.junit import read_report
from tests.support.tables import each_row

PASSED, FAILED, SKIPPED = Result.PASSED, Result.FAILED, Result.SKIPPED


def report(*cases: str) -> bytes:
    lines = "\n".join(cases)
    head = (
        '<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest'
        ' tests"><testsuite name="pytest">'
    )
    return f"{head}{lines}</testsuite></testsuites>".encode()


@pytest.mark.parametrize(
    ("module", "name", "file", "inside", "test", "result"),
    [
        (
            "tests.test_a",
            "test_x",
            "tests/test_a.py",
            "",
            "tests/test_a.py::test_x",
            PASSED,
        ),
        (
            "tests.test_a.TestK",
            "test_x[a/b::c]",
            "tests/test_a.py",
            "",
            "tests/test_a.py::TestK::test_x[a/b::c]",
            PASSED,
        ),
        (
            "tests.test_a",
            "test_x",
            "tests/test_a.py",
            "<failure>no</failure>",
            "tests/test_a.py::test_x",
            FAILED,
        ),
        (
            "test_a",
            "test_x",
            "test_a.py",
            '<error message="failed on setup">no</error>',
            "test_a.py::test_x",
            FAILED,
        ),
        (
            "test_a",
            "test_x",
            "test_a.py",
            '<skipped type="pytest.skip" message="no" />',
            "test_a.py::test_x",
            SKIPPED,
        ),
        (
            "test_a",
            "test_x",
            "test_a.py",
            '<skipped type="pytest.xfail" />',
            "test_a.py::test_x",
            SKIPPED,
        ),
        (
            "",
            "tests.test_b",
            "tests/test_b.py",
            '<error message="collection failure" />',
            "tests/test_b.py",
            FAILED,
        ),
        (
            "",
            "tests.test_b",
            "tests/test_b.py",
            '<skipped message="collection skipped" />',
            "tests/test_b.py",
            SKIPPED,
        ),
        # inherited
        (
            "tests.test_a.TestK",
            "test_i",
            "tests/base.py",
            "",
            "tests/test_a.py::TestK::test_i",
            PASSED,
        ),
        (
            "tests.test_a",
            "test_x",
            "tests\\test_a.py",
            "",
            "tests/test_a.py::test_x",
            PASSED,
        ),
        ("tests.test_a", "test_x", "", "", "tests/test_a.py::test_x", PASSED),
        (
            "docs.guide.md",
            "guide.md",
            "docs/guide.md",
            "",
            "docs/guide.md::guide.md",
            PASSED,
        ),
        ("", "lonely", "", "", "lonely", PASSED),
    ],
)
def test_each_test_is_known_by_the_id_that_people_write(
    module: str, name: str, file: str, inside: str, test: str, result: Result
) -> None:
    run = read_report(
        report(
            f'<testcase classname="{module}" name="{name}"'
            f' file="{file}">{inside}</testcase>'
        )
    )
    assert run.results == {test: result}
    assert run.is_finished


def test_of_several_results_under_one_id_the_worst_counts() -> None:
    case = '<testcase classname="t" name="x" file="t.py">{}</testcase>'
    for inside in (
        ("", "<failure/>"),
        ("<failure/>", ""),
        ("<skipped/><failure/>", "<skipped/>"),
    ):
        assert read_report(report(*map(case.format, inside))).results == {
            "t.py::x": FAILED
        }
    assert read_report(report(case.format(""), case.format("<skipped/>"))).results == {
        "t.py::x": SKIPPED
    }


def test_a_test_that_was_begun_and_never_ended_makes_a_run_unfinished() -> None:
    run = read_report(
        report(
            '<testcase classname="t" name="x" file="t.py"/>', '<testcase time="0.000"/>'
        )
    )
    assert run.results == {"t.py::x": PASSED}
    assert not run.is_finished


def test_the_words_of_a_failure_are_kept_within_a_bound() -> None:
    case = (
        '<testcase classname="t" name="{}" file="t.py"><failure'
        ' message="m">{}</failure></testcase>'
    )
    run = read_report(
        report(case.format("x", "E  assert 1 &lt; 0"), case.format("y", "z" * 100_000))
    )
    assert run.texts["t.py::x"] == "E  assert 1 < 0"
    assert len(run.texts["t.py::y"]) < 5000


BOMB = b"""<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]>
<testsuites><testsuite><testcase name="&c;"/></testsuite></testsuites>"""


@each_row(
    "data",
    [
        b"",
        b"1 passed",
        b"\x00\xff\xfe",
        BOMB,
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd"><testsuites/>',
        b"<testsuites><testsuite>&undefined;</testsuite></testsuites>",
        report('<testcase classname="t" name="x"/>')[:-5],
        report('<testcase classname="t" name="x"/>') + b"<testsuites/>",
        b"<html><testcase name='x'/></html>",
        "<testsuites>\ud800</testsuites>".encode("utf-8", "surrogatepass"),
    ],
    ids=[
        "empty",
        "words",
        "bytes",
        "bomb",
        "external",
        "entity",
        "cut",
        "two",
        "html",
        "surrogate",
    ],
)
def test_what_is_no_whole_and_plain_report_is_refused(data: bytes) -> None:
    with pytest.raises(ReportUnreadable):
        read_report(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_report_or_refused(data: bytes) -> None:
    for candidate in (data, b"<testsuites>" + data + b"</testsuites>"):
        with contextlib.suppress(ReportUnreadable):
            assert isinstance(read_report(candidate), SuiteRun)


def test_depth_costs_nothing() -> None:
    deep = "<properties>" * 50_000 + "</properties>" * 50_000
    case = '<testcase classname="t" name="x"/>'
    assert read_report(report(deep, case)).results == {"t.py::x": PASSED}
