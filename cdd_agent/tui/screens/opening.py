"""The screens around the work are opened here, and what is chosen on them is done: a
line goes into the prompt, a theme is used. Imported when the first of them is asked
for.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdd_agent.tui.guide import Guide
from cdd_agent.tui.screens.board import BoardScreen
from cdd_agent.tui.screens.first_run import DEMO, FirstRun, Wish
from cdd_agent.tui.screens.help import QUESTION, HelpScreen
from cdd_agent.tui.screens.palette import ACTION, Palette
from cdd_agent.tui.screens.settings import SettingsScreen
from cdd_agent.tui.screens.tickets import TicketsScreen
from cdd_agent.tui.themes import (
    AUTOMATIC,
    THEMES,
    ThemeChoice,
    known_theme,
    remember,
    remembered,
    use_theme,
)
from cdd_agent.tui.widgets.prompt import Prompt

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


def offer_first_steps(app: Shell) -> None:
    """The choice of a model, for somebody who has none and is not typing already."""
    session = app.session
    if (
        session is None
        or app.screen is not app.home
        or app.home.prompt.text
        or app.is_busy
    ):
        return
    app.push_screen(
        FirstRun(session.offers, app.clock.now), partial(_done_with_first_run, app)
    )


def _done_with_first_run(app: Shell, chosen: str | None) -> None:
    if chosen == DEMO:
        app.wants_demo = True
        app.action_leave()
    elif chosen and chosen.endswith(" --save"):
        app.after_turn = partial(_ask_for_a_wish, app)
        app.on_prompt_submitted(Prompt.Submitted(chosen))
    else:
        app.say_from_screen(chosen)


def _ask_for_a_wish(app: Shell) -> None:
    """Once there is a model."""
    if app.session is None or app.session.project.config.model is None:
        return
    app.after_turn = None
    if app.screen is app.home and not app.home.prompt.text:
        app.push_screen(Wish(), partial(_done_with_wish, app))


def _done_with_wish(app: Shell, words: str | None) -> None:
    if words:
        guide = Guide(words)
        app.after_turn = partial(_guide, app, guide)
        app.on_prompt_submitted(Prompt.Submitted(guide.first_line))
    else:
        app.say_from_screen("")


def _guide(app: Shell, guide: Guide) -> None:
    """Put what comes next into the prompt, unless the person is at something else."""
    if (
        app.session is None
        or app.home.prompt.text
        or (coming := guide.next(app.session)) is None
    ):
        return
    line, hint = coming
    app.home.hints[line] = hint
    app.home.prompt.replace(line)
    app.home.say_what_enter_does()


async def _done_with_palette(app: Shell, chosen: str | None) -> None:
    app.say_from_screen("" if chosen is None or chosen.startswith(ACTION) else chosen)
    if chosen is not None and chosen.startswith(ACTION):
        await app.run_action(chosen.removeprefix(ACTION), app)


def _choose_theme(app: Shell, typed: str) -> None:
    """Use a theme from now on; without a name, say which there are."""
    if not typed:
        now = remembered()
        which = (
            now.name
            if now.is_chosen
            else f"{now.name} (from the terminal's background)"
        )
        app.notify(
            f"Theme: {which}. To change it, type"
            f" /theme {' | '.join((*THEMES, AUTOMATIC))}",
            markup=False,
        )
        return
    name = known_theme(typed)
    if name == AUTOMATIC:
        remember(ThemeChoice(remembered().name))
        app.ask_for_background()
    else:
        remember(ThemeChoice(name, is_chosen=True))
        use_theme(app, name)
