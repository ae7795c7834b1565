"""Writes plan.md so that every part reads back unchanged."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from cdd_agent.errors import BadInput
from cdd_agent.pattern import Pattern
from cdd_agent.tickets.criteria import CriterionRef
from cdd_agent.tickets.markdown import code_span, spellings
from cdd_agent.tickets.plan import NO_CHECK, ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_reader import ParsedPlan, parse_plan


def write_plan(plan: ImplementationPlan) -> str:
    title = "# Implementation Plan"
    if plan.ticket_title:
        title += f": {plan.ticket_title}"
    ticket_type = plan.ticket_type
    if ticket_type.startswith("`"):
        ticket_type = code_span(ticket_type)
    fields = []
    if plan.ticket_slug:
        fields.append(f"**Ticket:** {code_span(plan.ticket_slug)}")
    fields.append(f"**Type:** {ticket_type}")
    fields.append(f"**Complexity:** {plan.total_complexity}")
    fields.append(f"**Estimated Time:** {plan.total_estimated_time}")
    blocks = [_heading(title), "\n".join(fields)]
    if plan.overview:
        blocks += ["## Overview", overview_block(plan.overview)]
    blocks.append("## Implementation Steps")
    labels = step_labels(plan)
    blocks += [step_block(step, labels) for step in plan.steps]
    if plan.risks:
        blocks += ["## Risks & Considerations", risks_block(plan.risks)]
    if plan.notes:
        blocks.append(_notes_block(plan.notes))
    return "\n\n".join(blocks) + "\n"


_PLAIN_WORDS = Pattern(r"(?:\w|`[\w ./-]+`)(?:[\w ,.'()/-]|`[\w ./-]+`)*(?<=[\w)…`])")
"""Words that Markdown and the reader keep."""


def step_labels(plan: ImplementationPlan) -> dict[int, str]:
    labels: dict[int, str] = {}
    for step in plan.steps:
        labels.setdefault(step.number, step.label)
    return labels


def step_block(step: PlanStep, labels: Mapping[int, str], depth: int = 3) -> str:
    """Return a step in Markdown. `labels` maps the numbers of all steps to labels."""
    comment = f" <!-- id: {step.id} -->" if step.id else ""
    heading = f"{'#' * min(depth, 6)} Step {step.label}: {step.title}{comment}"
    blocks = [_heading(heading)]
    fields = _step_fields(step, labels)
    if "\n" in step.description:
        blocks.append(_long_description(step.description))
    elif step.description:
        fields.insert(0, f"**Description:** {step.description}")
    blocks.append("\n".join(fields))
    if step.files_affected:
        files = ["**Files Affected:**"]
        for file in step.files_affected:
            note = f" ({file.note})" if file.note else ""
            files.append(f"- {code_span(file.place)}{note}")
        blocks.append("\n".join(files))
    return "\n\n".join(blocks)


def _step_fields(step: PlanStep, labels: Mapping[int, str]) -> list[str]:
    needed = [labels.get(number, str(number)) for number in step.dependencies]
    dependencies = ", ".join([*needed, *step.missing_dependencies])
    fields = [
        f"**Complexity:** {step.complexity}",
        f"**Estimated Time:** {step.estimated_time}",
        f"**Dependencies:** {f'Step {dependencies}' if dependencies else 'None'}",
    ]
    if step.has_no_check:
        fields.append(f"**Verify:** {NO_CHECK}")
    fields += [f"**Verify:** {code_span(check)}" for check in step.checks or ()]
    if step.serves:
        fields.append(_serves_field(step.serves))
    if step.removes_tests is not None:
        names = ", ".join(map(code_span, step.removes_tests))
        fields.append(f"**Removes tests:** {names or 'none'}")
    for leave in step.may_fail:
        until = f" until step {leave.until}" if leave.until else ""
        fields.append(f"**May fail:** {code_span(leave.tests)}{until}")
    return fields


def _serves_field(refs: Sequence[CriterionRef]) -> str:
    if all(isinstance(ref, int) for ref in refs):
        return f"**Serves:** {', '.join(map(str, refs))}"
    shown = [_shown_ref(ref) for ref in refs]
    if len(shown) == 1:
        return f"**Serves:** {shown[0]}"
    return "\n".join(["**Serves:**", *(f"- {ref}" for ref in shown)])


def _shown_ref(ref: CriterionRef) -> str:
    """Words that Markdown could change become code."""
    if isinstance(ref, int) or _PLAIN_WORDS.fullmatch(ref):
        return str(ref)
    return code_span(ref)


def overview_block(text: str) -> str:
    """Return the text below the overview heading."""
    page = (
        "# Implementation Plan\n\n## Overview\n\n{}\n\n## Implementation Steps\n\n###"
        " Step 1\n"
    )

    def reads_back(read: ParsedPlan) -> bool:
        return "\n\n".join(read.overview) == text and len(read.steps) == 1

    return _first_readable(spellings(text), page, reads_back)


def risks_block(risks: Iterable[str]) -> str:
    return "\n".join(_risk_item(risk) for risk in risks)


def _heading(line: str) -> str:
    # CommonMark drops a final run of `#`.
    return f"{line} #" if line.endswith("#") else line


def _notes_block(text: str) -> str:
    page = "### Step 1\n\n## Risks & Considerations\n\n- r\n\n{}\n"

    def reads_back(read: ParsedPlan) -> bool:
        return (
            "\n\n".join(read.notes) == text
            and len(read.steps) == 1
            and read.risks == ["r"]
        )

    blocks = [text] if text.startswith("## ") else []
    blocks += [f"## Notes\n\n{spelling}" for spelling in spellings(text)]
    return _first_readable(blocks, page, reads_back)


def _long_description(text: str) -> str:
    def reads_back(read: ParsedPlan) -> bool:
        step = read.steps[0].step
        return (
            step.description == text and step.complexity == "c" and len(read.steps) == 2
        )

    blocks = [f"**Description:** {text}"] if text[0].isalpha() else []
    blocks += [f"**Description:**\n\n{spelling}" for spelling in spellings(text)]
    return _first_readable(
        blocks, "### Step 1\n\n{}\n\n**Complexity:** c\n\n### Step 2\n", reads_back
    )


def _risk_item(text: str) -> str:
    items = [
        "- " + re.sub(r"\n(?!\n)", "\n  ", spelling) for spelling in spellings(text)
    ]
    page = "## Risks & Considerations\n\n- r\n{}\n- r\n"
    return _first_readable(items, page, lambda read: read.risks == ["r", text, "r"])


def _first_readable(
    blocks: Iterable[str], page: str, reads_back: Callable[[ParsedPlan], bool]
) -> str:
    """Return the first block that reads back correctly; the last always does."""
    for block in blocks:
        with suppress(BadInput):
            if reads_back(parse_plan(page.format(block))):
                return block
    raise AssertionError("the reader takes no line of the last spelling for structure")
