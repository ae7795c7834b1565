"""A fault of the program itself is a line and a traceback in a file; the session goes
on.
"""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.events import CommandProposed
from cdd_agent.faults import FaultLog
from cdd_agent.session import Session
from cdd_agent.tui.app import Shell
from cdd_agent.tui.asking import Asking
from cdd_agent.tui.home import Home
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.bars import ActivityBar, TitleBar
from cdd_agent.tui.widgets.prompt import Prompt, PromptArea
from cdd_agent.tui.widgets.question import Question
from cdd_agent.tui.widgets.steps import StepList
from tests.support.injecting import SECRET, Injected, fail_once
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.tui.person import Person, person_at


def keys(*pressed: str) -> Callable[[Person], Awaitable[None]]:
    async def press(person: Person) -> None:
        await person.press(*pressed)

    return press


async def a_line(person: Person) -> None:
    await person.begin("hello")
    await person.until(lambda: not person.is_waiting)


async def a_resize(person: Person) -> None:
    await person.pilot.resize_terminal(100, 30)
    await person.pilot.resize_terminal(80, 24)


async def a_question(person: Person) -> None:
    asked = person.app.run_worker(
        person.app.asking.approve(CommandProposed("ls", "Because"))
    )
    await person.until(lambda: person.app.asking.open is not None or asked.is_finished)
    await person.rest()
    await person.press("escape")
    await person.until(lambda: asked.is_finished)


async def a_timer(person: Person) -> None:
    person.app.set_timer(0.01, person.app.look_around)


Act = Callable[[Person], Awaitable[None]]
# what a walk through the package does not find
PLACES: tuple[tuple[type, str, Act], ...] = (
    (Session, "say", a_line),  # a turn
    (Shell, "show", a_line),
    (Home, "settle", a_line),  # the turn's own end
    (Session, "first_look", a_timer),  # a worker besides
    (Shell, "look_around", a_timer),  # a timer
    (Asking, "has_taken", keys("x")),  # the app's own keys
    (Prompt, "_offer", keys("/")),
    (Asking, "_answer", a_question),
    (Question, "show_keys", a_question),
    (Prompt, "_recall", keys("up")),
    (PromptArea, "_is_for_the_prompt", keys("up")),
    (Transcript, "add", a_line),
    (Transcript, "_draw_waiting", a_line),  # a callback
    (StepList, "_show_selected", a_resize),
)


@pytest.mark.parametrize(
    ("where", "name", "act"),
    PLACES,
    ids=lambda value: getattr(value, "__name__", value),
)
async def test_a_fault_anywhere_leaves_a_session_that_works(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, where: type, name: str, act: Act
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", SECRET)
    sandbox.write(Step("a.txt", check("a.txt"))).replies(
        "Hello.", *["Well."] * 3, says("a.txt", "good")
    )
    async with person_at(sandbox, f"/exec {SLUG}", faults=True) as person:
        if act is a_line:
            await person.say("exit")
        fail_once(monkeypatch, where, name)
        await act(person)
        await person.until_told("A fault in cdd itself")
        await person.until(lambda: not person.is_waiting)

        log = sandbox.root / ".cdd" / "runs" / "errors.log"
        (line,) = [
            line for line in person.told.splitlines() if "A fault in cdd itself" in line
        ]
        assert ".cdd/runs/errors.log" in line
        assert "Injected" in line
        text = log.read_text()
        assert text.startswith("Traceback") or "\nTraceback" in text
        assert f"injected into {name}" in text
        assert SECRET not in text + person.told

        person.prompt.replace("")
        for place in (Transcript, StepList, TitleBar, ActivityBar):
            person.app.query_one(place).refresh()
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
    assert "Step 1 completed" in person.told
    asked = person.app.run_worker(
        person.app.asking.approve(CommandProposed("ls", "Because"))
    )
    await person.answer("y")
    assert (await asked.wait()).value == "yes"
    assert re.search(r"Enter sends|Waiting", person.screen)


async def test_a_session_that_cannot_be_opened_is_told_with_the_log(
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
    assert "no session" in (sandbox.root / ".cdd/runs/errors.log").read_text()


async def test_leaving_leaves_whatever_fails(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with person_at(sandbox, faults=True) as person:
        fail_once(monkeypatch, Session, "leave")
        await person.press("ctrl+d")
        await person.until(lambda: not person.app.is_running)


def test_the_log_is_the_projects_or_else_the_persons(
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
