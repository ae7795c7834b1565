"""Commands that create, list and show tickets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.commands.criteria import criteria_of_ticket
from cdd_agent.commands.initialise import refuse_no_place
from cdd_agent.commands.listing import TYPES, listed, opened, whereabouts
from cdd_agent.commands.slash_call import QUOTE_HINT, WrongUsage, emit_as_found
from cdd_agent.engine.spec_notices import spec_notices
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanOpened
from cdd_agent.session.open_project import Project
from cdd_agent.tickets.run_outcome import how_to_serve
from cdd_agent.tickets.slugs import EnoughOfSlug
from cdd_agent.tickets.store import Ticket
from cdd_agent.tickets.templates import create_page

if TYPE_CHECKING:
    # `cdd list` does without a session
    from cdd_agent.session.session import Session

DOCUMENTATION = "documentation"
NEW_TYPES = (*TYPES, DOCUMENTATION)


def status_events(project: Project, slug: str | None = None) -> Iterator[Event]:
    if slug is None:
        yield listed(project.tickets, ())
        return
    yield from status_of_ticket(project.tickets.find(slug, EnoughOfSlug.WORDS))


def status_of_ticket(ticket: Ticket) -> Iterator[Event]:
    shown = opened(ticket)
    yield shown
    if isinstance(shown, PlanOpened) and shown.edited_criteria:
        hint = how_to_serve(ticket.slug, shown.edited_criteria)
        yield Notice(hint, Tone.WARNING, kind=NoticeKind.SPEC_CHANGED)
    yield from spec_notices(ticket)
    yield from whereabouts(ticket)


def list_tickets(project: Project, *words: str) -> Iterator[Event]:
    yield listed(project.tickets, words)


def new(project: Project, kind: str, *words: str, slug: str = "") -> Iterator[Event]:
    if kind.lower() == DOCUMENTATION:
        if len(words) != 2 or slug:
            raise WrongUsage(f"new {DOCUMENTATION} guide|feature NAME", hint=QUOTE_HINT)
        _refuse_no_place(project)
        page = create_page(project.root, *words)
        yield Notice(
            f"Created {page.relative_to(project.root).as_posix()}. Fill it in.",
            Tone.GOOD,
            kind=NoticeKind.CREATED,
        )
        return
    yield describe_created(create_ticket(project, kind, words, slug))


def create_ticket(
    project: Project, kind: str, words: Sequence[str], slug: str
) -> Ticket:
    """Raise `BadInput`."""
    if len(words) != 1:
        raise WrongUsage("new TYPE NAME [--slug SLUG]", hint=QUOTE_HINT)
    _refuse_no_place(project)
    return project.tickets.create(kind, words[0], slug)


def _refuse_no_place(project: Project) -> None:
    """Raise `NoPlace` as `init` does, except in an existing project."""
    if not (project.root / ".cdd").is_dir():
        refuse_no_place(project.root)


def describe_created(ticket: Ticket) -> Notice:
    text = (
        f"Created {ticket.shown(ticket.spec_path)}. Complete it with `/socrates"
        f" {ticket.slug}` or in your editor, then run `/plan {ticket.slug}`."
    )
    return Notice(text, Tone.GOOD, kind=NoticeKind.CREATED)


async def create(session: Session, kind: str, *words: str, slug: str = "") -> None:
    if kind.lower() != DOCUMENTATION:
        ticket = await asyncio.to_thread(
            create_ticket, session.project, kind, words, slug
        )
        session.note_created(ticket)
        session.emit(describe_created(ticket))
        return
    await emit_as_found(session, new(session.project, kind, *words, slug=slug))


async def status(session: Session, slug: str | None = None) -> None:
    ticket = None if slug is None else session.find_ticket(slug)
    agent = session.agent
    if agent is not None and (ticket is None or ticket.slug == agent.ticket_slug):
        for event in agent.view():
            session.emit(event)
    elif ticket is None:
        await emit_as_found(session, status_events(session.project))
    else:
        await emit_as_found(session, status_of_ticket(ticket))


async def criteria(session: Session, slug: str | None = None) -> None:
    ticket = session.find_ticket(slug)
    if ticket is None:
        raise BadInput(f"Which ticket? Usage: {CATALOGUE['criteria'].synopsis}")
    await emit_as_found(session, criteria_of_ticket(session.project, ticket))
