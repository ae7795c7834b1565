"""A plan that was edited while it is carried out: which steps are still what they were, and under which numbers.

A step that was begun is recognised by its words (title and text), also where plan.md was renumbered: steps were
inserted, removed, or put in another order. What is done stays done; a done step of which only the title or the text was
changed stays under its number, and is marked. What cannot be told is refused, with the steps that it is about.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import digest
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_step import PlanStep

Known = tuple[str | None, str | None]
"""A step's title and fingerprint when it was carried out; None where an older state does not tell."""
_START_OVER = "With `--start-over` the plan is carried out from its first step; the old run's record is kept."
_LEAVE = f"Leave title and text of done steps as they were, or their numbers. {_START_OVER}"


def fingerprint(step: PlanStep) -> str:
    """A digest of all that a step asks for, beside its number and title."""
    asked = (step.description, [file.path for file in step.files_affected], step.verify)
    return digest(repr(asked).encode("utf-8", "surrogatepass")) or ""


def places(
    plan: ImplementationPlan, begun: Mapping[int, Known], over: Collection[int], former: Mapping[int, Known]
) -> dict[int, int]:
    """The numbers that steps have now, by those they had: in the plan, or for one that is not there, a free one.

    `begun` are the plan's steps so far, `over` those of them that are done, `former` those that had been removed.
    Raises `BadInput` where it cannot be told what became of a step that is done.
    """
    steps = {step.number: step for step in plan.steps}
    found, unclear = _by_words(plan.steps, begun)
    was_renumbered = any(old != new for old, new in found.items())
    was_retitled = any(words[0] not in (None, steps[n].title) for n, words in begun.items() if n in steps)
    unknown = [f"step {number}" for number in sorted(over) if begun[number][0] is None]
    if unknown and (was_renumbered or was_retitled):
        why = "Steps in plan.md have other numbers or titles now, and the state does not tell which one was"
        hint = f"Give the steps their former numbers and titles back. {_START_OVER}"
        raise BadInput(f"{why} {', '.join(unknown)}", hint=hint)
    texts = Counter(fingerprint(step) for step in plan.steps)
    stay = {
        number
        for number, words in begun.items()
        if number in steps
        and is_same(steps[number], words)
        # Steps of few words may have the same text: after a renumbering it is no sign.
        and not (was_renumbered and words[0] != steps[number].title and words[1] and texts[words[1]] > 1)
    }
    left = [step for step in plan.steps if step.number not in {*found.values(), *stay}]
    found |= _by_words(left, former)[0]
    strangers = []
    for number, words in sorted(begun.items()):
        own = steps.get(number) if number not in found.values() else None
        if number in found or number in unclear or (own and number in stay):
            continue
        taken = {*found.values(), *stay}
        alike = [step.number for step in plan.steps if step.title == words[0] and step.number not in taken]
        if number in over and alike:
            unclear[number] = alike
        elif number in over and own:
            strangers.append(number)
        elif len(alike) == 1:  # it is not done: nothing is lost if it is another one
            found[number] = alike[0]
    if unclear_over := {number: there for number, there in unclear.items() if number in over}:
        _refuse(unclear_over, steps, begun)
    if strangers and (was_renumbered or len(strangers) == len([number for number in over if number in steps])):
        was = "; ".join(f"step {n} was {begun[n][0]!r}, and is {steps[n].title!r} in plan.md" for n in strangers)
        if not was_renumbered:
            raise BadInput(f"The state is that of another plan: {was}", hint=_START_OVER)
        lost = "The steps in plan.md were renumbered, and it cannot be told what became of some that are done"
        raise BadInput(f"{lost}: {was}", hint=_LEAVE)
    return _with_free_numbers(steps, begun, former, found)


def is_same(step: PlanStep, known: Known) -> bool:
    """Whether it is the step that was carried out, perhaps with another title or another text, but not both.

    One of which nothing is known is taken for it."""
    title, known_fingerprint = known
    return title in (None, step.title) or known_fingerprint == fingerprint(step)


def is_unchanged(step: PlanStep, known: Known) -> bool:
    title, known_fingerprint = known
    return title in (None, step.title) and known_fingerprint in (None, fingerprint(step))


def _by_words(steps: Collection[PlanStep], known: Mapping[int, Known]) -> tuple[dict[int, int], dict[int, list[int]]]:
    """Where the steps are whose title and text are unchanged; and those that could be several, with which.

    As many steps with the same words as before are the same ones, in their order.
    """
    said, meant = defaultdict[Known, list[int]](list), defaultdict[Known, list[int]](list)
    for step in sorted(steps, key=lambda step: step.number):
        said[step.title, fingerprint(step)].append(step.number)
    for number, words in sorted(known.items()):
        if None not in words and words in said:
            meant[words].append(number)
    found, unclear = dict[int, int](), dict[int, list[int]]()
    for words, numbers in meant.items():
        if set(numbers) <= set(said[words]):
            found |= {number: number for number in numbers}
        elif len(numbers) == len(said[words]):
            found |= zip(numbers, said[words], strict=True)
        else:
            unclear |= dict.fromkeys(numbers, said[words])
    return found, unclear


def _with_free_numbers(
    steps: Mapping[int, PlanStep], begun: Mapping[int, Known], former: Mapping[int, Known], found: Mapping[int, int]
) -> dict[int, int]:
    """The same, and where all the other steps are: one whose number is another step's by now gets a free one."""
    after, taken = dict(found), set(found.values())
    free = max((*steps, *begun, *former, *taken), default=0) + 1
    for number, words in sorted({**former, **begun}.items()):
        if number in found:
            continue
        own = steps.get(number)
        is_there = own is None or number in begun or (words[0] is not None and is_same(own, words))
        if number not in taken and is_there:
            after[number] = number
        else:
            after[number], free = free, free + 1
        taken.add(after[number])
    return after


def _refuse(unclear: Mapping[int, list[int]], steps: Mapping[int, PlanStep], known: Mapping[int, Known]) -> None:
    lines = []
    for number, there in sorted(unclear.items()):
        names = " and ".join(f"step {other}" for other in there)
        why = "they say the same" if len(there) > 1 else "its text is another one"
        if len(there) == 1 and is_unchanged(steps[there[0]], known[number]):
            why = "more than one step that said this was carried out"
        lines.append(f"step {number} ({known[number][0]!r}) was carried out, and could be {names} now: {why}")
    raise BadInput(
        "The steps in plan.md were renumbered, and it cannot be told which are done:\n" + "\n".join(lines),
        hint=_LEAVE,
    )
