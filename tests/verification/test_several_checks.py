"""What the results of several checks mean for a step."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.errors import BadInput
from cdd_agent.process.policy import CommandRunner
from cdd_agent.settings.config import Commands
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import Verification
from cdd_agent.verification.baseline import Baseline, is_of_use
from cdd_agent.verification.before import Before
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.checks import check_problems, checks_for, parse_command
from cdd_agent.verification.facts import Work
from cdd_agent.verification.outcomes import (
    Difference,
    Reference,
    Result,
    Selection,
    SuiteRun,
    merge_runs,
)
from tests.support.tables import each_row
from tests.support.verdicts import CHANGED, judge_all, run_of

PASSED, FAILED, SKIPPED = Result.PASSED, Result.FAILED, Result.SKIPPED
A, B = "tests/a/test_a.py::test_a", "tests/b/test_b.py::test_b"
IN_A, IN_B = Selection(("tests/a",)), Selection(("tests/b",))


def make_run(results: dict[str, Result], selection: Selection) -> SuiteRun:
    return SuiteRun(selection, results)


def make_known(*results: dict[str, Result]) -> Reference:
    reference = Reference()
    for each in results:
        reference = reference.after(SuiteRun(results=each))
    return reference


def sort_tests(difference: Difference) -> list[list[str]]:
    return [sorted(tests) for tests in astuple(difference)]


# --- Which checks ---------------------------------------------------------------------


@each_row(
    ("checks", "test_command", "commands"),
    [
        (("ls a", "ls b", "ls c"), None, ["ls a", "ls b", "ls c"]),
        (("ls a", "ls a"), None, ["ls a"]),
        (("ls a", "none"), "true", ["ls a"]),
        (("none", "None"), "true", []),
        ((), "true", []),
        (None, "true", ["true"]),
        (None, None, []),
        # only the user's own command may use any program
        (("./own.sh", "ls a"), "./own.sh", ["./own.sh", "ls a"]),
    ],
)
def test_checks_run_in_the_order_of_the_plan(
    tmp_path: Path,
    checks: tuple[str, ...] | None,
    test_command: str | None,
    commands: list[str],
) -> None:
    step = PlanStep(1, checks=checks)
    found = checks_for(step, test_command, CommandRunner(tmp_path))
    assert [check.shown for check in found] == commands


def test_each_check_that_cannot_run_is_named(tmp_path: Path) -> None:
    step = PlanStep(1, checks=("ls", "rm a", "cat 'x", "ls b"))
    problems = check_problems(step, None, CommandRunner(tmp_path))
    assert [("rm a" in str(each), "cat 'x" in str(each)) for each in problems] == [
        (True, False),
        (False, True),
    ]
    with pytest.raises(BadInput, match="rm a"):
        checks_for(step, None, CommandRunner(tmp_path))


def test_each_check_has_its_own_objection(tmp_path: Path) -> None:
    commands = CommandRunner(tmp_path, Commands(mode="ask"))
    checks = checks_for(
        PlanStep(1, checks=("ls", "grep a b", "ls | wc")), None, commands
    )
    assert [commands.must_ask(check.command) for check in checks] == [False, True, True]


@each_row(
    ("checks", "test_command", "is_needed"),
    [
        (("ls", "pytest tests/a"), "pytest", True),
        (("pytest", "ls"), "pytest", True),
        (("ls", "cat x"), "pytest", False),
        (("ls", "pytest tests/a"), "ls", False),
        ((), "pytest", False),
        (None, "ls", True),
    ],
)
def test_a_baseline_is_needed_if_one_check_reports_tests(
    tmp_path: Path,
    checks: tuple[str, ...] | None,
    test_command: str,
    is_needed: bool,
) -> None:
    steps = [PlanStep(1, checks=checks)]
    assert is_of_use(steps, test_command, CommandRunner(tmp_path)) is is_needed


# --- The verdict ----------------------------------------------------------------------

Row = tuple[str, int, dict[str, Result] | None]
"""A command with its exit code and the results of its tests."""
GOOD_A: Row = ("pytest tests/a", 0, {A: PASSED})
GOOD_B: Row = ("pytest tests/b", 0, {B: PASSED})
BAD_A: Row = ("pytest tests/a", 1, {A: FAILED})
BAD_B: Row = ("pytest tests/b", 1, {B: FAILED})
ALL: Row = ("pytest", 0, {A: PASSED, B: PASSED})
ALL_BUT_B: Row = ("pytest", 1, {A: PASSED, B: FAILED})
NONE_IN_B: Row = ("pytest tests/b", 5, {})
LINT: Row = ("python lint.py", 0, None)
BAD_LINT: Row = ("python lint.py", 1, None)
CARGO: Row = ("cargo test", 0, {})
SLOW: Row = ("python slow.py", -15, None)
PROVEN, OLD, NOTHING = Verification.PASSED, Verification.BASELINE, Verification.NONE


def parse_row(root: Path, row: Row) -> tuple[Check, CheckRun]:
    command, code, results = row
    check = parse_command(command, root)
    tests = None
    if results is not None:
        assert check.invocation
        tests = SuiteRun(check.invocation.selection, results)
    output = f"out of {command}"
    return check, run_of(check, code, tests, output=output, timed_out=row is SLOW)


@each_row(
    ("rows", "verification", "failed"),
    [
        ([GOOD_A], PROVEN, None),
        ([BAD_A], None, 0),
        ([GOOD_A, GOOD_B], PROVEN, None),
        ([GOOD_A, LINT], PROVEN, None),
        ([LINT, GOOD_A, GOOD_B], PROVEN, None),
        ([BAD_A, GOOD_B], None, 0),
        ([GOOD_A, BAD_B], None, 1),
        ([GOOD_A, BAD_LINT], None, 1),
        ([BAD_LINT, GOOD_A, GOOD_B], None, 0),
        ([LINT, SLOW, GOOD_A], None, 1),
        ([GOOD_A, GOOD_B, BAD_LINT], None, 2),
        ([GOOD_A, NONE_IN_B], None, 1),
        # a check that ran no test proves nothing, and another command cannot change it
        ([CARGO], NOTHING, None),
        ([CARGO, LINT], NOTHING, None),
        ([LINT, CARGO], NOTHING, None),
        # tests of another check can
        ([CARGO, GOOD_A], PROVEN, None),
    ],
)
def test_a_step_passes_only_if_all_checks_pass(
    tmp_path: Path, rows: list[Row], verification: Verification | None, failed: int
) -> None:
    for folder in ("tests/a", "tests/b"):
        (tmp_path / folder).mkdir(parents=True)
    verdict = judge_all([parse_row(tmp_path, row) for row in rows])
    assert verdict.verification is verification
    assert bool(verdict.evidence)
    if verification is not None:
        assert len(verdict.checks) == len(rows)
        assert not verdict.not_run
        assert [row[0] in verdict.reason for row in rows] == [True] * len(rows)
        return
    assert len(verdict.checks) == failed + 1
    assert [check.shown for check in verdict.not_run] == [
        row[0] for row in rows[failed + 1 :]
    ]
    # the reason and the output name the failed check, and what did not run
    assert verdict.reason.startswith(f"`{rows[failed][0]}`")
    assert all(row[0] in verdict.reason for row in rows[failed:])
    assert not any(row[0] in verdict.reason for row in rows[:failed])
    assert verdict.useful_output.endswith(f"out of {rows[failed][0]}")
    assert verdict.useful_output.count("out of") == 1
    assert verdict.useful_output.startswith("Output of") is (len(rows) > 1)


@each_row(
    ("rows", "verification"),
    [
        # a failure from before the run counts in a check that names its tests
        ([ALL_BUT_B], OLD),
        ([ALL_BUT_B, LINT], OLD),
        ([LINT, ALL_BUT_B], OLD),
        ([ALL_BUT_B, GOOD_A], OLD),
        ([ALL_BUT_B, BAD_LINT], None),
        ([ALL_BUT_B, BAD_B], None),
        ([ALL_BUT_B, CARGO], OLD),
        ([ALL, GOOD_B], PROVEN),
        ([BAD_A, GOOD_B], None),
    ],
)
def test_each_check_is_compared_with_the_baseline(
    tmp_path: Path, rows: list[Row], verification: Verification | None
) -> None:
    for folder in ("tests/a", "tests/b"):
        (tmp_path / folder).mkdir(parents=True)
    old = SuiteRun(results={A: PASSED, B: FAILED})
    baseline = Baseline(step=1).add(1, CheckRun("pytest", 1, tests=old), ())
    before = Before(baseline, Reference().after(old))
    ran = [parse_row(tmp_path, row) for row in rows]
    verdict = judge_all(ran, before, Work(changed=CHANGED.changed, has_own_check=True))
    assert verdict.verification is verification


def test_the_evidence_counts_each_test_once(tmp_path: Path) -> None:
    for folder in ("tests/a", "tests/b"):
        (tmp_path / folder).mkdir(parents=True)
    before = Before(reference=make_known({A: PASSED}))
    ran = [parse_row(tmp_path, row) for row in (GOOD_A, GOOD_B, ALL, LINT)]
    evidence = judge_all(ran, before).evidence
    assert evidence
    assert (evidence.passed, evidence.new, evidence.stayed) == (2, 1, 1)


RESULTS = st.sampled_from([None, *Result])


@given(
    st.dictionaries(
        st.sampled_from([f"tests/test_{name}.py::test_it" for name in "abcdefgh"]),
        st.tuples(RESULTS, RESULTS),
    )
)
def test_the_evidence_of_a_run_fits_its_results(
    tests: dict[str, tuple[Result | None, Result | None]],
) -> None:
    before = {test: result for test, (result, _) in tests.items() if result}
    after = {test: result for test, (_, result) in tests.items() if result}
    check = parse_command("pytest", Path("/nowhere"))
    run = run_of(check, int(FAILED in after.values()), SuiteRun(results=after))
    evidence = judge_all([(check, run)], Before(reference=make_known(before))).evidence

    def count(before: Result | None, after: Result) -> int:
        return sum(pair == (before, after) for pair in tests.values())

    assert evidence is not None
    assert evidence.fixed == count(FAILED, PASSED)
    assert evidence.new == count(None, PASSED)
    assert evidence.passed == sum(result is PASSED for result in after.values())
    assert evidence.failed == sum(result is FAILED for result in after.values())
    assert evidence.old_failures == count(FAILED, FAILED)
    assert evidence.stayed == count(PASSED, PASSED) + count(SKIPPED, PASSED)


def test_a_test_that_no_check_finds_is_gone(tmp_path: Path) -> None:
    (tmp_path / "tests/a").mkdir(parents=True)
    before = Before(reference=make_known({A: PASSED, B: PASSED}))
    only_a: Row = ("pytest", 0, {A: PASSED})
    for rows in ([only_a], [only_a, LINT], [GOOD_A, only_a], [LINT, only_a, GOOD_A]):
        verdict = judge_all([parse_row(tmp_path, row) for row in rows], before)
        assert verdict.verification is None
        assert B in verdict.reason
        assert len(verdict.checks) == len(rows)
        # no check failed by itself: the model sees all outputs
        assert verdict.useful_output.count("out of") == len(rows)


def test_settings_that_any_of_the_checks_reads_count(tmp_path: Path) -> None:
    """The command of the second check alone reads the Makefile."""
    change = FileChange(PurePosixPath("Makefile"), b"test:\n\ttrue\n", b"test:\n")
    work = Work(ChangeSet((change,)), frozenset({str(change.path)}))
    for rows, is_believed in (
        ([GOOD_A], True),
        ([GOOD_A, ("make test", 0, None)], False),
    ):
        verdict = judge_all([parse_row(tmp_path, row) for row in rows], None, work)
        assert (verdict.verification is not None) is is_believed


# --- Tests of several runs ------------------------------------------------------------


@each_row(
    ("first", "second", "difference"),
    [
        # a suite that is split between two checks
        ({A: PASSED}, {B: PASSED}, Difference()),
        ({A: PASSED}, {B: FAILED}, Difference(new_failures=(B,))),
        ({A: PASSED}, {}, Difference(gone=(B,))),
        ({}, {}, Difference(gone=(A, B))),
        # one check skips or does not find what the other runs
        ({A: SKIPPED, B: PASSED}, {A: PASSED}, Difference()),
        ({A: SKIPPED, B: PASSED}, {A: SKIPPED}, Difference(skipped=(A,))),
        ({A: SKIPPED}, {B: SKIPPED}, Difference(skipped=(A, B))),
        ({A: PASSED, B: PASSED}, {A: FAILED}, Difference(new_failures=(A,))),
    ],
)
def test_a_test_that_one_check_runs_is_not_lost(
    first: dict[str, Result], second: dict[str, Result], difference: Difference
) -> None:
    reference = make_known({A: PASSED, B: PASSED})
    both = (Selection(("tests",)), Selection(("tests/a", "tests/b")))
    for selections in (both, both[::-1]):
        runs = [
            make_run(results, selection)
            for results, selection in zip((first, second), selections, strict=True)
        ]
        found = reference.compare(*runs)
        assert found == difference
        assert sort_tests(reference.compare(*runs[::-1])) == sort_tests(found)


@each_row(
    ("results", "merged"),
    [
        ([PASSED, SKIPPED], PASSED),
        ([SKIPPED, SKIPPED], SKIPPED),
        ([PASSED, FAILED], FAILED),
        ([SKIPPED, FAILED], FAILED),
        ([SKIPPED, PASSED, SKIPPED], PASSED),
    ],
)
def test_the_result_of_a_test_in_several_runs(
    results: list[Result], merged: Result
) -> None:
    for order in (results, results[::-1]):
        runs = [SuiteRun(results={A: result}) for result in order]
        assert merge_runs(runs).results == {A: merged}


def test_each_test_is_known_with_the_checks_that_saw_it() -> None:
    reference = Reference().after(
        make_run({A: PASSED}, IN_A), make_run({B: PASSED}, IN_B)
    )
    assert reference.tests[A].seen_by == {IN_A}
    assert reference.tests[B].seen_by == {IN_B}
    # each of the two checks misses only its own tests
    assert reference.compare(make_run({}, IN_A)).gone == (A,)
    assert reference.compare(make_run({}, IN_B)).gone == (B,)
    again = reference.after(make_run({A: PASSED}, IN_A), make_run({B: PASSED}, IN_B))
    assert again == reference


def test_a_test_that_failed_in_one_of_two_checks_has_failed() -> None:
    for results in ((PASSED, FAILED), (FAILED, PASSED)):
        runs: Any = [SuiteRun(results={A: result}) for result in results]
        reference = make_known({A: FAILED}).after(*runs)
        assert reference.tests[A].result is FAILED


IDS = [
    f"tests/{folder}/test_{folder}.py::test_{test}" for folder in "ab" for test in "xy"
]
RESULTS = st.dictionaries(st.sampled_from(IDS), st.sampled_from(Result))
RUNS = st.lists(
    st.builds(make_run, RESULTS, st.sampled_from([Selection(), IN_A, IN_B])), max_size=3
)


@given(RESULTS, RUNS)
def test_the_order_of_the_checks_does_not_matter(
    before: dict[str, Result], runs: list[SuiteRun]
) -> None:
    reference = make_known(before)
    backwards = runs[::-1]
    assert sort_tests(reference.compare(*runs)) == sort_tests(
        reference.compare(*backwards)
    )
    assert reference.after(*runs) == reference.after(*backwards)


@given(RESULTS, RESULTS, st.sets(st.sampled_from(IDS)))
def test_a_suite_in_two_checks_is_compared_like_one(
    before: dict[str, Result], now: dict[str, Result], in_first: set[str]
) -> None:
    reference = make_known(before)
    halves: list[dict[str, Result]] = [{}, {}]
    for test, result in now.items():
        halves[test in in_first][test] = result
    split = [make_run(half, Selection()) for half in halves]
    whole = make_run(now, Selection())
    assert sort_tests(reference.compare(*split)) == sort_tests(reference.compare(whole))
    assert reference.after(*split) == reference.after(whole)
