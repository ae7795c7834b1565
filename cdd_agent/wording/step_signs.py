"""Signs and words of a step's status and evidence."""

from collections.abc import Sequence

from cdd_agent.events.step_summary import StepSummary
from cdd_agent.tickets.status import Evidence, StepStatus, Verification

STEP_GLYPHS = {
    StepStatus.PENDING: "○",
    StepStatus.IN_PROGRESS: "◐",
    StepStatus.COMPLETED: "✓",
    StepStatus.FAILED: "✗",
    StepStatus.SKIPPED: "–",
}
_UNPROVEN = "~"
"""The sign of a completed step that no tests have verified."""
REMARKS: dict[Verification | None, str] = {
    Verification.NONE: "unverified",
    Verification.EXIT_CODE: "by exit code",
    Verification.BASELINE: "old failures remain",
}
"""The remarks on completed steps, by their verification."""
SHOWN_NAMES = 6
"""The number of files, tests or parts that a list of names shows."""


def step_glyph(step: StepSummary) -> str:
    """Return the sign of a step's status."""
    if step.status is StepStatus.COMPLETED and step.verification in REMARKS:
        return _UNPROVEN
    return STEP_GLYPHS[step.status]


def step_line(step: StepSummary) -> str:
    """Return a step's sign, label and title, and a remark if there is one."""
    remark = ""
    if step.status is StepStatus.FAILED and step.error:
        remark = f"  (failed: {step.error.splitlines()[0]})"
    elif step.status is StepStatus.SKIPPED and step.reason:
        remark = f"  (skipped: {step.reason})"
    elif step.verification in REMARKS:
        remark = f"  ({REMARKS[step.verification]})"
    if step.changed:
        remark += "  (changed in the plan since)"
    return f"{step_glyph(step)} {step.label}. {step.title}{remark}"


def why(evidence: Evidence) -> str:
    """Return the evidence for a step's outcome, in a line."""
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
    new_failures = evidence.failed - evidence.old_failures
    if new_failures:
        parts.append(f"{_tests(new_failures)} failed")
    if evidence.old_failures:
        parts.append(f"{_tests(evidence.old_failures)} failed before, too")
    return ", ".join(parts) or "no test passed"


def _tests(count: int, kind: str = "") -> str:
    return f"{count} {kind}test{'s' * (count != 1)}"


def clause(error: str | None) -> str:
    """Return an error's sentence as a part of another sentence."""
    return (error or "").rstrip(".")


def first_names(names: Sequence[str], most: int = SHOWN_NAMES) -> str:
    """Return the first names, and the number of further ones."""
    shown = ", ".join(names[:most])
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown
