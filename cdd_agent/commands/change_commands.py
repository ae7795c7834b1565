"""The fronts in the shell of `/undo`, `/redo` and `/diff`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.errors import BadInput
from cdd_agent.session import Session
from cdd_agent.tickets.plan import STEP_LABEL


async def undo(session: Session, *which: str, lists: bool = False) -> None:
    if lists:
        await session.open_outside().carry_out("list")
        return
    await _tell_run(session, "undo", which)


async def redo(session: Session, *which: str) -> None:
    await _tell_run(session, "redo", which)


async def diff(session: Session, *which: str) -> None:
    await _tell_run(session, "diff", which)


async def _tell_run(
    session: Session, word: Literal["undo", "redo", "diff"], which: Sequence[str]
) -> None:
    """Pass a word to the Executor of the named ticket, or of the active one, perhaps
    with the number of a step. Without either, the word is about the last ticket or the
    changes outside of tickets, whichever is newer.

    Raises `BadInput` for other arguments: a mistyped number must not mean the last
    step.
    """
    usage = f"Usage: {CATALOGUE[word].synopsis}"
    named, steps = which[:1], which[1:]
    if named and STEP_LABEL.fullmatch(named[0]):
        named, steps = (), which
    if not which and await asyncio.to_thread(session.is_outside_meant):
        await session.open_outside().carry_out(word)
        return
    wrong = next((text for text in steps if not STEP_LABEL.fullmatch(text)), None)
    if wrong is not None:
        raise BadInput(
            f"{wrong!r} is not the number of a step; nothing was done", hint=usage
        )
    ticket = session.find_ticket(named[0] if named else None)
    if ticket is None:
        raise BadInput(f"Which ticket? {usage}")
    line = " ".join([word, *steps])
    await session.tell(ticket, line, is_look=word == "diff")
