"""A plan.md that is one code block, as it is pasted from a chat: read as the plan in it, and changed inside of it."""

import re

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.tickets.markdown import split_lines
from cdd_agent.tickets.plan import ImplementationPlan
from cdd_agent.tickets.plan_rewriting import rewritten
from cdd_agent.tickets.plan_step import PlanStep
from cdd_agent.tickets.plan_wrapping import plan_lines
from tests.tickets.test_plan import PLAN, PLANS

BARE = PLAN.replace("```markdown\n### Step 9: not a step", "```\ncode")
"""A plan with a block inside whose fences say nothing."""
PLAIN = ImplementationPlan.from_markdown(PLAN)


def wrapped(plan: str, opening: str = "```markdown", closing: str = "```", before: str = "", after: str = "") -> str:
    return f"{before}{opening}\n{plan}{closing}\n{after}"


@pytest.mark.parametrize(
    "plan", [PLAN, BARE, PLAN.replace("Two\n  lines", "Two:\n  ```sh\n  make\n  ```")], ids=range(3)
)
@pytest.mark.parametrize(
    "opening", ["```markdown", "```md", "````Markdown", "~~~", "```", "``` markdown plan.md", " ```"]
)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("Sure! Here is the plan:\n\n", "\nLet me know what you think.\n"),
        ("\ufeff\n", "Run it:\n\n```sh\ncdd exec\n```\n"),
    ],
)
def test_it_is_the_plan_inside(plan: str, opening: str, before: str, after: str) -> None:
    text = wrapped(plan, opening, opening.strip().partition("m")[0].partition("M")[0].strip(), before, after)
    assert ImplementationPlan.from_markdown(text) == ImplementationPlan.from_markdown(plan)


@settings(deadline=None)
@given(PLANS.filter(lambda plan: bool(plan.steps)))
def test_every_plan_is_read_in_a_fence_that_is_long_enough(plan: ImplementationPlan) -> None:
    text = plan.to_markdown()
    marks = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    assert ImplementationPlan.from_markdown(wrapped(text, f"{marks}markdown", marks)) == plan


def test_a_step_knows_its_line_in_the_file() -> None:
    text = wrapped(PLAN, before="Here it is:\n\n").replace("\n", "\r\n")
    for step in ImplementationPlan.from_markdown(text).steps:
        assert text.splitlines()[step.line - 1].startswith(f"### Step {step.number}:")


def test_one_without_its_end_is_read_to_the_end() -> None:
    assert ImplementationPlan.from_markdown(f"```markdown\n{PLAN}") == PLAIN


@pytest.mark.parametrize(
    "text",
    [
        "```python\n### Step 1: not a plan\n```\n",
        "```markdown\nno steps\n```\n",
        f"# Plan\n\n```markdown\n{BARE}```\n",
        f"```markdown\n### Step 7: an example\n```\n\n{PLAN}",
        f"```markdown\n### Step 7: an example\n```\n\n{BARE}",
        "```markdown\n### Step 1: A\n```\nx\n```\n",
    ],
)
def test_what_is_no_wrapping_or_not_a_clear_one_is_left_alone(text: str) -> None:
    lines = split_lines(text)
    assert plan_lines(lines) == range(len(lines))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("closing", ["```\n\nGoodbye.", ""])
def test_a_change_is_made_inside_and_the_rest_stays(closing: str, end: str) -> None:
    text = f"Hello.\n\n```markdown\n{PLAN}{closing}".replace("\n", end)
    assert rewritten(text, PLAIN) == text
    after = rewritten(text, replace(PLAIN, overview="Other.", risks=("r",)))
    assert after.startswith(f"Hello.{end}{end}```markdown{end}# Implementation Plan")
    assert after.endswith(closing.replace("\n", end))
    assert ImplementationPlan.from_markdown(after) == replace(PLAIN, overview="Other.", risks=("r",))


@pytest.mark.parametrize("closing", ["```\n", ""])
@pytest.mark.parametrize("marks", ["```", "~~~", "`````"])
def test_a_change_that_brings_blocks_does_not_end_it(marks: str, closing: str) -> None:
    step = PlanStep(3, "More", f"Like this:\n\n{marks}\ncode\n{marks}\n\nAnd:\n\n```py\nx\n```")
    wanted = replace(PLAIN, steps=(*PLAIN.steps, step))
    assert ImplementationPlan.from_markdown(rewritten(f"```markdown\n{PLAN}{closing}", wanted)) == wanted


def test_a_hostile_number_of_fences_is_read_in_time() -> None:
    with pytest.raises(BadInput, match="no steps"):
        ImplementationPlan.from_markdown("```markdown\n### Step 1: A\n" + "```\n" * 20_002).check()
