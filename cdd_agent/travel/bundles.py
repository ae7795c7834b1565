"""A run in one copy of a project: packed into a commit, and installed from one. `cdd
push` and `cdd pull` exchange the commit with a remote; a cluster sends it as a bundle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, structs

from cdd_agent.engine.named_files import named
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.files.hidden_from_models import is_secret_path
from cdd_agent.git.checkpoint import Checkpoint, Checkpoints, name_in_json
from cdd_agent.git.command import Git
from cdd_agent.git.diff import Change
from cdd_agent.git.new_commit import OUT
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.arrival import Arrival
from cdd_agent.travel.manifest import PROJECT, Manifest
from cdd_agent.travel.packing import Packing
from cdd_agent.travel.reference import NotARun
from cdd_agent.travel.validation import LINK, leads_out

FOUND = "travel/found"
"""The checkpoint of the files before a run is installed."""
_SETTINGS = ".cdd"
"""The folder of files that each copy keeps."""


class RunHere(Struct, frozen=True):
    """A ticket's run in one copy of a project. No other process may use its
    checkpoints.
    """

    ticket: Ticket
    record: RunRecord
    checkpoints: Checkpoints

    def start_packing(self, head: str | None) -> Packing:
        """`head` is the project's commit."""
        return Packing(self.ticket, self.record, self.checkpoints, head)

    async def pack(self, head: str, parent: str | None) -> tuple[str, str]:
        """Return a commit of the current run on top of `parent`, and the tree of all
        files here, even those that are not sent. `head` is the project's commit. Raises
        `CddError`.
        """
        project = await self.checkpoints.take(PROJECT)
        packed = await self.start_packing(head).pack(project)
        return await packed.commit(self.checkpoints, parent), project.id

    async def put_in_place(self, arrival: Arrival) -> None:
        """Install an arrived run in a project at the same commit. Files that are never
        sent do not change. Raises `CddError`.
        """
        current = await self.checkpoints.take(FOUND)
        changes = await self.list_changes(
            arrival.manifest, current, arrival.manifest.left_out
        )
        await self.install(arrival, changes)

    async def list_changes(
        self, manifest: Manifest, current: Checkpoint, kept: Collection[str]
    ) -> list[Change]:
        """Return the changes from the arrived files to the current ones; undoing them
        installs the run. Files in `kept` are not deleted. Raises `NotARun` for a link
        out of the project, and for another spelling of the settings folder, which some
        disks do not distinguish.
        """
        changes = list[Change]()
        for change in await self.checkpoints.changes(
            manifest.project_checkpoint, current
        ):
            if change.path.startswith(f"{_SETTINGS}/"):
                continue
            if change.before is not None and _is_named_as_settings(change.path):
                raise NotARun(f"{change.path[:200]!r} is not a file of a project")
            if change.before is None and _is_never_sent(change.path, kept):
                continue
            changes.append(change)
        links = [
            change
            for change in changes
            if change.before is not None and change.before.mode == LINK
        ]
        for path, (target, _) in (await self.checkpoints.read(links)).items():
            if leads_out(path, (target or b"").decode(errors="replace")):
                raise NotARun(f"a link of it leads out of the project: {path}")
        return changes

    async def install(
        self,
        arrival: Arrival,
        changes: Sequence[Change],
        references: Mapping[str, str] | None = None,
    ) -> None:
        """Install project files, checkpoints, record and ticket, in this order.
        `references` are further objects to keep, by name. The caller then calls
        `sync_all`. Raises `BadInput` if files changed after `list_changes`.
        """
        restored = await self.checkpoints.restore(changes)
        if restored.kept:
            raise BadInput(
                "These files changed at the same time and were not touched:"
                f" {named(restored.kept)}",
                hint="Run the same command again.",
                refusal=Refusal.TREE_DIFFERS,
            )
        manifest = arrival.manifest
        await self.keep_objects({**manifest.references, **(references or {})})
        for checkpoint in manifest.notes:
            self.checkpoints.save_notes(checkpoint)
        arrival.install_record(self.record)
        arrival.install_ticket(self.ticket)

    async def keep_objects(self, references: Mapping[str, str]) -> None:
        snapshots = self.checkpoints.snapshots
        prefix = f"{snapshots.namespace}/{self.ticket.slug}"
        updates = snapshots.input(
            f"update {prefix}/{name} {target}\n" for name, target in references.items()
        )
        # `sync_all` syncs all of them at once
        config = (*snapshots.references.config, "core.fsync=none")
        git = structs.replace(snapshots.references, config=config)
        await git("update-ref", "--stdin", stdin=updates)


def _is_never_sent(path: str, left_out: Collection[str]) -> bool:
    return is_secret_path(path) or name_in_json(path) in left_out


def _is_named_as_settings(path: str) -> bool:
    return path.partition("/")[0].casefold() == _SETTINGS


async def bundle(git: Git, have: Sequence[str], target: Path) -> None:
    """Write the objects of the commit at `OUT` that the receiver lacks. `git` is that
    of a private repository. Raises `GitUnusable`.
    """
    exclusions = [f"^{commit}" for commit in have]
    await git("bundle", "create", "--quiet", str(target), OUT, *exclusions)
