"""A run told again in a later session: the events of its log, with the words that only
its attempts' folders have.
"""

import pytest

from cdd_agent.commands.registry import handle
from cdd_agent.engine import retelling
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.retelling import last_line, run_retold
from cdd_agent.events.dialogue_events import ReplyDelta, ToolFinished
from cdd_agent.events.notices import Answer
from cdd_agent.events.run_events import QuestionAsked
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.step_events import CommandOutput, StepDiff, StepStarted
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import SessionRestored
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.state_file import read_state
from tests.engine.tool_steps import calls, create
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says

TWO = Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1")
SECRET = "correct-horse-battery-7431"


def told_again(sandbox: Sandbox) -> SessionRestored:
    record = RunRecord.of(sandbox.root, SLUG, Redactor.of_environment(()))
    return run_retold(
        record,
        read_state(sandbox.project.tickets.find(SLUG))
        or ExecutionState(ticket_slug=SLUG),
    )


async def test_what_was_said_asked_done_and_seen_is_there_again(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO).replies(
        says("a.txt", "bad", "First try."),
        "Because of `b`.",
        says("a.txt", "good", "Second."),
    )
    session = sandbox.session()
    await collect(handle(session, f"/exec {SLUG}"))
    for line in ("continue", "why not?", "retry because it is bad"):
        await collect(handle(session, line))
    session.leave()

    restored = told_again(sandbox)
    assert not restored.left_out
    events = restored.events
    assert [event.text for event in events if isinstance(event, PersonSaid)] == [
        "continue",
        "why not?",
        "retry because it is bad",
    ]
    replies = [event.text for event in events if isinstance(event, ReplyDelta)]
    assert [reply.split("\n")[0] for reply in replies] == ["First try.", "Second."]
    assert [event.text for event in events if isinstance(event, Answer)] == [
        "Because of `b`."
    ]
    assert [
        "it says bad" in event.text
        for event in events
        if isinstance(event, CommandOutput)
    ] == [True, False]
    assert [
        "+good" in event.diff for event in events if isinstance(event, StepDiff)
    ] == [False, True]
    order = [
        type(event)
        for event in events
        if isinstance(
            event,
            StepStarted | ReplyDelta | StepDiff | StepFinished | QuestionAsked | Answer,
        )
    ]
    assert order == [
        *(StepStarted, ReplyDelta, StepDiff, StepFinished),
        *(QuestionAsked, Answer),
        *(StepStarted, ReplyDelta, StepDiff, StepFinished),
    ]
    assert not any(isinstance(event, PlanOpened) for event in events)


async def test_tools_are_told_with_what_they_found(sandbox: Sandbox) -> None:
    (sandbox.root / "notes.md").write_text("look here")
    sandbox.write(TWO[0]).replies(
        calls(("read_file", {"path": "notes.md"})),
        calls(create("a.txt", "good")),
        "It is done.",
    )
    await run_all(sandbox)
    found = [
        event for event in told_again(sandbox).events if isinstance(event, ToolFinished)
    ]
    assert [event.tool for event in found] == ["read_file", "create_file"]
    assert "look here" in found[0].output
    assert [
        event.text
        for event in told_again(sandbox).events
        if isinstance(event, ReplyDelta)
    ] == ["It is done."]


async def test_secrets_of_a_reply_are_not_told_again(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", SECRET)
    await run_all(
        sandbox.write(TWO[0]).replies(says("a.txt", "good", f"The key is {SECRET}."))
    )
    reply = next(
        event.text
        for event in told_again(sandbox).events
        if isinstance(event, ReplyDelta)
    )
    assert SECRET not in reply
    assert "redacted" in reply


async def test_of_a_long_run_it_is_the_last_part_in_bounded_size(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retelling, "LONGEST_TEXT", 500)
    monkeypatch.setattr(retelling, "MOST_EVENTS", 20)
    steps = [Step(f"{n}.txt", "none") for n in range(6)]
    sandbox.write(*steps).replies(
        *(says(f"{n}.txt", "x", "long " * 1000) for n in range(6))
    )
    await run_all(sandbox)
    restored = told_again(sandbox)
    assert restored.left_out
    assert 10 < len(restored.events) <= 40
    assert [event.step for event in restored.events if isinstance(event, StepFinished)][
        -1
    ] == 6
    assert all(
        len(event.text) < 600
        for event in restored.events
        if isinstance(event, ReplyDelta)
    )


async def test_of_a_run_that_was_started_over_the_earlier_one_is_not_told(
    sandbox: Sandbox,
) -> None:
    sandbox.write(TWO[0]).replies(
        says("a.txt", "bad", "Once."), says("a.txt", "good", "Again.")
    )
    await run_all(sandbox)
    (sandbox.ticket / "execution-state.json").unlink()
    (sandbox.root / ".cdd" / "runs" / SLUG / "state.json").unlink()
    session = sandbox.session()
    await collect(handle(session, f"/exec {SLUG}"))
    await collect(handle(session, "continue"))
    session.leave()
    replies = [
        event.text
        for event in told_again(sandbox).events
        if isinstance(event, ReplyDelta)
    ]
    assert [reply.split("\n")[0] for reply in replies] == ["Again."]


async def test_a_damaged_log_is_told_as_far_as_it_can_be_read(sandbox: Sandbox) -> None:
    await run_all(sandbox.write(TWO[0]).replies(says("a.txt", "bad")))
    log = sandbox.root / ".cdd" / "runs" / SLUG / "events.jsonl"
    log.write_bytes(b"{torn\n\xff\xfe\n" + log.read_bytes() + b'{"time": "x"')
    assert any(isinstance(event, StepFinished) for event in told_again(sandbox).events)
    assert last_line(
        RunRecord.of(sandbox.root, SLUG, Redactor()).log.latest(10_000)
    ).startswith("step 1 failed")
