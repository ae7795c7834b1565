"""`/undo`, `/redo` and `/diff` in the shell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cdd_agent.commands.catalogue import CATALOGUE
from cdd_agent.errors import BadInput
from cdd_agent.session.session import Session
from cdd_agent.tickets.plan import STEP_LABEL
from cdd_agent.tickets.slugs import EnoughOfSlug, is_change_name


async def undo(
    session: Session, *which: str, lists: bool = False, yes: bool = False
) -> None:
    if lists:
        await session.undoing.list()
    elif not which:
        await session.undoing.undo(is_confirmed=yes)
    elif _is_change(which):
        await session.undoing.undo_named(which[0])
    elif len(which) == 1 and not STEP_LABEL.fullmatch(which[0]):
        ticket = session.project.tickets.find(which[0], EnoughOfSlug.PART)
        await session.undoing.undo_last_step(ticket, is_confirmed=yes)
    else:
        await _tell_run(session, "undo", which)


async def redo(session: Session, *which: str) -> None:
    if not which:
        await session.undoing.redo()
    elif _is_change(which):
        await session.undoing.redo_named(which[0])
    else:
        await _tell_run(session, "redo", which)


async def diff(session: Session, *which: str) -> None:
    if not which:
        await session.undoing.diff()
    elif _is_change(which):
        await session.undoing.diff_named(which[0])
    else:
        await _tell_run(session, "diff", which)


def _is_change(which: Sequence[str]) -> bool:
    """Raise `BadInput` if a step follows the change's name."""
    if not is_change_name(which[0]):
        return False
    if len(which) > 1:
        raise BadInput(f"{which[0]} has no steps; nothing was done")
    return True


async def _tell_run(
    session: Session, word: Literal["undo", "redo", "diff"], which: Sequence[str]
) -> None:
    """Raise `BadInput` for wrong arguments: a mistyped number must not mean the last
    step.
    """
    usage = f"Usage: {CATALOGUE[word].synopsis}"
    named, steps = which[:1], which[1:]
    if named and STEP_LABEL.fullmatch(named[0]):
        named, steps = (), which
    wrong = next((text for text in steps if not STEP_LABEL.fullmatch(text)), None)
    if wrong is not None:
        raise BadInput(
            f"{wrong!r} is not the number of a step; nothing was done", hint=usage
        )
    if len(steps) > (0 if word == "redo" else 1):
        raise BadInput(f"{steps[-1]} is too much; nothing was done", hint=usage)
    ticket = session.find_ticket(named[0] if named else None)
    if ticket is None:
        raise BadInput(f"Which ticket? {usage}")
    line = " ".join([word, *steps])
    if word == "undo":
        session.scope.add_change(f"{ticket.slug} {steps[0]}")
    await session.send_to_run(ticket, line, is_look=word == "diff")
