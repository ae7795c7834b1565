"""Limits of a step with tools: by its whole attempt, however often it was interrupted;
a person's time is free.
"""

import json
import time
from typing import Any

from cdd_agent.changes.review import Review
from cdd_agent.dialogue.limits import Limits
from cdd_agent.events.question_events import Choice, Proposal
from cdd_agent.frontend import Decision, Nobody
from cdd_agent.llm.port import ConnectionFailed
from tests.engine.tool_steps import (
    STEP,
    answers,
    calls,
    create,
    execute,
    finished,
    problems,
    read,
    replace,
    run,
)
from tests.support.projects import SLUG, Sandbox

GONE = [ConnectionFailed("gone")] * 9


def saved(sandbox: Sandbox) -> dict[str, Any]:
    path = sandbox.root / f".cdd/runs/{SLUG}/step-01/attempt-1/dialogue.json"
    dialogue: dict[str, Any] = json.loads(path.read_text())
    return dialogue


async def test_the_rounds_before_an_interruption_count(sandbox: Sandbox) -> None:
    rounds = Limits().rounds
    looks = [calls(("list_files", {"limit": number})) for number in range(1, rounds)]
    await run(sandbox.write(STEP).replies(*looks, *GONE))
    await run(sandbox.replies(calls(create("a.txt", "good\n")), "Done."))
    assert f" {rounds} rounds " in sandbox.prompt()
    assert sandbox.statuses() == ["completed"]


async def test_the_last_word_is_all_that_is_left_after_the_last_round(
    sandbox: Sandbox,
) -> None:
    looks = [
        calls(("list_files", {"limit": number})) for number in range(1, Limits().rounds)
    ]
    await run(
        sandbox.write(STEP).replies(*looks, calls(create("a.txt", "good\n")), *GONE)
    )
    events = await run(
        sandbox.replies(calls(create("b.txt", "b\n"), text="One more."), "Done.")
    )
    assert len(sandbox.model.requests) == 1
    assert finished(events).status == "failed"
    assert not (sandbox.root / "b.txt").exists()


async def test_the_time_before_an_interruption_counts(sandbox: Sandbox) -> None:
    await run(sandbox.write(STEP).replies(calls(create("a.txt", "good\n")), *GONE))
    dialogue = saved(sandbox)
    assert 0 < dialogue["seconds"] < 60
    path = sandbox.root / f".cdd/runs/{SLUG}/step-01/attempt-1/dialogue.json"
    path.write_text(json.dumps(dialogue | {"seconds": Limits().seconds}))
    await run(sandbox.replies(calls(read("a.txt"), execute("cat a.txt")), "Done."))
    assert answers(sandbox, 1)[1]["error"]
    assert f"{Limits().seconds:.0f} seconds" in sandbox.prompt()


async def test_a_dialogue_that_was_saved_without_its_time_goes_on(
    sandbox: Sandbox,
) -> None:
    await run(sandbox.write(STEP).replies(calls(create("a.txt", "good\n")), *GONE))
    path = sandbox.root / f".cdd/runs/{SLUG}/step-01/attempt-1/dialogue.json"
    path.write_text(json.dumps({"messages": saved(sandbox)["messages"]}))
    await run(sandbox.replies(calls(read("a.txt")), "Done."))
    assert len(sandbox.model.requests[0].messages) == 4
    assert sandbox.statuses() == ["completed"]


class Slow(Nobody):
    """A person who thinks about everything."""

    async def approve(self, proposal: Proposal) -> Choice:
        time.sleep(0.4)  # also of the event loop's time: nothing else is under way
        return Choice.YES

    async def review(self, review: Review) -> Decision:
        time.sleep(0.4)
        return Decision(Choice.YES, review)


async def test_waiting_for_a_persons_yes_is_no_work(sandbox: Sandbox) -> None:
    sandbox.flags, sandbox.frontend = (
        {"approval": "ask", "commands": {"mode": "ask"}},
        Slow(),
    )
    sandbox.write(STEP).replies(
        calls(
            create("a.txt", "go\n"),
            execute("sh -c true"),
            replace("a.txt", "go", "good"),
        ),
        *GONE,
    )
    began = time.monotonic()
    events = await run(sandbox)
    assert problems(events) == [""] * 3
    took = time.monotonic() - began
    assert took > 1.2
    assert saved(sandbox)["seconds"] < took - 1.2


async def test_a_file_that_was_cut_for_the_rounds_sake_was_not_seen(
    sandbox: Sandbox,
) -> None:
    for name in "xyz":
        (sandbox.root / f"{name}.txt").write_text(name * 39_000)
    sandbox.write(STEP).replies(
        calls(read("x.txt"), read("y.txt"), read("z.txt")),
        calls(
            replace("y.txt", "", "all new\n" * 4_000),
            replace("z.txt", "", "all new\n" * 4_000),
        ),
        calls(create("a.txt", "good\n")),
        "Done.",
    )
    events = await run(sandbox)
    assert [bool(problem) for problem in problems(events)] == [
        False,
        False,
        False,
        False,
        True,
        False,
    ]
    assert "z.txt" in problems(events)[4] or "y.txt" in problems(events)[4]
