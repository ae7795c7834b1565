"""Bring a run back into its worktree from the machine that carried it out.

The result is first kept as a commit in the repository, so that it survives the end of
this process; a file next to the tree names it. It is installed when the run ends or
stops, or by the next process that uses the tree.
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
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import in_thread
from cdd_agent.travel.arrival import Arrival
from cdd_agent.travel.bundles import FOUND, RunHere
from cdd_agent.travel.own_tree import OwnTree
from cdd_agent.travel.reference import RunReference
from cdd_agent.travel.transfer import utc_now


class CameBack(JsonFile, frozen=True):
    """The result of a run, until its worktree has it."""

    attempt: int = 0
    """The number of the last worker that began."""
    tip: str | None = None
    """The commit with the run; None if its tree has the latest version."""
    project: str | None = None
    """The tree object of the files when the run was sent."""
    arriving: bool = False

    @classmethod
    def of(cls, record: Path) -> CameBack:
        """Load the result of the run with this record in the user's tree. Raises
        `Damaged`.
        """
        return cls.load(record / CAME_BACK) or cls()

    def keep(self, record: Path) -> None:
        self.save(record / CAME_BACK)


def reference_of(own: OwnTree) -> str:
    return f"refs/cdd/cluster/{own.record.slug}"


async def opened(own: OwnTree, bundle: Path) -> RunReference:
    """Make a reference for bundles that arrive at one place. Raises `CddError`."""
    root = own.record.root
    where = root, own.record.folder, own.ticket.slug, str(bundle)
    return await RunReference.open(*where, utc_now, own.repository)


async def in_its_own_tree(own: OwnTree, leave_out: Sequence[str]) -> RunHere:
    """Open the run in its own tree. Raises `CddError`."""
    record = RunRecord.of(own.root, own.ticket.slug, own.record.redactor)
    record.prepare()
    checkpoints = await Checkpoints.open(
        own.root, record.folder / STORE, own.ticket.slug, leave_out
    )
    return RunHere(own.ticket_in_it, record, checkpoints)


async def put_what_came_back(own: OwnTree, leave_out: Sequence[str]) -> None:
    """Install the result, if any, in the run's worktree. Raises `CddError`, also if
    another process works on the run.
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
    """Install the result; the caller has the run's locks. Repeating is harmless: the
    files found are kept at `refs/cdd/…/travel/found-TIME`.
    """
    folder = own.record.folder
    result = CameBack.of(folder)
    if result.tip is None:
        return
    arrival = await Arrival.read(reference, result.tip, here.record.folder / "arriving")
    try:
        if result.arriving:
            await _prepare_to_repeat(own, here)
        else:
            await _expect_unchanged(own, here, arrival.manifest.head or "", result)
        replace(result, arriving=True).keep(folder)
        git = Git(own.place, noted_in=folder)
        await git("reset", "--quiet", "--hard", arrival.manifest.head or "")
        await here.put_in_place(arrival)
        await in_thread(sync_all, name="sync")
    finally:
        arrival.discard()
    CameBack(attempt=result.attempt).keep(folder)
    await own.trees.git("update-ref", "-d", reference_of(own))


async def _prepare_to_repeat(own: OwnTree, here: RunHere) -> None:
    """Keep the files of a killed attempt, which the user may have edited, in a
    checkpoint. Delete the lock of its git.
    """
    git = Git(own.place, noted_in=own.record.folder)
    lock = await git("rev-parse", "--git-path", "index.lock")
    remove(own.place / lock.stdout.rstrip("\n"))
    await here.checkpoints.take(f"{FOUND}-{stamp()}")


async def _expect_unchanged(
    own: OwnTree, here: RunHere, head: str, result: CameBack
) -> None:
    """Raise `BadInput` if the tree changed after it was sent. `head` is the commit of
    the result.
    """
    git = Git(own.place, noted_in=own.record.folder)
    base = str(await own.trees.commit_of(f"refs/heads/{own.branch}"))
    words = ("merge-base", "--is-ancestor", base, head)
    is_ahead = (await git(*words, codes=(0, 1, 128))).return_code == 0
    current = await here.checkpoints.take(FOUND)
    if not is_ahead or current.id != result.project:
        raise BadInput(
            f"{own.place} was changed while a worker carried out the run",
            hint=(
                f"The worker's result is kept at {reference_of(own)}. Move your"
                " changes to another folder, then try again."
            ),
            refusal=Refusal.TREE_DIFFERS,
        )
