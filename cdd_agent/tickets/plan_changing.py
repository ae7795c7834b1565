"""Changing a plan: what is done stays, numbers are not used again, and what nobody asked for is left alone."""

from collections.abc import Collection, Iterator
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_draft import PlanChanges
from cdd_agent.tickets.plan_step import PlanStep


class ChangeRefused(ValueError):
    """A change that would break a rule of plans, in words for whoever proposed it: a line for each reason."""


class Fixed(Struct, frozen=True):
    """The part of a plan that a change leaves alone."""

    steps: frozenset[int] = frozenset()
    """Steps that were carried out."""
    taken: frozenset[int] = frozenset()
    """Numbers that some step has or had: a new step gets another one."""
    is_begun: bool = False
    """Some step was begun, so that its number means that step in the ticket's record."""

    @property
    def next_number(self) -> int:
        return max(self.taken | self.steps, default=0) + 1

    def with_numbers_of(self, plan: ImplementationPlan) -> Self:
        """The numbers of a plan that is not written yet are taken, too."""
        return replace(self, taken=self.taken | {step.number for step in plan.steps})


def changed(plan: ImplementationPlan, changes: PlanChanges, fixed: Fixed) -> ImplementationPlan:
    """The plan with the changes. Raises `ChangeRefused`."""
    before = {step.number: step for step in plan.steps}
    if reasons := list(_reasons_against(changes, before, fixed)):
        raise ChangeRefused("\n".join(reasons))
    drafts = {step.number: step for step in changes.steps}
    steps = [
        drafts[step.number].to_step(step) if step.number in drafts else step
        for step in plan.steps
        if step.number not in changes.removed
    ]
    for draft in changes.steps:
        if draft.number not in before:
            steps.insert(_place(steps, draft.after), draft.to_step())
    return replace(
        plan,
        overview=plan.overview if changes.overview is None else changes.overview,
        total_complexity=changes.complexity or plan.total_complexity,
        total_estimated_time=changes.estimated_time or plan.total_estimated_time,
        risks=plan.risks if changes.risks is None else changes.risks,
        steps=tuple(steps),
    )


def made_anew(plan: ImplementationPlan, new: ImplementationPlan, fixed: Fixed) -> ImplementationPlan:
    """`new` in place of `plan`, behind the steps that were carried out. Raises `ChangeRefused`."""
    if not fixed.is_begun:
        return new
    if taken := [step.number for step in new.steps if step.number in fixed.taken]:
        hint = f"is taken: new steps are numbered from {fixed.next_number} on"
        raise ChangeRefused("\n".join(f"number {number} {hint}" for number in taken))
    return replace(new, steps=(*(step for step in plan.steps if step.number in fixed.steps), *new.steps))


def _place(steps: list[PlanStep], after: int | None) -> int:
    """The place of a new step; behind all if it does not say."""
    if after == 0:
        return 0
    return next((place for place, step in enumerate(steps, 1) if step.number == after), len(steps))


def _reasons_against(changes: PlanChanges, before: Collection[int], fixed: Fixed) -> Iterator[str]:
    drafted, removed = {step.number for step in changes.steps}, set(changes.removed)
    for number in sorted((drafted | removed) & fixed.steps):
        yield f"step {number} is done and stays as it is; put what is missing into a new step"
    for number in changes.removed:
        if number not in before:
            yield f"there is no step {number} to remove"
    for number in sorted(drafted & removed):
        yield f"step {number} is both changed and removed"
    here = (set(before) | drafted) - removed
    seen = set[int]()
    for step in changes.steps:
        number = step.number
        if step.after and number not in before and step.after not in here:
            yield f"step {number} is to stand behind step {step.after}, which is not there"
        if number in seen:
            yield f"step {number} is there twice"
        elif number in fixed.taken and number not in before:
            yield f"number {number} was another step's: new steps are numbered from {fixed.next_number} on"
        seen.add(number)


def carried_over(base: ImplementationPlan, wanted: ImplementationPlan, now: ImplementationPlan) -> ImplementationPlan:
    """The change from `base` to `wanted`, done to the plan as it is now: somebody has edited it meanwhile.

    Raises `ChangeRefused` where both have changed the same.
    """
    if now == base:
        return wanted
    before, present, after = ({step.number: step for step in plan.steps} for plan in (base, now, wanted))
    reasons = [
        f"step {number} was edited meanwhile, and the proposal changes it too"
        for number in before
        if before[number] != after.get(number) and before[number] != present.get(number)
    ]
    reasons += [
        f"there is another step {number} by now" for number in after if number not in before and number in present
    ]
    kept = {}
    for name in ("overview", "total_complexity", "total_estimated_time", "risks"):
        ours, theirs, was = (getattr(plan, name) for plan in (wanted, now, base))
        kept[name] = theirs if ours == was else ours
        if was not in (ours, theirs):
            reasons.append(f"the {name.removeprefix('total_').replace('_', ' ')} was edited meanwhile")
    if reasons:
        raise ChangeRefused("\n".join(reasons))
    rewritten = {number: step for number, step in after.items() if number in before and step != before[number]}
    steps = [
        rewritten.get(step.number, step) for step in now.steps if step.number in after or step.number not in before
    ]
    previous: int | None = 0
    for step in wanted.steps:
        if step.number not in before:
            steps.insert(_place(steps, previous), step)
        previous = step.number
    return replace(now, steps=tuple(steps), **kept)
