"""A fault of the program itself becomes a line and a traceback in a file, and the
session continues.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.message import Message
from textual.message_pump import MessagePump
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

import cdd_agent.tui
from cdd_agent.commands.registry import handle
from cdd_agent.events.question_events import CommandProposed
from cdd_agent.faces.faults import FaultLog
from cdd_agent.session.session import Session
from cdd_agent.tui.app import Shell
from cdd_agent.tui.asking import Asking
from cdd_agent.tui.faults import Guarded, GuardedWidget
from cdd_agent.tui.home import Home
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.question import Question
from tests.support.injecting import SECRET, Injected, fail_once
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.tui.person import Person, person_at


def widgets_of_the_shell() -> Iterator[type[Widget | App[Any]]]:
    for module in pkgutil.walk_packages(cdd_agent.tui.__path__, "cdd_agent.tui."):
        for _, found in inspect.getmembers(
            importlib.import_module(module.name), inspect.isclass
        ):
            if found.__module__ == module.name and issubclass(found, Widget | App):
                yield found


def test_every_widget_is_guarded_against_its_own_faults() -> None:
    """The guards come before what they guard, or they would never run."""
    found = set(widgets_of_the_shell())
    assert {Shell, Home, Transcript, Question} <= found
    for kind in found:
        order = kind.__mro__
        assert order.index(Guarded) < order.index(MessagePump), kind
        if issubclass(kind, Widget):
            assert order.index(GuardedWidget) < order.index(Widget), kind


class Broken(GuardedWidget, Static):
    """Fails in each way in which Textual calls a widget."""

    value = reactive(0)

    class Sent(Message):
        pass

    def on_broken_sent(self) -> None:
        raise Injected("injected into a handler")

    def watch_value(self, value: int) -> None:
        if value:
            raise Injected("injected into a watcher")

    def action_fail(self) -> None:
        raise Injected("injected into an action")

    async def work(self) -> None:
        raise Injected("injected into a worker")

    def fail_later(self) -> None:
        raise Injected("injected into a timer")

    def fail_after_refresh(self) -> None:
        raise Injected("injected into a callback")


class Undrawable(GuardedWidget, Widget):
    def render(self) -> str:
        raise Injected("injected into a drawing")


class Uncomposed(GuardedWidget, Widget):
    def compose(self) -> ComposeResult:
        yield Static()
        raise Injected("injected into a composition")


def faults_told(person: Person) -> int:
    return person.told.count("Internal error in cdd")


def log_of(sandbox: Sandbox) -> str:
    log = sandbox.root / ".cdd" / "runs" / "errors.log"
    return log.read_text() if log.exists() else ""


async def test_a_widget_that_fails_in_any_way_leaves_a_session_that_works(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    async with person_at(sandbox, size=(100, 50), faults=True) as person:
        home, broken = person.app.home, Broken("x")
        await home.mount(broken, before="#questions")
        broken.post_message(Broken.Sent())
        broken.call_later(setattr, broken, "value", 1)
        broken.run_worker(broken.work(), exit_on_error=True)
        broken.set_timer(0.001, broken.fail_later)
        broken.call_after_refresh(broken.fail_after_refresh)
        broken.call_later(broken.run_action, "fail")
        await home.mount(Undrawable(), Uncomposed(), before="#questions")
        places = (
            "handler",
            "watcher",
            "worker",
            "timer",
            "callback",
            "action",
            "drawing",
            "composition",
        )
        await person.until(
            lambda: all(
                re.search(rf"injected into an? {place}", log_of(sandbox))
                for place in places
            )
        )
        await home.query("Broken, Undrawable, Uncomposed").remove()
        await works(person, sandbox)


def keys(*pressed: str) -> Callable[[Person], Awaitable[None]]:
    async def press(person: Person) -> None:
        await person.press(*pressed)

    return press


async def a_line(person: Person) -> None:
    await person.begin("hello")


async def a_question(person: Person) -> None:
    asked = person.app.run_worker(
        person.app.asking.approve(CommandProposed("ls", "Because"))
    )
    await person.until(lambda: person.app.asking.open is not None or asked.is_finished)
    await person.rest()
    await person.press("escape")
    await person.until(lambda: asked.is_finished)


async def a_timer(person: Person) -> None:
    person.app.set_timer(0.001, person.app.look_around)


Act = Callable[[Person], Awaitable[None]]
# what is no widget's own: turns, workers, the shell's keys and questions
PLACES: tuple[tuple[type, str, Act], ...] = (
    (Session, "carry_out", a_line),
    (Shell, "show", a_line),
    # the end of a turn
    (Home, "settle", a_line),
    (Session, "first_look", a_timer),
    (Shell, "look_around", a_timer),
    (Asking, "has_taken", keys("x")),
    (Question, "show_keys", a_question),
    # reports the fault too
    (Transcript, "add", a_line),
)


async def test_a_fault_outside_widgets_leaves_a_session_that_works(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", SECRET)
    sandbox.write(Step("a.txt")).replies(*["Well."] * len(PLACES))
    async with person_at(sandbox, size=(80, 60), faults=True) as person:
        for number, (where, name, act) in enumerate(PLACES, 1):
            fail_once(monkeypatch, where, name)
            await act(person)
            await person.until(lambda number=number: faults_told(person) == number)  # type: ignore[misc]
            await person.until(lambda: not person.is_waiting)
            assert f"injected into {name}," in log_of(sandbox)
            person.prompt.replace("")
        told = [
            line for line in person.told.splitlines() if "Internal error in cdd" in line
        ]
        assert all(
            ".cdd/runs/errors.log" in line and "Injected" in line for line in told
        )
        assert log_of(sandbox).count("\nTraceback") == len(PLACES)
        assert SECRET not in log_of(sandbox) + person.told
        await works(person, sandbox)


async def works(person: Person, sandbox: Sandbox) -> None:
    """Typing, completion, history, a question, a step: what a session is for."""
    await person.press(*"/exi", "tab")
    assert person.prompt.text == "/exit"
    await person.press("ctrl+c", "up")
    assert person.prompt.text == "/exit"
    person.prompt.replace("")
    sandbox.replies(says("a.txt", "good"))
    await person.say(f"/exec {SLUG}")
    await person.say("")
    assert sandbox.statuses() == ["completed"]
    asked = person.app.run_worker(
        person.app.asking.approve(CommandProposed("ls", "Because"))
    )
    await person.answer("y")
    assert (await asked.wait()).value == "yes"
    assert re.search(r"@: files|Waiting", person.screen)


async def test_a_session_that_cannot_be_opened_ends_the_shell_and_names_the_log(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".cdd").mkdir()

    def fail(*args: object) -> Any:
        raise Injected("no session")

    app = Shell(sandbox.root, fail)
    async with app.run_test() as pilot:
        person = Person(app, pilot, None)  # type: ignore[arg-type]
        await person.until(lambda: not app.is_running)
    assert app.return_value is not None
    assert "errors.log" in app.return_value.message
    assert "no session" in log_of(sandbox)


async def test_the_user_can_leave_whatever_fails(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with person_at(sandbox, faults=True) as person:
        fail_once(monkeypatch, Session, "leave")
        await person.press("ctrl+d")
        await person.until(lambda: not person.app.is_running)


def test_the_log_is_in_the_project_or_else_in_the_users_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    said = FaultLog(tmp_path).write(Injected("one"))
    assert "state/cdd/errors.log" in said
    (tmp_path / ".cdd").mkdir()
    assert ".cdd/runs/errors.log" in FaultLog(tmp_path).write(Injected("two"))
    (tmp_path / ".cdd" / "runs" / "errors.log").unlink()
    (tmp_path / ".cdd" / "runs" / "errors.log").mkdir()
    assert "state" in FaultLog(tmp_path).write(Injected("three"))
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    said = FaultLog(tmp_path).write(Injected("four\nlines"))
    assert "Injected" in said
    assert "errors.log" not in said


class Unguarded(Static):
    """Fails as a widget of a library would."""

    def on_mount(self) -> None:
        raise Injected("injected into a library")


async def test_a_fault_of_a_library_ends_the_shell_and_keeps_the_draft(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt"))
    drafts = sandbox.root / ".cdd" / "runs" / "drafts"
    shells = []

    async def mount_unguarded() -> None:
        async with person_at(sandbox, faults=True) as person:
            shells.append(person.app)
            await person.say(f"/exec {SLUG}")
            await person.press(*"half a thought")
            await person.until(
                lambda: any(
                    "thought" in one.read_text() for one in drafts.glob("*.json")
                )
            )
            person.app.home.mount(Unguarded())
            await person.until(lambda: not person.app.is_running)

    with pytest.raises(Injected):
        await mount_unguarded()
    (shell,) = shells
    assert not shell.is_ending
    assert shell.return_code == 1
    (draft,) = drafts.glob("*.json")
    assert "half a thought" in draft.read_text()
    # the ticket is free
    await handle(sandbox.session(), f"/exec {SLUG}")
