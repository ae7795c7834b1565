"""Changing plan.md without touching what a person wrote: only the sections that are different are written anew.

Everything else stays byte for byte: introductions, comments, sections of other kinds, the steps that nobody changed.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep, overview_block, risks_block, step_blocks
from cdd_agent.tickets.plan_reading import Field, PlanText, StepText, read_plan
from cdd_agent.tickets.plan_wrapping import wrapping

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True)
class _Edit:
    """Lines to stand in place of some others; `start` and `end` count the lines before."""

    start: int
    end: int
    lines: tuple[str, ...] = ()
    is_block: bool = False
    """Blank lines are to stand around them."""


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
    if around := wrapping(text):
        after = around.around(rewritten(around.plan, wanted))
        _refuse_what_reads_differently(after, ImplementationPlan.from_markdown(text), wanted)
        return after
    old, found = ImplementationPlan.from_markdown(text), read_plan(text)
    _refuse_what_is_ambiguous(old, wanted)
    wanted = _introduced(wanted, found.introduction)
    texts = {step.number: step for step in found.steps}
    edits = [
        *_field_edits(old, wanted, found),  # first: a new overview stands below them
        *_step_edits(old, wanted, texts, len(_LINE.findall(text))),
        *_overview_edits(old, wanted, found),
        *_risk_edits(old, wanted, found, len(_LINE.findall(text))),
    ]
    after = _applied(text, edits)
    _refuse_what_reads_differently(after, old, wanted)
    return after


def _refuse_what_is_ambiguous(old: ImplementationPlan, wanted: ImplementationPlan) -> None:
    numbers = [step.number for step in old.steps]
    for number, times in Counter(numbers).items():
        if times > 1:
            raise BadInput(f"Step {number} is there twice in the plan", hint="Fix that by hand, or `regenerate` it.")
    kept = [step.number for step in wanted.steps if step.number in numbers]
    if kept != [number for number in numbers if number in kept]:
        raise BadInput(
            "The steps would change places, and with them what you wrote around them",
            hint="Their order comes from `**Dependencies:**`; to move a section, do it by hand.",
        )


def _introduced(wanted: ImplementationPlan, introduction: str) -> ImplementationPlan:
    if f"{wanted.overview}\n\n".startswith(f"{introduction}\n\n"):
        return wanted
    return replace(wanted, overview="\n\n".join(filter(None, (introduction, wanted.overview))))


def _refuse_what_reads_differently(after: str, old: ImplementationPlan, wanted: ImplementationPlan) -> None:
    read = ImplementationPlan.from_markdown(after)
    before = {step.number: step for step in old.steps}
    stays = {step.number for step in wanted.steps if before.get(step.number) == step}
    if _compared(read, wanted, stays) != _compared(wanted, wanted, stays):
        raise WordsLost


def _compared(plan: ImplementationPlan, wanted: ImplementationPlan, stays: set[int]) -> ImplementationPlan:
    """What has to be equal: not the dependencies that a step whose words stay tells by its place."""
    steps = tuple(replace(step, dependencies=()) if step.number in stays else step for step in plan.steps)
    return replace(plan, steps=steps, ticket_slug=plan.ticket_slug or wanted.ticket_slug)


# ------------------------------------------------------------------------------------------------- edits


def _step_edits(
    old: ImplementationPlan, wanted: ImplementationPlan, texts: dict[int, StepText], end: int
) -> Iterator[_Edit]:
    before = {step.number: step for step in old.steps}
    staying = {step.number for step in wanted.steps}
    for number, text in texts.items():
        if number not in staying:
            yield _Edit(text.line - 1, text.section_end)
    place, depth = (old.steps[0].line - 1, texts[old.steps[0].number].depth) if old.steps else (end, 3)
    for step in wanted.steps:
        if step.number not in before:
            yield _Edit(place, place, _lines(step, depth), is_block=True)
            continue
        text = texts[step.number]
        place, depth = text.end, text.depth
        if before[step.number] != step:
            yield _Edit(text.line - 1, text.end, _lines(step, depth), is_block=True)


def _lines(step: PlanStep, depth: int) -> tuple[str, ...]:
    return tuple("\n\n".join(step_blocks(step, depth)).split("\n"))


def _overview_edits(old: ImplementationPlan, wanted: ImplementationPlan, found: PlanText) -> Iterator[_Edit]:
    if wanted.overview == old.overview:
        return
    own = wanted.overview.removeprefix(found.introduction).lstrip("\n")
    lines = overview_block(own).split("\n") if own else []
    if found.overview_at:
        at = found.overview_at[0]
        yield _Edit(at.start - 1, at.stop - 1, tuple(lines), is_block=True)
    else:
        yield _Edit(found.top_end, found.top_end, ("## Overview", "", *lines), is_block=True)


def _risk_edits(old: ImplementationPlan, wanted: ImplementationPlan, found: PlanText, end: int) -> Iterator[_Edit]:
    if wanted.risks == old.risks:
        return
    lines = risks_block(wanted.risks).split("\n") if wanted.risks else []
    if found.risks_at:
        at = found.risks_at[0]
        yield _Edit(at.start - 1, at.stop - 1, tuple(lines), is_block=True)
    else:
        yield _Edit(end, end, ("## Risks & Considerations", "", *lines), is_block=True)


def _field_edits(old: ImplementationPlan, wanted: ImplementationPlan, found: PlanText) -> Iterator[_Edit]:
    changed = {
        Field.COMPLEXITY: ("Complexity", old.total_complexity, wanted.total_complexity),
        Field.ESTIMATED_TIME: ("Estimated Time", old.total_estimated_time, wanted.total_estimated_time),
    }
    for name, (label, before, after) in changed.items():
        if before == after:
            continue
        line = f"**{label}:** {after}"
        if name in found.field_lines:
            at = found.field_lines[name]
            yield _Edit(at - 1, at, (line,))
        elif found.field_lines:
            at = max(found.field_lines.values())
            yield _Edit(at, at, (line,))
        else:
            yield _Edit(found.top_end, found.top_end, (line,), is_block=True)


# ---------------------------------------------------------------------------------------------- applying


def _applied(text: str, edits: Sequence[_Edit]) -> str:
    lines = _LINE.findall(text)
    first_end = re.search(r"\r\n|\r|\n", text)
    end = first_end[0] if first_end else "\n"
    out: list[str] = []

    def put(line: str) -> None:
        if out and not out[-1].endswith(("\r", "\n")):
            out[-1] += end
        out.append(line)

    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):  # a stable sort: steps in their order
        for line in lines[at : edit.start]:
            put(line)
        at = max(at, edit.end)
        if edit.is_block and out and out[-1].strip():
            put(end)
        for line in edit.lines:
            put(line + end)
        if edit.is_block and at < len(lines) and lines[at].strip():
            put(end)
    if at >= len(lines):
        while out and not out[-1].strip():  # what stood between the last step and one that is gone
            out.pop()
    for line in lines[at:]:
        put(line)
    return "".join(out)
