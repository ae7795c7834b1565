"""Dialogs are as tall as their content, in the middle, with a frame and a line of keys,
in windows of every size.
"""

from collections.abc import Callable

from textual.widgets import Static

from cdd_agent.commands.settings import Setting
from cdd_agent.session.open_project import TrustQuestion
from cdd_agent.tui.screens.board import BoardScreen
from cdd_agent.tui.screens.help import HelpScreen
from cdd_agent.tui.screens.overlay import Overlay
from cdd_agent.tui.screens.palette import Palette
from cdd_agent.tui.screens.sessions import SessionsScreen
from cdd_agent.tui.screens.settings import SettingsScreen
from cdd_agent.tui.screens.tickets import TicketsScreen
from cdd_agent.tui.screens.trust_screen import TrustScreen
from cdd_agent.tui.screens.wish import Wish
from tests.support.examples import IS_THOROUGH
from tests.support.projects import Sandbox
from tests.tui.person import Person, person_at

SIZES = ((60, 20), (80, 24), (120, 40), (200, 50))
LOW = (80, 12)
Make = Callable[[Person], Overlay]
SHORT: dict[str, Make] = {
    "wish": lambda person: Wish(),
    "sessions": lambda person: SessionsScreen([]),
    "tickets": lambda person: TicketsScreen(project(person)),
    "board": lambda person: BoardScreen(project(person)),
    "trust": lambda person: TrustScreen(
        TrustQuestion(person.app.home._root, (), {}, ""), lambda: 0.0
    ),
}
LONG: dict[str, Make] = {
    "palette": lambda person: Palette(project(person)),
    "settings": lambda person: SettingsScreen(person.app.session, change, change),  # type: ignore[arg-type]
    "help": lambda person: HelpScreen(),
}


async def change(setting: Setting, inherited: str = "") -> str:
    del setting, inherited
    return ""


def project(person: Person) -> object:
    assert person.app.session is not None
    return person.app.session.project


async def test_dialogs_are_as_tall_as_their_content(sandbox: Sandbox) -> None:
    wrong = []
    sizes = SIZES if IS_THOROUGH else (SIZES[0], SIZES[-1])
    for size in (*sizes, LOW):
        async with person_at(sandbox, size=size) as person:
            for name, make in {**SHORT, **LONG}.items():
                screen = make(person)
                await person.app.push_screen(screen)
                await person.until(lambda: not list(person.app.workers))
                problem = look(screen, size, is_long=name in LONG)
                if problem:
                    wrong.append(f"{name} at {size}: {problem}")
                screen.dismiss("")
                await person.until(lambda: person.app.screen is person.app.home)
    assert wrong == []


def look(screen: Overlay, size: tuple[int, int], *, is_long: bool) -> str:
    """Return what is wrong with a dialog's place."""
    width, height = size
    box, keys = screen.query_one("#overlay"), screen.query_one("#keys", Static)
    x, y, wide, tall = box.region
    if not box.region.contains_region(keys.region) or not keys.region.height:
        return f"the line of keys is at {keys.region}, the dialog at {box.region}"
    if height < 16:
        return "" if tall == height else f"{tall} rows where every row counts"
    if tall > height * 0.8:
        return f"{tall} rows"
    if is_long != (tall >= height * 0.8 - 1):
        return f"{tall} rows, {'' if is_long else 'not '}all that may be"
    if width < 100 and wide != width:
        return f"{wide} columns"
    if abs((width - wide) / 2 - x) > 1 or abs((height - tall) / 2 - y) > 1:
        return f"not in the middle: {box.region}"
    rows = (
        child.outer_size.height + child.styles.margin.height for child in box.children
    )
    bottom = sum(rows) + 2
    return "" if tall == bottom else f"{tall} rows for {bottom}"
