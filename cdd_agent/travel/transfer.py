"""The common part of push and pull: the locked run, and its reference in a remote."""

from __future__ import annotations

import json
import platform
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Self

from msgspec import Struct

from cdd_agent.engine.ledger import STORE, no_part
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import (
    Phase,
    RunElsewhere,
    Whereabouts,
    copy_id,
    load_own_tree,
    load_whereabouts,
    save_whereabouts,
)
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit
from cdd_agent.files.atomic import digest, read_bytes, remove_leftovers
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.git.repository import Repository, repository_of
from cdd_agent.pattern import Pattern
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.bundles import RunHere
from cdd_agent.travel.lease import Claim
from cdd_agent.travel.manifest import TICKET_TEXTS, Manifest
from cdd_agent.travel.reference import RunReference

TIP = "travel/tip"
"""Git's reference to the last commit that was pushed or pulled."""
_PLAIN_PATH = Pattern(r"[\w./@+-]+")


def utc_now() -> datetime:
    return datetime.now(UTC)


class Travel(Struct, frozen=True):
    """A ticket's run that can be pushed and pulled."""

    ticket: Ticket
    record: RunRecord
    emit: Emit
    leave_out: tuple[str, ...]
    """Files that are in no checkpoint."""
    now: Callable[[], datetime] = utc_now

    @classmethod
    def open(
        cls,
        root: Path,
        ticket: Ticket,
        redactor: Redactor,
        emit: Emit,
        own: Iterable[str],
    ) -> Self:
        """`own` are files and folders of cdd outside `.cdd`, relative to `root`."""
        record = RunRecord.of_ticket(ticket, redactor)
        leave_out = no_part(record.root, (*own, ticket.shown(ticket.folder)))
        return cls(ticket, record, emit, leave_out)

    @asynccontextmanager
    async def connect(self, remote: str | None) -> AsyncIterator[Connection]:
        """Lock the run and open its reference. The default remote is that of the last
        push or pull, else `origin`. Fetched objects that were not accepted are deleted
        at the end. Raises `CddError`.
        """
        with self._lock() as whereabouts:
            name = remote or (whereabouts.remote if whereabouts else "origin")
            record = self.record
            repository = await repository_of(record.root)
            # before the reference, which uses its object store
            checkpoints = await Checkpoints.open(
                record.root,
                record.folder / STORE,
                self.ticket.slug,
                self.leave_out,
                repository,
            )
            here = RunHere(self.ticket, record, checkpoints)
            reference = await RunReference.open(
                record.root,
                record.folder,
                self.ticket.slug,
                name,
                self.now,
                repository,
            )
            for commit in (whereabouts.tip, whereabouts.content) if whereabouts else ():
                if commit and await reference.has(commit):
                    reference.have += (commit,)
            claim = open_claim(record, reference, self.now)
            try:
                yield Connection(
                    self, here, whereabouts, name, repository, reference, claim
                )
            finally:
                await reference.remote.clear()

    @contextmanager
    def _lock(self) -> Iterator[Whereabouts | None]:
        """Lock the ticket, and yield the run's whereabouts. The folders of a new record
        are deleted again if nothing was pushed or pulled.
        """
        folder = self.record.folder
        new = self.record.prepare()
        tree = load_own_tree(folder)
        if tree is not None:
            raise RunElsewhere(
                f"{self.ticket.slug} runs in its own worktree, on the branch"
                f" {tree.branch}",
                hint=f"Merge it first with `cdd land {self.ticket.slug}`.",
            )
        since = self.now().replace(microsecond=0).isoformat()
        lock = TicketLock.take(folder, self.ticket.slug, since)
        try:
            self.record.tidy()
            remove_leftovers(self.ticket.folder)
            for notice in lock.news:
                self.emit(notice)
            yield load_whereabouts(folder)
        finally:
            if folder in new and load_whereabouts(folder) is None:
                self.record.discard(new)
            lock.release()

    def report_not_sent(self, text: str) -> None:
        self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_SENT))


class Connection(Struct, frozen=True):
    run: Travel
    here: RunHere
    whereabouts: Whereabouts | None
    """The whereabouts before."""
    remote: str
    """A name or an address."""
    repository: Repository | None
    reference: RunReference
    claim: Claim

    def describe(self, phase: Phase, manifest: Manifest) -> Whereabouts:
        """Return the whereabouts with the current state of this copy."""
        ticket = dict[str, str]()
        for name in TICKET_TEXTS:
            content = digest(read_bytes(self.run.ticket.folder / name))
            if content:
                ticket[name] = content
        return Whereabouts(
            phase=phase,
            remote=self.remote,
            holder=self.claim.holder,
            tip=None,
            project=manifest.project,
            project_form=manifest.project_checkpoint.form,
            ticket=ticket,
        )


def show_path(path: str) -> str:
    """Return a path for a list, quoted if it could be misread."""
    return path if _PLAIN_PATH.fullmatch(path) else json.dumps(path)


def open_claim(
    record: RunRecord, reference: RunReference, now: Callable[[], datetime]
) -> Claim:
    return Claim(
        record.slug,
        reference,
        copy_id(record.root),
        platform.node()[:255],
        now,
        partial(save_whereabouts, record.folder),
    )
