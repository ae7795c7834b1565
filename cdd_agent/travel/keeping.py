"""Keeping the lease of a run while it goes on: looked at once a minute, and renewed in time."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import partial

from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import MARGIN, Phase, RunElsewhere, copy_id, load_whereabouts, save_whereabouts
from cdd_agent.errors import CddError
from cdd_agent.events import About, Emit, Notice, Tone
from cdd_agent.git.command import GitUnusable
from cdd_agent.git.repository import repository_of
from cdd_agent.travel.lease import Claim
from cdd_agent.travel.reference import RunReference
from cdd_agent.travel.travelling import utc_now

_LOOK = 60.0
"""Seconds between two looks at who holds it."""


@asynccontextmanager
async def lease_kept(
    record: RunRecord, emit: Emit, *, now: Callable[[], datetime] = utc_now, every: float = _LOOK
) -> AsyncIterator[None]:
    """Around the work on a run, which is cancelled when the run is no longer this copy's, and then ends with
    `RunElsewhere`. For a run that never travelled nothing is done.

    Raises `RunElsewhere` where it is not here. Without an answer from the remote it goes on while the lease lasts.
    """
    known, holder = load_whereabouts(record.folder), copy_id(record.root)
    if known is None:
        yield
        return
    repository = await repository_of(record.root)
    reference = await RunReference.open(record.root, record.folder, record.slug, known.remote, now, repository)
    save = partial(save_whereabouts, record.folder)
    claim = Claim(record.slug, reference, holder, platform.node()[:255], now, save)
    if known.phase is not Phase.HERE or known.holder != holder:
        with suppress(GitUnusable):  # then it is only not known who has it
            await claim.expect_free()
        known.expect_here(record.slug, holder, now())
    held, lost, work = known, list[CddError](), asyncio.current_task()
    assert work is not None

    async def look() -> None:
        nonlocal held
        try:
            held = await claim.keep(held)
            reference.accept()
        except GitUnusable as error:
            text = f"The lease of {record.slug} could not be renewed: {error.message}"
            emit(Notice(text, Tone.WARNING, about=About.NOT_RENEWED))
            if held.until is None or now() > held.until - MARGIN:
                raise RunElsewhere(f"{text}. It is over", hint=f"`cdd pull {record.slug}` takes it anew.") from error

    async def watch() -> None:
        while not lost:
            await asyncio.sleep(every)
            try:
                await look()
            except CddError as error:
                lost.append(error)
                work.cancel()

    await look()
    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not lost:
            raise
        work.uncancel()
        raise lost[0] from None
    finally:
        watching.cancel()
        await asyncio.wait([watching])
