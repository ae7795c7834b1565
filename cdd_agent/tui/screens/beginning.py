"""The beginning of a session: the welcome, the model, the first ticket."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from cdd_agent.commands.model_setup import find_model_problem
from cdd_agent.commands.welcome import find_beginning
from cdd_agent.commands.welcome_rows import RowAction
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.tui.guide import NamedWish
from cdd_agent.tui.screens.model_setup import DEMO, ModelSetup
from cdd_agent.tui.screens.wish import Wish
from cdd_agent.tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from cdd_agent.commands.welcome_rows import WelcomeRow
    from cdd_agent.tui.app import Shell


async def show_beginning(app: Shell) -> None:
    session = app.session
    assert session is not None
    if not app.home.has_welcome:
        return
    problem, left_open = await asyncio.gather(
        find_model_problem(session.project.config),
        asyncio.to_thread(session.find_unfinished),
    )
    beginning = await asyncio.to_thread(
        find_beginning, session.project, left_open, problem
    )
    app.home.welcome.open(beginning)
    if problem:
        await session.look_for_models()


def start_row(app: Shell, row: WelcomeRow) -> None:
    if app.session is None or app.screen is not app.home or app.home.lines_wait:
        return
    match row.action:
        case RowAction.CONTINUE if row.is_sent:
            app.on_prompt_submitted(Prompt.Submitted(row.line))
        case RowAction.CONTINUE:
            app.say_from_screen(row.line)
        case RowAction.SET_UP_MODEL:
            set_up_model(app, then_wish=True)
        case RowAction.NEW_TICKET:
            app.push_screen(Wish(), partial(_done_with_wish, app))
        case RowAction.TICKETS:
            app.action_open_screen("tickets")
        case RowAction.DEMO:
            _leave_for_demo(app)
        case RowAction.HELP:
            app.action_open_screen("help")


def set_up_model(app: Shell, *, then_wish: bool = False) -> None:
    """Set up a model in a dialog. `then_wish`: next, ask for the first ticket."""
    session = app.session
    assert session is not None
    dialog = ModelSetup(session.offers, app.clock, session.project.config.model)
    app.push_screen(dialog, partial(_done_with_model, app, dialog, then_wish))


def _done_with_model(
    app: Shell, dialog: ModelSetup, then_wish: bool, chosen: str | None
) -> None:
    if chosen == DEMO:
        _leave_for_demo(app)
    elif chosen:
        app.after_turn = partial(_after_model, app, dialog.key_hint, then_wish)
        app.on_prompt_submitted(Prompt.Submitted(chosen))


def _after_model(app: Shell, key_hint: str, then_wish: bool) -> None:
    app.after_turn = None
    if key_hint:
        app.show(Notice(key_hint, Tone.WARNING))
    session = app.session
    if not then_wish or session is None or session.project.config.model is None:
        return
    is_free = app.screen is app.home and not app.home.prompt.text
    if is_free and not session.project.tickets.list():
        app.push_screen(Wish(), partial(_done_with_wish, app))


def _leave_for_demo(app: Shell) -> None:
    app.wants_demo = True
    app.action_leave()


def _done_with_wish(app: Shell, words: str | None) -> None:
    if words:
        app.guide.wish = NamedWish(words)
        app.on_prompt_submitted(Prompt.Submitted(app.guide.wish.first_line))
    else:
        app.say_from_screen("")
