"""The protocol of who holds a run, without git, network or disk.

All copies of a project see one reference, which changes only by compare-and-swap. Its
commits contain the run and perhaps a lease. After a push, no copy holds the run. A pull
adds a commit with a lease, and the holder renews it in the same way. Another copy can
take the run over after the lease has ended, or when the user confirms it.

A copy stops working a margin before its lease ends, by its clock. Another copy waits
for a margin after the end. So two copies work at once only if their clocks differ by
two margins, or if the user wrongly confirmed that one is dead. That one notices at its
next check, and cannot push its work.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Protocol

from msgspec import Meta, Struct
from msgspec.structs import replace

from cdd_agent.engine.whereabouts import MARGIN, Phase, RunElsewhere, Whereabouts
from cdd_agent.files.json_file import JsonFile, Moment
from cdd_agent.git.remote import PushRefused
from cdd_agent.text.sanitize import sanitize_for_display

DURATION = timedelta(hours=2)
_TRIES = 3


class Lease(JsonFile, frozen=True):
    holder: Annotated[str, Meta(max_length=64)]
    """A copy of the project, see `copy_id`."""
    host: Annotated[str, Meta(max_length=255)]
    """The name of its machine, for the user."""
    since: Moment
    until: Moment

    def __str__(self) -> str:
        since, until = (
            f"{moment.astimezone():%Y-%m-%d %H:%M}"
            for moment in (self.since, self.until)
        )
        return f"{sanitize_for_display(self.host)}, since {since}, until {until}"


class Shared(Protocol):
    """The reference that all copies see."""

    async def tip(self) -> str | None:
        """Return the current commit; None if there is no reference."""
        ...

    async def lease(self, tip: str) -> Lease | None: ...

    async def leased(self, tip: str, lease: Lease) -> str:
        """Return a new commit on top of `tip`, with this lease."""
        ...

    async def swap(self, expected: str | None, new: str) -> bool:
        """Replace one commit by another. False if the reference has changed."""
        ...


class Moved(RunElsewhere):
    """Another copy was faster."""

    def __init__(self, slug: str) -> None:
        super().__init__(
            f"Another copy changed {slug} in the remote at the same time",
            hint="Try again.",
        )


class Claim(Struct):
    """One copy's access to the reference of one run."""

    slug: str
    shared: Shared
    holder: str
    host: str
    now: Callable[[], datetime]
    save: Callable[[Whereabouts | None], None]
    """Saves the whereabouts at once; None if the run never travelled."""
    duration: timedelta = DURATION

    async def take(self, tip: str, *, force: bool = False) -> tuple[str, Lease]:
        """Take the run of this commit and return the new tip. Raises `RunElsewhere`,
        unless forced, if another copy's lease has not ended.
        """
        current = await self.shared.lease(tip)
        if current is not None and not force and self._is_held_elsewhere(current):
            raise self._held(current)
        lease = self._lease()
        new = await self.shared.leased(tip, lease)
        if not await self.shared.swap(tip, new):
            raise Moved(self.slug)
        return new, lease

    def _is_held_elsewhere(self, lease: Lease) -> bool:
        return lease.holder != self.holder and self.now() <= lease.until + MARGIN

    async def keep(self, whereabouts: Whereabouts) -> Whereabouts:
        """Check that this copy still holds the run. Renew the lease at half time.
        Raises `RunElsewhere` if another copy has the run, `GitUnusable` if the remote
        cannot be reached.
        """
        for _ in range(_TRIES):
            tip = await self.shared.tip()
            if tip == whereabouts.tip and not self._should_renew(whereabouts):
                return whereabouts
            if tip is None:
                raise RunElsewhere(
                    f"{self.slug} was deleted from {whereabouts.shown}",
                    hint=f"Restore it with `cdd push {self.slug}`.",
                )
            if tip != whereabouts.tip:
                current = await self.shared.lease(tip)
                if current is None or current.holder != self.holder:
                    raise self._held(current)
            lease = self._lease()
            new = await self.shared.leased(tip, lease)
            if await self.shared.swap(tip, new):
                renewed = replace(whereabouts, tip=new, until=lease.until)
                self.save(renewed)
                return renewed
        raise Moved(self.slug)

    def _should_renew(self, whereabouts: Whereabouts) -> bool:
        return (
            whereabouts.until is None
            or self.now() >= whereabouts.until - self.duration / 2
        )

    async def expect_free(self) -> None:
        """Raises `RunElsewhere` if another copy holds the run, `GitUnusable` if the
        remote cannot be reached.
        """
        tip = await self.shared.tip()
        lease = await self.shared.lease(tip) if tip else None
        if lease is not None and lease.holder != self.holder:
            raise self._held(lease)

    async def find_replaceable(
        self, whereabouts: Whereabouts | None, *, force: bool = False
    ) -> str | None:
        """Return the commit that a push replaces; None if the remote has no run. Raises
        `RunElsewhere`, unless forced, if another copy holds or has continued the run.
        """
        tip = await self.shared.tip()
        if tip is None or force or await self._may_replace(whereabouts, tip):
            return tip
        raise self._held(await self.shared.lease(tip))

    async def hand_over(
        self, whereabouts: Whereabouts | None, leaving: Whereabouts
    ) -> Whereabouts:
        """Replace the commit `leaving.tip` by `leaving.content`, so that no copy holds
        the run.

        `whereabouts` are those before the push. Until the push has certainly ended, the
        run is `leaving` and can continue in no copy. Raises `RunElsewhere`, and
        `PushRefused` if the remote refuses; then nothing has changed.
        """
        new = leaving.content
        assert new is not None, "it was packed"
        self.save(leaving)
        try:
            arrived = await self.shared.swap(leaving.tip, new)
        except PushRefused:
            self.save(whereabouts)
            raise
        if not arrived:
            self.save(whereabouts)
            raise Moved(self.slug)
        pushed = replace(leaving, phase=Phase.AWAY, tip=new)
        self.save(pushed)
        return pushed

    async def _may_replace(self, whereabouts: Whereabouts | None, tip: str) -> bool:
        """True if no other copy has continued: the remote has the commit that this copy
        knows or sent, or a lease that this copy made without receiving an answer.
        """
        if whereabouts is None:
            return False
        if whereabouts.holder == self.holder and tip in (
            whereabouts.tip,
            whereabouts.content,
        ):
            return True
        lease = await self.shared.lease(tip)
        return lease is not None and lease.holder == self.holder

    def _lease(self) -> Lease:
        now = self.now()
        return Lease(
            holder=self.holder, host=self.host, since=now, until=now + self.duration
        )

    def _held(self, lease: Lease | None) -> RunElsewhere:
        if lease is None:
            return RunElsewhere(
                f"Another copy pushed {self.slug}, or the remote has a different run"
                " of that name",
                hint=f"To use that run, type `cdd pull {self.slug}`.",
            )
        hint = (
            "Pull it after that time. If that machine will not return, run `cdd pull"
            f" {self.slug} --take-over`."
        )
        return RunElsewhere(f"{self.slug} is held by {lease}", hint=hint)
