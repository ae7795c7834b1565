"""The meaning of a line while no agent is active: a command for a closed run, or text
for chat.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from cdd_agent.agents.active_memory import ActiveMemory, read_run_status
from cdd_agent.agents.base import GeneralAgent
from cdd_agent.agents.line_guesses import shell_name
from cdd_agent.agents.meaning import LineKind, Meaning
from cdd_agent.agents.run_agent import RunAgent
from cdd_agent.agents.run_lines import NO_RUN, RunLine, no_run_open, read_run_line
from cdd_agent.agents.session_undo import SessionUndo
from cdd_agent.engine.whereabouts import in_its_tree
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.stream import Emit
from cdd_agent.session.open_project import Project
from cdd_agent.tickets.status import RunStatus
from cdd_agent.tickets.store import Ticket

NO_AGENT = "No agent is active: this is chat."


class SessionInChat(Protocol):
    @property
    def emit(self) -> Emit: ...

    @property
    def project(self) -> Project: ...

    @property
    def memory(self) -> ActiveMemory: ...

    @property
    def last_ticket(self) -> str | None: ...

    @property
    def chat(self) -> GeneralAgent: ...

    @property
    def undoing(self) -> SessionUndo: ...

    async def send_to_run(
        self, ticket: Ticket, line: str, *, is_look: bool = False
    ) -> None: ...

    def visit_run(
        self, ticket: Ticket, *, is_look: bool = True
    ) -> AbstractContextManager[RunAgent]: ...


def read_line_without_agent(session: SessionInChat, line: str) -> Meaning:
    run_line = read_run_line(line)
    meaning = None
    if run_line is not None:
        meaning = _read_run_line(session, run_line)
    return meaning or _read_chat_line(session, line)


def _read_run_line(session: SessionInChat, line: RunLine) -> Meaning | None:
    """Return the meaning of a line about a run; None if the line may be chat."""
    if line.is_from_log and not line.step:
        return _read_newest_change_line(session, line)
    memory = session.memory
    if memory.is_in_chat and line.is_conversation:
        return None
    last = memory.latest
    slug = session.last_ticket or (last.ticket if last is not None else None)
    is_first = memory.current is None
    if slug is None or last is None or last.agent != "executor":
        return _answer(session, no_run_open(line, slug, is_first=is_first), NO_RUN)
    if not line.is_from_log:
        return Meaning(
            LineKind.WORD,
            "how far",
            line.hint(slug),
            partial(_report_progress, session, slug, line),
            about=(slug, line.word),
        )
    if is_first:
        return _answer(session, no_run_open(line, slug, is_first=True), NO_RUN)
    return Meaning(
        LineKind.WORD,
        line.word,
        line.hint(slug),
        partial(_send_to_closed_run, session, slug, line),
        about=(slug, line.step),
    )


def _read_newest_change_line(session: SessionInChat, line: RunLine) -> Meaning:
    undoing = session.undoing
    actions = {"undo": undoing.undo, "redo": undoing.redo, "diff": undoing.diff}
    return Meaning(
        LineKind.WORD, line.word, line.hint(""), actions[line.word], about=line.word
    )


def _read_chat_line(session: SessionInChat, line: str) -> Meaning:
    """Return the meaning of a line for chat. Some words are answered without a
    model.
    """
    text = line.strip().lower()
    if not text:
        return Meaning(LineKind.NOTHING, "nothing", "", _do_nothing)
    name = shell_name(text)
    if name in ("exit", "help", "clear"):
        answer = Notice(f"Type `/{name}` instead.")
    elif text == "close":
        answer = Notice(NO_AGENT)
    elif text in ("approve", "approve anyway"):
        slug = session.last_ticket or "SLUG"
        answer = Notice(
            "No question is open. To continue with the ticket, type"
            f" `/socrates {slug}` or `/plan {slug}`.",
            kind=NoticeKind.NOT_DONE,
        )
    else:
        send = partial(_send_to_chat, session, line)
        return Meaning(LineKind.TEXT, "chat", "", send)
    return _answer(session, answer, answer.text)


def _answer(session: SessionInChat, notice: Notice, reason: str) -> Meaning:
    async def show_notice() -> None:
        session.emit(notice)

    hint = f"Enter does nothing. {reason}"
    return Meaning(LineKind.NOTHING, "nothing", hint, show_notice)


async def _do_nothing() -> None:
    """Carry out a blank line."""


async def _send_to_chat(session: SessionInChat, line: str) -> None:
    session.memory.remember(None, None)
    await session.chat.say(line)


async def _send_to_closed_run(session: SessionInChat, slug: str, line: RunLine) -> None:
    """Send the line to the run that was closed last. Raises `CddError`."""
    ticket = session.project.tickets.find_slug(slug)
    await session.send_to_run(ticket, line.as_typed, is_look=line.word == "diff")


async def _report_progress(session: SessionInChat, slug: str, line: RunLine) -> None:
    try:
        ticket = in_its_tree(session.project.tickets.find_slug(slug))
        status = await asyncio.to_thread(read_run_status, ticket)
    except CddError:
        session.emit(no_run_open(line, slug))
        return
    if line.word == "status":
        await session.send_to_run(ticket, "status", is_look=True)
    elif status is RunStatus.COMPLETED:
        with session.visit_run(ticket) as run:
            await run.report_all_done()
    else:
        has_own_tree = ticket.root != session.project.root
        shown = f"{slug} --worktree" if has_own_tree else slug
        session.emit(no_run_open(line, shown))
