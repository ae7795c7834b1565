"""The protocol of who holds a run, without git, network or disk. All copies of a
project see one reference, whose commits hold the run and perhaps a
lease, and which changes only by compare-and-swap. After a push, no copy holds the run.
A pull adds a commit with a lease, and the holder renews the lease in the same way.
Another copy can take the run over after the lease has ended, or when the user confirms
it.

A copy works only until a margin before its lease ends, by its clock; another copy takes
over only when the lease ended a margin ago. So two copies work at once only if their
clocks differ by two margins, or if the user has confirmed that the other one is dead.
That one notices at its next check, and cannot push its work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
    """Who holds a run, and until when."""

    holder: Annotated[str, Meta(max_length=64)]
    """A copy of the project, see `copy_id`."""
    host: Annotated[str, Meta(max_length=255)]
    """Its machine, for people."""
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
        """The commit that it is at; None where there is none."""
        ...

    async def lease(self, tip: str) -> Lease | None:
        """The lease in a commit."""
        ...

    async def leased(self, tip: str, lease: Lease) -> str:
        """A new commit on top of one, with this lease."""
        ...

    async def swap(self, expected: str | None, new: str) -> bool:
        """Move it from one commit to another; False if it was not there any more."""
        ...


class Moved(RunElsewhere):
    """Somebody else was faster."""

    def __init__(self, slug: str) -> None:
        super().__init__(
            f"Another copy changed {slug} in the remote at the same time",
            hint="Try again.",
        )


class Claim(Struct):
    """One copy's dealings with the reference of one run."""

    slug: str
    shared: Shared
    holder: str
    host: str
    now: Callable[[], datetime]
    save: Callable[[Whereabouts | None], None]
    """Keeps what this copy knows, before the next thing is done; None: nothing, it
    never travelled.
    """
    duration: timedelta = DURATION

    async def take(self, tip: str, *, by_word: bool = False) -> tuple[str, Lease]:
        """Take the run of this commit and return the new tip. `by_word`: even if the
        lease of another copy has not ended.

        Raises `RunElsewhere`.
        """
        found = await self.shared.lease(tip)
        if (
            found is not None
            and found.holder != self.holder
            and not by_word
            and self.now() <= found.until + MARGIN
        ):
            raise self._held(found)
        lease = self._lease()
        new = await self.shared.leased(tip, lease)
        if not await self.shared.swap(tip, new):
            raise Moved(self.slug)
        return new, lease

    async def keep(self, known: Whereabouts) -> Whereabouts:
        """See that the run is still this copy's, and renew the lease when half of it is
        over.

        Raises `RunElsewhere` where another one has taken it, `GitUnusable` where the
        remote cannot be asked.
        """
        for _ in range(_TRIES):
            tip = await self.shared.tip()
            if (
                tip == known.tip
                and known.until is not None
                and self.now() < known.until - self.duration / 2
            ):
                return known
            if tip is None:
                raise RunElsewhere(
                    f"{self.slug} was deleted from {known.shown}",
                    hint=f"Restore it with `cdd push {self.slug}`.",
                )
            if tip != known.tip:
                found = await self.shared.lease(tip)
                if found is None or found.holder != self.holder:
                    raise self._held(found)
            lease = self._lease()
            new = await self.shared.leased(tip, lease)
            if await self.shared.swap(tip, new):
                renewed = replace(known, tip=new, until=lease.until)
                self.save(renewed)
                return renewed
        raise Moved(self.slug)

    async def expect_free(self) -> None:
        """Raises `RunElsewhere` if another copy holds it, `GitUnusable` if the remote
        cannot be reached.
        """
        tip = await self.shared.tip()
        found = await self.shared.lease(tip) if tip else None
        if found is not None and found.holder != self.holder:
            raise self._held(found)

    async def hand_over(
        self,
        known: Whereabouts | None,
        leaving: Callable[[], Whereabouts],
        content: Callable[[str | None], Awaitable[str]],
        *,
        by_word: bool = False,
    ) -> Whereabouts:
        """Push the run, so that no copy holds it. `known` is this copy's knowledge
        before; `content` makes the commit on top of the current one, and `leaving`
        returns the knowledge after it. Until the push is known to have ended, the run
        is `leaving` and cannot continue in any copy. Raises `RunElsewhere`, and
        `PushRefused` if the remote refuses it; then nothing has changed.
        """
        tip = await self.shared.tip()
        if tip is not None and not by_word and not await self._may_replace(known, tip):
            raise self._held(await self.shared.lease(tip))
        new = await content(tip)
        sent = replace(leaving(), phase=Phase.LEAVING, tip=tip, content=new, until=None)
        self.save(sent)
        try:
            arrived = await self.shared.swap(tip, new)
        except PushRefused:
            self.save(known)
            raise
        if not arrived:
            self.save(known)
            raise Moved(self.slug)
        pushed = replace(sent, phase=Phase.AWAY, tip=new)
        self.save(pushed)
        return pushed

    async def _may_replace(self, known: Whereabouts | None, tip: str) -> bool:
        """True if no other copy has continued: the remote still has the commit that
        this copy knows, sent, or made as a lease without receiving an answer.
        """
        if (
            known is not None
            and known.holder == self.holder
            and tip in (known.tip, known.content)
        ):
            return True
        if known is None:
            return False
        found = await self.shared.lease(tip)
        return found is not None and found.holder == self.holder

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
        over = (
            "Pull it after that time. If that machine will not return, run `cdd pull"
            f" {self.slug} --take-over`."
        )
        return RunElsewhere(f"{self.slug} is held by {lease}", hint=over)
