"""Changing plan.md without touching what a person wrote: only the sections that are different are written anew.

Everything else stays byte for byte: introductions, comments, sections of other kinds, the steps that nobody changed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_labels import Field
from cdd_agent.tickets.plan_parser import ParsedPlan, ParsedStep, parse_plan
from cdd_agent.tickets.plan_wrapping import wrapped_again
from cdd_agent.tickets.plan_writing import overview_block, risks_block, step_blocks


class _Edit(Struct, frozen=True):
    """A text to stand in place of some lines of the file."""

    lines: range
    text: str = ""
    is_block: bool = True
    """Blank lines are to stand around it."""


class WordsLost(BadInput):
    """A change of a plan by which something that a person wrote in it would be lost."""

    def __init__(self) -> None:
        super().__init__(
            "The plan cannot be changed like that without losing something you wrote in it",
            hint="Change it by hand, or `regenerate` it; the present plan is kept then.",
        )


def rewritten(text: str, wanted: ImplementationPlan) -> str:
    """`text`, which is a plan.md, changed so that it says what `wanted` does.

    A step that stays keeps its words: where these tell its dependencies by its place ("all previous steps"), they
    mean the steps that come before it from now on. The words below the title stay, too, and another overview stands
    behind them. What a plan is wrapped in stays around it. Raises `BadInput` where something would be lost.
    """
    parsed = parse_plan(text)
    old = ImplementationPlan.of(parsed)
    numbers = [step.number for step in old.steps]
    if twice := [number for number, times in Counter(numbers).items() if times > 1]:
        raise BadInput(f"Step {twice[0]} is there twice in the plan", hint="Fix that by hand, or `regenerate` it.")
    staying = [step.number for step in wanted.steps if step.number in numbers]
    if staying != [number for number in numbers if number in staying]:
        raise BadInput(
            "The steps would change places, and with them what you wrote around them",
            hint="Their order comes from `**Dependencies:**`; to move a section, do it by hand.",
        )
    if not f"{wanted.overview}\n\n".startswith(f"{parsed.introduction}\n\n"):
        wanted = replace(wanted, overview="\n\n".join(filter(None, (parsed.introduction, wanted.overview))))
    edits = [*_top_edits(old, wanted, parsed), *_step_edits(wanted, parsed)]
    if wanted.risks != old.risks:
        edits.append(_section(parsed.risks_at, parsed.lines.stop, "Risks & Considerations", risks_block(wanted.risks)))
    after = _wrapped(parsed, edits)
    read = ImplementationPlan.from_markdown(after)
    before = {step.number: step for step in old.steps}
    stays = {step.number for step in wanted.steps if before.get(step.number) == step}
    if _compared(read, wanted, stays) != _compared(wanted, wanted, stays):
        raise WordsLost
    return after


def step_section(text: str, number: int) -> str:
    """The lines of one step in a plan.md, from its heading on. Raises `BadInput` where there is not one such step."""
    parsed = parse_plan(text)
    at = _only(parsed, number).written
    return "".join(parsed.source[at.start : at.stop])


def with_step_section(text: str, number: int, section: str) -> str:
    """`text`, which is a plan.md, with other lines for one step, and all other lines as they are.

    Raises `BadInput` where these lines are not just that step.
    """
    parsed = parse_plan(text)
    at, old = _only(parsed, number).written, ImplementationPlan.of(parsed)
    edits = [_Edit(at, section.strip("\r\n").replace("\r\n", "\n"), is_block=False)]
    after = _wrapped(parsed, edits)
    new = ImplementationPlan.from_markdown(after)
    found = [step.number for step in new.steps]
    if found != [step.number for step in old.steps]:
        raise BadInput(
            f"The text has to be step {number}, and no other one",
            hint=f"It begins with the heading `### Step {number}: …`, and no other heading in it begins with `Step`.",
        )
    others = [tuple(step for step in plan.steps if step.number != number) for plan in (old, new)]
    if others[0] != others[1] or replace(old, steps=()) != replace(new, steps=()):
        raise BadInput(
            f"With this text of step {number} the rest of the plan would read differently",
            hint="Is a code block in it not closed, or has a heading of another section come into it?",
        )
    return after


def _only(parsed: ParsedPlan, number: int) -> ParsedStep:
    found = [step for step in parsed.steps if step.step.number == number]
    if len(found) != 1:
        times = f"{len(found)} times" if found else "no more"
        raise BadInput(f"Step {number} is there {times} in the plan", hint="Look at plan.md.")
    return found[0]


def _wrapped(parsed: ParsedPlan, edits: Iterable[_Edit]) -> str:
    """The whole text with the edits."""
    plan = _applied(parsed.source, parsed.lines, edits)
    return wrapped_again(parsed.source[: parsed.lines.start], plan, parsed.source[parsed.lines.stop :])


def _compared(plan: ImplementationPlan, wanted: ImplementationPlan, stays: set[int]) -> ImplementationPlan:
    """The plan without what need not be equal: the dependencies that a step whose words stay tells by its place."""
    steps = tuple(replace(step, dependencies=()) if step.number in stays else step for step in plan.steps)
    return replace(plan, steps=steps, ticket_slug=plan.ticket_slug or wanted.ticket_slug)


def _top_edits(old: ImplementationPlan, wanted: ImplementationPlan, parsed: ParsedPlan) -> Iterator[_Edit]:
    """The totals, then the overview: a new one stands below them."""
    totals = [
        (Field.COMPLEXITY, "Complexity", old.total_complexity, wanted.total_complexity),
        (Field.ESTIMATED_TIME, "Estimated Time", old.total_estimated_time, wanted.total_estimated_time),
    ]
    known = parsed.field_lines
    for field, label, before, after in totals:
        if before != after:
            at = known[field] if field in known else max(known.values(), default=parsed.top_end - 1) + 1
            yield _Edit(range(at, at + (field in known)), f"**{label}:** {after}", is_block=not known)
    if wanted.overview != old.overview:
        own = wanted.overview.removeprefix(parsed.introduction).lstrip("\n")
        yield _section(parsed.overview_at, parsed.top_end, "Overview", overview_block(own))


def _section(at: range | None, end: int, title: str, block: str) -> _Edit:
    """Another text below a heading; where there is none, that too, at the `end`."""
    return _Edit(range(end, end), f"## {title}\n\n{block}") if at is None else _Edit(at, block)


def _step_edits(wanted: ImplementationPlan, parsed: ParsedPlan) -> Iterator[_Edit]:
    present = {found.step.number: found for found in parsed.steps}
    staying = {step.number for step in wanted.steps}
    for number, found in present.items():
        if number not in staying:
            yield _Edit(found.section, is_block=False)
    first = parsed.steps[0] if parsed.steps else None
    place, depth = (first.written.start, first.depth) if first else (parsed.lines.stop, 3)
    for step in wanted.steps:
        at = range(place, place)
        if step.number in present:
            at, depth = present[step.number].written, present[step.number].depth
            place = at.stop
        if step.number not in present or present[step.number].step != step:
            yield _Edit(at, "\n\n".join(step_blocks(step, depth)))


def _applied(lines: list[str], plan: range, edits: Iterable[_Edit]) -> list[str]:
    """The lines of the plan with the edits."""
    ends = (re.search(r"[\r\n]+$", line) for line in lines[plan.start : plan.stop])
    end = next((found[0] for found in ends if found), "\n")
    out: list[str] = []

    def put(line: str) -> None:
        if out and not out[-1].endswith(("\r", "\n")):
            out[-1] += end
        out.append(line)

    at = plan.start
    for edit in sorted(edits, key=lambda edit: (edit.lines.start, edit.lines.stop)):  # stable: steps in their order
        for line in lines[at : edit.lines.start]:
            put(line)
        at = max(at, edit.lines.stop)
        if edit.is_block and out and out[-1].strip():
            put(end)
        for line in edit.text.split("\n") if edit.text else ():
            put(line + end)
        if edit.is_block and at < plan.stop and lines[at].strip():
            put(end)
    if at == plan.stop:
        while out and not out[-1].strip():  # what stood between the last step and one that is gone
            out.pop()
    for line in lines[at : plan.stop]:
        put(line)
    return out
