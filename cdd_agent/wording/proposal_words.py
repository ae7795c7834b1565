"""Words of a proposed plan: the whole plan, or its changes by step."""

from collections.abc import Sequence

from cdd_agent.events.notices import Tone
from cdd_agent.events.ticket_events import PlanProposed, ProposedStep
from cdd_agent.tickets.plan_comparison import (
    FieldChange,
    PlanComparison,
    StepChange,
    StepChangeKind,
    ValueEdit,
)
from cdd_agent.wording.registry import Lines, words_of
from cdd_agent.wording.step_signs import first_names

STEP_SIGNS = {
    StepChangeKind.NEW: "+",
    StepChangeKind.CHANGED: "~",
    StepChangeKind.MOVED: "⇅",
    StepChangeKind.REMOVED: "-",
}
_COUNTS = {
    StepChangeKind.NEW: "new",
    StepChangeKind.CHANGED: "changed",
    StepChangeKind.MOVED: "moved",
    StepChangeKind.REMOVED: "removed",
}
_PROSE = ("title", "description", "overview", "notes", "risks")
"""These fields are shortened. Commands and files are shown in full, because the user
approves them.
"""
_MOST_EDITS = 4
"""Maximum edits of a field."""
_LONGEST_EDIT = 80
"""Maximum characters of each side of an edit."""
_LONGEST_TEXT = 400
"""Maximum characters of a new step's description."""


@words_of.register
def describe_proposal(event: PlanProposed) -> Lines:
    if not event.in_full:
        return [(proposal_heading(event), Tone.PLAIN), *_step_list(event.steps)]
    if event.changes is None:
        return [(event.text, Tone.PLAIN)]
    lines = [(proposal_heading(event), Tone.HEADING)]
    lines += [(line, Tone.PLAIN) for line in change_lines(event)]
    lines += [(line, Tone.WARNING) for line in reopened_lines(event.changes)]
    return lines


def proposal_heading(event: PlanProposed) -> str:
    if event.changes is None:
        steps = "1 step" if len(event.steps) == 1 else f"{len(event.steps)} steps"
        return f"Proposed plan, not approved yet: {steps}"
    if event.changes.is_empty:
        return "The proposal does not change the plan"
    return f"Proposed change of the plan: {count_steps(event.changes)}"


def count_steps(changes: PlanComparison) -> str:
    """Return the numbers of new, changed, moved, removed and unchanged steps."""
    counts = []
    for kind, word in _COUNTS.items():
        count = sum(step.kind is kind for step in changes.steps)
        if count:
            counts.append(f"{count} {word}")
    counts.append(f"{changes.unchanged} unchanged")
    number, _, word = counts[0].partition(" ")
    steps = "step" if number == "1" else "steps"
    counts[0] = f"{number} {word} {steps}"
    return ", ".join(counts)


def change_lines(event: PlanProposed) -> list[str]:
    """Return the summary of a change, its steps with their fields, and other changes of
    the plan.
    """
    lines = [event.summary] if event.summary else []
    if event.changes is None:
        return lines
    for step in event.changes.steps:
        lines += _step_change(step)
    if event.changes.renumbered:
        pairs = [f"{edit.old} → {edit.new}" for edit in event.changes.renumbered]
        lines.append(f"  renumbered: {first_names(pairs)}")
    for part in event.changes.parts:
        lines.append(f"  plan's {_field_change(part)}")
    return lines


def reopened_lines(changes: PlanComparison) -> list[str]:
    """Return a warning for each completed step that the change affects."""
    lines = []
    for step in changes.reopened:
        verb = "removes" if step.kind is StepChangeKind.REMOVED else "reopens"
        text = f"The change {verb} step {step.label}, which is completed: {step.title}"
        lines.append(text)
    return lines


def _step_change(step: StepChange) -> list[str]:
    remark = ""
    if step.kind is StepChangeKind.REMOVED:
        remark = " (removed)"
    elif step.follows is not None:
        place = f"after step {step.follows}" if step.follows else "before all steps"
        verb = "new" if step.kind is StepChangeKind.NEW else "moved"
        remark = f" ({verb}, {place})"
    lines = [f"  {STEP_SIGNS[step.kind]} {step.label}. {step.title}{remark}"]
    for field in step.fields:
        text = _field_change(field)
        if step.kind is StepChangeKind.NEW:
            values = ", ".join(edit.new for edit in field.edits)
            longest = _LONGEST_TEXT if field.name in _PROSE else None
            text = f"{field.name}: {_one_line(values, longest)}"
        lines.append(f"      {text}")
    return lines


def _field_change(field: FieldChange) -> str:
    edits, longest = field.edits, None
    if field.name in _PROSE:
        edits, longest = field.edits[:_MOST_EDITS], _LONGEST_EDIT
    shown = [_edit(edit, longest) for edit in edits]
    if len(edits) < len(field.edits):
        shown.append(f"{len(field.edits) - len(edits)} more")
    return f"{field.name}: {'; '.join(shown)}"


def _edit(edit: ValueEdit, longest: int | None) -> str:
    old = _one_line(edit.old, longest)
    new = _one_line(edit.new, longest)
    if not old:
        return f"+ {new}"
    if not new:
        return f"- {old}"
    return f"{old} → {new}"


def _one_line(text: str, longest: int | None) -> str:
    line = " ".join(text.split())
    if longest is None or len(line) <= longest:
        return line
    return f"{line[: longest - 1]}…"


def _step_list(steps: Sequence[ProposedStep]) -> Lines:
    lines = []
    for step in steps:
        sign = STEP_SIGNS[step.kind] if step.kind else " "
        lines.append((f"  {sign} {step.label}. {step.title}", Tone.PLAIN))
    return lines
