"""`cargo test`: reading what it prints, as recorded from real runs."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.verification.outcomes import Result, Selection, SuiteRun
from cdd_agent.verification.runner import ReportUnreadable
from cdd_agent.verification.runners.cargo import Cargo, read_output

STDOUT = b"""
running 4 tests
test parser::tests::adds ... ok
test tests::panics - should panic ... ok
test tests::fails ... FAILED
test tests::slow ... ignored, slow

failures:

---- tests::fails stdout ----
test x ... ok
no such thing


failures:
    tests::fails

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s


running 1 test
test api ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s


running 2 tests
test src/lib.rs - add (line 9) ... ok
test src/lib.rs - add (line 3) ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.09s


running 1 test
test src/lib.rs - add (line 20) - compile fail ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.09s

all doctests ran in 0.92s; merged doctests compilation took 0.80s
"""
STDERR = b"""\
   Compiling calc-x v0.1.0 (/tmp/calc)
    Finished `test` profile [unoptimized + debuginfo] target(s) in 1.20s
\x1b[1m\x1b[92m     Running\x1b[0m unittests src/lib.rs (target/debug/deps/calc_x-0aaa3778d46f8635)
error: test failed, to rerun pass `--lib`
     Running tests/api.rs (target/debug/deps/api-905619b4324e9254)
   Doc-tests calc_x
error: 1 target failed:
    `--lib`
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("calc")
    for name in ("src/lib.rs", "src/parser.rs", "tests/api.rs"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).touch()
    (root / "Cargo.toml").write_text('[package]\nname = "calc-x"\n')
    return root


def read(stdout: bytes, stderr: bytes, root: Path) -> SuiteRun:
    return read_output(stdout, stderr, Selection(), root)


def test_each_test_is_bound_to_the_program_that_it_is_in(root: Path) -> None:
    run = read(STDOUT, STDERR, root)
    assert run.results == {
        "src/parser.rs::tests::adds": Result.PASSED,
        "src/lib.rs::tests::panics": Result.PASSED,
        "src/lib.rs::tests::fails": Result.FAILED,
        "src/lib.rs::tests::slow": Result.SKIPPED,
        "tests/api.rs::api": Result.PASSED,
        "src/lib.rs::doc test > add": Result.PASSED,
        "src/lib.rs::doc test > add #2": Result.PASSED,
        "src/lib.rs::doc test > add #3": Result.PASSED,
    }
    assert run.texts["src/lib.rs::tests::fails"].startswith(
        "test x ... ok\nno such thing\n"
    )
    assert run.is_finished


def test_doc_tests_keep_their_ids_when_lines_move(root: Path) -> None:
    moved = STDOUT.replace(b"(line 9)", b"(line 19)").replace(b"(line 3)", b"(line 13)")
    assert read(moved, STDERR, root).results == read(STDOUT, STDERR, root).results


WORKSPACE = b"""\
     Running unittests src/lib.rs (target/debug/deps/alpha-e62994b938fd5803)
     Running tests/api.rs (target/debug/deps/api-6cb41438011a0265)
     Running unittests src/lib.rs (target/debug/deps/beta-04b5d311d386c8df)
     Running tests/api.rs (target/debug/deps/api-978ebbe21f306116)
"""
ONE = (
    b"\n"
    b"running 1 test\n"
    b"test t ... ok\n\n"
    b"test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n"
)


def test_in_a_workspace_each_package_has_its_own(tmp_path: Path) -> None:
    for name in ("alpha", "beta"):
        for file in ("src/lib.rs", "tests/api.rs"):
            (tmp_path / name / file).parent.mkdir(parents=True)
            (tmp_path / name / file).touch()
        (tmp_path / name / "Cargo.toml").write_text(f'[package]\nname = "{name}"\n')
    (tmp_path / "Cargo.toml").write_text('[workspace]\nmembers = ["alpha", "beta"]\n')
    files = (
        "alpha/src/lib.rs",
        "alpha/tests/api.rs",
        "beta/src/lib.rs",
        "beta/tests/api.rs",
    )
    assert set(read(ONE * 4, WORKSPACE, tmp_path).results) == {
        f"{file}::t" for file in files
    }
    for headers in (
        WORKSPACE.splitlines(keepends=True)[1],
        WORKSPACE.splitlines(keepends=True)[0] * 2,
    ):
        with pytest.raises(ReportUnreadable):  # of which package is it?
            read(ONE * headers.count(b"\n"), headers, tmp_path)


def test_a_program_that_was_ended_makes_a_run_unfinished(root: Path) -> None:
    end = STDOUT.index(
        b"test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out;"
        b" finished in 0.09s"
    )
    assert not read(STDOUT[:end], STDERR, root).is_finished
    forged = STDOUT.replace(
        b"2 passed; 1 failed; 1 ignored", b"4 passed; 0 failed; 0 ignored"
    )
    with contextlib.suppress(ReportUnreadable):
        assert not read(forged, STDERR, root).is_finished


@pytest.mark.parametrize(
    ("stdout", "stderr"),
    [
        (b"", STDERR),
        (STDOUT, b""),
        (STDOUT, STDERR.replace(b"   Doc-tests calc_x\n", b"")),
        (
            STDOUT,
            STDERR.replace(
                b"     Running tests/api.rs (target/debug/deps/api-905619b4324e9254)\n",
                b"",
            ),
        ),
        (STDOUT.replace(b"test api ... ok\n", b""), STDERR),
        (STDOUT.replace(b"test api ... ok\n", b"test api ... hello\nok\n"), STDERR),
        (STDOUT.replace(b"running 1 test\n", b"running 999999999 tests\n"), STDERR),
        (STDOUT.replace(b" - add (line 9)", b""), STDERR),
    ],
)
def test_what_does_not_fit_together_is_refused(
    root: Path, stdout: bytes, stderr: bytes
) -> None:
    with pytest.raises(ReportUnreadable):
        read(stdout, stderr, root)


@given(
    st.binary(max_size=100), st.integers(0, len(STDOUT)), st.integers(0, len(STDERR))
)
def test_any_bytes_are_a_report_or_refused(
    root: Path, data: bytes, out: int, err: int
) -> None:
    for stdout, stderr in (
        (data, data),
        (STDOUT[:out] + data + STDOUT[out:], STDERR),
        (STDOUT, STDERR[:err] + data + STDERR[err:]),
        (STDOUT[:out], STDERR[:err]),
    ):
        with contextlib.suppress(ReportUnreadable):
            assert isinstance(read(stdout, stderr, root), SuiteRun)


def test_the_words_for_the_report() -> None:
    cargo, report = Cargo(), Path("/r/report")
    made = cargo.reporting(["cargo", "test", "adds", "--", "--test-threads=1"], report)
    assert made
    assert made.argv == (
        "cargo",
        "test",
        "adds",
        "--no-fail-fast",
        "--",
        "--test-threads=1",
    )
    for words in (
        ["-q"],
        ["--no-run"],
        ["--", "--nocapture"],
        ["--message-format=json"],
    ):
        assert cargo.reporting(["cargo", "test", *words], report) is None
    assert cargo.recognises(["cargo", "+nightly", "test"])
    assert not cargo.recognises(["cargo", "build"])
    assert cargo.selection(
        ["cargo", "test", "-p", "alpha", "-v"], Path("/x")
    ) == Selection((), ("-p alpha",))
