"""Commands about the shell itself."""

from __future__ import annotations

import asyncio

from cdd_agent.commands.help import commands_help, help_on, help_topics
from cdd_agent.commands.settings import list_settings, read_settings, session_project
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice
from cdd_agent.events.shell_events import Cleared, ExitRequested, ScreenAsked
from cdd_agent.session.session import Session
from cdd_agent.session.session_lines import NO_AGENT
from cdd_agent.settings.config import PROJECT_FILE
from cdd_agent.text.completion import find_matches

_MORE_HELP = (
    "All other lines go to the active agent. `/help COMMAND` explains a command, `/help"
    " chat`, `/help socrates`, `/help planner` and `/help executor` an agent, `/help"
    " keys` the keys."
)


async def show_help(session: Session, topic: str = "") -> None:
    name = topic.lower().removeprefix("/")
    if not topic:
        text = f"{commands_help()}\n\n{_MORE_HELP}"
        session.emit(ScreenAsked("help", text))
    elif name in help_topics():
        session.emit(ScreenAsked("help", help_on(name), name))
    else:
        near = find_matches(name, help_topics()).best[:3]
        hint = "`/help` lists the commands."
        if near:
            hint = f"Did you mean {' or '.join(f'`/help {one}`' for one in near)}?"
        raise BadInput(f"There is no help on {topic!r}", hint=hint)


async def show_tickets(session: Session) -> None:
    session.emit(
        ScreenAsked(
            "tickets",
            "This needs the full-screen shell. `/list` lists the tickets.",
        )
    )


async def show_settings(session: Session) -> None:
    settings = await asyncio.to_thread(read_settings, session_project(session))
    text = (
        f"{list_settings(settings)}\n\nTo change a setting, edit"
        f" {PROJECT_FILE.as_posix()}, or use the full-screen shell."
    )
    session.emit(ScreenAsked("settings", text))


async def choose_theme(session: Session, name: str = "") -> None:
    session.emit(ScreenAsked("theme", "This needs the full-screen shell.", name))


async def clear(session: Session) -> None:
    session.chat.begin_conversation()
    session.emit(Cleared())


async def close_agent(session: Session) -> None:
    if session.agent is None:
        session.emit(Notice(NO_AGENT))
        return
    await session.carry_out(session.meaning("close"))


async def leave(session: Session) -> None:
    session.emit(ExitRequested())
