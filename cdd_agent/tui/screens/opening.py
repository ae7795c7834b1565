"""The screens around the work are opened here, and what is chosen on them is done: a
line goes into the prompt, a theme is used. Imported when the first of them is asked
for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdd_agent.tui.screens.beginning import set_up_model
from cdd_agent.tui.screens.board import BoardScreen
from cdd_agent.tui.screens.help import QUESTION, HelpScreen
from cdd_agent.tui.screens.palette import ACTION, Palette
from cdd_agent.tui.screens.settings import SettingsScreen
from cdd_agent.tui.screens.tickets import TicketsScreen
from cdd_agent.tui.themes import (
    AUTOMATIC,
    THEMES,
    LastTheme,
    find_theme,
    load_last_theme,
    save_last_theme,
    use_theme,
)

if TYPE_CHECKING:
    from cdd_agent.tui.app import Shell


async def open_screen(app: Shell, name: str, choice: str = "") -> None:
    """Open a screen over the shell, by the name that `ScreenAsked` has, or do what
    `theme` says. Raises `CddError`.
    """
    if name == "theme":
        _choose_theme(app, choice)
        return
    session = app.session
    if session is None:
        app.notify("The session is still opening. Try again in a moment.")
        return
    match name:
        case "palette":
            app.push_screen(Palette(session.project), partial(_done_with_palette, app))
        case "tickets":
            app.push_screen(TicketsScreen(session.project), app.say_from_screen)
        case "board":
            app.push_screen(BoardScreen(session.project), app.say_from_screen)
        case "model":
            set_up_model(app)
        case "settings":
            app.push_screen(SettingsScreen(session), app.say_from_screen)
        case _:
            situation = (
                QUESTION
                if app.asking.open is not None
                else app.home.agent.name
                if app.home.agent
                else "chat"
            )
            app.push_screen(HelpScreen(choice or situation), app.say_from_screen)


async def _done_with_palette(app: Shell, chosen: str | None) -> None:
    app.say_from_screen("" if chosen is None or chosen.startswith(ACTION) else chosen)
    if chosen is not None and chosen.startswith(ACTION):
        await app.run_action(chosen.removeprefix(ACTION), app)


def _choose_theme(app: Shell, typed: str) -> None:
    """Use a theme from now on; without a name, say which there are."""
    if not typed:
        last = load_last_theme()
        which = last.name
        if not last.is_chosen:
            which += " (from the terminal's background)"
        app.notify(
            f"Theme: {which}. To change it, type"
            f" /theme {' | '.join((*THEMES, AUTOMATIC))}",
            markup=False,
        )
        return
    name = find_theme(typed)
    if name == AUTOMATIC:
        save_last_theme(LastTheme(load_last_theme().name))
        app.ask_for_background()
    else:
        save_last_theme(LastTheme(name, is_chosen=True))
        use_theme(app, name)
