"""Outcomes of steps, their tally, and the rules about them."""

from msgspec import convert, to_builtins

from cdd_agent.tickets.run_outcome import Require, accepts, refused_steps
from cdd_agent.tickets.status import (
    Evidence,
    StepOutcome,
    StepStatus,
    Unproven,
    Verification,
)
from cdd_agent.tickets.step_tally import StepTally
from tests.support.tables import each_row

EXCUSED = Evidence("x", 1, new=1, failed=2, excused=2, excused_until="3")
MIXED = Evidence("x", 1, failed=3, old_failures=1, excused=2)


@each_row(
    ("status", "verification", "evidence", "outcome"),
    [
        (StepStatus.PENDING, None, None, StepOutcome.OPEN),
        (StepStatus.IN_PROGRESS, None, None, StepOutcome.OPEN),
        (StepStatus.FAILED, None, None, StepOutcome.FAILED),
        (StepStatus.SKIPPED, None, None, StepOutcome.SKIPPED),
        (StepStatus.COMPLETED, Verification.PASSED, None, StepOutcome.PASSED),
        (StepStatus.COMPLETED, Verification.EXIT_CODE, None, StepOutcome.EXIT_CODE),
        (StepStatus.COMPLETED, Verification.NONE, None, StepOutcome.UNVERIFIED),
        (StepStatus.COMPLETED, None, None, StepOutcome.UNVERIFIED),
        (StepStatus.COMPLETED, Verification.BASELINE, None, StepOutcome.OLD_FAILURES),
        (
            StepStatus.COMPLETED,
            Verification.BASELINE,
            Evidence("x"),
            StepOutcome.OLD_FAILURES,
        ),
        (StepStatus.COMPLETED, Verification.BASELINE, MIXED, StepOutcome.OLD_FAILURES),
        (StepStatus.COMPLETED, Verification.BASELINE, EXCUSED, StepOutcome.MAY_FAIL),
        (StepStatus.COMPLETED, Verification.PASSED, EXCUSED, StepOutcome.PASSED),
    ],
)
def test_the_outcome_of_a_step(
    status: StepStatus,
    verification: Verification | None,
    evidence: Evidence | None,
    outcome: StepOutcome,
) -> None:
    assert StepOutcome.from_status(status, verification, evidence) is outcome


def test_a_tally_counts_each_step_once() -> None:
    tally = StepTally.count([*StepOutcome, StepOutcome.PASSED, StepOutcome.OPEN])
    assert [tally.number_of(outcome) for outcome in StepOutcome] == [
        *(2, 1, 1, 1),
        *(1, 1, 1, 2),
    ]
    assert (tally.completed, tally.over, tally.total) == (6, 7, 10)
    assert convert(to_builtins(tally), StepTally) == tally


@each_row(
    ("require", "accepted"),
    [
        (None, set(StepOutcome)),
        ("verified", {StepOutcome.PASSED}),
        (
            "checked",
            {
                StepOutcome.PASSED,
                StepOutcome.EXIT_CODE,
                StepOutcome.OLD_FAILURES,
                StepOutcome.MAY_FAIL,
            },
        ),
    ],
)
def test_what_a_rule_accepts(require: str | None, accepted: set[StepOutcome]) -> None:
    rule = None if require is None else convert(require, Require)
    assert {outcome for outcome in StepOutcome if accepts(rule, outcome)} == accepted
    steps = [
        Unproven(number, "x", outcome) for number, outcome in enumerate(StepOutcome)
    ]
    refused = {step.why for step in refused_steps(rule, steps)}
    assert refused == set(StepOutcome) - accepted
