"""`/context`, `/cost` and `/conversation` in the shell."""

from __future__ import annotations

import asyncio
from functools import partial

from cdd_agent.commands.code_context import (
    describe_last_prompt,
    find_code,
    is_words,
    record_choices,
)
from cdd_agent.dialogue.code_search import search_in_thread
from cdd_agent.engine.logged_run import LoggedRun
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.related_code import MOST
from cdd_agent.engine.whereabouts import in_its_tree
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Answer, Notice, NoticeKind
from cdd_agent.files.mention_reader import mentioned_name
from cdd_agent.project.context import project_context
from cdd_agent.session.session import Session
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.store import Ticket


async def show_context(session: Session, *typed: str) -> None:
    root = session.project.root
    names = tuple(mentioned_name(root, word) for word in typed)
    pins = [name for name in names if name[:1] in ("+", "-") and len(name) > 1]
    if pins:
        if len(pins) < len(names):
            raise BadInput(
                "Pin or leave out files in a line of their own",
                hint="Type `/context +FILE` first, then the other words.",
            )
        text = await asyncio.to_thread(record_choices, session, pins)
        session.emit(Notice(text, kind=NoticeKind.SENT))
        return
    words = [name for name in names if is_words(root, name)]
    if words:
        await _show_code(session, words, [name for name in names if name not in words])
        return
    if not names:
        last_prompt = await asyncio.to_thread(describe_last_prompt, session)
        if last_prompt:
            session.emit(Answer(last_prompt))
            return
    shown = await asyncio.to_thread(project_context, root, names)
    session.emit(Answer(shown.as_text()))


async def _show_code(session: Session, words: list[str], paths: list[str]) -> None:
    find = partial(
        find_code,
        session.project.root,
        session.open_code(),
        " ".join(words),
        MOST,
        paths,
    )
    code = await search_in_thread(find, session.emit, "Reading the project's code …")
    session.emit(Answer(code.as_text()))


async def show_cost(session: Session, slug: str | None = None) -> None:
    ticket = session.find_ticket(slug)
    if ticket is not None:
        text = _describe_run_cost(session, ticket)
        session.emit(Notice(text, kind=NoticeKind.COST))
    text = f"This session: {_describe_session_cost(session)}"
    session.emit(Notice(text, kind=NoticeKind.COST))


def _describe_run_cost(session: Session, ticket: Ticket) -> str:
    record = RunRecord.of_ticket(in_its_tree(ticket), Redactor())
    effort = LoggedRun.read(record.log).effort
    plural = "" if effort.model_calls == 1 else "s"
    text = (
        f"{ticket.slug}: {effort.cost.in_full()}, in {effort.model_calls} model"
        f" call{plural}"
    )
    budget = session.project.config.budget
    limits = []
    if budget.tokens:
        limits.append(f"{budget.tokens:,} tokens")
    if budget.usd:
        limits.append(f"${budget.usd:.2f}")
    if limits:
        text += f"; its budget is {' and '.join(limits)}"
    return "; ".join(filter(None, (text, effort.cost.effect_of_cache())))


def _describe_session_cost(session: Session) -> str:
    spent, running = session.tally.spent, session.tally.running_calls
    parts = []
    if spent.tokens or not running:
        parts.append(spent.in_full())
    parts.append(spent.effect_of_cache())
    if running:
        calls = "1 model call is" if running == 1 else f"{running} model calls are"
        parts.append(f"{calls} under way, and not counted yet")
    return "; ".join(filter(None, parts))


async def show_conversation(session: Session) -> None:
    text = session.chat.describe()
    if text:
        session.emit(Answer(text))
    else:
        session.emit(Notice("The model receives the whole conversation."))
