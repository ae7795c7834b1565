"""Change a plan by rules: completed steps stay, numbers are not reused, and the rest is
left alone.
"""

from collections.abc import Collection
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_draft import PlanChanges


class ChangeRefused(ValueError):
    """A change that breaks a rule. The message has a line for each reason, written for
    the author of the change.
    """


class FixedSteps(Struct, frozen=True):
    """The part of a plan that a change must leave alone."""

    completed: frozenset[int] = frozenset()
    """Numbers of the steps that were carried out."""
    used_numbers: frozenset[int] = frozenset()
    """Numbers that a step has or had. A new step needs another one."""
    is_begun: bool = False
    """True if a step was begun, so that its number identifies it in the record of the
    run.
    """

    @property
    def next_number(self) -> int:
        return max(self.used_numbers | self.completed, default=0) + 1

    def with_numbers_of(self, plan: ImplementationPlan) -> Self:
        """Add the numbers of a plan that is not written yet."""
        return replace(
            self, used_numbers=self.used_numbers | {step.number for step in plan.steps}
        )


def change_plan(
    plan: ImplementationPlan, changes: PlanChanges, fixed: FixedSteps
) -> ImplementationPlan:
    """Return the plan with the changes. Raises `ChangeRefused`."""
    current = {step.number: step for step in plan.steps}
    reasons = [
        *_reasons_against_removing(changes, current),
        *_reasons_against_steps(changes, current, fixed),
    ]
    if reasons:
        raise ChangeRefused("\n".join(reasons))
    new_values: dict[str, Any] = {
        "overview": changes.overview,
        "total_complexity": changes.complexity or None,
        "total_estimated_time": changes.estimated_time or None,
        "risks": changes.risks,
    }
    new_values = {
        name: value for name, value in new_values.items() if value is not None
    }
    return replace(plan, steps=_change_steps(plan, changes), **new_values)


def _change_steps(
    plan: ImplementationPlan, changes: PlanChanges
) -> tuple[PlanStep, ...]:
    drafts = {draft.number: draft for draft in changes.steps}
    steps = []
    for step in plan.steps:
        if step.number in drafts:
            steps.append(drafts.pop(step.number).to_step(step))
        elif step.number not in changes.removed:
            steps.append(step)
    for draft in drafts.values():
        _insert_after(steps, draft.after, draft.to_step())
    return tuple(steps)


def replace_plan(
    plan: ImplementationPlan, new: ImplementationPlan, fixed: FixedSteps
) -> ImplementationPlan:
    """Return `new`, with the completed steps of `plan` before its steps. Raises
    `ChangeRefused`.
    """
    if not fixed.is_begun:
        return new
    used = [step.number for step in new.steps if step.number in fixed.used_numbers]
    if used:
        hint = f"is taken: new steps are numbered from {fixed.next_number} on"
        raise ChangeRefused("\n".join(f"number {number} {hint}" for number in used))
    completed = [step for step in plan.steps if step.number in fixed.completed]
    return replace(new, steps=(*completed, *new.steps))


def merge_plans(
    base: ImplementationPlan, wanted: ImplementationPlan, current: ImplementationPlan
) -> ImplementationPlan:
    """Apply the change from `base` to `wanted` to the `current` plan, which the user
    edited since.

    Raises `ChangeRefused` if both changed the same part.
    """
    if current == base:
        return wanted
    reasons = _step_conflicts(base, wanted, current)
    values = {}
    for name in ("overview", "total_complexity", "total_estimated_time", "risks"):
        before, ours, theirs = (
            getattr(base, name),
            getattr(wanted, name),
            getattr(current, name),
        )
        if before not in (ours, theirs):
            reasons.append(
                f"the {name.removeprefix('total_').replace('_', ' ')} was edited"
                " meanwhile"
            )
        values[name] = theirs if ours == before else ours
    if reasons:
        raise ChangeRefused("\n".join(reasons))
    return replace(current, steps=_merge_steps(base, wanted, current), **values)


def _step_conflicts(
    base: ImplementationPlan, wanted: ImplementationPlan, current: ImplementationPlan
) -> list[str]:
    before, ours, theirs = _by_label(base), _by_label(wanted), _by_label(current)
    reasons = []
    for label, step in before.items():
        if step != ours.get(label) and step != theirs.get(label):
            reasons.append(
                f"step {label} has been edited, and the proposal changes it too"
            )
    for label in ours:
        if label not in before and label in theirs:
            reasons.append(f"step {label} has been added, and the proposal adds it too")
    return reasons


def _merge_steps(
    base: ImplementationPlan, wanted: ImplementationPlan, current: ImplementationPlan
) -> tuple[PlanStep, ...]:
    before, ours = _by_label(base), _by_label(wanted)
    steps = []
    for step in current.steps:
        label = step.label
        if label not in before:
            steps.append(step)
        elif label in ours:
            steps.append(step if ours[label] == before[label] else ours[label])
    previous = 0
    for step in wanted.steps:
        if step.label not in before:
            _insert_after(steps, previous, step)
        previous = step.number
    return tuple(steps)


def _by_label(plan: ImplementationPlan) -> dict[str, PlanStep]:
    return {step.label: step for step in plan.steps}


def _insert_after(steps: list[PlanStep], number: int | None, new: PlanStep) -> None:
    """Insert a step after another one; 0: before all steps; None or an unknown number:
    after all.
    """
    position = len(steps)
    if number == 0:
        position = 0
    for index, step in enumerate(steps):
        if step.number == number:
            position = index + 1
    steps.insert(position, new)


def _reasons_against_removing(
    changes: PlanChanges, current: Collection[int]
) -> list[str]:
    drafted = {draft.number for draft in changes.steps}
    reasons = []
    for number in changes.removed:
        if number not in current:
            reasons.append(f"there is no step {number} to remove")
        if number in drafted:
            reasons.append(f"step {number} is both changed and removed")
    return reasons


def _reasons_against_steps(
    changes: PlanChanges, current: Collection[int], fixed: FixedSteps
) -> list[str]:
    drafted = {draft.number for draft in changes.steps}
    remaining = {*current, *drafted} - {*changes.removed}
    reasons = []
    for number in sorted({*drafted, *changes.removed} & fixed.completed):
        reasons.append(
            f"step {number} is done and stays as it is; put what is missing into a new"
            " step"
        )
    seen: set[int] = set()
    for draft in changes.steps:
        number = draft.number
        is_new = number not in current
        if is_new and draft.after and draft.after not in remaining:
            reasons.append(
                f"step {number} is to stand behind step {draft.after}, which is not"
                " there"
            )
        if number in seen:
            reasons.append(f"step {number} is there twice")
        elif is_new and number in fixed.used_numbers:
            reasons.append(
                f"number {number} was another step's: new steps are numbered from"
                f" {fixed.next_number} on"
            )
        seen.add(number)
    return reasons
