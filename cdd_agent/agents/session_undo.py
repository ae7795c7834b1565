"""Undo, redo and diff of the newest change of a session, made by a step, a turn of
chat, `cdd run` or `cdd apply`.

An undo names the change and its effect, and asks first, unless the user named the
change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from cdd_agent.agents.meaning import Meaning
from cdd_agent.engine.change_history import (
    ChangeHistory,
    PastChange,
    PastStep,
    SessionScope,
    find_named,
    list_changes,
    newest_standing,
    next_to_redo,
)
from cdd_agent.engine.outside import OutsideChange, in_words
from cdd_agent.engine.outside_undo import OutsideUndoing, propose_undo
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.question_events import Choice, UndoProposed
from cdd_agent.events.step_events import UndoPreview
from cdd_agent.events.stream import Emit
from cdd_agent.frontend import Frontend
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.store import Ticket

_HOW_TO_LIST = "`/undo --list` lists all changes."


class RunVisit(Protocol):
    async def preview_undo(self, number: int) -> UndoPreview: ...

    async def carry_out(self, meaning: Meaning) -> None: ...

    def meaning(self, line: str) -> Meaning: ...


class RunHasChanged(BadInput):
    """Another process changed the run after the change was chosen."""

    refusal = Refusal.CANNOT_UNDO

    def __init__(self, change: PastStep) -> None:
        super().__init__(
            f"{change.title} is no longer the last step of its run; nothing was undone",
            hint="Type `/undo` again.",
        )


class SessionUndo(Struct, frozen=True):
    history: ChangeHistory
    scope: SessionScope
    outside: OutsideUndoing
    frontend: Frontend
    emit: Emit
    visit: Callable[[str, bool], AbstractContextManager[RunVisit]]
    """Opens a run by its ticket's slug; True: read-only."""

    async def undo(self, *, is_confirmed: bool = False) -> None:
        """Undo the session's newest change, after a question unless it `is_confirmed`.
        If an undo was killed, finish that undo instead. Raises `CddError`.
        """
        if await self._finish_interrupted("undo"):
            return
        change = await asyncio.to_thread(self._find_newest)
        if change is None:
            await self._report_nothing("undo")
            return
        if isinstance(change.source, PastStep):
            await self._undo_step(change.source, is_confirmed=is_confirmed)
        else:
            await self._undo_outside(change.source, is_confirmed=is_confirmed)

    async def undo_last_step(self, ticket: Ticket, *, is_confirmed: bool) -> None:
        """Undo the last step of a ticket, like `undo`. Other changes are not read, so
        that damage there does not matter. Raises `CddError`.
        """
        slug = ticket.slug
        if await asyncio.to_thread(self.history.is_interrupted, ticket):
            await self._tell_run(slug, "undo")
            return
        steps = await asyncio.to_thread(self.history.read_run, slug)
        change = newest_standing(steps)
        if change is None:
            text = f"No step of {slug} has run, or all are undone."
            self.emit(Notice(text, kind=NoticeKind.NOT_DONE))
            return
        assert isinstance(change.source, PastStep)
        await self._undo_step(change.source, is_confirmed=is_confirmed)

    async def undo_named(self, name: str) -> None:
        """Undo a change outside of tickets by its name. Raises `CddError`."""
        change = await self._find_named(name)
        self.scope.add_change(name)
        await self.outside.undo(change)

    async def redo(self) -> None:
        """Undo the session's last undo, unless something has changed since. Raises
        `CddError`.
        """
        if await self._finish_interrupted("redo"):
            return
        changes = await asyncio.to_thread(self.history.read)
        change = next_to_redo(changes, self.scope)
        if change is None:
            text = (
                "There is nothing to redo in this session: nothing was undone, or a"
                " later change replaced it. `/redo SLUG` redoes the last undo of a"
                " ticket."
            )
            self.emit(Notice(text, kind=NoticeKind.NOT_DONE))
        elif isinstance(change.source, PastStep):
            await self._tell_run(change.source.ticket.slug, "redo")
        else:
            await self.outside.redo(change.source)

    async def redo_named(self, name: str) -> None:
        """Undo the undo of a change outside of tickets. Raises `CddError`."""
        change = await self._find_named(name)
        if not change.is_undone:
            text = f"{name}, {change.title}, is not undone."
            self.emit(Notice(text, kind=NoticeKind.NOT_DONE))
            return
        await self.outside.redo(change)

    async def diff(self) -> None:
        """Show the session's newest change. Raises `CddError`."""
        change = await asyncio.to_thread(self._find_newest)
        if change is None:
            await self._report_nothing("diff")
        elif isinstance(change.source, PastStep):
            with self.visit(change.source.ticket.slug, True) as run:
                await run.meaning(f"diff {change.source.label}").act()
        else:
            await self.outside.diff(change.source)

    async def diff_named(self, name: str) -> None:
        """Show a change outside of tickets. Raises `CddError`."""
        await self.outside.diff(await self._find_named(name))

    async def list(self) -> None:
        """List the project's last changes. Raises `CddError`."""
        self.emit(await asyncio.to_thread(list_changes, self.history))

    def _find_newest(self) -> PastChange | None:
        return newest_standing(self.history.read(), self.scope)

    async def _undo_step(self, past: PastStep, *, is_confirmed: bool) -> None:
        # The visit holds the ticket, so the undone change is the named one.
        with self.visit(past.ticket.slug, False) as run:
            preview = await run.preview_undo(past.step.step_number)
            if preview.steps != (past.step.step_number,):
                raise RunHasChanged(past)
            proposal = UndoProposed(
                past.title,
                restored=preview.restored + preview.edited,
                kept=preview.kept,
                merged=preview.merged,
                others=preview.others,
                commits=preview.commits,
                commands=preview.commands,
            )
            if is_confirmed or await self._is_wanted(proposal):
                self.scope.add_change(past.name)
                await run.carry_out(run.meaning(f"undo {past.label}"))

    async def _undo_outside(self, change: OutsideChange, *, is_confirmed: bool) -> None:
        if change.is_under_way:
            raise BadInput(
                f"{change.title} is still under way; nothing was undone",
                hint="Wait for its end, or stop it.",
                refusal=Refusal.CANNOT_UNDO,
            )
        proposal = await asyncio.to_thread(propose_undo, change)
        if is_confirmed or await self._is_wanted(proposal):
            self.scope.add_change(change.name)
            await self.outside.undo(change)

    async def _is_wanted(self, proposal: UndoProposed) -> bool:
        """Raise `NotApproved` if there is no user to ask."""
        if await self.frontend.approve(proposal) is Choice.YES:
            return True
        self.emit(Notice("Nothing was undone.", kind=NoticeKind.NOT_DONE))
        return False

    async def _finish_interrupted(self, word: str) -> bool:
        """Finish undos or redos whose process was killed. True if that was all the user
        asked for.
        """
        tickets = await asyncio.to_thread(
            lambda: [*self.history.find_interrupted(self.scope)]
        )
        for ticket in tickets:
            await self._tell_run(ticket.slug, word)
        is_done = await self.outside.finish_interrupted(again=word == "redo")
        return is_done or bool(tickets)

    async def _tell_run(self, slug: str, word: str) -> None:
        with self.visit(slug, False) as run:
            await run.carry_out(run.meaning(word))

    async def _find_named(self, name: str) -> OutsideChange:
        changes = await asyncio.to_thread(self.history.read)
        change = find_named(changes, name)
        if change is None or isinstance(change.source, PastStep):
            raise BadInput(
                f"There is no {name}", hint=_HOW_TO_LIST, refusal=Refusal.CANNOT_UNDO
            )
        return change.source

    async def _report_nothing(self, word: str) -> None:
        changes = await asyncio.to_thread(self.history.read)
        older = newest_standing(changes)
        text = f"There is nothing to {word} in this session."
        if self.scope.is_whole_project:
            text = f"There is nothing to {word}."
        if older is not None:
            verb = "Undo" if word == "undo" else "Show"
            text += (
                f" The newest other change is {older.title} ({in_words(older.at)})."
                f" {verb} it with `/{word} {older.name}`. {_HOW_TO_LIST}"
            )
        self.emit(Notice(text, kind=NoticeKind.NOT_DONE))
