"""Each key has a description and an effect, and docs/reference/shell.md lists it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widget import Widget

from cdd_agent.events.step_summary import StepSummary
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.app import Shell
from cdd_agent.tui.inspector.action_screen import ActionScreen
from cdd_agent.tui.inspector.criteria_tab import CriteriaTab
from cdd_agent.tui.inspector.empty import EmptyState
from cdd_agent.tui.inspector.footer import empty_keys, list_keys, step_keys
from cdd_agent.tui.inspector.row_list import RowList
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.inspector.source import InspectorTab
from cdd_agent.tui.inspector.step_tab import StepTab
from cdd_agent.tui.key_help import all_of_the_shell, on_screens
from cdd_agent.tui.keys import shown
from cdd_agent.tui.screens.board import BoardScreen
from cdd_agent.tui.screens.chooser import Chooser
from cdd_agent.tui.screens.help import HelpScreen
from cdd_agent.tui.screens.overlay import Overlay
from cdd_agent.tui.screens.palette import Palette
from cdd_agent.tui.screens.sessions import SessionsScreen
from cdd_agent.tui.screens.settings import SettingsScreen
from cdd_agent.tui.screens.tickets import TicketsScreen
from cdd_agent.tui.screens.trust_screen import TrustScreen
from cdd_agent.tui.screens.wish import Wish
from cdd_agent.tui.transcript.find_bar import FindBar
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.key_line import KeyLine
from cdd_agent.tui.widgets.prompt_area import PromptArea
from cdd_agent.tui.widgets.steps import StepList
from tests.support.projects import Sandbox, Step
from tests.support.tables import each_row
from tests.tui.person import Person, person_at
from tests.tui.screens.reading import has_read

DOCS = Path(__file__).parents[3] / "docs/reference/shell.md"
SCREENS = {
    "ctrl+p": Palette,
    "f1": HelpScreen,
    "f4": TicketsScreen,
    "f5": SettingsScreen,
}
OPEN, FAILED, DONE = StepStatus.PENDING, StepStatus.FAILED, StepStatus.COMPLETED
STEP_TAB = (InspectorScreen, StepTab)
KEYS = (*("a", "up", "pagedown", "tab", "backspace", "f3", "ctrl+n"),)
FEW = ("a", "pagedown")
"""Keys to press in a window with hardly any room."""


def test_every_binding_has_a_description() -> None:
    kinds = (
        Shell,
        Overlay,
        Chooser,
        HelpScreen,
        Palette,
        TicketsScreen,
        SettingsScreen,
        Wish,
        BoardScreen,
        TrustScreen,
        InspectorScreen,
        StepTab,
        RowList,
        CriteriaTab,
        ActionScreen,
        PromptArea,
        Transcript,
        StepList,
        FindBar,
    )
    for kind in kinds:
        for binding in kind.BINDINGS:
            assert isinstance(binding, Binding)
            assert binding.description.strip(), binding


def _bound(*kinds: type[Widget]) -> set[str]:
    """The keys that a screen, or what has the focus on it, handles."""
    keys = set()
    for kind in kinds:
        for ancestor in kind.__mro__:
            for binding in vars(ancestor).get("BINDINGS", ()):
                keys.update(shown(key) for key in binding.key.split(","))
    return keys


def _keys_in(footer: str) -> Iterator[str]:
    """Yield the keys that a line of keys names, before what they do."""
    for part in footer.split(" · "):
        keys, colon, _ = part.partition(": ")
        for word in keys.split():
            if colon or NAME_OF_KEY.fullmatch(word):
                modifier, plus, arrows = word.rpartition("+")
                both = len(arrows) == 2 and arrows in ("↑↓", "←→")
                for key in arrows if both else (arrows,):
                    yield f"{modifier}{plus}{key}".capitalize()


NAME_OF_KEY = re.compile(r"(Ctrl\+)?([↑↓←→]{1,2}|\S)|PgUp|PgDn|Home|End|Enter|Esc")


@each_row(
    ("footer", "kinds"),
    [
        (Overlay.KEYS, (Overlay,)),
        (Chooser.KEYS, (Chooser,)),
        (Palette.KEYS, (Palette,)),
        (TicketsScreen.KEYS, (TicketsScreen,)),
        (SessionsScreen.KEYS, (SessionsScreen,)),
        (SettingsScreen.KEYS, (SettingsScreen,)),
        (HelpScreen.KEYS, (HelpScreen,)),
        (BoardScreen.KEYS, (BoardScreen,)),
        (TrustScreen.KEYS, (TrustScreen,)),
        (step_keys(StepSummary(1, "", OPEN), 2, is_running=False), STEP_TAB),
        (step_keys(StepSummary(1, "", FAILED), 1, is_running=False), STEP_TAB),
        (step_keys(StepSummary(1, "", DONE), 1, is_running=False), STEP_TAB),
        (
            list_keys(InspectorTab.CRITERIA),
            (InspectorScreen, RowList, CriteriaTab),
        ),
        (list_keys(InspectorTab.TIMELINE), (InspectorScreen, RowList)),
        (
            list_keys(InspectorTab.STRENGTH, can_measure=True),
            (InspectorScreen, RowList),
        ),
        (empty_keys(EmptyState("", "/plan"), can_measure=False), (InspectorScreen,)),
        (ActionScreen.KEYS, (ActionScreen,)),
    ],
)
def test_a_line_of_keys_names_only_keys_that_work_there(
    footer: str, kinds: tuple[type[Widget], ...]
) -> None:
    bound = {key.capitalize() for key in _bound(*kinds)}
    named = list(_keys_in(footer))
    assert named
    assert [key for key in named if key not in bound] == []


@pytest.mark.parametrize("width", [24, 40, 60, 80])
async def test_a_line_of_keys_is_cut_between_its_parts(width: int) -> None:
    footer = step_keys(StepSummary(1, "", FAILED), 2, is_running=False)

    class Bottom(App[None]):
        def compose(self) -> ComposeResult:
            yield KeyLine(footer)

    app = Bottom()
    async with app.run_test(size=(width, 3)):
        shown_text = app.query_one(KeyLine).render().plain
    whole = footer.split(" · ")
    parts = shown_text.split(" · ")
    assert parts == whole[: len(parts)]
    is_complete = len(parts) == len(whole)
    assert is_complete or len(" · ".join(whole[: len(parts) + 1])) > width


def test_the_help_has_no_empty_table() -> None:
    assert [title for title, keys in on_screens().items() if not keys] == []


def _documented() -> Iterator[tuple[str, str]]:
    table = (
        DOCS.read_text(encoding="utf-8")
        .partition("\n## Keys\n")[2]
        .partition("\n## ")[0]
    )
    for keys, words in re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE)[1:]:
        yield keys.replace("\\_", "_"), words


def test_docs_shell_md_has_the_same_table_of_keys() -> None:
    assert list(_documented()) == [(key.names, key.words) for key in all_of_the_shell()]


def test_keys_are_named_as_on_the_keyboard() -> None:
    assert [shown(key) for key in ("ctrl+p", "f1", "pagedown", "shift+tab", "up")] == [
        "Ctrl+P",
        "F1",
        "PgDn",
        "Shift+Tab",
        "↑",
    ]


async def seen(person: Person) -> tuple[object, ...]:
    """Return all that the user sees."""
    await person.pilot.pause()
    strips = person.app.screen._compositor.render_strips()
    return (
        person.app.screen,
        [(part.text, part.style) for strip in strips for part in strip],
        person.prompt.text,
    )


async def open_screen(person: Person, key: str) -> None:
    await person.press(key)
    await person.until(
        lambda: isinstance(person.app.screen, SCREENS[key]) and has_read(person)
    )


async def close_screen(person: Person) -> None:
    await person.press("escape")
    await person.until(lambda: person.app.screen is person.app.home)


@pytest.mark.parametrize(
    ("size", "keys"), [((80, 24), KEYS), ((24, 8), FEW)], ids=["usual", "small"]
)
async def test_each_key_has_an_effect_or_a_hint_and_escape_closes_the_screen(
    sandbox: Sandbox, size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    sandbox.write(Step("a.txt"))
    silent = []
    # the other screens handle keys as these two do
    async with person_at(sandbox, size=size) as person:
        for opens in ("f1", "f4"):
            kind = SCREENS[opens]
            for key in keys:
                if not isinstance(person.app.screen, kind):
                    await open_screen(person, opens)
                person.prompt.replace("a draft")
                # the hint of the key before this one must not be mistaken for its own
                person.app.post_message(events.Paste(""))
                person.app.clear_notifications()
                before = await seen(person)
                await person.press(key)
                await person.until(lambda: has_read(person))
                if await seen(person) == before:
                    silent.append((opens, key))
                if key in FEW or not isinstance(person.app.screen, kind):
                    await close_screen(person)
                    assert person.prompt.text in ("a draft", "/new "), key
                    assert not person.is_waiting
            if person.app.screen is not person.app.home:
                await close_screen(person)
    assert silent == []


async def test_the_hint_for_a_key_without_effect_names_the_keys_that_work(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, size=(160, 24)) as person:
        for opens in SCREENS:
            await open_screen(person, opens)
            await person.press("f9")
            await person.until(lambda: "F9" in person.screen)
            assert "Esc: close" in person.screen
            await close_screen(person)
