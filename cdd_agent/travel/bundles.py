"""A run packed for the way to another machine, and put in its place there: a parcel as
that of `cdd push`, as a bundle.

Both sides do both: the client sends the run and takes it back, the worker takes it and
sends it back after each reply.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from msgspec import Struct

from cdd_agent.engine.named_files import named
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.files.hidden_from_models import is_secret_path
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.git.command import Git
from cdd_agent.git.new_commit import OUT
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.arrival import Arrival, is_link, links_away
from cdd_agent.travel.parcel import PROJECT, Manifest, Parcel
from cdd_agent.travel.reference import NotARun

FOUND = "travel/found"


class RunHere(Struct, frozen=True):
    """A ticket's run in one copy of a project, with checkpoints that no other process
    uses.
    """

    ticket: Ticket
    record: RunRecord
    checkpoints: Checkpoints

    async def pack(self, head: str, parent: str | None) -> tuple[str, str]:
        """Return a commit with the current run on top of `parent`, and the tree of all
        files here, including those that are not sent. `head` is the commit that the
        project is
        at. Raises `CddError`, such as where secrets would travel.
        """
        project = await self.checkpoints.take(PROJECT)
        parcel = Parcel(
            self.ticket,
            self.record,
            self.checkpoints,
            self.record.redactor,
            head,
        )
        slug, host, now = self.ticket.slug, platform.node()[:255], datetime.now(UTC)
        manifest = partial(Manifest, slug=slug, host=host, pushed=now, head=head)
        tip, _ = await parcel.pack(project, manifest, parent)
        return tip, project.id

    async def put_in_place(self, arrival: Arrival) -> None:
        """Install the arrived run in a project at the same commit: files, checkpoints,
        record, ticket. Files that are never sent do not change.
        Raises `CddError`.
        """
        manifest, checkpoints = arrival.manifest, self.checkpoints
        ours, theirs = await checkpoints.take(FOUND), manifest.project_checkpoint
        changes = [
            one
            for one in await checkpoints.changes(theirs, ours)
            if not one.path.startswith(".cdd/")
            and (one.before or not self._never_travels(one.path, manifest))
        ]
        links = await checkpoints.read([one for one in changes if is_link(one)])
        targets = {
            path: (before or b"").decode(errors="replace")
            for path, (before, _) in links.items()
        }
        if away := [*links_away(targets)]:
            raise NotARun(f"a link of it leads out of the project: {named(away)}")
        if kept := (await checkpoints.restore(changes)).kept:
            raise BadInput(
                f"These files changed at the same time and were not touched:"
                f" {named(kept)}",
                hint="Run the same command again.",
                refusal=Refusal.TREE_DIFFERS,
            )
        snapshots = checkpoints.snapshots
        where = f"{snapshots.namespace}/{self.ticket.slug}"
        names = (
            f"update {where}/{name} {tree}\n"
            for name, tree in manifest.references.items()
        )
        await snapshots.references(
            "update-ref", "--stdin", stdin=snapshots.input(names)
        )
        for one in manifest.notes:
            checkpoints.save_notes(one)
        arrival.install_record(self.record)
        arrival.install_ticket(self.ticket)

    def _never_travels(self, path: str, manifest: Manifest) -> bool:
        return path in manifest.left_out or is_secret_path(path)


async def bundle(git: Git, have: Sequence[str], target: Path) -> None:
    """Write the objects of the commit at `OUT` that the other side lacks. `git` belongs
    to a private repository. Raises `GitUnusable`.
    """
    await git(
        "bundle",
        "create",
        "--quiet",
        str(target),
        OUT,
        *(f"^{commit}" for commit in have),
    )
