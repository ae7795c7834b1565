"""Opens screens, and acts on their results."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from cdd_agent.commands.setting_changes import SettingPlace, save_setting
from cdd_agent.commands.settings import find_setting
from cdd_agent.settings.reading import user_file
from cdd_agent.tui.screens.beginning import set_up_model
from cdd_agent.tui.screens.board import BoardScreen
from cdd_agent.tui.screens.help import QUESTION, HelpScreen
from cdd_agent.tui.screens.palette import ACTION, Palette
from cdd_agent.tui.screens.setting_editor import confirm_reset, edit_setting
from cdd_agent.tui.screens.settings import SettingsScreen
from cdd_agent.tui.screens.tickets import TicketsScreen
from cdd_agent.tui.themes import find_theme

if TYPE_CHECKING:
    from cdd_agent.session.session import Session
    from cdd_agent.tui.app import Shell


async def open_screen(app: Shell, name: str, choice: str = "") -> None:
    """Open a screen by its name in `ScreenAsked`. Raises `CddError`."""
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
        case "theme":
            await _choose_theme(app, session, choice)
        case "settings":
            app.push_screen(
                SettingsScreen(
                    session,
                    partial(edit_setting, app, session),
                    partial(confirm_reset, app, session),
                ),
                app.say_from_screen,
            )
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


async def _choose_theme(app: Shell, session: Session, typed: str) -> None:
    """Use a theme in all projects. Without a name, let the user choose. Raises
    `CddError`.
    """
    setting = await asyncio.to_thread(find_setting, session.project, "theme")
    if not typed:
        outcome = await edit_setting(app, session, setting)
    else:
        outcome = await _save_theme(session, find_theme(typed))
        app.apply_settings()
    if outcome:
        app.notify(outcome, markup=False)


async def _save_theme(session: Session, name: str) -> str:
    """Save a theme in the user's settings; without a home folder, use it in this
    session. Return the outcome as text. Raises `CddError`.
    """
    path = user_file()
    place = SettingPlace.USER if path else SettingPlace.SESSION
    remark = await save_setting(session, "theme", name, place)
    where = f"saved in {path}" if path else "until cdd ends"
    return f"Theme {name}, {where}. {remark}"
