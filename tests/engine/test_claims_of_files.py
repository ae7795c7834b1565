"""Blocks of a reply that could be files: what the step names is one, and what nobody
claims is told.
"""

import asyncio

import pytest

from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import Reply
from cdd_agent.changes.parse import parse_reply
from cdd_agent.engine import step_check
from cdd_agent.events.notices import Notice
from cdd_agent.events.step_events import AttemptFailed
from cdd_agent.events.step_summary import StepFinished
from tests.engine.test_engine import of
from tests.support.projects import Sandbox, Step, run_all

A = "```text:a.txt\nx\n```\n"


def notices(events: list[object]) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Notice))


async def test_a_title_above_explanation_is_no_file_even_in_a_folder_that_is_there(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "src").mkdir()
    sandbox.write(Step("src/handlers/a.txt", "none"))
    shown = "### src/handlers\n\n```text\nhandlers/\n  a.txt\n```\n"
    await run_all(
        sandbox.replies(
            f"{shown}\n"
            "```text:src/handlers/a.txt\n"
            "x\n"
            "```\n\n"
            "### src/out\n\n"
            "```text\n"
            "3 passed\n"
            "```\n"
        )
    )
    assert sandbox.statuses() == ["completed"]
    assert sandbox.text("src/handlers/a.txt") == "x\n"
    assert not (sandbox.root / "src/out").exists()


async def test_a_reply_is_taken_apart_beside_the_event_loop(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_up: list[bool] = []

    def parsed(text: str, known: ProjectNames) -> Reply:
        held_up.append(asyncio._get_running_loop() is not None)
        return parse_reply(text, known)

    monkeypatch.setattr(step_check, "parse_reply", parsed)
    sandbox.write(Step("a.txt", "none"))
    await run_all(sandbox.replies(A))
    assert held_up == [False]


async def test_a_file_of_the_step_is_one_whatever_its_name(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", "none", also=("CHANGES", "scripts/run")))
    await run_all(
        sandbox.replies(
            f"{A}\n"
            "### CHANGES\n\n"
            "```\n"
            "New.\n"
            "```\n\n"
            "**scripts/run**\n"
            "```sh\n"
            "exec true\n"
            "```\n"
        )
    )
    assert (sandbox.text("CHANGES"), sandbox.text("scripts/run")) == (
        "New.\n",
        "exec true\n",
    )


async def test_so_is_what_its_words_name(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", "none", description="Add `build.ninja` and NEWS."))
    await run_all(
        sandbox.replies(
            f"{A}\n`build.ninja`\n```\nrule x\n```\n\n**NEWS**\n\n```\nNew.\n```\n"
        )
    )
    assert (sandbox.text("build.ninja"), sandbox.text("NEWS")) == ("rule x\n", "New.\n")


async def test_a_block_that_could_be_a_file_is_told_to_the_person(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", "none"))
    events = await run_all(sandbox.replies(f"{A}\n### NEWS\n\n```text\nNew.\n```\n"))
    assert "line 7" in notices(events)
    assert "NEWS" in notices(events)
    assert sandbox.statuses() == ["completed"]
    assert not (sandbox.root / "NEWS").exists()


async def test_and_to_the_model_when_the_check_fails(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", "python -c \"open('NEWS')\""))
    await run_all(
        sandbox.replies(
            f"{A}\n### NEWS\n\n```text\nNew.\n```\n", f"{A}\n```text:NEWS\nNew.\n```\n"
        ),
        attempts=2,
    )
    assert (
        "NEWS"
        in sandbox.model.requests[1].messages[-1].content.partition("exit code")[0]
    )
    assert sandbox.statuses() == ["completed"]


async def test_a_doubtful_block_is_refused_where_the_step_asks_for_that_file(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", "none", description="Write `configure`."))
    replies = (
        f"{A}\n### configure\n\n```text\n#!/bin/sh\n```\n",
        f"{A}\n```sh:configure\n#!/bin/sh\n```\n",
    )
    events = await run_all(sandbox.replies(*replies), attempts=2)
    assert "configure" in of(AttemptFailed, events)[0].error
    assert "language:path" in sandbox.prompt()
    assert sandbox.text("configure") == "#!/bin/sh\n"


async def test_a_doubtful_block_of_code_is_refused_if_the_step_lists_the_file(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", "none", also=("b.py",)))
    replies = (
        f"{A}\nHere is b.py:\n```python\nx = 1\n```\n",
        f"{A}\n```python:b.py\nx = 1\n```\n",
    )
    events = await run_all(sandbox.replies(*replies), attempts=2)
    assert "(b.py)" in of(AttemptFailed, events)[0].error
    assert sandbox.text("b.py") == "x = 1\n"


async def test_a_reply_of_nothing_but_a_doubtful_block_is_refused(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step(None, "none"))
    events = await run_all(
        sandbox.replies("### scripts/run\n\n```sh\nexec true\n```\n")
    )
    assert "scripts/run" in (of(StepFinished, events)[0].error or "")
    assert sandbox.statuses() == ["failed"]


async def test_a_step_that_is_answered_in_words_may_show_what_is_there(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step(None, "none"))
    (sandbox.root / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    reply = (
        "In `calc.py` there is:\n\n"
        "```python\n"
        "return a + b\n"
        "```\n\n"
        "Run:\n\n"
        "```bash\n"
        "python calc.py\n"
        "```\n"
    )
    await run_all(sandbox.replies(reply))
    assert sandbox.statuses() == ["completed"]


async def test_a_reply_that_changes_only_permissions_gives_no_file(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", "none"))
    (sandbox.root / "a.txt").write_text("x\n")
    events = await run_all(
        sandbox.replies(
            "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n"
        )
    )
    assert of(StepFinished, events)[0].status == "failed"
