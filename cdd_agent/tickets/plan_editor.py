"""Updates plan.md only where the plan changed. Introductions, comments and other
sections stay.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.line_edits import LineEdit, apply_edits
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_labels import Field
from cdd_agent.tickets.plan_reader import ParsedPlan, ParsedStep, parse_plan, read_plan
from cdd_agent.tickets.plan_writer import (
    overview_block,
    risks_block,
    step_block,
    step_labels,
)


class PlanTextLost(BadInput):
    """A change would lose text of the user."""

    refusal = Refusal.PLAN_NOT_EDITABLE

    def __init__(self) -> None:
        super().__init__(
            "This change would lose text that you wrote in the plan",
            hint="Change it by hand, or make a new plan with `regenerate`; the current"
            " plan is kept.",
        )


def edit_plan(text: str, wanted: ImplementationPlan) -> str:
    """Change plan.md's text so that it reads as `wanted`.

    Unchanged steps keep their text, where "all previous steps" now means the present
    ones. Text below the title stays as the beginning of the overview. Raises `BadInput`
    if text would be lost.
    """
    parsed = parse_plan(text)
    current = parsed.to_plan()
    _check_order(current, wanted)
    if not f"{wanted.overview}\n\n".startswith(f"{parsed.introduction}\n\n"):
        overview = "\n\n".join(filter(None, [parsed.introduction, wanted.overview]))
        wanted = replace(wanted, overview=overview)
    edits = _total_edits(parsed, current, wanted)
    if wanted.overview != current.overview:
        block = overview_block(
            wanted.overview.removeprefix(parsed.introduction).lstrip("\n")
        )
        edits.append(
            _section_edit(
                parsed, parsed.overview_lines, parsed.top_end, "Overview", block
            )
        )
    edits += _step_edits(parsed, wanted)
    if wanted.risks != current.risks:
        block = risks_block(wanted.risks)
        end = parsed.lines.stop
        edits.append(
            _section_edit(
                parsed, parsed.risk_lines, end, "Risks & Considerations", block
            )
        )
    result = _apply(parsed, edits)
    blocks = {block for _, block in _blocks(current)}
    unchanged = {label for label, block in _blocks(wanted) if block in blocks}
    if _comparable(read_plan(result), wanted, unchanged) != _comparable(
        wanted, wanted, unchanged
    ):
        raise PlanTextLost
    return result


def step_section(text: str, number: int) -> str:
    """Return a step's lines in plan.md. Raises `BadInput` unless there is exactly one
    such step.
    """
    parsed = parse_plan(text)
    lines = _only_step(parsed, number).written
    return "".join(parsed.source[lines.start : lines.stop])


def replace_step_section(text: str, number: int, section: str) -> str:
    """Replace a step's lines in plan.md. Raises `BadInput` if the new ones are not just
    that step.
    """
    parsed = parse_plan(text)
    before = parsed.to_plan()
    lines = section.strip("\r\n").splitlines()
    result = _apply(parsed, [LineEdit(_only_step(parsed, number).written, lines)])
    after = read_plan(result)
    if [step.label for step in after.steps] != [step.label for step in before.steps]:
        label = _only_step(parsed, number).step.label
        raise BadInput(
            f"The text must be step {label} and no other step",
            hint=(
                f"It begins with the heading `### Step {label}: …`, and no other"
                " heading in it begins with `Step`."
            ),
            refusal=Refusal.PLAN_NOT_EDITABLE,
        )
    if _without_step(before, number) != _without_step(after, number):
        raise BadInput(
            f"This text of step {number} would change other parts of the plan",
            hint=(
                "Look for a code block that is not closed, and for a heading of another"
                " section."
            ),
            refusal=Refusal.PLAN_NOT_EDITABLE,
        )
    return result


def _blocks(plan: ImplementationPlan) -> list[tuple[str, str]]:
    labels = step_labels(plan)
    return [(step.label, step_block(step, labels)) for step in plan.steps]


def _check_order(current: ImplementationPlan, wanted: ImplementationPlan) -> None:
    labels = [step.label for step in current.steps]
    for label, count in Counter(labels).items():
        if count > 1:
            raise BadInput(
                f"Step {label} appears twice in the plan",
                hint="Change plan.md by hand, or `regenerate` it.",
                refusal=Refusal.PLAN_NOT_EDITABLE,
            )
    staying = [step.label for step in wanted.steps if step.label in labels]
    if staying != [label for label in labels if label in staying]:
        raise BadInput(
            "This change would move steps and the text that you wrote around them",
            hint=(
                "Their order comes from `**Dependencies:**`. Move sections of plan.md"
                " by hand."
            ),
            refusal=Refusal.PLAN_NOT_EDITABLE,
        )


def _total_edits(
    parsed: ParsedPlan, current: ImplementationPlan, wanted: ImplementationPlan
) -> list[LineEdit]:
    totals = [
        (
            Field.COMPLEXITY,
            "Complexity",
            current.total_complexity,
            wanted.total_complexity,
        ),
        (
            Field.ESTIMATED_TIME,
            "Estimated Time",
            current.total_estimated_time,
            wanted.total_estimated_time,
        ),
    ]
    edits = []
    for field, label, before, after in totals:
        line = f"**{label}:** {after}"
        place = parsed.field_lines.get(field)
        if before == after:
            continue
        if place is not None:
            edits.append(LineEdit(range(place, place + 1), [line]))
        elif parsed.field_lines:
            end = max(parsed.field_lines.values()) + 1
            edits.append(LineEdit(range(end, end), [line]))
        else:
            edits.append(_insert(parsed, parsed.top_end, [line]))
    return edits


def _section_edit(
    parsed: ParsedPlan, lines: range | None, end: int, title: str, block: str
) -> LineEdit:
    """Replace a section's text, or add the section at `end`."""
    if lines is None:
        return _insert(parsed, end, [f"## {title}", "", *block.split("\n")])
    if not lines:
        return _insert(parsed, lines.start, block.split("\n"))
    return LineEdit(lines, block.split("\n") if block else [])


def _step_edits(parsed: ParsedPlan, wanted: ImplementationPlan) -> list[LineEdit]:
    """Remove, replace and add steps. A new step follows its predecessor in the plan."""
    current = {old.step.label: old for old in parsed.steps}
    current_blocks = dict(_blocks(parsed.to_plan()))
    wanted_labels = step_labels(wanted)
    edits = []
    for label, old in current.items():
        if label not in wanted_labels.values():
            edits.append(LineEdit(old.section))
    position = parsed.lines.stop if parsed.steps_end is None else parsed.steps_end
    depth = 3
    if parsed.steps:
        position = parsed.steps[0].section.start
        depth = parsed.steps[0].depth
    for step in wanted.steps:
        former = current.get(step.label)
        if former is None:
            block = step_block(step, wanted_labels, depth)
            edits.append(_insert(parsed, position, block.split("\n")))
            continue
        depth = former.depth
        position = former.section.stop
        if current_blocks[step.label] != step_block(step, wanted_labels):
            block = step_block(step, wanted_labels, depth)
            edits.append(LineEdit(former.written, block.split("\n")))
    return edits


def _insert(parsed: ParsedPlan, position: int, block: list[str]) -> LineEdit:
    is_after_text = (
        position > parsed.lines.start and parsed.source[position - 1].strip()
    )
    blank_line = [""] if is_after_text else []
    return LineEdit(range(position, position), [*blank_line, *block, ""])


def _apply(parsed: ParsedPlan, edits: Sequence[LineEdit]) -> str:
    end = parsed.lines.stop
    plan = apply_edits(parsed.source[:end], edits)
    if any(edit.lines.stop == end for edit in edits):
        while plan and not plan[-1].strip():
            plan.pop()
    return "".join(plan + parsed.source[end:])


def _only_step(parsed: ParsedPlan, number: int) -> ParsedStep:
    steps = [
        parsed_step for parsed_step in parsed.steps if parsed_step.step.number == number
    ]
    if len(steps) != 1:
        reason = f"appears {len(steps)} times" if steps else "is no longer"
        raise BadInput(
            f"Step {number} {reason} in the plan",
            hint="Check plan.md.",
            refusal=Refusal.PLAN_NOT_EDITABLE,
        )
    return steps[0]


def _without_step(plan: ImplementationPlan, number: int) -> ImplementationPlan:
    steps = [step for step in plan.steps if step.number != number]
    return replace(plan, steps=tuple(steps), findings=())


def _comparable(
    plan: ImplementationPlan, wanted: ImplementationPlan, unchanged: set[str]
) -> ImplementationPlan:
    """Drop dependencies of unchanged steps: "all previous steps" may now mean
    others.
    """
    steps = []
    for step in plan.steps:
        if step.label in unchanged:
            steps.append(replace(step, dependencies=(), missing_dependencies=()))
        else:
            steps.append(step)
    slug = plan.ticket_slug or wanted.ticket_slug
    return replace(plan, steps=tuple(steps), ticket_slug=slug)
