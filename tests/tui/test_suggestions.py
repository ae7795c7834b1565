"""After a ticket was created, a spec or a plan was approved, or a run was completed,
the prompt suggests the next command; and no Enter is taken by accident.
"""

from threading import Event
from typing import ClassVar

import pytest
from textual.binding import BindingType
from textual.screen import ModalScreen

from cdd_agent.commands.overview import overviews
from cdd_agent.events.stream import Emit
from cdd_agent.frontend import REST
from cdd_agent.session.session import Session
from cdd_agent.tui.quiet_enter import QUIET
from tests.agents.asking import COMPLETE, asks
from tests.agents.test_planner import plan, step
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.support.time_of_loops import leap
from tests.tui.held_model import HeldModel
from tests.tui.person import FingerTime, Person, opened, person_at, shell


class ClosedByEnter(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [("enter", "dismiss", "Close")]


async def suggested(person: Person) -> str:
    await person.until(lambda: person.prompt.is_suggesting)
    return person.prompt.text


def next_in_list(sandbox: Sandbox) -> str:
    (ticket,) = overviews(sandbox.project)
    return ticket.next_line


async def test_the_next_command_is_suggested_from_a_new_ticket_to_its_diff(
    sandbox: Sandbox,
) -> None:
    sandbox.replies(
        asks(**COMPLETE | {"title": "Pay"}),
        plan(step(1, "a.txt")),
        says("a.txt", "good"),
    )
    slug = "feature-pay"
    async with person_at(sandbox) as person:
        await person.say("/new feature pay")
        for command, answer in (
            (f"/socrates {slug}", "approve"),
            (f"/plan {slug}", "approve"),
            (f"/exec {slug}", "all"),
        ):
            assert await suggested(person) == command == next_in_list(sandbox)
            await person.rest(QUIET)
            await person.press("enter")
            await person.until(lambda: not person.is_waiting)
            assert not person.prompt.text
            await person.say(answer)
        assert await suggested(person) == f"/diff {slug}" == next_in_list(sandbox)


async def test_nothing_is_suggested_over_a_draft_or_while_the_user_types(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        person.write("/new feature one")
        person.at_once("enter", *"draft")
        await person.until(lambda: person.prompt.text == "draft")
        await person.until(lambda: not person.is_waiting)
        leap(60)
        await person.pilot.pause()
        assert person.prompt.text == "draft"

        person.prompt.replace("")
        await person.type("x")
        await person.press("backspace")
        await person.say("/new feature two")
        assert person.prompt.text == ""
        person.time.pass_by(REST)
        leap(60)
        assert await suggested(person) == "/socrates feature-two"


async def test_closing_an_agent_or_looking_suggests_nothing(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", "none"))
    async with person_at(sandbox) as person:
        lines = (f"/exec {SLUG}", "close", f"/plan {SLUG}", "close", "/list")
        for line in lines:
            await person.say(line)
            leap(60)
            await person.pilot.pause()
            assert person.prompt.text == "", line


@pytest.mark.parametrize("key", ["escape", "x", "ctrl+c"])
async def test_a_suggestion_goes_when_the_user_wants_something_else(
    sandbox: Sandbox, key: str
) -> None:
    async with person_at(sandbox) as person:
        await person.say("/new feature pay")
        await suggested(person)
        assert "Esc: clear" in person.activity
        await person.press(key)
        assert person.prompt.text == ("x" if key == "x" else "")
        await person.press("ctrl+u", "up")
        assert person.prompt.text == "/new feature pay"


async def test_a_second_enter_neither_sends_a_suggestion_nor_runs_a_step(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", "none"), Step("b.txt", "none"))
    sandbox.replies(says("a.txt", "good"), says("b.txt", "good"))
    async with person_at(sandbox) as person:
        for done, line in enumerate((f"/exec {SLUG}", "continue")):
            await person.say(line)
            before = len(sandbox.model.requests)
            await person.press("enter", "enter")
            assert person.activity.startswith("Too soon, ignored")
            assert "Enter: run step" in person.activity
            assert len(sandbox.model.requests) == before == done
        await person.rest(QUIET)
        await person.press("enter")
        await suggested(person)
        await person.press("enter")
        assert person.activity.startswith("Too soon, ignored")
        assert await suggested(person) == f"/diff {SLUG}"


async def test_an_enter_that_is_held_down_runs_one_step(sandbox: Sandbox) -> None:
    sandbox.write(Step("a.txt", "none"), Step("b.txt", "none"))
    sandbox.replies(says("a.txt", "good"), says("b.txt", "good"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.rest(60)
        for _ in range(60):
            await person.press("enter")
            person.time.pass_by(0.03)
        await person.until(lambda: not person.is_waiting)
        assert sandbox.statuses() == ["completed", "pending"]
        await person.rest(QUIET)
        await person.press("enter")
        await person.until(lambda: sandbox.statuses() == ["completed", "completed"])


async def test_a_second_enter_that_closed_a_screen_runs_no_step(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", "none"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.rest(60)
        await person.app.push_screen(ClosedByEnter())
        await person.rest(60)
        await person.press("enter", "enter")
        await person.until(lambda: person.app.screen is person.app.home)
        assert person.activity.startswith("Too soon, ignored")
        assert sandbox.model.requests == []


async def test_a_suggested_line_that_the_user_types_is_sent_at_once(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.say("/new feature pay")
        line = await suggested(person)
        await person.press(*"xy", "ctrl+u")
        await person.type(f"{line}\n", gap=0.05)
        assert person.prompt.text == ""


async def test_a_line_that_is_typed_at_once_is_sent_at_once(sandbox: Sandbox) -> None:
    """As a program does that types into the terminal once it sees the state."""
    sandbox.write(Step("a.txt", "none"), Step("b.txt", "none"))
    sandbox.replies(says("a.txt", "good"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        person.at_once(*"continue", "enter")
        await person.until(lambda: sandbox.model.requests and not person.is_waiting)
        assert sandbox.statuses() == ["completed", "pending"]


async def test_a_blank_line_that_follows_a_sent_one_at_once_runs_nothing(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", "none"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.rest(60)
        person.at_once(*"status", "enter", "enter", "enter")
        await person.until_told("○ 1. Make a.txt")
        await person.until(lambda: not person.is_waiting)
        assert sandbox.model.requests == []


async def test_a_line_typed_before_the_session_is_open_comes_after_the_greeting(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_typed, open_session = Event(), sandbox.session

    def open_late(emit: Emit) -> Session:
        is_typed.wait(timeout=60)
        return open_session(emit)

    monkeypatch.setattr(sandbox, "session", open_late)
    time = FingerTime()
    app = shell(sandbox, time=time)
    async with app.run_test() as pilot:
        person = Person(app, pilot, time)
        await pilot.pause()
        person.write("/list")
        await person.press("enter")
        await person.until(lambda: "⋯ /list" in person.screen)
        is_typed.set()
        await opened(app, pilot)
        assert person.told.index("Welcome.") < person.told.index("/list")
        assert "⋯" not in person.screen


async def test_exit_leaves_from_a_question_too(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        person.app.run_worker(person.app.asking.ask("Which?"), exit_on_error=False)
        await person.until_asked()
        await person.rest()
        await person.begin("exit")
        await person.until(lambda: not person.app.is_running)


async def test_help_opens_also_while_a_step_runs_and_at_a_question(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", "none"))
    sandbox.model = model = HeldModel(says("a.txt", "good", "One word."))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until_told("One ")
        await person.begin("help")
        await person.until(lambda: person.app.screen is not person.app.home)
        await person.press("escape")
        model.release()
        await person.until(lambda: not person.is_waiting)
        person.app.run_worker(person.app.asking.ask("Which?"), exit_on_error=False)
        await person.until_asked()
        await person.rest()
        await person.begin("help")
        await person.until(lambda: person.app.screen is not person.app.home)
        assert person.app.asking.open is not None
