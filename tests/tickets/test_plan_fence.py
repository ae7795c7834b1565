"""A plan.md that is one code block, as pasted from a chat."""

import re

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from cdd_agent.tickets.line_edits import split_lines
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_editor import PlanTextLost, edit_plan
from cdd_agent.tickets.plan_fence import plan_lines
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.plan_writer import write_plan
from tests.support.tables import each_row
from tests.tickets.test_plan import PLAN, PLANS

PLAIN = read_plan(PLAN)
PLAN_WITH_BARE_BLOCK = PLAN.replace("```markdown\n### Step 9: not a step", "```\ncode")
PLAN_WITH_LAST_BLOCK = PLAN.replace("Two\n  lines", "Two:\n  ```sh\n  make\n  ```")


@each_row(
    "plan",
    [PLAN, PLAN_WITH_BARE_BLOCK, PLAN_WITH_LAST_BLOCK],
    ids=["info", "bare", "last"],
)
@each_row(
    "opening",
    ["```markdown", "````Markdown", "~~~", "```", "``` markdown plan.md", " ```md"],
)
@each_row(
    ("before", "after"),
    [
        ("", ""),
        ("Sure!\n\n", "\nBye.\n"),
        ("\ufeff\n", "Run:\n\n```sh\ncdd exec\n```\n"),
    ],
)
def test_the_plan_in_the_block_is_read(
    plan: str, opening: str, before: str, after: str
) -> None:
    marks = re.sub("[^`~]", "", opening)
    assert read_plan(f"{before}{opening}\n{plan}{marks}\n{after}") == read_plan(plan)


def test_a_block_without_an_end_is_read_to_the_end() -> None:
    assert read_plan(f"```markdown\n{PLAN}") == PLAIN


@settings(deadline=None)
@given(PLANS.filter(lambda plan: bool(plan.steps)))
def test_every_plan_is_read_in_a_fence_that_is_long_enough(
    plan: ImplementationPlan,
) -> None:
    text = write_plan(plan)
    marks = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    assert read_plan(f"{marks}markdown\n{text}{marks}\n") == plan


@each_row(
    "text",
    [
        "```python\n### Step 1: not a plan\n```\n",
        "```markdown\nno steps\n```\n",
        f"# Plan\n\n```markdown\n{PLAN_WITH_BARE_BLOCK}```\n",
        f"```markdown\n### Step 7: an example\n```\n\n{PLAN}",
        f"```markdown\n### Step 7: an example\n```\n\n{PLAN_WITH_BARE_BLOCK}",
    ],
    ids=[
        "code",
        "no steps",
        "block below a heading",
        "example above the plan",
        "example and a bare block",
    ],
)
def test_other_blocks_are_part_of_the_plan(text: str) -> None:
    lines = split_lines(text)
    assert plan_lines(lines) == range(len(lines))


def test_a_step_has_its_line_in_the_file() -> None:
    text = f"Here it is:\n\n```markdown\n{PLAN}```\n"
    for step in read_plan(text).steps:
        assert text.split("\n")[step.line - 1].startswith(f"### Step {step.number}:")


@each_row("end", ["\n", "\r\n"])
def test_a_change_is_made_inside_the_block(end: str) -> None:
    text = f"Hello.\n\n```markdown\n{PLAN}```\n\nBye.".replace("\n", end)
    wanted = replace(PLAIN, overview="Other.", risks=("r",))
    result = edit_plan(text, wanted)
    assert read_plan(result) == wanted
    assert result.startswith(f"Hello.{end}{end}```markdown{end}# Implementation Plan")
    assert result.endswith(f"```{end}{end}Bye.")


def test_a_change_that_would_end_the_block_is_refused() -> None:
    step = PlanStep(3, "More", "Like this:\n\n```\ncode\n```")
    with pytest.raises(PlanTextLost):
        edit_plan(f"```markdown\n{PLAN}", replace(PLAIN, steps=(*PLAIN.steps, step)))
