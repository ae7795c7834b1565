"""Changes plans by rules: completed steps stay, numbers are not reused, and everything
else is kept.

Labels identify steps, because numbers follow the order.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.tickets.criteria import (
    CriterionRef,
    find_criteria,
    name_criteria,
    served_places,
)
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_draft import ChangedStep, PlanChanges, add_ids
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.plan_writer import write_plan

_PARTS = {
    "overview": "overview",
    "total_complexity": "complexity",
    "total_estimated_time": "estimated time",
    "risks": "risks",
}


class ChangeRefused(ValueError):
    """A change breaks a rule. The message has a line for each reason, for the
    author.
    """


class FixedSteps(Struct, frozen=True):
    """The parts that a change must keep."""

    completed: frozenset[str] = frozenset()
    """Labels of the steps that were carried out."""
    used_numbers: frozenset[int] = frozenset()
    """Numbers, and numeric labels, that steps have or had. New steps need others."""
    used_ids: frozenset[str] = frozenset()
    is_begun: bool = False
    """True if a step was begun, so that its number identifies it in the run's
    record.
    """

    @property
    def next_number(self) -> int:
        return max(self.used_numbers, default=0) + 1

    def with_steps_of(self, plan: ImplementationPlan) -> Self:
        """Add the numbers and ids of a plan that is not saved yet."""
        numbers = set(self.used_numbers)
        for step in plan.steps:
            numbers.add(step.number)
            if step.label.isdigit():
                numbers.add(int(step.label))
        ids = {step.id for step in plan.steps if step.id}
        return replace(
            self, used_numbers=frozenset(numbers), used_ids=self.used_ids | ids
        )

    def with_plain_labels(self, plan: ImplementationPlan) -> Self:
        """Return the same for `plan.with_plain_labels()`."""
        numbers = [str(step.number) for step in self.completed_steps(plan)]
        return replace(self, completed=frozenset(numbers))

    def completed_steps(self, plan: ImplementationPlan) -> list[PlanStep]:
        return [step for step in plan.steps if step.label in self.completed]


def change_plan(
    plan: ImplementationPlan, changes: PlanChanges, fixed: FixedSteps
) -> ImplementationPlan:
    """Apply changes, which name steps by number. Raises `ChangeRefused`."""
    fixed = fixed.with_steps_of(plan)
    labels = _labels_by_number(plan)
    reasons = [
        *_reasons_against_removing(changes, labels),
        *_reasons_against_steps(changes, labels, fixed),
    ]
    if reasons:
        raise ChangeRefused("\n".join(reasons))
    values: dict[str, Any] = {"steps": _change_steps(plan, changes, fixed)}
    if changes.overview is not None:
        values["overview"] = changes.overview
    if changes.complexity:
        values["total_complexity"] = changes.complexity
    if changes.estimated_time:
        values["total_estimated_time"] = changes.estimated_time
    if changes.risks is not None:
        values["risks"] = changes.risks
    return replace(plan, findings=(), **values)


def name_served_criteria(
    plan: ImplementationPlan,
    before: ImplementationPlan | None,
    criteria: Sequence[str],
) -> ImplementationPlan:
    """Replace criterion numbers by words in steps that differ from `before`: words
    survive changes of the spec.
    """
    former = {step.label: step for step in before.steps} if before else {}
    steps = []
    for step in plan.steps:
        former_step = former.get(step.label)
        if former_step == step:
            steps.append(step)
        else:
            serves = _named_serves(step, former_step, criteria)
            steps.append(replace(step, serves=serves))
    return replace(plan, steps=tuple(steps))


def _named_serves(
    step: PlanStep, former_step: PlanStep | None, criteria: Sequence[str]
) -> tuple[CriterionRef, ...]:
    former = find_criteria(former_step.serves, criteria) if former_step else {}
    is_same = set(former.values()) == served_places(step.serves, criteria)
    if former_step and is_same and len(former) == len(former_step.serves):
        return former_step.serves
    return name_criteria(step.serves, criteria)


def _change_steps(
    plan: ImplementationPlan, changes: PlanChanges, fixed: FixedSteps
) -> tuple[PlanStep, ...]:
    labels = _labels_by_number(plan)
    drafts = {draft.number: draft for draft in changes.steps}
    steps = []
    for step in plan.steps:
        draft = drafts.pop(step.number, None)
        if draft:
            steps.append(_refer_by_labels(draft.to_step(step, labels), labels))
        elif step.number not in changes.removed:
            steps.append(_refer_by_labels(step, labels))
    new = [draft.to_step(labels=labels) for draft in drafts.values()]
    new = add_ids(new, plan.ticket_slug, fixed.used_ids)
    for draft, step in zip(drafts.values(), new, strict=True):
        following = _following_label(draft, labels)
        _insert_after(steps, following, _refer_by_labels(step, labels))
    return tuple(steps)


def _following_label(draft: ChangedStep, labels: Mapping[int, str]) -> str | None:
    if draft.after is None:
        return None
    return labels.get(draft.after, str(draft.after)) if draft.after else ""


def replace_plan(
    plan: ImplementationPlan, new: ImplementationPlan, fixed: FixedSteps
) -> ImplementationPlan:
    """Return `new` after the completed steps of `plan`, with the notes of `plan`.
    Raises `ChangeRefused`.

    If no step is completed, notes meant as steps or checks are dropped.
    """
    completed = fixed.completed_steps(plan)
    notes = plan.notes if completed else _notes_without_errors(plan.notes)
    new = replace(new, notes=notes)
    if not fixed.is_begun:
        return new
    used = [step.number for step in new.steps if step.number in fixed.used_numbers]
    if used:
        hint = f"is taken: new steps are numbered from {fixed.next_number} on"
        raise ChangeRefused("\n".join(f"number {number} {hint}" for number in used))
    labels = _labels_by_number(plan)
    steps = [_refer_by_labels(step, labels) for step in completed]
    completed_labels = {str(step.number): step.label for step in completed}
    for step in new.steps:
        # The new plan names completed steps by number, without containing them.
        needed = _refer_by_labels(step, {}).missing_dependencies
        labels_needed = tuple(completed_labels.get(number, number) for number in needed)
        steps.append(replace(step, dependencies=(), missing_dependencies=labels_needed))
    return replace(new, steps=tuple(steps))


def _notes_without_errors(notes: str) -> str:
    if not _has_errors(notes):
        return notes
    sections = re.split(r"\n\n(?=#{1,6} )", notes)
    notes_to_keep = "\n\n".join(
        section for section in sections if not _has_errors(section)
    )
    return "" if _has_errors(notes_to_keep) else notes_to_keep


def _has_errors(notes: str) -> bool:
    plan = ImplementationPlan(steps=(PlanStep(1),), notes=notes)
    return bool(read_plan(write_plan(plan)).errors)


def merge_plans(
    base: ImplementationPlan, wanted: ImplementationPlan, current: ImplementationPlan
) -> ImplementationPlan:
    """Apply the change from `base` to `wanted` to `current`, which the user has edited.

    Raises `ChangeRefused` if both changed the same part.
    """
    if current == base:
        return wanted
    reasons = _step_conflicts(base, wanted, current)
    values = {}
    for name, words in _PARTS.items():
        before = getattr(base, name)
        ours = getattr(wanted, name)
        theirs = getattr(current, name)
        if before not in (ours, theirs):
            reasons.append(f"the {words} was edited after the proposal")
        values[name] = theirs if ours == before else ours
    if reasons:
        raise ChangeRefused("\n".join(reasons))
    steps = _merge_steps(base, wanted, current)
    return replace(current, steps=steps, findings=(), **values)


def steps_by_label(plan: ImplementationPlan) -> dict[str, PlanStep]:
    """Return steps without numbers, which depend on the order."""
    labels = _labels_by_number(plan)
    steps = {}
    for step in plan.steps:
        steps[step.label] = replace(_refer_by_labels(step, labels), number=0)
    return steps


def _step_conflicts(
    base: ImplementationPlan, wanted: ImplementationPlan, current: ImplementationPlan
) -> list[str]:
    before = steps_by_label(base)
    ours = steps_by_label(wanted)
    theirs = steps_by_label(current)
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
    before = steps_by_label(base)
    ours = steps_by_label(wanted)
    steps = []
    for label, step in steps_by_label(current).items():
        if label not in before:
            steps.append(step)
        elif label in ours:
            steps.append(step if ours[label] == before[label] else ours[label])
    previous = ""
    for label, step in ours.items():
        if label not in before:
            _insert_after(steps, previous, step)
        previous = label
    return tuple(steps)


def _labels_by_number(plan: ImplementationPlan) -> dict[int, str]:
    labels: dict[int, str] = {}
    for step in plan.steps:
        labels.setdefault(step.number, step.label)
    return labels


def _refer_by_labels(step: PlanStep, labels: Mapping[int, str]) -> PlanStep:
    needed = [labels.get(number, str(number)) for number in step.dependencies]
    return replace(
        step,
        dependencies=(),
        missing_dependencies=(*needed, *step.missing_dependencies),
    )


def _insert_after(steps: list[PlanStep], label: str | None, new: PlanStep) -> None:
    """Insert after this label; "": first; None or unknown: last."""
    position = len(steps)
    if label == "":
        position = 0
    for index, step in enumerate(steps):
        if step.label == label:
            position = index + 1
    steps.insert(position, new)


def _reasons_against_removing(
    changes: PlanChanges, labels: Mapping[int, str]
) -> list[str]:
    drafted = {draft.number for draft in changes.steps}
    reasons = []
    for number in changes.removed:
        if number not in labels:
            reasons.append(f"there is no step {number} to remove")
        if number in drafted:
            reasons.append(f"step {number} is both changed and removed")
    return reasons


def _reasons_against_steps(
    changes: PlanChanges, labels: Mapping[int, str], fixed: FixedSteps
) -> list[str]:
    drafted = {draft.number for draft in changes.steps}
    remaining = {*labels, *drafted} - {*changes.removed}
    reasons = []
    for number in sorted({*drafted, *changes.removed}):
        if labels.get(number) in fixed.completed:
            reasons.append(
                f"step {number} is done and stays unchanged; put missing work into a"
                " new step"
            )
    seen: set[int] = set()
    for draft in changes.steps:
        number = draft.number
        is_new = number not in labels
        if is_new and draft.after and draft.after not in remaining:
            reasons.append(
                f"step {number} must follow step {draft.after}, which is not in the"
                " plan"
            )
        if number in seen:
            reasons.append(f"step {number} appears twice")
        elif is_new and number in fixed.used_numbers:
            reasons.append(
                f"number {number} belonged to another step: new steps are numbered from"
                f" {fixed.next_number} on"
            )
        seen.add(number)
    return reasons
