"""Judge whether a run has done what its ticket asks for. All faces use this."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.served_criteria import edited_criteria
from cdd_agent.tickets.state import ExecutionState, unproven_steps
from cdd_agent.tickets.status import EditedCriterion, MissingWork, RunStatus, Unproven


class RunOutcome(Struct, frozen=True):
    """The status of a run, and what speaks against it."""

    status: RunStatus
    unproven: tuple[Unproven, ...]
    """The steps that were skipped, are unverified, or left old failures."""
    edited_criteria: tuple[EditedCriterion, ...]
    """The criteria that are new or were changed since all steps were over."""


def reasons_against(
    unproven: Sequence[Unproven], edited: Sequence[EditedCriterion]
) -> tuple[str, ...]:
    """Return why a run does not hold what `require: verified` asks for, for users."""
    reasons = []
    if unproven:
        reasons.append("not each step's tests have passed")
    for criterion in edited:
        reasons.append(f"criterion {criterion.place} is {criterion.edit}")
    return tuple(reasons)


def how_to_serve(slug: str, edited: Sequence[EditedCriterion]) -> str:
    """Return the advice for criteria whose present words no step serves."""
    it, it_is = ("it", "it is") if len(edited) == 1 else ("them", "they are")
    return (
        f"No step serves {it} as {it_is} now. Add a step whose `**Serves:**` names"
        f" {it}: `/plan {slug}` in the shell, `cdd plan {slug} --regenerate`, or by"
        " hand."
    )


def judge_run(
    plan: ImplementationPlan,
    state: ExecutionState,
    criteria: Sequence[str],
    require: Literal["verified"] | None = None,
    missing: Sequence[MissingWork] = (),
) -> RunOutcome:
    """Judge a run by the criteria of the spec as it is now. With `require`, every step
    must be proved by tests. `missing` is the work that the project's tree does not
    have.
    """
    unproven = unproven_steps(plan, state)
    status = state.status
    edited: tuple[EditedCriterion, ...] = ()
    if status is RunStatus.COMPLETED:
        edited = edited_criteria(plan, state, criteria)
    if missing or (require and (unproven or edited)):
        status = RunStatus.FAILED
    elif edited:
        status = RunStatus.IN_PROGRESS
    return RunOutcome(status, unproven, edited)
