"""Pushing and pulling a run, in an order in which a kill at any moment loses nothing. A
push first records that the run is leaving, then moves the reference. A pull first
validates the whole run, then takes the lease, records that the run is arriving, and
installs it: the project's files, the checkpoints, the record, the ticket. The same
command resumes from each of these points.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Iterable,
    Iterator,
)
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from msgspec import Struct, structs

from cdd_agent.engine.ledger import STORE, Ledger, no_part
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.named_files import named
from cdd_agent.engine.old_records import OldRecordUnreadable, take_over
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
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.stream import Emit
from cdd_agent.files.atomic import (
    digest,
    read_bytes,
    remove,
    remove_leftovers,
    sync_all,
    write_atomic,
)
from cdd_agent.files.hidden_from_models import is_secret_path
from cdd_agent.git.checkpoint import Checkpoint, Checkpoints
from cdd_agent.git.diff import Change
from cdd_agent.git.repository import Repository, repository_of
from cdd_agent.git.restore import held
from cdd_agent.git.snapshot import names_in
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.redaction import Redactor
from cdd_agent.threads import in_thread
from cdd_agent.tickets.state import StateUnreadable, read_state
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.arrival import Arrival, is_link, links_away, read_manifest
from cdd_agent.travel.lease import Claim
from cdd_agent.travel.parcel import PROJECT, TICKET_TEXTS, Manifest, Parcel
from cdd_agent.travel.reference import NotARun, RunReference

_TIP = "travel/tip"
Taken = Awaitable[tuple[Checkpoints, Checkpoint]]
_OWN = ".cdd/"
"""The settings of a copy are its own."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class Travel(Struct):
    """One run, and the way that it goes."""

    ticket: Ticket
    record: RunRecord
    redactor: Redactor
    emit: Emit
    leave_out: tuple[str, ...]
    now: Callable[[], datetime] = utc_now

    @classmethod
    def of(
        cls,
        root: Path,
        ticket: Ticket,
        redactor: Redactor,
        emit: Emit,
        own: Iterable[str],
    ) -> Travel:
        """`own` are files and folders of this program beside `.cdd`, relative to
        `root`: they are in no checkpoint.
        """
        record = RunRecord.of_ticket(ticket, redactor)
        return cls(
            ticket,
            record,
            redactor,
            emit,
            no_part(record.root, (*own, ticket.shown(ticket.folder))),
        )

    async def push(self, remote: str | None, *, by_word: bool = False) -> Whereabouts:
        """Send the run to a remote; afterwards, no copy holds it. Raises `CddError`."""
        if not self.ticket.spec_path.exists() and not self.ticket.plan_path.exists():
            raise BadInput(
                f"{self.ticket.slug} has neither a spec nor a plan, so there is"
                " nothing to push",
                refusal=Refusal.NOTHING_TO_MOVE,
            )
        with self._locked() as known:
            if known is not None and known.phase is Phase.ARRIVING:
                known.expect_here(self.ticket.slug, known.holder, self.now())
            await self._take_over_old_records()
            name = remote or (known.remote if known else "origin")
            repository = await repository_of(self.record.root)
            async with (
                self._taken(PROJECT, repository) as taken,
                self._reference(name, known, repository) as reference,
            ):
                return await self._push(reference, taken, known, name, by_word=by_word)

    async def _take_over_old_records(self) -> None:
        """See that a run that version 0.1 began has ledgers: its old records do not
        travel. Raises `OldRecordUnreadable`.
        """
        try:
            state = read_state(self.ticket)
        except StateUnreadable:
            return
        if state is None:
            return
        refused = await take_over(Ledger(self.record, self.leave_out), state)
        for folder, why in refused.items():
            raise OldRecordUnreadable(str(folder), why)

    async def _push(
        self,
        reference: RunReference,
        taken: Taken,
        known: Whereabouts | None,
        name: str,
        *,
        by_word: bool,
    ) -> Whereabouts:
        claim, head = self._claim(reference), reference.head
        manifest = partial(
            Manifest,
            slug=self.ticket.slug,
            host=platform.node(),
            pushed=self.now(),
            head=head,
        )
        packed = list[Manifest]()

        async def content(tip: str | None) -> str:
            if tip is not None:
                await reference.bring(tip)
            checkpoints, project = await taken
            parcel = Parcel(self.ticket, self.record, checkpoints, self.redactor, head)
            commit, made = await parcel.pack(project, manifest, tip)
            packed.append(made)
            await self._refer(checkpoints, {_TIP: commit})  # so that git keeps it
            return commit

        def leaving() -> Whereabouts:
            left_out = packed[-1].left_out
            known = self._known(Phase.LEAVING, name, None, packed[-1])
            return structs.replace(known, left_out=left_out)

        pushed = await claim.hand_over(known, leaving, content, by_word=by_word)
        if left_out := packed[-1].left_out:
            text = (
                "Not sent, because they hold secrets or are settings of this copy:"
                f" {named(left_out)}"
            )
            self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_SENT))
        if stayed := packed[-1].stayed:
            text = (
                "Not sent, because they hold secrets or git ignores them: changes of"
                f" steps in {named(stayed)}. `undo` restores these files only in this"
                " copy"
            )
            self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_SENT))
        hint = (
            f"To continue it, here or in another copy, run `cdd pull"
            f" {self.ticket.slug}`."
        )
        self.emit(
            Notice(
                f"Pushed {self.ticket.slug} to {pushed.shown}. {hint}",
                Tone.GOOD,
                kind=NoticeKind.RUN_MOVED,
            )
        )
        return pushed

    async def pull(
        self, remote: str | None, *, by_word: bool = False, replace: bool = False
    ) -> Whereabouts:
        """Fetch the run from a remote; afterwards, this copy holds it. `by_word`: even
        if the lease of another copy has not ended; `replace`: rename the record of
        another run of the ticket. Raises `CddError`; then nothing was changed, or the
        pull must be repeated.
        """
        with self._locked() as known:
            name = remote or (known.remote if known else "origin")
            repository = await repository_of(self.record.root)
            async with (
                self._taken("travel/found", repository) as taken,
                self._reference(name, known, repository) as reference,
            ):
                here = await self._pull(
                    reference, taken, known, name, by_word=by_word, replace=replace
                )
        until = f"{here.until.astimezone():%H:%M}" if here.until else ""
        text = (
            f"Pulled {self.ticket.slug}. This copy holds it until {until}. To resume"
            f" it, run `cdd exec {self.ticket.slug}`, which also renews that time."
        )
        self.emit(Notice(text, Tone.GOOD, kind=NoticeKind.RUN_MOVED))
        return here

    async def _pull(
        self,
        reference: RunReference,
        taken: Taken,
        known: Whereabouts | None,
        name: str,
        *,
        by_word: bool,
        replace: bool,
    ) -> Whereabouts:
        claim, tip = self._claim(reference), await reference.fetch()
        if tip is None:
            raise BadInput(
                f"{reference.remote.address.shown} has no run of {self.ticket.slug}",
                hint=f"Push it there first: `cdd push {self.ticket.slug}`.",
                refusal=Refusal.NOTHING_TO_MOVE,
            )
        if not await self._is_here(known, reference, tip):
            await self._expect_replaceable(known, reference, tip, replace=replace)
            words = {"by_word": by_word, "replace": replace}
            return await self._take_over(
                known, reference, claim, taken, tip, name, **words
            )
        assert known is not None
        new, lease = await claim.take(tip, by_word=by_word)
        reference.accept()
        held_now = {
            "phase": Phase.HERE,
            "remote": name,
            "holder": claim.holder,
            "tip": new,
            "until": lease.until,
        }
        known = structs.replace(known, **held_now)
        save_whereabouts(self.record.folder, known)
        return known

    async def _take_over(
        self,
        known: Whereabouts | None,
        reference: RunReference,
        claim: Claim,
        taken: Taken,
        tip: str,
        name: str,
        *,
        by_word: bool,
        replace: bool,
    ) -> Whereabouts:
        """Bring what is in a commit to its places."""
        arrival = await Arrival.read(reference, tip, self.record.folder / "arriving")
        try:
            checkpoints, ours = await taken
            reference.accept()  # as objects that nothing refers to yet
            theirs = arrival.manifest.project_checkpoint
            changes = await self._changes(
                checkpoints, theirs, ours, arrival.manifest, known, reference.head
            )
            await self._expect_same_ticket(arrival, known)
            new, lease = await claim.take(tip, by_word=by_word)
            arriving = Whereabouts(
                Phase.ARRIVING, name, claim.holder, new, content=tip, until=lease.until
            )
            if known:
                before = {
                    name: getattr(known, name)
                    for name in ("project", "project_form", "ticket", "left_out")
                }
                arriving = structs.replace(arriving, **before)
            save_whereabouts(self.record.folder, arriving)
            if replace:
                aside = self.record.start_over()
                if self.ticket.state_path.exists():
                    write_atomic(
                        aside / self.ticket.state_path.name,
                        self.ticket.state_path.read_bytes(),
                    )
                    remove(self.ticket.state_path)
            kept = (await checkpoints.restore(changes)).kept
            if kept:
                raise BadInput(
                    f"These files changed during the pull and were not touched:"
                    f" {named(kept)}",
                    hint="Pull again.",
                    refusal=Refusal.TREE_DIFFERS,
                )
            await self._refer(checkpoints, {**arrival.manifest.references, _TIP: new})
            for one in arrival.manifest.notes:
                checkpoints.save_notes(one)
            arrival.install_record(self.record)
            arrival.install_ticket(self.ticket)
            await in_thread(sync_all, name="sync")
            here = self._known(Phase.HERE, name, new, arrival.manifest)
            left_out = arriving.left_out
            here = structs.replace(
                here, content=tip, until=lease.until, left_out=left_out
            )
            save_whereabouts(self.record.folder, here)
            text = (
                f"The run was pulled from {here.shown}, where {arrival.manifest.host}"
                " had pushed it."
            )
            self.record.log.add(
                self.redactor.redacted(Notice(text, kind=NoticeKind.RUN_MOVED))
            )
            if arrival.manifest.left_out:
                text = (
                    "Not included, because they hold secrets:"
                    f" {named(arrival.manifest.left_out)}"
                )
                self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_SENT))
            if arrival.manifest.stayed:
                text = (
                    "Not included: changes of steps in"
                    f" {named(arrival.manifest.stayed)}. `undo` does not restore these"
                    " files here"
                )
                self.emit(Notice(text, Tone.WARNING, kind=NoticeKind.NOT_SENT))
            return here
        finally:
            arrival.discard()

    async def _is_here(
        self, known: Whereabouts | None, reference: RunReference, tip: str
    ) -> bool:
        """True if this copy has the content of a commit, or a later one."""
        if known is None or known.phase is Phase.ARRIVING:
            return False
        there = await read_manifest(reference, tip)
        commits = (
            {known.content, known.tip}
            if known.phase is Phase.LEAVING
            else {known.content}
        )
        for commit in commits:
            if (
                commit
                and await reference.has(commit)
                and await read_manifest(reference, commit) == there
            ):
                return True
        return False

    async def _expect_replaceable(
        self,
        known: Whereabouts | None,
        reference: RunReference,
        tip: str,
        *,
        replace: bool,
    ) -> None:
        """Raises `RunElsewhere` where something that is only here would be replaced."""
        if replace or (known is not None and known.phase is Phase.ARRIVING):
            return
        has_state = self.ticket.state_path.exists() or self.record.state.exists()
        if known is None and not has_state:
            return
        if (
            known is not None
            and known.phase is not Phase.HERE
            and known.content
            and await reference.has(known.content)
        ):
            words = ("merge-base", "--is-ancestor", known.content, tip)
            if (await reference.git(*words, codes=(0, 1, 128))).return_code == 0:
                return
        why = (
            "this copy has a run of it that was never pushed"
            if known is None
            else "it was continued both here and elsewhere"
        )
        raise RunElsewhere(
            f"{self.ticket.slug} was not pulled: {why}",
            hint=(
                "To use the remote's run, pull with `--replace`; the run here is kept"
                " in its record. To use the run here, run `cdd push --take-over`."
            ),
        )

    async def _changes(
        self,
        checkpoints: Checkpoints,
        theirs: Checkpoint,
        ours: Checkpoint,
        manifest: Manifest,
        known: Whereabouts | None,
        head: str | None,
    ) -> tuple[Change, ...]:
        """Return the changes that give the project's files the content of the copy that
        pushed. Raises `BadInput` for a file that equals neither that content, nor the
        commit, nor the last push or pull.
        """
        only_here = frozenset(known.left_out if known else ())
        changes = [
            one
            for one in await checkpoints.changes(theirs, ours)
            if not one.path.startswith(_OWN)
            and (one.before or not self._never_travels(one.path, only_here))
        ]
        links = await checkpoints.read([one for one in changes if is_link(one)])
        if away := [
            *links_away(
                {
                    path: (before or b"").decode(errors="replace")
                    for path, (before, _) in links.items()
                }
            )
        ]:
            raise NotARun(f"a link of it leads out of the project: {named(away)}")
        prefix = checkpoints.snapshots.prefix.removesuffix("/")

        async def unlike(tree: str) -> set[str] | None:
            """Return the files that differ between a tree and this copy; None if the
            tree is unknown here.
            """
            words, listed = (
                ("-r", "-z", "--no-renames", "--name-only"),
                checkpoints.snapshots.folder / "listed",
            )
            found = await checkpoints.snapshots.git(
                "diff-tree", *words, ours.files, tree, stdout=listed, codes=(0, 128)
            )
            return None if found.return_code else set(names_in(listed))

        differ = {one.path for one in changes}
        if differ:
            committed = (
                await unlike(f"{manifest.head}:{prefix}") if manifest.head else None
            )
            differ &= (
                {one.path for one in changes if one.after}
                if committed is None
                else committed
            )
        if differ and known is not None and known.project is not None:
            form = known.project_form
            travelled = await unlike(Checkpoint(PROJECT, known.project, form).files)
            differ &= differ if travelled is None else travelled
        if differ:
            raise BadInput(
                "These files differ from the run and from its commit:"
                f" {named(sorted(differ))}",
                hint=self._how_to_be_alike(manifest, head),
                refusal=Refusal.TREE_DIFFERS,
            )
        return tuple(changes)

    def _never_travels(self, path: str, left_out: Container[str]) -> bool:
        return path in left_out or is_secret_path(path)

    def _how_to_be_alike(self, manifest: Manifest, head: str | None) -> str:
        if manifest.head is None or manifest.head == head:
            return (
                "Move them to another folder, or run `git stash --include-untracked`."
                " Then pull again."
            )
        commit = manifest.head[:12]
        return (
            f"The run is at the commit {commit}. Run `git checkout {commit}`, then"
            " pull again."
        )

    async def _expect_same_ticket(
        self, arrival: Arrival, known: Whereabouts | None
    ) -> None:
        """Raises `BadInput` for a spec or plan that equals neither the pushed one, nor
        the commit, nor the last push or pull.
        """
        for name in TICKET_TEXTS:
            here, there = (
                read_bytes(self.ticket.folder / name),
                arrival.ticket_file(name),
            )
            self.ticket.refuse_to_write(self.ticket.folder / name)
            if here is None or there is None or here == there:
                continue
            if known is not None and known.ticket.get(name) == digest(here):
                continue
            if arrival.manifest.head and await self._is_committed(
                arrival.manifest.head, name, here
            ):
                continue
            path = self.ticket.shown(self.ticket.folder / name)
            raise BadInput(
                f"{path} differs from the run's version",
                hint="Move your file to another folder, then pull again.",
                refusal=Refusal.TREE_DIFFERS,
            )

    async def _is_committed(self, head: str, name: str, content: bytes) -> bool:
        repository = await repository_of(self.record.root)
        if repository is None:
            return False
        path = (self.ticket.folder / name).relative_to(repository.top).as_posix()
        found = await repository.git(
            "rev-parse", "--verify", "--quiet", f"{head}:{path}", codes=(0, 1, 128)
        )
        return found.stdout.strip() == held(content, 0).content

    def _known(
        self, phase: Phase, remote: str, tip: str | None, manifest: Manifest
    ) -> Whereabouts:
        contents = {
            name: digest(read_bytes(self.ticket.folder / name)) for name in TICKET_TEXTS
        }
        ticket = {name: known for name, known in contents.items() if known}
        holder = copy_id(self.record.root)
        return Whereabouts(
            phase=phase,
            remote=remote,
            holder=holder,
            tip=tip,
            project=manifest.project,
            project_form=manifest.project_checkpoint.form,
            ticket=ticket,
        )

    @asynccontextmanager
    async def _reference(
        self, remote: str, known: Whereabouts | None, repository: Repository | None
    ) -> AsyncIterator[RunReference]:
        """In the end, whatever came from there and was not accepted is removed."""
        where = self.record.root, self.record.folder
        reference = await RunReference.open(
            *where, self.ticket.slug, remote, self.now, repository
        )
        if known is not None:
            commits = [commit for commit in {known.tip, known.content} if commit]
            reference.have += tuple(
                [commit for commit in commits if await reference.has(commit)]
            )
        try:
            yield reference
        finally:
            await reference.remote.clear()

    def _claim(self, reference: RunReference) -> Claim:
        save = partial(save_whereabouts, self.record.folder)
        return Claim(
            self.ticket.slug,
            reference,
            copy_id(self.record.root),
            platform.node()[:255],
            self.now,
            save,
        )

    @asynccontextmanager
    async def _taken(
        self, name: str, repository: Repository | None
    ) -> AsyncIterator[Taken]:
        """The run's checkpoints, and one of the current project, which is made while
        the remote answers.
        """

        async def take() -> tuple[Checkpoints, Checkpoint]:
            folder = self.record.folder / STORE
            where = self.record.root, folder, self.ticket.slug, self.leave_out
            checkpoints = await Checkpoints.open(*where, repository)
            return checkpoints, await checkpoints.take(name)

        taking = asyncio.ensure_future(take())
        try:
            yield taking
            await taking  # its error is reported in any case
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)

    async def _refer(self, checkpoints: Checkpoints, names: dict[str, str]) -> None:
        snapshots = checkpoints.snapshots
        where = f"{snapshots.namespace}/{self.ticket.slug}"
        asked = snapshots.input(
            f"update {where}/{name} {target}\n" for name, target in names.items()
        )
        unsynced = (*snapshots.references.config, "core.fsync=none")  # see `sync_all`
        git = structs.replace(snapshots.references, config=unsynced)
        await git("update-ref", "--stdin", stdin=asked)

    @contextmanager
    def _locked(self) -> Iterator[Whereabouts | None]:
        """Lock the ticket, and yield what is known of where its run is. Files that a
        refused pull of an unknown run created are removed.
        """
        new = self.record.prepare()
        since = self.now().replace(microsecond=0).isoformat()
        if (tree := load_own_tree(self.record.folder)) is not None:
            raise RunElsewhere(
                f"{self.ticket.slug} runs in its own worktree, on the branch"
                f" {tree.branch}",
                hint=(f"Merge it first with `cdd land {self.ticket.slug}`."),
            )
        lock = TicketLock.take(self.record.folder, self.ticket.slug, since)
        try:
            self.record.tidy()
            remove_leftovers(self.ticket.folder)
            for notice in lock.news:
                self.emit(notice)
            yield load_whereabouts(self.record.folder)
        except BaseException:
            if (
                self.record.folder in new
                and load_whereabouts(self.record.folder) is None
            ):
                self.record.discard(new)
            raise
        finally:
            lock.release()
