"""Each method by which a widget, a screen or the shell is drawn or hears something
fails once, and so does each worker: each of these faults is told with its log, no
screen holds a person up, and the session works. They are found by walking the package,
so a new widget is among them.
"""

import importlib
import inspect
import pkgutil
import re
import shutil
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest
from textual import events
from textual.app import App
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import OptionList

import cdd_agent.tui
from cdd_agent.agents.chat import ChatAgent
from cdd_agent.agents.executor import ExecutorAgent
from cdd_agent.agents.planner import PlannerAgent
from cdd_agent.agents.socrates import SocratesAgent
from cdd_agent.commands.completing import complete
from cdd_agent.commands.declaration import load_address
from cdd_agent.commands.registry import commands
from cdd_agent.commands.settings import read_settings
from cdd_agent.commands.welcome_rows import Beginning, RowAction, WelcomeRow
from cdd_agent.events.question_events import ChangesProposed, CommandProposed
from cdd_agent.events.ticket_events import SpecShown
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.session.open_project import TrustQuestion
from cdd_agent.trust.rules import ProjectSetting
from cdd_agent.tui.answering import KeyClock
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.screens.model_setup import ModelSetup
from cdd_agent.tui.screens.setting_places import ResetDialog, SaveDialog
from cdd_agent.tui.screens.setting_values import ChoiceList, ValueField
from cdd_agent.tui.screens.theme_list import ThemeList
from cdd_agent.tui.screens.wish import Wish
from cdd_agent.tui.terminal_input.driver_messages import (
    BackgroundReported,
    PageAttached,
)
from cdd_agent.tui.transcript.blocks import BlockKind
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.bars import ActivityBar
from cdd_agent.tui.widgets.prompt import Prompt
from cdd_agent.tui.widgets.status_line import StatusLine
from cdd_agent.tui.widgets.steps import StepList
from tests.agents.asking import asks
from tests.support.injecting import Injected
from tests.support.projects import SLUG, Sandbox, Step, check, says
from tests.support.reviews import review_of
from tests.tui.person import Person, person_at
from tests.tui.test_faults import works
from tests.tui.test_reviewing import TWO_FILES

# each point at which the shell's own code can fail; test_faults.py has one of each kind
pytestmark = pytest.mark.crash
HEARS_OR_DRAWS = re.compile(
    r"compose|render|render_line|_?on_\w+|action_\w+|watch_\w+|_watch_\w+"
)
LEAVES = re.compile(
    r"Leaving\.(leave|action_(leave|vanish|quit|suspend_process)|on_(exit_app|input_ended))$"
    r"|KeyRouting\.on_(ready|event)$"
    r"|Shell\.(on_(mount|unmount)|open|look_around)$"
    r"|\.(on_unmount|_on_mount)$|(Home|Prompt)\.(compose|on_mount)$"
)
"""What begins the shell or ends it: a test of its own has it."""


def classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(cdd_agent.tui.__path__, "cdd_agent.tui."):
        for _, known in inspect.getmembers(
            importlib.import_module(module.name), inspect.isclass
        ):
            if known.__module__ == module.name and issubclass(known, Widget | App):
                yield known


def methods() -> Iterator[tuple[type, str]]:
    for known in classes():
        for name, value in vars(known).items():
            if (
                inspect.isfunction(value)
                and (HEARS_OR_DRAWS.fullmatch(name) or is_guarded(value))
                and not LEAVES.search(f"{known.__name__}.{name}")
            ):
                yield known, name


def is_guarded(method: Any) -> bool:
    """True for a method that is guarded by a decorator, or starts a worker."""
    return method.__code__.co_filename.endswith(("tui/faults.py", "_work_decorator.py"))


def cell_of(method: Any) -> Any:
    """The cell that holds a method in its guard, or the work of a worker."""
    cell = None
    while hasattr(method, "__wrapped__"):
        inner = method.__wrapped__
        for candidate in method.__closure__ or ():
            if candidate.cell_contents is inner:
                cell = candidate
        method = inner
    return cell


def fails_once(
    usual: Callable[..., Any], name: str, left: set[str]
) -> Callable[..., Any]:
    def fail() -> None:
        if name in left:
            left.remove(name)
            raise Injected(f"injected into {name}")

    # each is another fault, not the same one again
    fail.__code__ = fail.__code__.replace(co_name=name)

    if inspect.iscoroutinefunction(usual):

        @wraps(usual)
        async def failing(*args: Any, **kwargs: Any) -> Any:
            fail()
            return await usual(*args, **kwargs)

    elif inspect.isgeneratorfunction(usual):

        @wraps(usual)
        def failing(*args: Any, **kwargs: Any) -> Any:
            fail()
            yield from usual(*args, **kwargs)

    else:

        @wraps(usual)
        def failing(*args: Any, **kwargs: Any) -> Any:
            fail()
            return usual(*args, **kwargs)

    return failing


def inject(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of what is to fail; each leaves the set when it has."""
    left = set[str]()
    for known, name in methods():
        method, full = vars(known)[name], f"{known.__name__}.{name}"
        left.add(full)
        cell = cell_of(method)
        if cell is not None:
            failing = fails_once(cell.cell_contents, full, left)
            monkeypatch.setattr(cell, "cell_contents", failing)
        else:
            monkeypatch.setattr(known, name, fails_once(method, full, left))
    return left


SPEC = SpecShown(
    SLUG,
    "Say words",
    "feature",
    "high",
    "Words.",
    (),
    (),
    "",
    ("title",),
    ("Who?",),
    (),
)


async def keys(person: Person, *pressed: str) -> None:
    for key in pressed:
        person.time.pass_by(0.1)
        await person.press(key)


async def click(person: Person, x: int, y: int) -> None:
    """As a terminal tells it; the pilot would hand it to the screen itself."""
    for kind in (events.MouseDown, events.MouseUp):
        person.app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
    await person.pilot.pause()


async def is_open(person: Person) -> None:
    """Wait until what a key opens is there, or has failed."""
    await person.until(
        lambda: person.app.screen is not person.app.home or not list(person.app.workers)
    )
    await person.pilot.pause()


async def home(person: Person) -> None:
    """Escape leads back from every screen; from a value on it first out of that."""
    for _ in range(4):
        if person.app.screen is person.app.home:
            break
        await person.press("escape")
    assert person.app.screen is person.app.home, person.screen
    await person.press("escape")
    person.prompt.replace("")
    assert person.app.is_running
    assert not person.app._exit
    person.time.pass_by(5)  # two Ctrl+C in a row would leave


async def in_the_prompt(person: Person, left: set[str]) -> None:
    await home(person)
    person.prompt.area.focus()
    if "ScreenActions.action_toggle_approval" in left:  # it fails, and changes no mode
        await keys(person, "shift+tab")
    person.prompt.post_message(Prompt.EnterIgnored())
    await keys(person, "a", "left", "ctrl+k", "ctrl+u", "/")
    await person.pilot.click(person.prompt.query_one(OptionList), offset=(2, 1))
    person.prompt.replace("")
    await keys(
        person,
        *"/e",
        "down",
        "up",
        "tab",
        "escape",
        "ctrl+u",
        "x",
        "ctrl+underscore",
        "ctrl+y",
        "ctrl+c",
        "up",
    )
    await keys(
        person,
        "ctrl+u",
        "ctrl+r",
        "e",
        "down",
        "enter",
        "ctrl+u",
        "ctrl+o",
        "shift+enter",
        "ctrl+g",
        "enter",
    )
    person.app.post_message(events.Paste("a line\n" * 20))
    await person.pilot.pause()
    await keys(
        person,
        "ctrl+o",
        "ctrl+u",
        "backspace",
        "a",
        "b",
        "left",
        "ctrl+k",
        "down",
        "tab",
        "ctrl+z",
    )
    for area in person.app.query(Transcript):
        area.focus()
    await keys(person, "down", "tab", "x", "y", "backspace")


async def in_the_window(person: Person, left: set[str]) -> None:
    del left
    await person.pilot.resize_terminal(130, 40)
    await person.pilot.resize_terminal(60, 20)
    await person.pilot.resize_terminal(100, 30)
    person.app.post_message(events.AppBlur())
    person.app.post_message(events.AppFocus())
    person.app.post_message(BackgroundReported("rgb:ffff/ffff/ffff"))
    person.app.post_message(PageAttached())
    for place in (Transcript, StepList, StatusLine, ActivityBar):
        person.app.query_one(place).refresh()
        x, y = person.app.query_one(place).region.offset
        await click(person, x + 1, y + 1)
    await home(person)


OPENED_BY = {
    "f1": "HelpScreen",
    "ctrl+p": "Palette",
    "f4": "TicketsScreen",
    "f5": "SettingsScreen",
    "f3": "InspectorScreen",
    "f7": "InspectorScreen",
    "/board": "BoardScreen",
}


async def on_screens(person: Person, left: set[str]) -> None:
    for opening, screen in OPENED_BY.items():
        if not any(
            name.startswith((screen, "Overlay", "Chooser", "Shell.action_open"))
            for name in left
        ):
            continue
        for more in (
            ("down", "up", "pagedown", "ctrl+up", "up", "x", "backspace", "ctrl+u"),
            ("down", "enter", "x", "enter"),
            ("ctrl+n",),
        ):
            if opening.startswith("/"):
                await person.say(opening)
            else:
                await keys(person, opening)
            await is_open(person)
            await keys(person, *more, "left", "right", "enter")
            person.app.post_message(events.Paste("pasted"))
            await person.pilot.pause()
            await click(person, 30, 12)
            await home(person)
    await keys(person, "ctrl+p")
    await is_open(person)
    rows = person.app.screen.query(OptionList)
    if rows:  # opening the palette may have failed
        await click(person, rows.first().region.x + 2, rows.first().region.y + 1)
    await home(person)
    offers = (OfferedModel("q", "Ollama", "http://127.0.0.1:1"),)
    # nothing listens there
    environment = {"MISTRAL_API_KEY": "k", "MISTRAL_API_BASE": "http://127.0.0.1:1"}

    def model_setup() -> ModelSetup:
        return ModelSetup(offers, KeyClock(), environment=environment)

    for more in ((*"another", "enter", *"127.0.0.1:1", "enter"), (*"mistral", "enter")):
        person.app.push_screen(model_setup())
        await person.pilot.pause()
        await keys(person, *more)
        await home(person)
    for around in (model_setup, Wish):
        for more in (
            ("down", "ctrl+u"),
            ("enter", "enter"),
            ("x", "backspace", "enter", "enter"),
        ):
            person.app.push_screen(around())
            await person.pilot.pause()
            await keys(person, *more)
            await home(person)


async def in_the_settings(person: Person, left: set[str]) -> None:
    kinds = ("ChoiceList", "ValueField", "SettingDialog", "SaveDialog", "ResetDialog")
    if not any(name.startswith((*kinds, "ThemeList", "SettingsS")) for name in left):
        return
    session = person.app.session
    assert session is not None
    settings = {one.name: one for one in read_settings(session.project)}
    attempts = settings["max_attempts"]
    dialogs: tuple[Callable[[], Screen[Any]], ...] = (
        lambda: ChoiceList("Effort", {"low": "less", "high": "more"}, "low"),
        lambda: ThemeList("dark", "dark"),
        lambda: ValueField(attempts),
        lambda: SaveDialog(session, attempts, "4"),
        lambda: ResetDialog(session, attempts, "3"),
    )
    for make in dialogs:
        for pressed in (
            ("x", "backspace", "down", "up", "right", "left", "ctrl+u"),
            ("enter",),
        ):
            # the dialogs are as new again after each fault
            for _ in range(2):
                person.app.push_screen(make())
                await person.pilot.pause()
                await keys(person, *pressed)
                await person.until(lambda: not list(person.app.workers))
                await home(person)
    for _ in range(3):
        await keys(person, "f5")
        await is_open(person)
        await keys(person, "down", "ctrl+r")
        await home(person)


IN_THE_INSPECTOR = (
    ("1", "left_square_bracket", "n", "p", "ctrl+up", "left", "n", "e"),
    ("2", "home", "down", "pagedown", "left", "right", "enter"),
    ("3", "end", "pageup", "pagedown", "right", "enter"),
    ("3", "end", "u", "tab"),
    ("3", "end", "u", "enter", "enter"),
    ("4", "m", "escape"),
    ("1", "r", "s", "escape"),
    ("tab", "shift+tab", "f2", "f2"),
)


async def in_the_inspector(person: Person, left: set[str]) -> None:
    kinds = ("Inspector", "StepTab", "ListTab", "CriteriaTab", "RowList", "Action")
    if not any(name.startswith(kinds) for name in left):
        return
    for pressed in IN_THE_INSPECTOR:
        await keys(person, "f7")
        await is_open(person)
        await has_read_the_run(person)
        if isinstance(person.app.screen, InspectorScreen):
            person.app.screen.read_again()
            await has_read_the_run(person)
            person.app.screen.show_edited_plan(1, (BlockKind.NOTE, "Saved."))
            await has_read_the_run(person)
        for key in pressed:
            person.time.pass_by(1)
            await person.press(key)
            await has_read_the_run(person)
        for row in (6, 7, 8):
            await click(person, 20, row)
        await person.pilot.resize_terminal(60, 20)
        await person.pilot.resize_terminal(100, 30)
        await home(person)
        await person.until(lambda: not person.is_waiting)
    await person.say(f"/exec {SLUG}")


async def has_read_the_run(person: Person) -> None:
    await person.until(
        lambda: (
            not [
                worker
                for worker in person.app.workers
                if worker.node is person.app.screen and not worker.is_finished
            ]
        )
    )


async def on_the_welcome(person: Person, left: set[str]) -> None:
    del left
    shell, welcome = person.app.home, person.app.home.welcome
    rows = (WelcomeRow(RowAction.HELP, "Help"), WelcomeRow(RowAction.TICKETS, "Open"))
    for row in rows:
        shell.add_class("-welcome")
        welcome.open(Beginning((row,)))
        await person.pilot.pause()
        await keys(person, "enter", "down", "up", "escape")
        lines = person.screen.splitlines()
        place = next((y for y, line in enumerate(lines) if row.title in line), 0)
        await click(person, lines[place].find(row.title), place)
        await person.pilot.pause()
        await home(person)
        shell.end_welcome()


async def in_a_run(person: Person, left: set[str]) -> None:
    del left
    await person.say(f"/exec {SLUG}")
    await person.say("")
    for more in (
        ("right", "left", "]", "[", "n", "p", "e", "pagedown"),
        ("r",),
        ("s",),
    ):
        await keys(person, "f2", "down", "up", "home", "end", "enter")
        await is_open(person)
        person.time.pass_by(1)
        await keys(person, *more)
        await home(person)
    await keys(
        person,
        "f2",
        "f2",
        "ctrl+t",
        "f6",
        "pageup",
        "pagedown",
        "ctrl+up",
        "enter",
        "right",
        "left",
    )
    await keys(
        person,
        "ctrl+up",
        "ctrl+c",
        "ctrl+down",
        "x",
        "backspace",
        "ctrl+f",
        *"good",
        "enter",
        "up",
        "escape",
    )
    for bar in (False, True):
        await keys(person, "ctrl+f")
        await person.pilot.pause()
        await keys(person, *"go", "enter")
        if bar:
            await click(person, 2, 3)
        await home(person)
    person.app.home.spec.show(SPEC)
    await person.pilot.resize_terminal(140, 40)
    await person.pilot.resize_terminal(100, 30)
    person.app.home.spec.show(None)
    person.app.home.steps.fold(is_folded=False)
    await person.pilot.pause()
    x, y = person.app.home.steps.region.offset
    await click(person, x + 1, y + 1)
    await home(person)
    person.app.home.transcript.post_message(
        Transcript.FileChosen(person.app.root / "a.txt", 1)
    )
    person.app.call_later(person.app.look, "/status")
    person.app.call_later(person.app.action_use_theme, "light")
    await person.pilot.pause()
    await person.say("close")


async def in_questions(person: Person, left: set[str]) -> None:
    del left
    for proposal in (
        CommandProposed("\n".join(f"echo {n}" for n in range(60)), "Because"),
        ChangesProposed(1, ("a.txt",), ()),
    ):
        asked = person.app.run_worker(
            person.app.asking.approve(proposal), exit_on_error=False
        )
        await person.pilot.pause()
        await keys(
            person, "pagedown", "up", "f1", "escape", *"no", "tab", "enter", "escape"
        )
        asked.cancel()
        await person.pilot.pause()
    asked = person.app.run_worker(
        person.app.asking.review(review_of(1, TWO_FILES)), exit_on_error=False
    )
    await person.pilot.pause()
    await person.pilot.resize_terminal(60, 14)
    await person.pilot.resize_terminal(100, 30)
    await keys(person, "pagedown", "down", "p", "left", "right", "ctrl+up", "escape")
    asked.cancel()
    await person.pilot.pause()
    asked = person.app.run_worker(person.app.asking.ask("Which?"), exit_on_error=False)
    await keys(person, "x", "enter")
    asked.cancel()


async def in_the_question_about_trust(person: Person, left: set[str]) -> None:
    del left
    setting = ProjectSetting("model", "model: script:x", "why", "config.yaml", 1, "0")
    question = TrustQuestion(person.app.root, (setting,), {}, "model: script:x\n")
    for answer in "tc":
        asked = person.app.run_worker(
            person.app.show_trust_screen(question), exit_on_error=False
        )
        await person.pilot.pause()
        await keys(person, "s", "down", answer, answer)
        asked.cancel()
        await home(person)


AROUND = (
    in_a_run,
    in_the_inspector,
    on_screens,
    in_the_settings,
    in_questions,
    in_the_question_about_trust,
)
TOUR = (
    *AROUND,
    on_the_welcome,
    in_the_prompt,
    in_the_window,
    *AROUND,
    in_a_run,
    in_a_run,
)
"""What opens a screen fails before what is on it."""


@pytest.mark.long
async def test_each_method_fails_once_and_the_session_continues(
    sandbox: Sandbox,
) -> None:
    sandbox.write(Step("a.txt", check("a.txt")), Step("b.txt", check("b.txt"))).replies(
        *[says("a.txt", "good")] * 40
    )
    async with person_at(sandbox, size=(100, 30), faults=True) as person:
        with pytest.MonkeyPatch.context() as broken:
            left = inject(broken)
            names = frozenset(left)
            assert len(names) > 80
            for part in TOUR * 3:
                if left:
                    await part(person, left)
            assert sorted(left) == []
        log = (sandbox.root / ".cdd/runs/errors.log").read_text()
        assert [name for name in names if f"injected into {name}\n" not in log] == []
        await home(person)
        await person.say("close")
        shutil.rmtree(sandbox.ticket)
        shutil.rmtree(sandbox.root / ".cdd" / "runs" / SLUG, ignore_errors=True)
        (sandbox.root / "a.txt").unlink(missing_ok=True)
        sandbox.write(Step("a.txt", check("a.txt")))
        await works(person, sandbox)


async def test_each_command_and_each_agent_fails_once_and_the_session_continues(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write(Step("a.txt", check("a.txt"))).replies(
        asks("Who?"), says("a.txt", "good")
    )
    left = set[str]()
    broken = commands()
    for name, command in commands().items():
        left.add(f"/{name}")
        assert command.slash is not None
        if command.slash.run:
            usual = load_address(command.slash.run)
            front = command.slash._replace(run=fails_once(usual, f"/{name}", left))
            broken[name] = command._replace(slash=front)
        else:
            usual = load_address(command.events)
            failing = fails_once(usual, f"/{name}", left)
            broken[name] = command._replace(events=failing)
    monkeypatch.setattr("cdd_agent.commands.registry.commands", lambda: broken)
    for agent, method in (
        (ExecutorAgent, "carry_out"),
        (PlannerAgent, "carry_out"),
        (SocratesAgent, "carry_out"),
        (ChatAgent, "say"),
    ):
        name = f"{agent.__name__}.{method}"
        left.add(name)
        monkeypatch.setattr(
            agent, method, fails_once(getattr(agent, method), name, left)
        )
    left.add("completion")
    monkeypatch.setattr(
        "cdd_agent.commands.completing.complete",
        fails_once(complete, "completion", left),
    )
    names = frozenset(left)
    async with person_at(sandbox, faults=True) as person:
        await person.press("/")
        person.prompt.replace("")
        for known in commands().values():
            needed = known.required.split()
            await person.say(" ".join((f"/{known.name}", *needed)))
        await person.say("hello")
        for opens in (f"/exec {SLUG}", f"/plan {SLUG}", f"/socrates {SLUG}"):
            for line in (opens, "close", "close"):
                await person.say(line)
        assert left == set()
        log = (sandbox.root / ".cdd/runs/errors.log").read_text()
        assert [name for name in names if f"injected into {name}\n" not in log] == []
        assert person.told.count("Internal error in cdd") == len(names)
        await works(person, sandbox)
