"""A plan that was edited while it is carried out: which steps are still what they were.

Steps are known by their number. What is done stays done; a done step whose text was changed is marked. What cannot be
told is which step a number means in another plan, or after the steps were numbered anew: that is refused.
"""

from collections.abc import Mapping

from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.workspace.files import digest

Known = tuple[str | None, str | None]
"""A step's title and fingerprint when it was carried out; None where an older state does not tell."""


def fingerprint(step: PlanStep) -> str:
    """What identifies what a step asks for, beside its number and title."""
    asked = (step.description, [file.path for file in step.files_affected], step.verify)
    return digest(repr(asked).encode("utf-8", "surrogatepass")) or ""


def refuse_another_plan(plan: ImplementationPlan, over: Mapping[int, Known]) -> None:
    """Raises `BadInput` if the steps that are over are not this plan's steps under their numbers."""
    strangers = [step for step in plan.steps if step.number in over and not is_same(step, over[step.number])]
    for step in strangers:
        title, _ = over[step.number]
        moved = next((other for other in plan.steps if other.title == title), None)
        if moved is not None:
            raise BadInput(
                f"Step {moved.number} of the plan, {title!r}, was carried out as step {step.number}: "
                "the steps were numbered anew",
                hint=f"Give new steps new numbers; their order comes from `**Dependencies:**`. {_START_OVER}",
            )
    here = [step for step in plan.steps if step.number in over]
    if strangers and len(strangers) == len(here):
        step = strangers[0]
        raise BadInput(
            f"The state is that of another plan: step {step.number} was {over[step.number][0]!r}, "
            f"and is {step.title!r} in plan.md",
            hint=_START_OVER,
        )


_START_OVER = "With `--start-over` the plan is carried out from its first step; the old run's record is kept."


def is_same(step: PlanStep, known: Known) -> bool:
    """Whether it is the step that was carried out, perhaps with another title or another text, but not both."""
    title, known_fingerprint = known
    return title in (None, step.title) or known_fingerprint == fingerprint(step)


def is_unchanged(step: PlanStep, known: Known) -> bool:
    title, known_fingerprint = known
    return title in (None, step.title) and known_fingerprint in (None, fingerprint(step))
