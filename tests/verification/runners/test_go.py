"""`go test`: reading its JSON, as recorded from real runs."""

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.verification.outcomes import Result, Selection, SuiteRun
from cdd_agent.verification.runner import ReportUnreadable
from cdd_agent.verification.runners.go import Go, read_report
from tests.support.tables import each_row

RECORDED = b"""\
{"Action":"run","Package":"example.com/calc","Test":"TestAdd"}
{"Action":"run","Package":"example.com/calc","Test":"TestAdd/two_numbers"}
{"Action":"output","Package":"example.com/calc","Test":"TestAdd/two_numbers","Output":"    calc_test.go:3: no\\n"}
{"Action":"fail","Package":"example.com/calc","Test":"TestAdd/two_numbers","Elapsed":0}
{"Action":"fail","Package":"example.com/calc","Test":"TestAdd","Elapsed":0}
{"Action":"run","Package":"example.com/calc","Test":"TestSkip"}
{"Action":"skip","Package":"example.com/calc","Test":"TestSkip","Elapsed":0}
{"Action":"output","Package":"example.com/calc","Output":"FAIL\\texample.com/calc\\t0.002s\\n"}
{"Action":"fail","Package":"example.com/calc","Elapsed":0.002}
FAIL\texample.com/calc/bad [build failed]
{"Action":"run","Package":"example.com/calc/parser","Test":"TestParse"}
{"Action":"pass","Package":"example.com/calc/parser","Test":"TestParse","Elapsed":0}
{"Action":"pass","Package":"example.com/calc/parser","Elapsed":0.006}
{"Action":"skip","Package":"example.com/calc/cmd","Elapsed":0}
"""
NEWER = b"""\
{"ImportPath":"example.com/calc/bad [example.com/calc/bad.test]","Action":"build-output","Output":"# bad\\n"}
{"ImportPath":"example.com/calc/bad [example.com/calc/bad.test]","Action":"build-fail"}
{"Action":"start","Package":"example.com/calc/bad"}
{"Action":"output","Package":"example.com/calc/bad","Output":"FAIL\\texample.com/calc/bad [build failed]\\n"}
{"Action":"fail","Package":"example.com/calc/bad","Elapsed":0,"FailedBuild":"example.com/calc/bad"}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("calc")
    for name, text in {
        "go.mod": "module example.com/calc\n",
        "calc_test.go": "func TestAdd(t *testing.T) {}\n",
        "more_test.go": "func TestSkip(t *testing.T) {}\n",
        "bad/b_test.go": "func TestB(t *testing.T) {}\n",
        "bad/c_test.go": "func TestC(t *testing.T) {}\n",
        "parser/p_test.go": "func TestParse(t *testing.T) {}\n",
    }.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


def read(data: bytes, root: Path) -> SuiteRun:
    return read_report(data, Selection(), root)


def test_each_test_is_known_by_the_file_that_declares_it(root: Path) -> None:
    run = read(RECORDED, root)
    assert run.results == {
        "calc_test.go::TestAdd": Result.FAILED,
        "calc_test.go::TestAdd/two_numbers": Result.FAILED,
        "more_test.go::TestSkip": Result.SKIPPED,
        "bad/b_test.go": Result.FAILED,
        "bad/c_test.go": Result.FAILED,
        "parser/p_test.go::TestParse": Result.PASSED,
    }
    assert run.texts["calc_test.go::TestAdd/two_numbers"] == "    calc_test.go:3: no\n"
    assert run.is_finished


def test_newer_go_tells_of_what_could_not_be_built_in_another_way(root: Path) -> None:
    assert read(NEWER, root).results == {
        "bad/b_test.go": Result.FAILED,
        "bad/c_test.go": Result.FAILED,
    }


UNBUILT = b"""\
FAIL\texample.com/calc [setup failed]
FAIL\texample.com/calc/bad [build failed]
"""
WHY_UNBUILT = b"""\
go: downloading example.org/quick v1.14.5
# example.com/calc
calc_test.go:2:20: example.org/quick@v1.14.5: dial tcp: lookup example.org: no such host
# example.com/calc/bad [example.com/calc/bad.test]
bad/b_test.go:3:28: undefined: Sub
"""


def test_older_go_tells_why_a_package_was_not_built_beside_its_report(
    root: Path,
) -> None:
    run = read_report(UNBUILT, Selection(), root, WHY_UNBUILT)
    assert run.texts["calc_test.go"].endswith("lookup example.org: no such host\n")
    assert run.texts["bad/c_test.go"] == "bad/b_test.go:3:28: undefined: Sub\n"


def test_newer_go_tells_it_in_its_report(root: Path) -> None:
    why = b"bad/b_test.go:3:28: undefined: Sub"
    run = read(NEWER.replace(b"# bad", why), root)
    assert why.decode() in run.texts["bad/b_test.go"]
    of_dependency = NEWER.splitlines(keepends=True)[0].replace(b"calc/bad", b"other")
    run = read(RECORDED + of_dependency, root)
    assert run.is_finished
    assert "other" not in run.results


def test_a_package_that_fails_beside_its_tests_has_failed(root: Path) -> None:
    lines = RECORDED.splitlines(keepends=True)
    told = [*lines[10:12], lines[12].replace(b'"pass"', b'"fail"')]
    assert read(b"".join(told), root).having(Result.FAILED) == ("parser/p_test.go",)


@pytest.mark.parametrize("cut", [8, 12])
def test_a_package_without_an_end_makes_a_run_unfinished(root: Path, cut: int) -> None:
    lines = RECORDED.splitlines(keepends=True)
    assert not read(b"".join([*lines[:cut], *lines[cut + 1 :]]), root).is_finished


def test_so_does_a_test_without_an_end(root: Path) -> None:
    lines = RECORDED.splitlines(keepends=True)
    assert not read(b"".join([*lines[:11], *lines[12:]]), root).is_finished


def test_a_package_that_is_nowhere_keeps_its_name(root: Path) -> None:
    assert set(
        read(
            RECORDED.replace(b"example.com/calc/parser", b"other/../../x"), root
        ).results
    ) >= {"other/../../x::TestParse"}


@pytest.mark.parametrize(
    "data", [b"", b"ok\n", b"{", b"{}\n", b"[" * 100_000, b'{"Action": "pass"}\n']
)
def test_what_tells_of_no_package_is_refused(root: Path, data: bytes) -> None:
    with pytest.raises(ReportUnreadable):
        read(data, root)


@given(
    st.binary(max_size=200),
    st.integers(0, len(RECORDED)),
    st.sampled_from([b"null", b"[]", b"1", b'"run"']),
)
def test_any_bytes_are_a_report_or_refused(
    root: Path, data: bytes, at: int, value: bytes
) -> None:
    for candidate in (
        data,
        RECORDED[:at] + data + RECORDED[at:],
        RECORDED.replace(b'"TestAdd"', value),
    ):
        with contextlib.suppress(ReportUnreadable):
            assert isinstance(read(candidate, root), SuiteRun)


def test_people_read_what_go_says() -> None:
    go, report = Go(), Path("/r/report")
    lines = RECORDED.decode().splitlines(keepends=True)
    assert [go.shown(line, report) for line in (lines[0], lines[2], lines[9])] == [
        "",
        "    calc_test.go:3: no\n",
        "FAIL\texample.com/calc/bad [build failed]\n",
    ]
    for own in ('{"a": 1}\n', "{\n", json.dumps(["Action"])):
        assert go.shown(own, report) == own


def test_the_words_for_the_report() -> None:
    go, report = Go(), Path("/r/report")
    made = go.reporting(["go", "test", "-failfast", "./..."], report)
    assert made
    assert made.argv == ("go", "test", "-json", "./...")
    for words in ("-json", "-bench=.", "-c", "--list=x"):
        assert go.reporting(["go", "test", words], report) is None
    assert go.recognises(["/usr/bin/go", "test"])
    assert not go.recognises(["go", "vet"])


@each_row(
    ("words", "selection"),
    [
        ("./... -v", Selection((".",))),
        ("./parser/...", Selection(("parser",))),
        ("./parser", Selection((), ("./parser",))),
        ("-run Add ./...", Selection((".",), ("-run", "Add"))),
    ],
)
def test_what_a_command_selects(words: str, selection: Selection) -> None:
    assert Go().selection(["go", "test", *words.split()], Path("/project")) == selection
