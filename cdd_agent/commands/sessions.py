"""Lists earlier sessions, and reopens one with its transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from cdd_agent.agents.conversation_so_far import conversation_so_far
from cdd_agent.agents.spec_notes import NAME as NOTEBOOK
from cdd_agent.agents.store import LastActive
from cdd_agent.commands.listing import view
from cdd_agent.engine.log import RunLog
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.retelling import last_line, run_retold, shortened
from cdd_agent.engine.whereabouts import in_its_tree
from cdd_agent.errors import BadInput, CddError
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.events.shell_events import PersonSaid, SessionsListed, SessionView
from cdd_agent.events.stream import SessionRestored
from cdd_agent.session.open_project import Project
from cdd_agent.session.session import Session
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.slugs import EnoughOfSlug
from cdd_agent.tickets.state import ExecutionState
from cdd_agent.tickets.state_file import read_state
from cdd_agent.tickets.store import Ticket

LIST = "list"
_LOGS = {"executor": "events.jsonl", "planner": "planning.jsonl", "socrates": NOTEBOOK}
"""Files in a ticket's record whose times show when an agent worked."""
_TAIL = 64_000
"""Bytes at the end of a log that are read for its last line."""


async def resume(session: Session, which: str = "") -> None:
    """Reopen the last or the named session; with `list`, list the sessions. Raises
    `BadInput`.
    """
    if which == LIST:
        session.emit(SessionsListed(await asyncio.to_thread(earlier, session)))
    elif which.startswith("chat-"):
        session.leave()
        if not session.chat.resume(which):
            raise BadInput(
                f"There is no earlier conversation {which}",
                hint=f"List the sessions with `/resume {LIST}`.",
            )
        session.turn_to_chat()
    elif which:
        ticket = session.project.tickets.find(which, EnoughOfSlug.PART)
        times = _find_work_times(session.project, ticket)
        if not times:
            raise BadInput(
                f"{ticket.slug} has no session yet",
                hint=f"List the sessions with `/resume {LIST}`.",
            )
        await _reopen(session, max(times, key=lambda agent: times[agent]), ticket)
    else:
        await _resume_last(session)


async def _resume_last(session: Session) -> None:
    last = LastActive.of_project(session.project.root)
    is_chat_last = last is None or last.agent is None
    has_chat = session.chat.resume(in_short=not is_chat_last)
    unfinished = await asyncio.to_thread(find_unfinished_run, session.project)
    agent, ticket = "executor", unfinished
    if last is not None and last.agent is not None:
        agent, ticket = last.agent, _find_last_ticket(session, last, unfinished)
    elif has_chat:
        session.turn_to_chat()
        if last is not None:
            # Chat continues, and a notice names the unfinished run.
            ticket = None
    if ticket is not None:
        await _reopen(session, agent, ticket)
    elif unfinished is not None:
        text = f"Resume the unfinished run: `/exec {unfinished.slug}`."
        session.emit(Notice(text, kind=NoticeKind.WHAT_NEXT))
    elif not has_chat:
        text = "Nothing to resume: no unfinished run and no earlier conversation."
        session.emit(Notice(text, kind=NoticeKind.NOT_DONE))


def _find_last_ticket(
    session: Session, last: LastActive, unfinished: Ticket | None
) -> Ticket | None:
    """Return the ticket of the last agent. If its run is finished, return the
    unfinished run's ticket.
    """
    ticket = None
    if session.can_engage(last.agent or ""):
        ticket = session.project.tickets.find_once_called(last.ticket or "")
    if last.agent != "executor":
        return ticket
    if ticket is None or view(ticket).is_over:
        return unfinished
    return ticket


def find_unfinished_run(project: Project) -> Ticket | None:
    runs: list[tuple[float, Ticket]] = []
    for ticket in project.tickets.list():
        # Most tickets have no run, so their plans need not be read. A damaged run
        # cannot continue.
        with suppress(OSError, CddError):
            runs.append((in_its_tree(ticket).state_path.stat().st_mtime, ticket))
    runs.sort(key=lambda run: run[0], reverse=True)
    for _, ticket in runs:
        if view(ticket).state in ("in progress", "failed"):
            return ticket
    return None


def earlier(session: Session) -> tuple[SessionView, ...]:
    """Return the sessions that can be reopened, the latest first. Reads files of each:
    call it in a thread.
    """
    views = [*session.chat.earlier(), *_of_tickets(session.project)]
    views.sort(key=lambda view: datetime.fromisoformat(view.touched), reverse=True)
    return tuple(views)


def _of_tickets(project: Project) -> Iterator[SessionView]:
    for ticket in project.tickets.list():
        times = _find_work_times(project, ticket)
        if not times:
            continue
        agent = max(times, key=lambda agent: times[agent])
        last = ""
        # A damaged ticket must not break the list.
        with suppress(CddError):
            last = _last_line(_record(project, ticket, agent), agent)
        ticket_view = view(ticket)
        progress = ticket_view.state
        if ticket_view.total:
            progress = (
                f"{ticket_view.done}/{ticket_view.total} {ticket_view.state}".rstrip()
            )
        yield SessionView(ticket.slug, agent, times[agent].isoformat(), progress, last)


def _last_line(record: RunRecord, agent: str) -> str:
    if agent == "socrates":
        events = conversation_so_far(record, agent).events
        texts = [
            event.text for event in events if isinstance(event, Answer | PersonSaid)
        ]
        return shortened(texts[-1]) if texts else ""
    return last_line(RunLog(record.folder / _LOGS[agent]).latest(_TAIL))


def _find_work_times(project: Project, ticket: Ticket) -> dict[str, datetime]:
    times = dict[str, datetime]()
    for agent, name in _LOGS.items():
        with suppress(OSError):
            place = _record(project, ticket, agent).folder / name
            times[agent] = datetime.fromtimestamp(place.stat().st_mtime, UTC)
    return times


async def _reopen(session: Session, agent: str, ticket: Ticket) -> None:
    # Opening Socrates or the Planner shows the conversation, and the transcript of this
    # session contains the last ticket.
    if agent == "executor" and session.last_ticket != ticket.slug:
        # The agent reports damaged files.
        with suppress(CddError):
            where = in_its_tree(ticket)
            record = _record(session.project, ticket, agent)
            restored = await asyncio.to_thread(_restored, record, where)
            if restored.events:
                session.emit(restored)
    session.scope.add_ticket(ticket.slug, is_resumed=True)
    has_own_tree = agent == "executor" and in_its_tree(ticket) != ticket
    options = {"worktree": True} if has_own_tree else {}
    await session.engage(agent, ticket, **options)


def _restored(record: RunRecord, ticket: Ticket) -> SessionRestored:
    state = read_state(ticket) or ExecutionState(ticket_slug=ticket.slug)
    return run_retold(record, state)


def _record(project: Project, ticket: Ticket, agent: str) -> RunRecord:
    where = in_its_tree(ticket) if agent == "executor" else ticket
    redactor = Redactor.of_environment(project.config.commands.hide_env)
    return RunRecord.of_ticket(where, redactor)
