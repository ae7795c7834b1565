"""Opens the inspector over the shell, and acts on its result. Imported on first use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cdd_agent.errors import CddError
from cdd_agent.tui.inspector.screen import InspectorScreen
from cdd_agent.tui.inspector.source import (
    InspectorResult,
    InspectorTab,
    RunCommand,
    RunSource,
)
from cdd_agent.tui.widgets.prompt import Prompt

if TYPE_CHECKING:
    from cdd_agent.session.session import Session
    from cdd_agent.tui.screen_actions import ScreenActions


def open_inspector(
    app: ScreenActions,
    tab: str,
    *,
    slug: str | None = None,
    number: int | None = None,
) -> InspectorScreen | None:
    """Open the inspector at an `InspectorTab` and a step. Return None without a ticket,
    or if another screen is open.
    """
    session = app.session
    if session is None or app.screen is not app.home:
        return None
    try:
        reader = session.run_reader(slug)
    except CddError as error:
        app.notify_error(error)
        return None
    slug = reader.ticket.slug
    source = RunSource(
        slug,
        reader,
        preview_undo=partial(session.preview_undo, slug=slug),
        command=partial(_command, session, slug),
        is_followed=partial(_is_followed, session, slug),
        is_busy=lambda: app.turn is not None,
        now=app.clock.now,
    )
    screen = InspectorScreen(source, InspectorTab(tab), number)
    app.push_screen(screen, partial(_finish, app))
    return screen


def _is_followed(session: Session, slug: str) -> bool:
    return session.agent is not None and session.agent.ticket_slug == slug


def _command(session: Session, slug: str, word: str, label: str) -> RunCommand:
    agent = session.agent
    if agent is not None and agent.name == "executor" and agent.ticket_slug == slug:
        return RunCommand(f"{word} {label}".strip())
    if word in ("undo", "redo"):
        return RunCommand(" ".join(filter(None, (f"/{word}", slug, label))))
    line = f"/exec {slug}"
    note = (
        f"The run is not open. `{line}` opens it and runs no step; then type"
        f" `{word} {label}`."
    )
    return RunCommand(line, note)


def _finish(app: ScreenActions, result: InspectorResult | None) -> None:
    if result is None:
        if not app.home.steps.has_focus:
            app.home.steps.follow()
    elif result.is_sent:
        app.say_from_screen("")
        app.post_message(Prompt.Submitted(result.line))
    else:
        app.say_from_screen(result.line)
