"""A person says things, and looks at things, while something runs."""

import gc
import threading
import weakref

import pytest

from cdd_agent.commands.registry import can_run_now, commands
from cdd_agent.events import (
    Answer,
    CriteriaShown,
    Emit,
    Event,
    GuidanceTaken,
    Notice,
    PlanOpened,
    ReplyDelta,
    ScreenAsked,
    StepDiff,
    TicketsListed,
)
from cdd_agent.frontend import Frontend
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.session import Session
from cdd_agent.tui.criteria_screen import CriteriaScreen
from tests.engine.tool_steps import calls, create
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.tui.person import PATIENCE, Person, opened, person_at, shell
from tests.tui.test_stopping import streaming

LOOKS: dict[str, type[Event]] = {
    "/status": PlanOpened,
    "/list": TicketsListed,
    "/cost": Notice,
    "/context a.txt": Answer,
    "/model": Notice,
    "/help": ScreenAsked,
    "/help executor": ScreenAsked,
    "/help keys": ScreenAsked,
}


async def running(person: Person) -> None:
    await person.begin("")
    await person.until_told("One ")
    person.shown.clear()


@pytest.mark.parametrize("line", LOOKS)
async def test_looking_needs_no_waiting(sandbox: Sandbox, line: str) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await running(person)
        await person.begin(line)
        await person.until(
            lambda: any(isinstance(event, LOOKS[line]) for event in person.shown)
        )
        assert f"❯ {line}" in person.told or line in person.told
        assert sandbox.statuses()[0] == "in_progress"
        assert person.prompt.text == ""
        assert not person.prompt.has_class("-waiting")

        if person.app.screen is not person.app.home:  # closed first
            await person.press("escape")
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses() == ["pending", "pending"]


SECRET = "horse " + "battery " * 400 + "staple"
"""Its pieces take more than a minute, unless they are made to come faster."""
REPLY = f"The key is {SECRET} and so on, and so on."


@pytest.mark.parametrize(
    "line", [*LOOKS, f"/diff {SLUG}", "/criteria", "/nonsense", f"/status {SLUG}"]
)
async def test_looking_cuts_neither_the_reply_nor_its_redaction(
    sandbox: Sandbox, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANY_TOKEN", SECRET)
    streaming(sandbox).model = ScriptedModel(
        [says("a.txt", "good", words=REPLY)], pace=40
    )
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("The key is")
        await person.pilot.pause(0.3)  # the first part of the secret has come
        person.shown.clear()
        if line == "/nonsense":
            person.app.look(line)
        else:
            await person.begin(line)
        await person.until(lambda: "❯ " + line in person.told or line in person.told)
        sandbox.model.pace = 0
        await person.until(lambda: not person.is_waiting)
        replies = "".join(
            event.text for event in person.shown if isinstance(event, ReplyDelta)
        )
        assert "battery" not in person.told + replies
        reply = REPLY.replace(SECRET, "[redacted: ANY_TOKEN]").strip()
        assert reply in person.told
        assert person.told.index(reply) < person.told.index(line)


async def test_the_cost_says_that_a_call_runs_that_is_not_counted_yet(
    sandbox: Sandbox,
) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await running(person)
        await person.begin("/cost")
        await person.until_told("This session: ")
        told = person.told.partition("This session: ")[2].splitlines()[0]
        assert "1 model call is under way" in told
        assert "tokens" not in told
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)
        await person.say("/cost")
        last = person.told.rpartition("This session: ")[2]
        assert "under way" not in last
        assert "tokens" in last


async def test_what_a_completed_step_changed_is_seen_while_the_next_one_runs(
    sandbox: Sandbox,
) -> None:
    streaming(sandbox).replies(
        says("a.txt", "good"), says("b.txt", "good", words="One " + "long" * 1000)
    )
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("continue")
        assert sandbox.statuses()[0] == "completed"
        sandbox.model.pace = 40
        await running(person)
        await person.begin("/diff 1")
        await person.until(
            lambda: any(isinstance(event, StepDiff) for event in person.shown)
        )
        await person.begin("/criteria")
        await person.until(
            lambda: any(isinstance(event, CriteriaShown) for event in person.shown)
        )
        assert isinstance(person.app.screen, CriteriaScreen)
        assert sandbox.statuses() == ["completed", "in_progress"]
        await person.press("escape", "escape")
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses() == ["completed", "pending"]


async def test_a_look_that_fails_is_told_and_the_turn_goes_on(sandbox: Sandbox) -> None:
    async with person_at(streaming(sandbox), f"/exec {SLUG}") as person:
        await running(person)
        await person.begin("/status nonsense")
        await person.until(
            lambda: "nonsense" in person.told.split("/status nonsense")[-1]
        )
        assert sandbox.statuses()[0] == "in_progress"
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)


def test_only_what_changes_nothing_runs_beside_something_else() -> None:
    now = {name for name in commands() if can_run_now(f"/{name}")}
    assert now == {
        "status",
        "list",
        "diff",
        "criteria",
        "context",
        "cost",
        "model",
        "help",
        "board",
    } | {
        "settings",
        "theme",
        "tickets",
    }
    assert can_run_now("  /STATUS x")
    assert not any(
        map(can_run_now, ("", "/", "status", "//status", "/nonsense", "!ls", "hello"))
    )


TALK = "One " + "two " * 1000
"""More than a minute of it, unless it is made to go faster."""


def with_tools(sandbox: Sandbox) -> Sandbox:
    """A model that talks for a while before it makes its first call."""
    talk = calls(create("a.txt", "good"), text=TALK)
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt")))
    sandbox.model = ScriptedModel([talk, "Done."], pace=40)
    return sandbox


WORDS = "please keep it short and simple"


async def test_words_for_the_step_that_runs_reach_its_model(sandbox: Sandbox) -> None:
    async with person_at(with_tools(sandbox), f"/exec {SLUG}") as person:
        await running(person)
        await person.begin(WORDS)
        assert WORDS in person.screen
        sandbox.model.pace = 0
        await person.until(lambda: not person.is_waiting)
        assert [
            event.text for event in person.shown if isinstance(event, GuidanceTaken)
        ] == [WORDS]
        assert sandbox.model.requests[-1].messages[-1].content == WORDS
        # it has started no other step
        assert sandbox.statuses() == ["completed", "pending"]
        assert person.prompt.text == ""


async def test_words_that_are_taken_back_are_not_heard(sandbox: Sandbox) -> None:
    async with person_at(with_tools(sandbox), f"/exec {SLUG}") as person:
        await running(person)
        await person.begin(WORDS)
        await person.press("escape")
        assert person.prompt.text == WORDS
        sandbox.model.pace = 0
        await person.until(lambda: not person.is_waiting)
        assert not any(isinstance(event, GuidanceTaken) for event in person.shown)
        assert person.prompt.text == WORDS
        assert sandbox.statuses() == ["completed", "pending"]


async def test_words_that_no_round_follows_come_back(sandbox: Sandbox) -> None:
    streaming(sandbox).model = ScriptedModel(
        [says("a.txt", "good", words=TALK)], pace=40
    )
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await running(person)
        await person.begin(WORDS)
        sandbox.model.pace = 0
        await person.until(lambda: not person.is_waiting)
        assert person.prompt.text == WORDS
        assert sandbox.statuses() == ["completed", "pending"]


@pytest.mark.parametrize(
    "command", ["!echo keep it short and simple", f"/undo {SLUG} 2"]
)
async def test_a_command_that_waits_is_not_for_the_model(
    sandbox: Sandbox, command: str
) -> None:
    async with person_at(with_tools(sandbox), f"/exec {SLUG}") as person:
        await running(person)
        await person.begin(command)
        sandbox.model.pace = 0
        await person.until(lambda: not person.is_waiting)
        assert not any(isinstance(event, GuidanceTaken) for event in person.shown)
        assert all(
            command not in message.content
            for message in sandbox.model.requests[-1].messages
        )
        assert f"❯ {command}" in person.told or command in person.told


async def test_looking_before_the_session_is_open_waits_for_it(
    sandbox: Sandbox,
) -> None:
    is_shown = threading.Event()
    app = shell(sandbox)
    open_at_once = app._open_session

    def open_session(
        frontend: Frontend, emit: Emit
    ) -> tuple[Session, tuple[Notice, ...]]:
        assert is_shown.wait(PATIENCE)
        return open_at_once(frontend, emit)

    app._open_session = open_session
    async with app.run_test() as pilot:
        for line in ("/list", "/cost"):
            app.home.prompt.area.insert(line)
            await pilot.press("enter")
        is_shown.set()
        await opened(app, pilot)
        assert "This session" in app.home.transcript.plain_text()
        assert app.is_running


async def test_each_line_that_waits_keeps_its_meaning_and_nothing_is_kept_of_others(
    sandbox: Sandbox,
) -> None:
    async with person_at(with_tools(sandbox), f"/exec {SLUG}") as person:
        assert person.app.session is not None
        left = weakref.ref(person.app.session.agent)
        await running(person)
        for number in range(3):
            await person.begin(f"{WORDS} {number}")
            await person.press("escape")
            person.prompt.replace("")
        await person.press("escape")
        await person.until(lambda: not person.is_waiting)
        await person.say("/exit")
        person.prompt.area.insert("hello")
        await person.pilot.pause()
        gc.collect()
        assert left() is None

        person.prompt.hold("the same", 1)
        person.prompt.hold("the same", 2)
        assert person.prompt.take_waiting() == ("the same", 1)
        assert person.prompt.take_waiting() == ("the same", 2)
        assert person.prompt.take_waiting() is None
