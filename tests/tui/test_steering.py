"""The user sends lines while a step runs."""

import gc
import re
import threading
import weakref

import pytest

from cdd_agent.commands.registry import commands
from cdd_agent.events.dialogue_events import ReplyDelta
from cdd_agent.events.notices import Answer, Notice
from cdd_agent.events.shell_events import ScreenAsked
from cdd_agent.events.step_events import GuidanceTaken, StepDiff
from cdd_agent.events.stream import Emit, Event
from cdd_agent.events.ticket_events import CriteriaShown, PlanOpened, TicketsListed
from cdd_agent.frontend import Frontend
from cdd_agent.session.session import Session
from cdd_agent.tui.app import Shell
from tests.engine.tool_steps import calls, create
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.support.typed_lines import can_run_now
from tests.tui.held_model import HeldModel
from tests.tui.person import PATIENCE, FingerTime, Person, opened, person_at

READ_ONLY: dict[str, type[Event]] = {
    "/status": PlanOpened,
    f"/status {SLUG}": PlanOpened,
    "/status nonsense": Notice,
    "/list": TicketsListed,
    "/cost": Notice,
    "/context a.txt": Answer,
    "/approval": Notice,
    "/model": ScreenAsked,
    "/help": ScreenAsked,
    "/help executor": ScreenAsked,
    "/criteria": CriteriaShown,
}
"""Commands that run next to a step, and the event that answers each."""
GUIDANCE = "please keep it short and simple"
TWO_STEPS = (Step("a.txt", "none"), Step("b.txt", "none"))
SECRET = "horse " + "battery " * 20 + "staple"


async def running(person: Person) -> None:
    await person.begin("")
    await person.until_told("One ")
    person.shown.clear()


def with_tools(sandbox: Sandbox) -> HeldModel:
    """Use a model that writes some words before its first tool call."""
    sandbox.write(*TWO_STEPS)
    talk = calls(create("a.txt", "good"), text="One two three.")
    sandbox.model = model = HeldModel(talk, "Done.")
    return model


def guidance(person: Person) -> list[str]:
    return [event.text for event in person.shown if isinstance(event, GuidanceTaken)]


async def test_read_only_commands_run_next_to_a_step_and_leave_its_reply_whole(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands come while the model is in the middle of a secret."""
    monkeypatch.setenv("ANY_TOKEN", SECRET)
    sandbox.write(*TWO_STEPS)
    (sandbox.root / "a.txt").write_text("before\n")
    words = f"One key is {SECRET} and so on."
    sandbox.model = model = HeldModel(
        says("a.txt", "good", words), beginning=f"One key is {SECRET[:80]}"
    )
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await running(person)
        replies = list[Event]()
        for line, answer in READ_ONLY.items():
            await person.begin(line)
            await person.until(
                lambda answer=answer: any(isinstance(e, answer) for e in person.shown)
            )
            assert line in person.told
            assert person.prompt.text == ""
            assert not person.prompt.has_class("-waiting")
            if person.app.screen is not person.app.home:
                await person.press("escape")
            assert sandbox.statuses()[0] == "in_progress"
            replies += person.shown
            person.shown.clear()
        # the call that runs is counted
        assert re.search(r"\b1 model call\b", person.told)
        model.release()
        await person.until(lambda: not person.is_waiting)

        texts = [e.text for e in (*replies, *person.shown) if isinstance(e, ReplyDelta)]
        assert "battery" not in person.told + "".join(texts)
        reply = words.replace(SECRET, "[redacted: ANY_TOKEN]")
        assert person.told.index(reply) < person.told.index("/status")
        assert sandbox.statuses() == ["completed", "pending"]


async def test_the_diff_of_a_completed_step_is_shown_while_the_next_one_runs(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO_STEPS)
    sandbox.model = model = HeldModel(
        says("a.txt", "good"), says("b.txt", "good", "One word.")
    )
    model.release()
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("continue")
        model.hold()
        await running(person)
        await person.begin("/diff 1")
        await person.until(lambda: any(isinstance(e, StepDiff) for e in person.shown))
        assert sandbox.statuses() == ["completed", "in_progress"]
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses() == ["completed", "pending"]


def test_only_commands_that_disturb_nothing_run_next_to_a_step() -> None:
    assert {name for name in commands() if can_run_now(f"/{name}")} == {
        "approval",
        "board",
        "context",
        "conversation",
        "cost",
        "criteria",
        "diff",
        "exit",
        "help",
        "list",
        "model",
        "settings",
        "status",
        "theme",
        "tickets",
        "trust",
    }
    assert can_run_now("  /STATUS x")
    others = ("", "/", "status", "//status", "/nonsense", "!ls", "hello")
    assert not any(map(can_run_now, others))


async def test_guidance_for_the_running_step_reaches_its_model(
    sandbox: Sandbox,
) -> None:
    model = with_tools(sandbox)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await running(person)
        await person.begin(GUIDANCE)
        assert GUIDANCE in person.screen
        model.release()
        await person.until(lambda: not person.is_waiting)
        assert guidance(person) == [GUIDANCE]
        assert model.requests[-1].messages[-1].content == GUIDANCE
        # the line starts no other step
        assert sandbox.statuses() == ["completed", "pending"]
        assert person.prompt.text == ""


async def test_guidance_that_the_user_takes_back_does_not_reach_the_model(
    sandbox: Sandbox,
) -> None:
    model = with_tools(sandbox)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await running(person)
        await person.begin(GUIDANCE)
        await person.press("escape")
        assert person.prompt.text == GUIDANCE
        model.release()
        await person.until(lambda: not person.is_waiting)
        assert guidance(person) == []
        assert person.prompt.text == GUIDANCE
        assert sandbox.statuses() == ["completed", "pending"]


async def test_guidance_that_comes_after_the_last_request_returns_to_the_prompt(
    sandbox: Sandbox,
) -> None:
    sandbox.write(*TWO_STEPS)
    sandbox.model = model = HeldModel(says("a.txt", "good", "One two three."))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await running(person)
        await person.begin(GUIDANCE)
        model.release()
        await person.until(lambda: not person.is_waiting)
        assert person.prompt.text == GUIDANCE
        assert sandbox.statuses() == ["completed", "pending"]


async def test_a_command_that_waits_for_the_step_does_not_reach_the_model(
    sandbox: Sandbox,
) -> None:
    model = with_tools(sandbox)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await running(person)
        lines = ["!echo keep it short and simple", "!echo another"]
        for line in lines:
            await person.begin(line)
        model.release()
        await person.until(lambda: not person.is_waiting)
        assert guidance(person) == []
        for line in lines:
            assert f"❯ {line}" in person.told or line in person.told
            assert all(
                line not in message.content for message in model.requests[-1].messages
            )


async def test_a_read_only_command_waits_until_the_session_is_open(
    sandbox: Sandbox,
) -> None:
    is_shown = threading.Event()

    def open_session(
        frontend: Frontend, emit: Emit
    ) -> tuple[Session, tuple[Notice, ...]]:
        assert is_shown.wait(PATIENCE)
        sandbox.frontend = frontend
        return sandbox.session(emit), ()

    app = Shell(sandbox.root, open_session, clock=FingerTime().clock)
    async with app.run_test() as pilot:
        for line in ("/list", "/cost"):
            app.home.prompt.area.insert(line)
            await pilot.press("enter")
        is_shown.set()
        await opened(app, pilot)
        assert "This session" in app.home.transcript.plain_text()
        assert app.is_running


async def test_the_shell_keeps_no_agent_after_its_run_is_closed(
    sandbox: Sandbox,
) -> None:
    """Lines that waited refer to the agent that was active when they were typed."""
    model = with_tools(sandbox)
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        assert person.app.session is not None
        agent = weakref.ref(person.app.session.agent)
        await running(person)
        await person.begin(GUIDANCE)
        await person.press("escape")
        person.prompt.replace("")
        model.release()
        await person.until(lambda: not person.is_waiting)
        await person.say("/exit")
        person.write("hello")
        await person.pilot.pause()
        gc.collect()
        assert agent() is None


async def test_each_waiting_line_keeps_the_meaning_that_it_had_when_typed(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        person.prompt.hold("the same", 1)
        person.prompt.hold("the same", 2)
        assert person.prompt.take_waiting() == ("the same", 1)
        assert person.prompt.take_waiting() == ("the same", 2)
        assert person.prompt.take_waiting() is None
