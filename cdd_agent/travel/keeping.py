"""Keeping the lease during a run: it is checked once a minute and renewed in time."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial

from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import (
    MARGIN,
    Phase,
    RunElsewhere,
    copy_id,
    load_whereabouts,
    save_whereabouts,
)
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit
from cdd_agent.git.command import GitUnusable
from cdd_agent.git.repository import repository_of
from cdd_agent.travel.lease import Claim
from cdd_agent.travel.reference import RunReference

_LOOK = 60.0
"""Seconds between two looks at who holds it."""
_TICK = 1.0
"""Seconds between two looks at the clock."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def lease_kept(
    record: RunRecord,
    emit: Emit,
    *,
    now: Callable[[], datetime] = _utc_now,
    every: float | None = None,
) -> AsyncIterator[None]:
    """Cancel the work on a run when this copy loses it; the work then ends with
    `RunElsewhere`. A run that was never pushed needs no lease. Raises `RunElsewhere` if
    another copy holds the run. If the remote does not answer, the work continues until
    the lease ends.
    """
    every = every or _LOOK
    known = load_whereabouts(record.folder)
    if known is None:
        yield
        return
    holder = copy_id(record.root)
    repository = await repository_of(record.root)
    reference = await RunReference.open(
        record.root, record.folder, record.slug, known.remote, now, repository
    )
    save = partial(save_whereabouts, record.folder)
    claim = Claim(record.slug, reference, holder, platform.node()[:255], now, save)
    if known.phase is not Phase.HERE or known.holder != holder:
        with suppress(GitUnusable):  # then it is only not known who has it
            await claim.expect_free()
        known.expect_here(record.slug, holder, now())
    held, lost, work = known, list[BaseException](), asyncio.current_task()
    assert work is not None

    def over(why: str) -> RunElsewhere:
        return RunElsewhere(
            f"{why}. This copy no longer holds the run",
            hint=f"Pull it again with `cdd pull {record.slug}`.",
        )

    def is_over() -> bool:
        return held.until is None or now() > held.until - MARGIN

    async def look() -> None:
        nonlocal held
        try:
            held = await claim.keep(held)
            reference.accept()
        except GitUnusable as error:
            text = f"The lease of {record.slug} could not be renewed: {error.message}"
            emit(Notice(text, Tone.WARNING, kind=NoticeKind.LEASE))
            if is_over():
                raise over(text) from error

    async def keep_looking() -> None:
        while True:
            await asyncio.sleep(every)
            await look()

    async def watch_the_clock() -> None:
        """A remote that hangs makes the lease no longer, nor does a machine that was
        asleep.
        """
        # no one else can notice that time passes
        while not is_over():  # noqa: ASYNC110
            await asyncio.sleep(min(every, _TICK))
        raise over(f"The lease of {record.slug} was not renewed in time")

    def end_work(task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        if not lost:
            work.cancel()
        lost.append(error)

    await look()
    watching = [
        asyncio.create_task(keep_looking()),
        asyncio.create_task(watch_the_clock()),
    ]
    for task in watching:
        task.add_done_callback(end_work)
    try:
        try:
            yield
        finally:
            for task in watching:
                task.cancel()
            await asyncio.wait(watching)
    except asyncio.CancelledError:
        if not lost:
            raise
        work.uncancel()
        if isinstance(lost[0], RunElsewhere):
            raise RunElsewhere(
                f"Stopped, and the step was restored: {lost[0].message}",
                hint=lost[0].hint,
            ) from None
        raise lost[0] from None
