"""The signs and words for outcomes of steps, word for word."""

from cdd_agent.tickets.outcome_words import (
    OUTCOME_WORDS,
    proof_in_words,
    remark_on,
    remarks_on,
    run_in_words,
    signs_of,
    step_proof_in_words,
    tally_in_words,
)
from cdd_agent.tickets.status import (
    Evidence,
    RunStatus,
    StepOutcome,
    Unproven,
    Verification,
)
from cdd_agent.tickets.step_tally import StepTally
from tests.support.tables import each_row

EXCUSED = Evidence("x", 1, new=1, failed=2, excused=2, excused_until="3")
MIXED = Evidence("x", 1, failed=3, old_failures=1, excused=2)


def test_each_outcome_has_a_sign_and_words_that_no_other_has() -> None:
    assert set(OUTCOME_WORDS) == set(StepOutcome)
    for name in ("sign", "counted", "remark"):
        texts = [getattr(words, name) for words in OUTCOME_WORDS.values()]
        assert len(set(texts)) == len(StepOutcome), name
    assert all(len(words.sign) == 1 for words in OUTCOME_WORDS.values())


@each_row(
    ("tally", "run", "words", "remarks", "signs"),
    [
        (StepTally(passed=1), "done", "1/1 step passed", "", ""),
        (StepTally(passed=5), "done", "5/5 steps passed", "", ""),
        (
            StepTally(passed=1, exit_code=2),
            "done",
            "1/3 steps passed, 2 by exit code",
            "2 by exit code",
            "2~",
        ),
        (
            StepTally(old_failures=1, may_fail=1),
            "done",
            "0/2 steps passed, 1 with old failures, 1 with tests that may fail",
            "1 with old failures, 1 with tests that may fail",
            "1! 1›",
        ),
        (
            StepTally(passed=2, unverified=1),
            "completed",
            "2/3 steps passed, 1 unverified",
            "1 unverified",
            "1?",
        ),
        (
            StepTally(passed=2, skipped=1),
            "completed",
            "2/3 steps passed, 1 skipped",
            "1 skipped",
            "1–",
        ),
        (
            StepTally(passed=1, unverified=1, failed=1, open=2),
            "failed",
            "1/5 steps passed, 1 unverified, 1 failed, 2 open",
            "1 unverified",
            "1?",
        ),
        (StepTally(open=3), "in progress", "0/3 steps passed, 3 open", "", ""),
    ],
)
def test_the_words_of_a_tally(
    tally: StepTally, run: str, words: str, remarks: str, signs: str
) -> None:
    status = RunStatus.COMPLETED
    if not tally.is_over:
        status = RunStatus.FAILED if tally.failed else RunStatus.IN_PROGRESS
    assert run_in_words(status, tally) == run
    assert tally_in_words(tally) == words
    assert (", ".join(remarks_on(tally)), signs_of(tally)) == (remarks, signs)


def test_tests_that_may_fail_are_no_old_failures() -> None:
    remark = remark_on(StepOutcome.MAY_FAIL, EXCUSED)
    assert remark == "2 tests may fail until step 3"
    assert remark_on(StepOutcome.OLD_FAILURES, MIXED) == "old failures remain"


def test_a_check_that_failed_before_without_a_failed_test_is_called_so() -> None:
    remark = remark_on(StepOutcome.OLD_FAILURES, Evidence("x", 9))
    assert remark == "its check also failed before"


@each_row(
    ("unproven", "proof"),
    [
        ((), "each step's tests have passed"),
        (
            (Unproven(2, "x", StepOutcome.EXIT_CODE),),
            "each step's check ended with exit code 0; no tests are known to have run in step 2",
        ),
        (
            tuple(Unproven(number, "x", StepOutcome.EXIT_CODE) for number in (1, 2, 4)),
            "each step's check ended with exit code 0; no tests are known to have run in steps 1, 2 and 4",
        ),
        (
            (
                Unproven(1, "x", StepOutcome.OLD_FAILURES),
                Unproven(2, "x", StepOutcome.EXIT_CODE),
                Unproven(3, "x", StepOutcome.MAY_FAIL, "3b"),
            ),
            "no step's check shows a new failure; no tests are known to have run in step 2; old failures remain in step 1; tests may fail in step 3b",
        ),
    ],
)
def test_what_is_shown_about_checked_steps(
    unproven: tuple[Unproven, ...], proof: str
) -> None:
    assert proof_in_words(unproven) == proof


@each_row(
    ("verification", "evidence", "words"),
    [
        (
            Verification.PASSED,
            Evidence("x", 42, new=1),
            "Verified by tests: 1 new test passed, 41 others stayed green.",
        ),
        (
            Verification.EXIT_CODE,
            Evidence("`make lint` ended with exit code 0"),
            "Checked by exit code; no test is known to have run: `make lint` ended with exit code 0.",
        ),
        (
            Verification.BASELINE,
            Evidence("x", 44, failed=2, old_failures=2),
            "Checked; old failures remain: 44 stayed green, 2 tests also failed before.",
        ),
        (
            Verification.BASELINE,
            Evidence("`pytest` ended with exit code 1, as before step 1: 60 %", 9),
            "Checked; it also failed before: `pytest` ended with exit code 1, as before step 1: 60 %.",
        ),
        (
            Verification.BASELINE,
            EXCUSED,
            "Checked; only tests fail that the plan allows to fail: 1 new test passed, 2 tests may fail until step 3.",
        ),
        (
            Verification.NONE,
            Evidence("cdd found no test runner that it knows."),
            "Not verified: cdd found no test runner that it knows.",
        ),
        (Verification.NONE, None, "Not verified."),
    ],
)
def test_what_a_commit_says_about_its_step(
    verification: Verification, evidence: Evidence | None, words: str
) -> None:
    assert step_proof_in_words(verification, evidence) == words
