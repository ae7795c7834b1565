"""Bringing a run back into its worktree from the machine that carried it out. The
result is first kept as a commit in the repository, so that it survives the end of this
process; a file next to the tree names it. It is installed when the run ends or stops,
or by the next process that uses the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from cdd_agent.engine.ledger import STORE
from cdd_agent.engine.lock import locked
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import CAME_BACK
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import remove, sync_all
from cdd_agent.files.json_file import JsonFile, stamp
from cdd_agent.git.checkpoint import Checkpoints
from cdd_agent.git.command import Git
from cdd_agent.git.repository import repository_of
from cdd_agent.threads import in_thread
from cdd_agent.travel.arrival import Arrival
from cdd_agent.travel.bundles import FOUND, RunHere
from cdd_agent.travel.own_tree import OwnTree
from cdd_agent.travel.reference import RunReference
from cdd_agent.travel.transfer import utc_now


class CameBack(JsonFile, frozen=True):
    """The result of a run that its worktree does not have yet."""

    attempt: int = 0
    """The number of the last machine that took the run."""
    tip: str | None = None
    """The commit with the run; None: its own tree has the latest."""
    project: str | None = None
    """The tree of the files that its own tree had when it was sent."""
    arriving: bool = False
    """It is being put into the tree."""

    @classmethod
    def of(cls, record: Path) -> CameBack:
        """Load the result for the run whose record is in this folder of the user's
        tree. Raises `Damaged`.
        """
        return cls.load(record / CAME_BACK) or cls()

    def keep(self, record: Path) -> None:
        self.save(record / CAME_BACK)


def reference_of(own: OwnTree) -> str:
    """Keeps what came back."""
    return f"refs/cdd/cluster/{own.record.slug}"


async def opened(own: OwnTree, bundle: Path) -> RunReference:
    """Make a reference for bundles that arrive at one place. Raises `CddError`."""
    root = own.record.root
    where = root, own.record.folder, own.ticket.slug, str(bundle)
    return await RunReference.open(*where, utc_now, await repository_of(root))


async def in_its_own_tree(own: OwnTree, leave_out: Sequence[str]) -> RunHere:
    """The run as its own tree has it. Raises `CddError`."""
    record = RunRecord.of(own.root, own.ticket.slug, own.record.redactor)
    record.prepare()
    checkpoints = await Checkpoints.open(
        own.root, record.folder / STORE, own.ticket.slug, leave_out
    )
    return RunHere(own.ticket_in_it, record, checkpoints)


async def put_what_came_back(own: OwnTree, leave_out: Sequence[str]) -> None:
    """Install the result, if there is one, in the run's worktree. Raises `CddError`,
    also if another process works on the run.
    """
    if CameBack.of(own.record.folder).tip is None:
        return
    with ExitStack() as stack:
        stack.enter_context(locked(own.record.folder, own.record.slug))
        here = await in_its_own_tree(own, leave_out)
        stack.enter_context(locked(here.record.folder, own.ticket.slug))
        await put_in_place(
            own, here, await opened(own, own.record.folder / "coming.bundle")
        )


async def put_in_place(own: OwnTree, here: RunHere, reference: RunReference) -> None:
    """The same, by who has the run's locks. To do it again is harmless: what it finds
    then is kept at `refs/cdd/…/travel/found-TIME`.
    """
    folder = own.record.folder
    known = CameBack.of(folder)
    if known.tip is None:
        return
    arrival = await Arrival.read(reference, known.tip, here.record.folder / "arriving")
    try:
        head, git = arrival.manifest.head or "", Git(own.place, noted_in=folder)
        if known.arriving:  # by a git that has been ended since, or whose power was cut
            lock = await git("rev-parse", "--git-path", "index.lock")
            remove(own.place / lock.stdout.rstrip("\n"))
        base = str(await own.trees.commit_of(f"refs/heads/{own.branch}"))
        is_ahead = (
            await git("merge-base", "--is-ancestor", base, head, codes=(0, 1, 128))
        ).return_code == 0
        # If an earlier attempt was killed, files are mixed and may be edited: what is
        # there stays in a checkpoint.
        found = await here.checkpoints.take(
            f"{FOUND}-{stamp()}" if known.arriving else FOUND
        )
        if not known.arriving and (not is_ahead or found.id != known.project):
            raise BadInput(
                f"{own.place} was changed while a worker carried out the run",
                hint=(
                    f"The worker's result is kept at {reference_of(own)}. Move your"
                    " changes to another folder, then try again."
                ),
            )
        replace(known, arriving=True).keep(folder)
        await git("reset", "--quiet", "--hard", head)
        await here.put_in_place(arrival)
        await in_thread(sync_all, name="sync")
    finally:
        arrival.discard()
    CameBack(attempt=known.attempt).keep(folder)
    await own.trees.git("update-ref", "-d", reference_of(own))
