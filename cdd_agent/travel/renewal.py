"""Keep the lease during work on a run: check it once a minute, and renew it in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime

from msgspec import Struct

from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import (
    MARGIN,
    Phase,
    RunElsewhere,
    Whereabouts,
    copy_id,
    load_whereabouts,
)
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit
from cdd_agent.git.command import GitUnusable
from cdd_agent.git.repository import repository_of
from cdd_agent.travel.lease import Claim
from cdd_agent.travel.reference import RunReference
from cdd_agent.travel.transfer import open_claim, utc_now

_INTERVAL = 60.0
"""Seconds between two checks of the remote."""
_TICK = 1.0
"""Seconds between two looks at the clock."""


@asynccontextmanager
async def lease_kept(
    record: RunRecord,
    emit: Emit,
    *,
    now: Callable[[], datetime] = utc_now,
    every: float = _INTERVAL,
) -> AsyncIterator[None]:
    """Cancel the work on a run when this copy loses it; the work then ends with
    `RunElsewhere`.

    A run that was never pushed needs no lease. Raises `RunElsewhere` if another copy
    holds the run. If the remote does not answer, the work continues until the lease
    ends. `every`: seconds between two checks.
    """
    whereabouts = load_whereabouts(record.folder)
    if whereabouts is None:
        yield
        return
    holder = copy_id(record.root)
    repository = await repository_of(record.root)
    reference = await RunReference.open(
        record.root, record.folder, record.slug, whereabouts.remote, now, repository
    )
    claim = open_claim(record, reference, now)
    if whereabouts.phase is not Phase.HERE or whereabouts.holder != holder:
        with suppress(GitUnusable):  # the holder is unknown
            await claim.expect_free()
        whereabouts.expect_here(record.slug, holder, now())
    renewal = _Renewal(record.slug, emit, reference, claim, whereabouts, every)
    await renewal.check()
    work = asyncio.current_task()
    assert work is not None
    errors = list[BaseException]()

    def end_work(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if not errors:
            work.cancel()
        errors.append(error)

    tasks = [
        asyncio.create_task(renewal.check_regularly()),
        asyncio.create_task(renewal.watch_clock()),
    ]
    for task in tasks:
        task.add_done_callback(end_work)
    try:
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
    except asyncio.CancelledError:
        if not errors:
            raise
        work.uncancel()
        error = errors[0]
        if isinstance(error, RunElsewhere):
            raise RunElsewhere(
                f"Stopped, and the step was restored: {error.message}", hint=error.hint
            ) from None
        raise error from None


class _Renewal(Struct):
    """The lease of a run that this copy works on. Methods raise `RunElsewhere` when
    this copy loses it.
    """

    slug: str
    emit: Emit
    reference: RunReference
    claim: Claim
    whereabouts: Whereabouts
    every: float

    async def check_regularly(self) -> None:
        while True:
            await asyncio.sleep(self.every)
            await self.check()

    async def check(self) -> None:
        try:
            self.whereabouts = await self.claim.keep(self.whereabouts)
            self.reference.accept()
        except GitUnusable as error:
            text = f"The lease of {self.slug} could not be renewed: {error.message}"
            self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.LEASE))
            if self._is_over():
                raise self._over(text) from error

    async def watch_clock(self) -> None:
        """End with the lease, even if the remote hangs or the machine was asleep."""
        # no event announces the passing of time
        while not self._is_over():  # noqa: ASYNC110
            await asyncio.sleep(min(self.every, _TICK))
        raise self._over(f"The lease of {self.slug} was not renewed in time")

    def _is_over(self) -> bool:
        until = self.whereabouts.until
        return until is None or self.claim.now() > until - MARGIN

    def _over(self, why: str) -> RunElsewhere:
        return RunElsewhere(
            f"{why}. This copy no longer holds the run",
            hint=f"Pull it again with `cdd pull {self.slug}`.",
        )
