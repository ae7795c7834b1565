"""What a run with a fault shows, and the score."""

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.outcomes import SuiteRun
from cdd_agent.verification.strength.fault import Fault, FaultKind
from cdd_agent.verification.strength.score import (
    FaultResult,
    Score,
    TriedFault,
    has_passed,
    judge_fault,
    limit_with_fault,
)
from tests.support.tables import each_row

NOTICED, NOT_NOTICED, NO_RESULT = FaultResult


def ran(code: int | None, output: str = "", **more: str) -> CheckRun:
    return CheckRun("make test", code, 2.0, output=output, **more)


@each_row(
    ("run", "expected"),
    [
        (ran(0), NOT_NOTICED),
        (ran(1, "FAILED test_a"), NOTICED),
        (ran(1, "error: expected 2, got 3"), NOTICED),
        (ran(-11), NOTICED),
        (ran(None), NOTICED),  # it ran too long
        (ran(None, unusable="could not be run"), NO_RESULT),
        (ran(1, "FAIL\tshop [build failed]\n"), NO_RESULT),
        (ran(101, "x\nerror: could not compile `shop` (lib)\n"), NO_RESULT),
        (ran(1, "[ERROR] COMPILATION ERROR :"), NO_RESULT),
        (ran(1, "Shop.java:3: error: missing return statement"), NO_RESULT),
        (ran(1, "Shop.cs(3,5): error CS0029: Cannot convert"), NO_RESULT),
        (ran(2, "src/a.ts(1,2): error TS2322: Type"), NO_RESULT),
        (ran(2, "shop.c:3:5: error: invalid operands"), NO_RESULT),
        (ran(1, "e: /src/Shop.kt:3:5 Type mismatch"), NO_RESULT),
        (ran(255, "PHP Parse error:  syntax error"), NO_RESULT),
    ],
)
def test_what_a_run_shows(run: CheckRun, expected: FaultResult) -> None:
    assert judge_fault(run) is expected


@each_row(
    ("run", "expected"),
    [
        (ran(0), True),
        (ran(1), False),
        (ran(None), False),
        (ran(0, problem="wrote no test report (exit code 0)"), False),
        (ran(0, unusable="watches"), False),
    ],
)
def test_faults_are_measured_against_a_run_that_passes(
    run: CheckRun, expected: bool
) -> None:
    assert has_passed(run) is expected


def test_the_limit_depends_on_the_run_without_a_fault() -> None:
    assert limit_with_fault(CheckRun("a", 0, 2.0, SuiteRun())) == 11.0


@given(st.lists(st.sampled_from(FaultResult)))
def test_the_score_counts_what_has_a_result(results: list[FaultResult]) -> None:
    tried = []
    for number, result in enumerate(results):
        kind = FaultKind.CONSTANT
        fault = Fault("a.py", number, number, number, "", kind, "words", "source")
        tried.append(TriedFault(fault, result))
    score = Score.count(reversed(tried))
    lines = [fault.line for fault in score.not_noticed]
    assert lines == [n for n, one in enumerate(results) if one is NOT_NOTICED]
    assert score.noticed == results.count(NOTICED)
    assert score.no_result == results.count(NO_RESULT)
    assert score.measured == len(results) - score.no_result
    if score.percent is None:
        assert score.measured == 0
    else:
        assert (score.percent == 100) is (not score.not_noticed)
        assert (score.percent == 0) is (100 * score.noticed < score.measured)
