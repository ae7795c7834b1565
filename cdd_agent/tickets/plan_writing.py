"""The parts of a plan as plan.md has them, each written so that it reads back as itself."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain

from cdd_agent.errors import BadInput
from cdd_agent.tickets.markdown import code_span, is_plain, spellings
from cdd_agent.tickets.plan_parser import ParsedPlan, parse_plan
from cdd_agent.tickets.plan_step import NO_CHECK, PlanStep


def heading(line: str) -> str:
    """CommonMark drops a closing run of `#`: a title that ends in one gets another, to be dropped."""
    return f"{line} #" if line.endswith("#") else line


def step_blocks(step: PlanStep, depth: int = 3) -> Iterator[str]:
    """A step's paragraphs, with a heading of this depth."""
    yield heading(f"{'#' * depth} Step {step.number}: {step.title}")
    fields = [
        f"**Complexity:** {step.complexity}",
        f"**Estimated Time:** {step.estimated_time}",
        f"**Dependencies:** {f'Step {_listed(step.dependencies)}' if step.dependencies else 'None'}",
    ]
    if step.verify:
        fields.append(f"**Verify:** {step.verify if step.verify == NO_CHECK else code_span(step.verify)}")
    if step.serves:
        fields.append(f"**Serves:** {_listed(step.serves)}")
    if "\n" in step.description:
        yield _description(step.description)
    elif step.description:
        fields.insert(0, f"**Description:** {step.description}")
    yield "\n".join(fields)
    if step.files_affected:
        files = (f"- {code_span(file.path)}" + (f" ({file.note})" if file.note else "") for file in step.files_affected)
        yield "\n".join(["**Files Affected:**", *files])


def overview_block(text: str) -> str:
    """An overview as it stands below its heading."""
    page = "# Implementation Plan\n\n## Overview\n\n{}\n\n## Implementation Steps\n\n### Step 1\n"
    if is_plain(text):
        return text
    return _first(spellings(text), page, lambda found: found.overview == [text] and len(found.steps) == 1)


def risks_block(risks: Iterable[str]) -> str:
    """Risks as they stand below their heading."""
    return "\n".join(map(_risk, risks))


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _description(text: str) -> str:
    """Several lines: beside the label when they start like a sentence, else below it."""
    beside = f"**Description:** {text}"
    if is_plain(text):
        return beside

    def reads_back(found: ParsedPlan) -> bool:
        step = found.steps[0].step
        return (step.description, step.complexity, len(found.steps)) == (text, "c", 2)

    below = (f"**Description:**\n\n{spelling}" for spelling in spellings(text))
    blocks = chain([beside], below) if text[0].isalpha() else below
    return _first(blocks, "### Step 1\n\n{}\n\n**Complexity:** c\n\n### Step 2\n", reads_back)


def _risk(text: str) -> str:
    if is_plain(text) and "\n" not in text:
        return f"- {text}"
    items = ("- " + re.sub(r"\n(?!\n)", "\n  ", spelling) for spelling in spellings(text))
    page = "## Risks & Considerations\n\n- r\n{}\n- r\n"
    return _first(items, page, lambda found: found.risks == ["r", text, "r"])


def _first(blocks: Iterable[str], page: str, reads_back: Callable[[ParsedPlan], bool]) -> str:
    """The first block that, in its place on a page, is read as it was meant; the last one always is."""
    for block in blocks:
        with suppress(BadInput):  # nested too deeply
            if reads_back(parse_plan(page.format(block))):
                return block
    raise AssertionError("each line of the last spelling is part of a paragraph")
