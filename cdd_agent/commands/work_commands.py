"""Commands in the shell that work on tickets."""

from __future__ import annotations

import asyncio

from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.errors import BadInput
from cdd_agent.events.shell_events import ScreenAsked
from cdd_agent.fleet.local_runs import board_here
from cdd_agent.fleet.table import in_lines
from cdd_agent.session.session import Session
from cdd_agent.tickets.slugs import EnoughOfSlug


async def socrates(session: Session, slug: str, *, start_over: bool = False) -> None:
    ticket = session.project.tickets.find(slug, EnoughOfSlug.PART)
    await session.engage("socrates", ticket, start_over=start_over)


async def plan(session: Session, slug: str) -> None:
    ticket = session.project.tickets.find(slug, EnoughOfSlug.PART)
    await session.engage("planner", ticket)


async def execute(
    session: Session, slug: str, *, start_over: bool = False, worktree: bool = False
) -> None:
    ticket = session.project.tickets.find(slug, EnoughOfSlug.PART)
    await session.engage("executor", ticket, start_over=start_over, worktree=worktree)


async def verify(
    session: Session, slug: str | None = None, *, strength: bool = False
) -> None:
    ticket = session.find_ticket(slug)
    if ticket is None:
        raise BadInput(f"Which ticket? Usage: {CATALOGUE['verify'].synopsis}")
    await session.verify(ticket, strength=strength)


async def land(session: Session, slug: str, *, rebase: bool = False) -> None:
    ticket = session.project.tickets.find(slug, EnoughOfSlug.PART)
    await session.land(ticket, rebase=rebase)


async def show_board(session: Session) -> None:
    project = session.project
    tickets = await asyncio.to_thread(project.tickets.list)
    board = await asyncio.to_thread(board_here, project.root, tickets)
    session.emit(ScreenAsked("board", in_lines(board)))
