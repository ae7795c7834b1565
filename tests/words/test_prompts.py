"""Requests to models: one of each kind, as it is sent. The texts that stay the same are
in files beside the program; here is what is put together around them.
"""

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.session.session import Session
from tests.agents.asking import TEMPLATE, asks
from tests.agents.test_planner import SPEC, changes, plan
from tests.engine.calculator import BROKEN, FIXED, calculator, gives
from tests.engine.test_prompt import prompt_of
from tests.support.pictures import png
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says

STEP = """\
# Files of the project

```text
old.txt
```

# Present files

a.txt does not exist yet.

old.txt:
```txt
old
```

dir/new.txt does not exist yet.

# Step 1 of 1: Make a.txt

Make it.

Files of this step:
- a.txt
- old.txt
- dir/new.txt

Checked by: CHECK

# The last attempt failed

Everything it wrote was restored, so send every file that this step needs.

What went wrong:

```
`CHECK` failed (exit code 1)

it says bad
```

The reply was:

````md
Here it is.

```text:a.txt
bad
```
````

# Guidance for this step

Keep it short."""
TICKET = """\
# Ticket: Say words (feature, priority high)

The files say the right words.

## Acceptance criteria
1. a.txt says good

## Technical notes
Keep it short.

# Plan

1. Make a.txt"""
FAILED_TESTS = """\
`pytest` failed (exit code 1): tests/test_calc.py::test_add, tests/test_calc.py::test_sub; tests/test_calc.py::test_sub failed before too, and this step has to fix it: it imports calc.py

These tests have to pass:
- tests/test_calc.py::test_add
- tests/test_calc.py::test_sub (failed before too; it is for this step to fix: it imports calc.py)

=================================== FAILURES ==================================="""
SOCRATES = """\
# The spec as it stands

```json
{
 "priority": "medium",
 "open_questions": [
  {
   "id": "q1",
   "text": "Who?"
  }
 ]
}
```

## Also in the spec
owner: Ada

Missing:
- title: one line that says what is wanted
- description: what is wanted, and why
- acceptance_criteria: at least one thing to check when the work is done

# The person says

Readers."""


async def say(session: Session, *lines: str) -> None:
    for line in lines:
        await handle(session, line)
    session.leave()


def headings(sandbox: Sandbox) -> list[str]:
    """Those of the first message, which is the same for the whole conversation."""
    return [
        line
        for line in sandbox.model.requests[-1].messages[0].content.splitlines()
        if line.startswith("# ")
    ]


def test_a_step_with_several_checks(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", checks=("make lint", "pytest -q")))
    prompt = prompt_of(sandbox).text
    assert "\n\nAll of these checks must pass:\n- make lint\n- pytest -q" in prompt


async def test_a_step_that_failed_and_has_guidance(sandbox: Sandbox) -> None:
    (sandbox.root / "old.txt").write_text("old\n")
    step = Step("a.txt", check("a.txt"), also=("old.txt", "dir/new.txt"))
    sandbox.write(step).replies(says("a.txt", "bad"), says("a.txt", "good"))
    await say(sandbox.session(), f"/exec {SLUG}", "c", "> Keep it short.")
    system, user = sandbox.model.requests[-1].messages
    assert system.content.endswith(TICKET)
    assert user.content == STEP.replace("CHECK", check("a.txt"))


@pytest.mark.story
async def test_tests_that_have_to_pass(sandbox: Sandbox) -> None:
    calculator(sandbox).replies(gives(calc_dot_py=BROKEN), gives(calc_dot_py=FIXED))
    await run_all(sandbox, attempts=2)
    assert FAILED_TESTS in sandbox.model.requests[-1].messages[-1].content


async def test_socrates(sandbox: Sandbox) -> None:
    sandbox.write(spec=TEMPLATE).replies(asks("Who?"), asks("What for?"))
    await say(sandbox.session(), f"/socrates {SLUG}", "Readers.")
    assert headings(sandbox) == [
        "# You are Socrates",
        "# What to find out for a feature",
        "# At the top of the project",
        "# The ticket",
        "# The form of your answer",
        "# Tools",
    ]
    begun, *_, last = (
        message.content
        for message in sandbox.model.requests[-1].messages
        if message.role == "user"
    )
    assert (
        begun
        == "I have opened this ticket. Look at the code that it is about, then begin with your first questions."
    )
    assert last == SOCRATES


async def test_the_planner(sandbox: Sandbox) -> None:
    sandbox.write(spec=SPEC)
    (sandbox.ticket / "plan.md").unlink()
    sandbox.replies(plan(), changes(risks=["r"]))
    await say(sandbox.session(), f"/plan {SLUG}", "Name the risk.")
    assert headings(sandbox) == [
        "# You are the Planner",
        "# The form of your answer",
        "# Tools",
    ]
    first, last = (
        message.content
        for message in sandbox.model.requests[-1].messages
        if message.role == "user"
    )
    assert first.startswith("# Ticket: Say words (feature, priority medium)\n\n")
    assert (
        "\n\n## Acceptance criteria\n1. a.txt says good\n2. b.txt says good\n\n# Project\n\n"
        in first
    )
    assert first.endswith("\n\n# Task\n\nPlan the ticket.")
    assert last.startswith(
        "# The present plan\n\n```markdown\n# Implementation Plan: Say words\n"
    )
    assert last.endswith(
        "\n\nA new step is numbered from 3 on: the numbers below are taken.\n\n# What to change\n\nName the risk."
    )


async def test_what_did_not_fit_is_named(sandbox: Sandbox) -> None:
    (sandbox.root / "AGENTS.md").write_text("Use tabs.\n" * 1_500)
    sandbox.flags = {"context_window": 4_000}
    await run_all(sandbox.write(Step("a.txt", "none")).replies(says("a.txt", "x")))
    left_out = """\
# Left out because there is no room

- the project's rules for agents

You have not seen these: do not replace them."""
    assert left_out in sandbox.prompt()


def test_a_picture_of_a_step(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", check("a.txt"), also=("shot.png",)))
    (sandbox.root / "shot.png").write_bytes(png(2_000, 1_500))
    said = prompt_of(sandbox).request.messages[-1].content
    assert (
        "shot.png is a picture, and comes with this message. No reply can change it."
        in said
    )
    assert prompt_of(sandbox, window=4_000).left_out == ("the picture shot.png",)
