"""Judges whether a run did what its ticket asks for, for all user interfaces."""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.served_criteria import edited_criteria
from cdd_agent.tickets.state import ExecutionState, unproven_steps
from cdd_agent.tickets.status import (
    EditedCriterion,
    MissingWork,
    RunStatus,
    StepOutcome,
    Unproven,
)

Require = Literal["verified", "checked"]
"""A run's requirement for each step: passed tests, or at least a check."""
_ACCEPTED: Mapping[Require, frozenset[StepOutcome]] = {
    "verified": frozenset({StepOutcome.PASSED}),
    "checked": frozenset(
        {
            StepOutcome.PASSED,
            StepOutcome.EXIT_CODE,
            StepOutcome.OLD_FAILURES,
            StepOutcome.MAY_FAIL,
        }
    ),
}
WITHOUT_PROOF: Mapping[Require, str] = {
    "verified": "no tests have shown that",
    "checked": "no check has shown that",
}
"""Why a step is not accepted; `it is done` follows."""
_NOT_HELD: Mapping[Require, str] = {
    "verified": "not each step's tests have passed",
    "checked": "not each step was checked",
}


class RunOutcome(Struct, frozen=True):
    """A run's status, and reasons against it."""

    status: RunStatus
    unproven: tuple[Unproven, ...]
    """Finished or failed steps without passed tests."""
    edited_criteria: tuple[EditedCriterion, ...]
    """Criteria that are new or changed since all steps were over."""


def accepts(require: Require | None, outcome: StepOutcome) -> bool:
    return require is None or outcome in _ACCEPTED[require]


def refused_steps(
    require: Require | None, unproven: Sequence[Unproven]
) -> tuple[Unproven, ...]:
    """Return the steps that the rule rejects."""
    return tuple(step for step in unproven if not accepts(require, step.why))


def reasons_against(
    require: Require | None,
    unproven: Sequence[Unproven],
    edited: Sequence[EditedCriterion],
) -> tuple[str, ...]:
    """Return why a run fails its rule, for users."""
    reasons = []
    if require is not None and refused_steps(require, unproven):
        reasons.append(_NOT_HELD[require])
    for criterion in edited:
        reasons.append(f"criterion {criterion.place} is {criterion.edit}")
    return tuple(reasons)


def how_to_serve(slug: str, edited: Sequence[EditedCriterion]) -> str:
    """Return advice for criteria whose current words no step serves."""
    it, its = ("it", "its") if len(edited) == 1 else ("them", "their")
    return (
        f"No step serves {its} current wording. Add a step whose `**Serves:**` names"
        f" {it}: `/plan {slug}` in the shell, `cdd plan {slug} --regenerate`, or by"
        " hand."
    )


def judge_run(
    plan: ImplementationPlan,
    state: ExecutionState,
    criteria: Sequence[str],
    require: Require | None = None,
    missing: Sequence[MissingWork] = (),
) -> RunOutcome:
    """Judge by the current criteria and the rule `require`. `missing` is work that the
    project's tree lacks.
    """
    unproven = unproven_steps(plan, state)
    status = state.status
    edited: tuple[EditedCriterion, ...] = ()
    if status is RunStatus.COMPLETED:
        edited = edited_criteria(plan, state, criteria)
    is_refused = bool(refused_steps(require, unproven) or (require and edited))
    if missing or is_refused:
        status = RunStatus.FAILED
    elif edited:
        status = RunStatus.IN_PROGRESS
    return RunOutcome(status, unproven, edited)
