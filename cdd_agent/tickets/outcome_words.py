"""Signs and words for outcomes of steps, for all user interfaces, reports and
commits.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from cdd_agent.tickets.status import (
    Evidence,
    RunStatus,
    StepOutcome,
    Unproven,
    Verification,
)
from cdd_agent.tickets.step_tally import StepTally


class OutcomeWords(Struct, frozen=True):
    sign: str
    remark: str
    """A remark on a completed step; may be empty."""
    counted: str
    """Follows a number of steps, as in `2 by exit code`."""


OUTCOME_WORDS = {
    StepOutcome.PASSED: OutcomeWords("✓", "", "passed"),
    StepOutcome.EXIT_CODE: OutcomeWords("~", "by exit code", "by exit code"),
    StepOutcome.OLD_FAILURES: OutcomeWords(
        "!", "old failures remain", "with old failures"
    ),
    StepOutcome.MAY_FAIL: OutcomeWords(
        "›", "tests may fail", "with tests that may fail"
    ),
    StepOutcome.UNVERIFIED: OutcomeWords("?", "unverified", "unverified"),
    StepOutcome.SKIPPED: OutcomeWords("–", "skipped", "skipped"),
    StepOutcome.FAILED: OutcomeWords("✗", "failed", "failed"),
    StepOutcome.OPEN: OutcomeWords("○", "open", "open"),
}
_TO_REMARK = (
    StepOutcome.EXIT_CODE,
    StepOutcome.OLD_FAILURES,
    StepOutcome.MAY_FAIL,
    StepOutcome.UNVERIFIED,
    StepOutcome.SKIPPED,
)
"""Outcomes of finished steps that tests did not prove."""


def remark_on(outcome: StepOutcome, evidence: Evidence | None = None) -> str:
    """Return a remark on a finished step; empty if its tests passed."""
    if outcome is StepOutcome.MAY_FAIL and evidence is not None:
        return excused_in_words(evidence)
    if _failed_before(outcome, evidence):
        return "its check also failed before"
    return OUTCOME_WORDS[outcome].remark


def _failed_before(outcome: StepOutcome, evidence: Evidence | None) -> bool:
    is_old = outcome is StepOutcome.OLD_FAILURES
    return is_old and evidence is not None and not evidence.failed


def remarks_on(tally: StepTally) -> list[str]:
    """Count finished steps without passed tests, such as `1 by exit code`."""
    return _counted(tally, _TO_REMARK)


def signs_of(tally: StepTally) -> str:
    """Like `remarks_on`, with signs."""
    counts = []
    for outcome in _TO_REMARK:
        number = tally.number_of(outcome)
        if number:
            counts.append(f"{number}{OUTCOME_WORDS[outcome].sign}")
    return " ".join(counts)


def run_in_words(status: RunStatus, tally: StepTally) -> str:
    """A run with unverified or skipped steps is not "done"."""
    if status is RunStatus.COMPLETED:
        return "done" if tally.is_done else "completed"
    return status.value.replace("_", " ")


def tally_in_words(tally: StepTally) -> str:
    """Count all outcomes: `2/3 steps passed, 1 skipped`."""
    others = [outcome for outcome in StepOutcome if outcome is not StepOutcome.PASSED]
    steps = "step" if tally.total == 1 else "steps"
    first = f"{tally.passed}/{tally.total} {steps} passed"
    return ", ".join([first, *_counted(tally, others)])


def steps_since(tally: StepTally) -> str:
    """Count steps that ended in a period: `2 steps passed, 1 failed`; empty without
    any.
    """
    first, *others = _counted(tally, StepOutcome) or [""]
    number, _, words = first.partition(" ")
    if not words:
        return ""
    steps = "step" if number == "1" else "steps"
    return ", ".join([f"{number} {steps} {words}", *others])


def _counted(tally: StepTally, outcomes: Iterable[StepOutcome]) -> list[str]:
    counts = []
    for outcome in outcomes:
        number = tally.number_of(outcome)
        if number:
            counts.append(f"{number} {OUTCOME_WORDS[outcome].counted}")
    return counts


def steps_by_outcome(unproven: Sequence[Unproven]) -> dict[str, list[Unproven]]:
    """Group steps without passed tests by remark."""
    steps: dict[str, list[Unproven]] = {}
    for step in unproven:
        steps.setdefault(OUTCOME_WORDS[step.why].remark, []).append(step)
    return steps


def proof_in_words(unproven: Sequence[Unproven]) -> str:
    """Return a sentence about a run whose steps are all checked. `unproven` are those
    without passed tests.
    """
    if not unproven:
        return "each step's tests have passed"
    labels: dict[StepOutcome, list[str]] = {}
    for step in unproven:
        labels.setdefault(step.why, []).append(step.label)
    clauses = ["each step's check ended with exit code 0"]
    if labels.keys() - {StepOutcome.EXIT_CODE}:
        clauses = ["no step's check shows a new failure"]
    for outcome, words in _PROOF_WORDS.items():
        if outcome in labels:
            clauses.append(f"{words} in {steps_in_words(labels[outcome])}")
    return "; ".join(clauses)


_PROOF_WORDS = {
    StepOutcome.EXIT_CODE: "no tests are known to have run",
    StepOutcome.OLD_FAILURES: "old failures remain",
    StepOutcome.MAY_FAIL: "tests may fail",
}


def steps_in_words(labels: Sequence[str]) -> str:
    """Format labels: `steps 1, 2 and 3`."""
    if len(labels) == 1:
        return f"step {labels[0]}"
    return f"steps {', '.join(labels[:-1])} and {labels[-1]}"


def step_proof_in_words(
    verification: Verification, evidence: Evidence | None = None
) -> str:
    """Return a sentence about a completed step."""
    outcome = StepOutcome.from_verification(verification, evidence)
    proof = _STEP_PROOFS[outcome]
    if evidence is None:
        return f"{proof}."
    if _failed_before(outcome, evidence):
        return f"Checked; it also failed before: {evidence.reason.rstrip('.')}."
    return f"{proof}: {evidence_in_words(evidence).rstrip('.')}."


_STEP_PROOFS = {
    StepOutcome.PASSED: "Verified by tests",
    StepOutcome.EXIT_CODE: "Checked by exit code; no test is known to have run",
    StepOutcome.OLD_FAILURES: "Checked; old failures remain",
    StepOutcome.MAY_FAIL: "Checked; only tests fail that the plan allows to fail",
    StepOutcome.UNVERIFIED: "Not verified",
}


def evidence_in_words(evidence: Evidence) -> str:
    """Return a step's evidence in one line."""
    if evidence.passed is None:
        return evidence.reason
    parts = []
    if evidence.fixed:
        parts.append(f"{_tests(evidence.fixed)} went red → green")
    if evidence.new:
        parts.append(f"{_tests(evidence.new, 'new ')} passed")
    if evidence.stayed:
        others = ""
        if parts:
            others = " other" if evidence.stayed == 1 else " others"
        parts.append(f"{evidence.stayed}{others} stayed green")
    if evidence.new_failures:
        parts.append(f"{_tests(evidence.new_failures)} failed")
    if evidence.excused:
        parts.append(excused_in_words(evidence))
    if evidence.old_failures:
        parts.append(f"{_tests(evidence.old_failures)} also failed before")
    return ", ".join(parts) or "no test passed"


def excused_in_words(evidence: Evidence) -> str:
    """Return how many tests may fail by the plan."""
    tests = _tests(evidence.excused)
    if evidence.excused_until:
        return f"{tests} may fail until step {evidence.excused_until}"
    return f"{tests} may fail by the plan"


def _tests(count: int, kind: str = "") -> str:
    return f"{count} {kind}test{'s' * (count != 1)}"
