"""Matches steps of an edited plan with begun ones.

Ids decide if plan and state have them; else title and text, else the title. So steps
may be inserted, removed and moved. A step with an edited title is recognised by its
number. A plan that leaves a completed step unclear is refused.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import digest
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep

_START_OVER = (
    "To run the plan from its first step, use `--start-over`; the old run's record is"
    " kept."
)
_RENUMBERED = "The steps in plan.md were renumbered, and cdd cannot tell which are done"
_RESTORE = f"Restore the title and text of done steps, or their numbers. {_START_OVER}"


class StepIdentity(Struct, frozen=True):
    """The identity of a step when it ran. Title and fingerprint are None in older
    states.
    """

    title: str | None = None
    fingerprint: str | None = None
    id: str = ""

    def is_other(self, step: PlanStep) -> bool:
        """True if both have ids that differ."""
        return bool(self.id and step.id) and self.id != step.id

    def is_same(self, step: PlanStep) -> bool:
        """Compare ids; without them, true if title or text is unchanged or unknown."""
        if self.id and step.id:
            return self.id == step.id
        return self.title in (None, step.title) or self.fingerprint == fingerprint(step)

    def is_unchanged(self, step: PlanStep) -> bool:
        """True if title and text are unchanged, as far as known."""
        return self.title in (None, step.title) and self.fingerprint in (
            None,
            fingerprint(step),
        )


def fingerprint(step: PlanStep) -> str:
    """Return a digest of the step's content, without number and title."""
    content = (
        step.description,
        [file.place for file in step.files_affected],
        step.check_lines,
    )
    return digest(repr(content).encode("utf-8", "surrogatepass")) or ""


def match_steps(
    plan: ImplementationPlan,
    begun: Mapping[int, StepIdentity],
    completed: Collection[int],
    former: Mapping[int, StepIdentity],
) -> dict[int, int]:
    """Return old number → new number. A step missing from the plan gets a free number.

    `begun` are the previous plan's steps, `completed` those that are over, `former`
    those removed earlier. Raises `BadInput` if a completed step cannot be recognised.
    """
    numbers = _match(plan.steps, begun)
    edited = _find_edited(plan, begun, completed, numbers)
    _check_replaced(plan, begun, completed, numbers)
    if any(old != new for old, new in numbers.items()):
        _check_renumbered(edited, begun, completed)
    else:
        _check_edited(
            edited, begun, has_matches=any(number in numbers for number in completed)
        )
    numbers |= {number: number for number in edited}
    new_steps = [step for step in plan.steps if step.number not in numbers.values()]
    numbers |= _match(new_steps, former)
    return _add_free_numbers(plan, begun, former, numbers)


def match_versions(
    before: ImplementationPlan, after: ImplementationPlan
) -> dict[int, int]:
    """Return number in `before` → number in `after`. With another title, the same label
    decides.
    """
    identities = {}
    for step in before.steps:
        identities[step.number] = StepIdentity(step.title, fingerprint(step), step.id)
    numbers = _match(after.steps, identities)
    for step in before.steps:
        candidate = after.find_step(step.label)
        if candidate is None or step.number in numbers:
            continue
        is_free = candidate.number not in numbers.values()
        if is_free and not identities[step.number].is_other(candidate):
            numbers[step.number] = candidate.number
    return numbers


def _find_edited(
    plan: ImplementationPlan,
    begun: Mapping[int, StepIdentity],
    completed: Collection[int],
    numbers: Mapping[int, int],
) -> dict[int, PlanStep]:
    """Return steps with the number of a completed step and another title. Refuse
    ambiguous titles.
    """
    edited = {}
    ambiguous = []
    for number in sorted(set(completed) - numbers.keys()):
        identity = begun[number]
        candidates = []
        for step in plan.steps:
            if step.title == identity.title and not identity.is_other(step):
                candidates.append(f"step {step.label}")
        if candidates:
            ambiguous.append(
                f"step {number} ({identity.title!r}) is done, and could now be"
                f" {' or '.join(candidates)}"
            )
        for step in plan.steps:
            is_free = number not in numbers.values() and not identity.is_other(step)
            if step.number == number and is_free:
                edited[number] = step
    if ambiguous:
        raise BadInput(
            "\n".join([f"{_RENUMBERED}:", *ambiguous]),
            hint=_RESTORE,
            refusal=Refusal.PLAN_CHANGED,
        )
    return edited


def _check_replaced(
    plan: ImplementationPlan,
    begun: Mapping[int, StepIdentity],
    completed: Collection[int],
    numbers: Mapping[int, int],
) -> None:
    if any(number in numbers for number in completed):
        return
    replaced = []
    for step in plan.steps:
        if step.number in completed and begun[step.number].is_other(step):
            replaced.append(f"step {step.number} was {begun[step.number].title!r}")
    if replaced and len(replaced) == len(completed):
        raise BadInput(
            f"The saved state belongs to another plan: {'; '.join(replaced)}",
            hint=_START_OVER,
            refusal=Refusal.PLAN_CHANGED,
        )


def _check_renumbered(
    edited: Mapping[int, PlanStep],
    begun: Mapping[int, StepIdentity],
    completed: Collection[int],
) -> None:
    changes = _describe_edits(edited, begun)
    for number in completed:
        if begun[number].title is None:
            changes.append(f"step {number} has no known title")
    if changes:
        raise BadInput(
            f"{_RENUMBERED}: {'; '.join(changes)}",
            hint=_RESTORE,
            refusal=Refusal.PLAN_CHANGED,
        )


def _check_edited(
    edited: Mapping[int, PlanStep],
    begun: Mapping[int, StepIdentity],
    *,
    has_matches: bool,
) -> None:
    """Refuse a plan without any completed step, and edited titles if former titles are
    unknown.
    """
    changes = "; ".join(_describe_edits(edited, begun))
    is_same = any(begun[number].is_same(step) for number, step in edited.items())
    if edited and not has_matches and not is_same:
        raise BadInput(
            f"The saved state belongs to another plan: {changes}",
            hint=_START_OVER,
            refusal=Refusal.PLAN_CHANGED,
        )
    if len({begun[number].title is None for number in edited}) == 2:
        why = "Titles in plan.md have changed, and the state lacks some former titles"
        raise BadInput(f"{why}: {changes}", hint=_RESTORE, refusal=Refusal.PLAN_CHANGED)


def _describe_edits(
    edited: Mapping[int, PlanStep], begun: Mapping[int, StepIdentity]
) -> list[str]:
    changes = []
    for number, step in edited.items():
        changes.append(
            f"step {number} was {begun[number].title!r}, and is {step.title!r} in"
            " plan.md"
        )
    return changes


def _match(
    steps: Iterable[PlanStep], identities: Mapping[int, StepIdentity]
) -> dict[int, int]:
    """Match by id, then by title and text, then by title. Different ids never match."""
    numbers_by_id = {step.id: step.number for step in steps if step.id}
    matches: dict[int, int] = {}
    with_id: dict[int, StepIdentity] = {}
    without_id: dict[int, StepIdentity] = {}
    for number, identity in identities.items():
        if identity.title is None:
            continue
        if identity.id in numbers_by_id:
            matches[number] = numbers_by_id[identity.id]
        elif identity.id:
            with_id[number] = identity
        else:
            without_id[number] = identity
    free_steps = [step for step in steps if step.number not in matches.values()]
    matches |= _match_texts(free_steps, without_id)
    for step in list(free_steps):
        if step.id or step.number in matches.values():
            free_steps.remove(step)
    return matches | _match_texts(free_steps, with_id)


def _match_texts(
    steps: Iterable[PlanStep], identities: Mapping[int, StepIdentity]
) -> dict[int, int]:
    new = {step.number: (step.title, fingerprint(step)) for step in steps}
    old = {
        number: (identity.title, identity.fingerprint)
        for number, identity in identities.items()
    }
    matches = _match_keys(new, old)
    new_titles = {
        number: key[0] for number, key in new.items() if number not in matches.values()
    }
    old_titles = {
        number: key[0] for number, key in old.items() if number not in matches
    }
    return matches | _match_keys(new_titles, old_titles)


def _match_keys(
    new: Mapping[int, Hashable], old: Mapping[int, Hashable]
) -> dict[int, int]:
    """Match equal keys under the same number, or any number if unique."""
    by_key = {key: number for number, key in new.items()}
    new_counts = Counter(new.values())
    old_counts = Counter(old.values())
    matches = {}
    for number, key in old.items():
        if new.get(number) == key:
            matches[number] = number
        elif new_counts[key] == old_counts[key] == 1:
            matches[number] = by_key[key]
    return matches


def _add_free_numbers(
    plan: ImplementationPlan,
    begun: Mapping[int, StepIdentity],
    former: Mapping[int, StepIdentity],
    numbers: Mapping[int, int],
) -> dict[int, int]:
    """Add unmatched steps, under their number if it is free."""
    result = dict(numbers)
    steps = {step.number: step for step in plan.steps}
    next_free = max((*steps, *begun, *former, *result.values()), default=0) + 1
    for number, identity in sorted({**former, **begun}.items()):
        if number in result:
            continue
        step = steps.get(number)
        if _is_replaced(step, identity, is_begun=number in begun) or (
            number in result.values()
        ):
            result[number] = next_free
            next_free += 1
        else:
            result[number] = number
    return result


def _is_replaced(
    step: PlanStep | None, identity: StepIdentity, *, is_begun: bool
) -> bool:
    if step is None:
        return False
    if is_begun:
        return identity.is_other(step)
    return identity.title is None or not identity.is_same(step)
