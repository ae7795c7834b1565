"""Signs and words of a step's status and evidence."""

from collections.abc import Sequence

from cdd_agent.events.step_summary import StepSummary
from cdd_agent.tickets.outcome_words import OUTCOME_WORDS, remark_on
from cdd_agent.tickets.status import StepStatus

IN_PROGRESS_SIGN = "◐"
SHOWN_NAMES = 6
"""The number of names in a shortened list."""


def step_glyph(step: StepSummary) -> str:
    if step.status is StepStatus.IN_PROGRESS:
        return IN_PROGRESS_SIGN
    return OUTCOME_WORDS[step.outcome].sign


def step_remark(step: StepSummary) -> str:
    """Return a remark on a completed step; empty if its tests passed."""
    if step.status is not StepStatus.COMPLETED:
        return ""
    return remark_on(step.outcome, step.evidence)


def step_line(step: StepSummary) -> str:
    """Return a step's sign, label and title, and a remark if there is one."""
    remark = ""
    if step.status is StepStatus.FAILED and step.error:
        remark = f"  (failed: {step.error.splitlines()[0]})"
    elif step.status is StepStatus.SKIPPED and step.reason:
        remark = f"  (skipped: {step.reason})"
    elif step_remark(step):
        remark = f"  ({step_remark(step)})"
    if step.changed:
        remark += "  (changed in the plan since it ran)"
    return f"{step_glyph(step)} {step.label}. {step.title}{remark}"


def clause(error: str | None) -> str:
    """Return an error's sentence as a part of another sentence."""
    return (error or "").rstrip(".")


def first_names(names: Sequence[str], most: int = SHOWN_NAMES) -> str:
    """Return the first names, and the number of further ones."""
    shown = ", ".join(names[:most])
    more = len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown
