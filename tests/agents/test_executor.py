"""The words a person types in the Executor."""

import json
import re
from contextlib import suppress

import pytest

from cdd_agent.agents.executor import ExecutorAgent
from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput, BudgetExhausted, CddError
from cdd_agent.events.dialogue_events import (
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    ToolFinished,
)
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.run_events import QuestionAnswered, RunFinished
from cdd_agent.events.shell_events import AgentChanged
from cdd_agent.events.step_events import StepDiff, StepStarted
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.llm.port import AuthenticationFailed, ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.session.session import Session
from tests.support.listening import collect, stop_at
from tests.support.projects import SLUG, Sandbox, Step, check, notice, noticed, says
from tests.support.tables import each_row

GUIDANCE = "leave the header out please"


def next_step(events: list[Event]) -> str:
    """The one that was named last."""
    return [
        event.text
        for event in events
        if isinstance(event, Notice) and event.kind is NoticeKind.WHAT_NEXT
    ][-1]


TWO = (Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"), "Step 1"))


async def say(session: Session, *lines: str) -> list[Event]:
    return [event for line in lines for event in await collect(handle(session, line))]


def started(events: list[Event]) -> list[int]:
    return [event.step for event in events if isinstance(event, StepStarted)]


def told(events: list[Event]) -> str:
    return "\n".join(event.text for event in events if isinstance(event, Notice))


async def test_exec_shows_the_plan_and_runs_nothing(
    sandbox: Sandbox,
) -> None:
    session = sandbox.write(*TWO).session()
    events = await say(session, f"/exec {SLUG}")
    assert events[0] == AgentChanged("executor", SLUG)
    assert isinstance(events[1], PlanOpened)
    assert "Make a.txt" in notice(events, NoticeKind.WHAT_NEXT)
    assert not (sandbox.ticket / "execution-state.json").exists()
    session.leave()


@each_row("word", ["continue", "c", "next", "n", "", "  ", "CONTINUE"])
async def test_continue_runs_the_next_step(sandbox: Sandbox, word: str) -> None:
    session = sandbox.write(*TWO).replies(says("a.txt", "good")).session()
    events = await say(session, f"/exec {SLUG}", word)
    assert started(events) == [1]
    assert "step 2" in next_step(events)
    session.leave()


async def test_after_a_failure_continue_runs_nothing_and_retry_does(
    sandbox: Sandbox,
) -> None:
    session = (
        sandbox.write(*TWO)
        .replies(says("a.txt", "bad"), says("a.txt", "good"))
        .session()
    )
    await say(session, f"/exec {SLUG}", "c")
    for word in ("c", "all"):
        events = await say(session, word)
        assert started(events) == []
        assert "`retry`, `skip`" in told(events)
    assert started(await say(session, "r")) == [1]
    assert sandbox.statuses() == ["completed", "pending"]
    session.leave()


async def test_retry_without_a_failure_runs_nothing(sandbox: Sandbox) -> None:
    session = sandbox.write(*TWO).session()
    events = await say(session, f"/exec {SLUG}", "retry")
    assert started(events) == []
    assert NoticeKind.NOT_DONE in noticed(events)
    session.leave()


async def test_all_runs_the_rest_and_returns_to_chat(sandbox: Sandbox) -> None:
    session = (
        sandbox.write(*TWO)
        .replies(says("a.txt", "good"), says("b.txt", "good"))
        .session()
    )
    events = await say(session, f"/exec {SLUG}", "all")
    assert started(events) == [1, 2]
    assert isinstance(events[-3], RunFinished)
    assert isinstance(closed := events[-2], Notice)
    assert f"Undo: `/undo {SLUG}`" in closed.text
    assert events[-1] == AgentChanged(None)
    assert session.agent is None


@each_row(
    ("word", "reason", "kept"),
    [
        ("skip", "by the user", False),
        ("s", "by the user", False),
        ("skip keep", "by the user", True),
        ("skip because it is not needed", "it is not needed", False),
        ("Skip keep because mine", "mine", True),
    ],
)
async def test_skip_leaves_the_step_out(
    sandbox: Sandbox, word: str, reason: str, kept: bool
) -> None:
    session = sandbox.write(*TWO).replies(says("a.txt", "bad")).session()
    await say(session, f"/exec {SLUG}", "c", word)
    assert sandbox.statuses() == ["skipped", "pending"]
    assert sandbox.state()["step_executions"]["1"]["reason"] == reason
    assert (sandbox.root / "a.txt").exists() is kept
    session.leave()


async def test_skipping_the_last_step_ends_the_run(sandbox: Sandbox) -> None:
    session = sandbox.write(TWO[0]).session()
    events = await say(session, f"/exec {SLUG}", "skip")
    assert events[-1] == AgentChanged(None)
    assert sandbox.state()["status"] == "completed"


async def test_anything_else_is_guidance_and_runs_the_step(sandbox: Sandbox) -> None:
    session = (
        sandbox.write(*TWO)
        .replies(says("a.txt", "bad"), says("a.txt", "good"))
        .session()
    )
    await say(session, f"/exec {SLUG}", GUIDANCE)
    assert sandbox.prompt().endswith(f"\n\n{GUIDANCE}")
    await say(session, "> say good")
    assert sandbox.prompt().endswith("\n\nsay good")
    assert sandbox.statuses()[0] == "completed"
    session.leave()


async def test_a_question_is_answered_and_runs_nothing(sandbox: Sandbox) -> None:
    session = (
        sandbox.write(*TWO)
        .replies(says("a.txt", "bad"), reading("a.txt"), "It says bad.")
        .session()
    )
    events = await say(session, f"/exec {SLUG}", "c", "Why did it fail?")
    assert started(events) == [1]
    assert [event.call for event in events if isinstance(event, ToolFinished)] == [
        "read_file(path=a.txt)"
    ]
    assert [event.step for event in events if isinstance(event, ReplyFinished)] == [
        1,
        1,
        1,
    ]
    assert "".join(
        event.text for event in events if isinstance(event, ReplyDelta)
    ).endswith("It says bad.")
    assert events[-1] == QuestionAnswered(1)
    assert sandbox.statuses() == ["failed", "pending"]
    prompt = sandbox.prompt()
    for known in (
        "files say the right words",
        "### Step 2: Make b.txt",
        "it failed with: ",
        "created a.txt",
    ):
        assert known in prompt
    session.leave()


async def test_a_conversation_in_another_shell_is_not_part_of_a_step(
    sandbox: Sandbox,
) -> None:
    talking = (
        "python -c \"import os; os.makedirs('.cdd/conversations');"
        " open('.cdd/conversations/x.jsonl', 'w')\""
    )
    session = (
        sandbox.write(Step("a.txt", talking), Step("b.txt"))
        .replies(says("a.txt", "good"))
        .session()
    )
    await say(session, f"/exec {SLUG}", "c")
    (shown,) = [
        event for event in await say(session, "diff") if isinstance(event, StepDiff)
    ]
    assert "a.txt" in shown.diff
    assert "x.jsonl" not in shown.diff
    session.leave()


async def test_a_question_is_sent_with_matching_places(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / "limits.py").write_text("class RateLimiter:\n    pass\n")
    session = sandbox.write(Step("a.txt", "none")).replies("In limits.py.").session()
    await say(session, f"/exec {SLUG}")
    await say(session, "where is the rate limiter?")
    assert "limits.py: " in sandbox.prompt()
    assert "class RateLimiter:" in sandbox.prompt()
    session.leave()


async def test_a_question_has_read_only_tools(sandbox: Sandbox) -> None:
    session = sandbox.write(*TWO).replies("Nothing.").session()
    await say(session, f"/exec {SLUG}", "What is there?")
    names = re.findall(r"^## (\w+)$", sandbox.prompt(), re.MULTILINE)
    assert set(names) >= {"read_file", "grep_files"}
    assert not {"create_file", "edit_file", "execute_command"} & set(names)
    session.leave()


async def test_a_question_includes_the_previous_one(sandbox: Sandbox) -> None:
    session = sandbox.write(*TWO).replies("Because.", "As I said.").session()
    await say(session, f"/exec {SLUG}", "Why?", "Really?")
    said = [message.content for message in sandbox.model.requests[-1].messages[1:]]
    assert said == ["Why?", "Because.", "Really?"]
    session.leave()


async def test_a_question_is_counted_for_the_run(sandbox: Sandbox) -> None:
    session = sandbox.write(*TWO).replies(says("a.txt", "good"), "Two words.").session()
    await say(session, f"/exec {SLUG}", "c")
    before, _ = await say(session, "/cost")
    await say(session, "How is it going?")
    after, _ = await say(session, "/cost")
    assert re.search(r"\b1 model call\b", told([before]))
    assert re.search(r"\b2 model calls\b", told([after]))
    session.leave()


async def test_a_question_stays_within_the_budget(sandbox: Sandbox) -> None:
    sandbox.flags = {"budget": {"tokens": 2_000}}
    session = sandbox.write(*TWO).replies("Never said.").session()
    with pytest.raises(BudgetExhausted):
        await say(session, f"/exec {SLUG}", "Why?")
    assert sandbox.model.requests == []
    session.leave()


async def test_a_question_whose_model_fails_fails_no_step(sandbox: Sandbox) -> None:
    session = (
        sandbox.write(*TWO)
        .replies(AuthenticationFailed("No key."), says("a.txt", "good"))
        .session()
    )
    with pytest.raises(AuthenticationFailed):
        await say(session, f"/exec {SLUG}", "Why?")
    await say(session, "c")
    assert sandbox.statuses() == ["completed", "pending"]
    session.leave()


def reading(path: str) -> ScriptedReply:
    return ScriptedReply(
        tool_calls=(ToolCall("1", "read_file", json.dumps({"path": path})),)
    )


async def test_status_shows_the_steps(sandbox: Sandbox) -> None:
    session = sandbox.write(*TWO).replies(says("a.txt", "good")).session()
    await say(session, f"/exec {SLUG}", "c")
    for word in ("status", "st", "/status", f"/status {SLUG}"):
        (opened,) = [
            event for event in await say(session, word) if isinstance(event, PlanOpened)
        ]
        assert [step.status for step in opened.steps] == ["completed", "pending"]
    session.leave()


async def test_opening_a_failed_ticket_reports_the_failure(sandbox: Sandbox) -> None:
    session = sandbox.write(*TWO).replies(says("a.txt", "bad")).session()
    await say(session, f"/exec {SLUG}", "c", "close")

    events = await say(sandbox.session(), f"/exec {SLUG}")
    assert NoticeKind.RESUMED in noticed(events)
    failed = notice(events, NoticeKind.STEP_FAILED)
    assert "Step 1" in failed
    assert "exit code 1" in failed
    assert "`retry`, `skip`" in told(events)


async def test_a_new_session_continues_after_exit(sandbox: Sandbox) -> None:
    session = sandbox.write(*TWO).replies(says("a.txt", "good")).session()
    events = await say(session, f"/exec {SLUG}", "c", "close")
    assert events[-1] == AgentChanged(None)

    again = sandbox.replies(says("b.txt", "good")).session()
    events = await say(again, f"/exec {SLUG}")
    assert re.search(r"\b1 of 2\b", notice(events, NoticeKind.RESUMED))
    assert "step 2" in notice(events, NoticeKind.WHAT_NEXT)
    assert any(event.resumed for event in events if isinstance(event, PlanOpened))
    assert started(await say(again, "c")) == [2]


async def test_a_finished_ticket_is_reported_and_left(sandbox: Sandbox) -> None:
    session = sandbox.write(TWO[0]).replies(says("a.txt", "good")).session()
    await say(session, f"/exec {SLUG}", "c")
    events = await say(session, f"/exec {SLUG}")
    assert NoticeKind.ALL_DONE in noticed(events)
    assert session.agent is None
    assert not [
        event for event in events if isinstance(event, ReplyStarted | StepFinished)
    ]


@each_row("plan_is_cut_short", [False, True])
async def test_no_line_runs_anything_after_the_last_step(
    sandbox: Sandbox, plan_is_cut_short: bool
) -> None:
    """Whoever stops the opening of a finished run at once still has it before them."""
    sandbox.write(*TWO).replies(says("a.txt", "good"), says("b.txt", "good"), "Yes.")
    session = sandbox.session()
    await say(session, f"/exec {SLUG}", *(["c"] if plan_is_cut_short else ["c", "c"]))
    session.leave()
    if plan_is_cut_short:
        sandbox.write(TWO[0])
    before = sandbox.statuses()
    words = (
        "",
        "continue",
        "c",
        "next",
        "retry",
        "all",
        "status",
        "skip",
        "skip keep",
        "skip because of it",
        "?",
    )
    for word in (
        *words,
        "diff",
        "diff 7",
        "undo 7",
        "redo",
        "is it done?",
        "what is left",
        "close",
    ):
        agent = ExecutorAgent(sandbox.engine(), ())
        with suppress(CddError):
            events = await collect(agent.carry_out(agent.meaning(word)))
            assert started(events) == [], word
        agent.close()
        assert sandbox.statuses() == before, word
        assert agent.is_done, word


async def test_another_exec_releases_the_first_ticket(sandbox: Sandbox) -> None:
    session = sandbox.write(*TWO).session()
    await say(session, f"/exec {SLUG}", "close")
    await say(session, f"/exec {SLUG}")
    with pytest.raises(BadInput, match="nothing-like-it"):
        await say(session, "/exec nothing-like-it")
    assert session.agent is not None
    session.leave()


async def test_a_failed_exec_keeps_the_active_agent(
    sandbox: Sandbox,
) -> None:
    session = sandbox.write(*TWO).session()
    await say(session, f"/exec {SLUG}", "/new bug other")
    with pytest.raises(BadInput, match=r"plan\.md"):
        await say(session, "/exec bug-other")
    assert session.agent is not None
    assert session.agent.ticket_slug == SLUG
    session.leave()


async def test_retry_runs_a_stopped_step(sandbox: Sandbox) -> None:
    session = (
        sandbox.write(*TWO)
        .replies(says("a.txt", "bad"), says("a.txt", "good"))
        .session()
    )
    await say(session, f"/exec {SLUG}", "c")
    await stop_at(
        handle(session, "retry"), lambda event: isinstance(event, StepStarted)
    )
    assert sandbox.statuses()[0] == "pending"
    assert started(await say(session, "retry")) == [1]
    assert sandbox.statuses()[0] == "completed"
    session.leave()


async def test_exec_of_the_active_ticket_continues_it(
    sandbox: Sandbox,
) -> None:
    session = sandbox.write(*TWO).session()
    await say(session, f"/exec {SLUG}")
    events = await say(session, f"/exec {SLUG}")
    assert "step 1" in notice(events, NoticeKind.WHAT_NEXT)
    session.leave()


async def test_a_plan_edited_between_two_steps_is_used(
    sandbox: Sandbox,
) -> None:
    session = (
        sandbox.write(*TWO)
        .replies(says("a.txt", "good"), says("c.txt", "good"))
        .session()
    )
    await say(session, f"/exec {SLUG}", "continue")
    sandbox.write(TWO[0], Step("c.txt", check("c.txt")))
    events = await say(session, "continue")
    assert NoticeKind.PLAN_EDITED in noticed(events)
    assert sandbox.text("c.txt") == "good\n"
    assert session.agent is None


async def test_a_shortened_plan_ends_at_its_new_last_step(
    sandbox: Sandbox,
) -> None:
    session = sandbox.write(*TWO).replies(says("a.txt", "good")).session()
    await say(session, f"/exec {SLUG}", "continue")
    sandbox.write(TWO[0])
    events = await say(session, "continue")
    assert started(events) == []
    assert isinstance(events[-3], RunFinished)
    assert session.agent is None
