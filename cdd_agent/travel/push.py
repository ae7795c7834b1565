"""Push a run. First cdd lists what must not leave this computer. Then the record marks
the run as leaving, and the reference moves. The next push finishes a killed one.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from cdd_agent.engine.ledger import Ledger
from cdd_agent.engine.old_records import OldRecordUnreadable, take_over
from cdd_agent.engine.whereabouts import Phase
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.git.diff import read_raw
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.state import StateUnreadable
from cdd_agent.tickets.state_file import read_state
from cdd_agent.travel.bundles import RunHere
from cdd_agent.travel.manifest import PROJECT, Manifest
from cdd_agent.travel.packing import PackedRun
from cdd_agent.travel.secret_files import Reason
from cdd_agent.travel.transfer import TIP, Connection, Travel, show_path


async def push(
    run: Travel, remote: str | None, *, force: bool = False, dry_run: bool = False
) -> None:
    """Send the run to a remote; afterwards no copy holds it.

    `force`: even if another copy holds it. `dry_run`: contact no remote, and only list
    what would be sent. Raises `CddError`.
    """
    slug = run.ticket.slug
    if not run.ticket.spec_path.exists() and not run.ticket.plan_path.exists():
        raise BadInput(
            f"{slug} has neither a spec nor a plan, so there is nothing to push",
            refusal=Refusal.NOTHING_TO_MOVE,
        )
    async with run.connect(remote) as connection:
        whereabouts, claim = connection.whereabouts, connection.claim
        if whereabouts is not None and whereabouts.phase is Phase.ARRIVING:
            whereabouts.expect_here(slug, whereabouts.holder, run.now())
        tip = None
        if not dry_run:
            tip = await claim.find_replaceable(whereabouts, force=force)
        await _update_old_records(run)
        here = connection.here
        project = await here.checkpoints.take(PROJECT)
        packed = await here.start_packing(connection.reference.head).pack(project)
        _report_not_sent(run, packed)
        if dry_run:
            await _report_sent(connection, packed)
            if whereabouts is None:
                await here.checkpoints.forget("travel")
            return
        if tip is not None:
            await connection.reference.bring(tip)
        commit = await packed.commit(here.checkpoints, tip)
        await here.keep_objects({TIP: commit})
        leaving = replace(
            connection.describe(Phase.LEAVING, packed.manifest),
            tip=tip,
            content=commit,
            left_out=packed.manifest.left_out,
        )
        pushed = await claim.hand_over(whereabouts, leaving)
    text = (
        f"Pushed {slug} to {pushed.shown}. To continue it, here or in another copy, run"
        f" `cdd pull {slug}`."
    )
    run.emit(Notice(text, Tone.GOOD, kind=NoticeKind.RUN_MOVED))


async def _update_old_records(run: Travel) -> None:
    """Write the ledgers of a run that version 0.1 began, because its old records are
    not sent. Raises `OldRecordUnreadable`.
    """
    try:
        state = read_state(run.ticket)
    except StateUnreadable:
        return
    if state is None:
        return
    refused = await take_over(Ledger(run.record, run.leave_out), state)
    for folder, why in refused.items():
        raise OldRecordUnreadable(str(folder), why)


def _report_not_sent(run: Travel, packed: PackedRun) -> None:
    for reason, paths in _group(packed.left_out).items():
        run.report_not_sent(f"Not sent, because {reason}: {paths}")
    for reason, paths in _group(packed.stayed).items():
        run.report_not_sent(
            f"Changes of steps are not sent, because {reason}: {paths}. `undo` restores"
            " these files only in this copy"
        )


def _group(files: Mapping[str, Reason]) -> dict[Reason, str]:
    groups = dict[Reason, list[str]]()
    for path, reason in sorted(files.items()):
        groups.setdefault(reason, []).append(show_path(path))
    return {reason: ", ".join(paths) for reason, paths in groups.items()}


async def _report_sent(connection: Connection, packed: PackedRun) -> None:
    manifest = packed.manifest
    sizes = [len(one.what) for one in packed.entries if isinstance(one.what, bytes)]
    uncommitted = ", ".join(
        map(show_path, await _list_uncommitted(connection.here, manifest))
    )
    text = (
        f"{manifest.slug} would be sent to {connection.reference.remote.address.shown}:"
        f" {len(sizes)} files of its ticket and record ({sum(sizes) / 1000:,.0f} kB),"
        f" {len(manifest.checkpoints)} checkpoints, and the project's files."
        f" Uncommitted files: {uncommitted or 'none'}."
    )
    connection.run.emit(Notice(text, kind=NoticeKind.SENT))


async def _list_uncommitted(here: RunHere, manifest: Manifest) -> list[str]:
    """Return the files to send that differ from the project's commit."""
    snapshots = here.checkpoints.snapshots
    if manifest.head:
        committed = f"{manifest.head}:{snapshots.prefix.removesuffix('/')}"
        listed = await snapshots.changes(committed, manifest.project)
        if listed is not None:
            changes = read_raw(listed.decode(errors="surrogateescape"))
            return [change.path for change in changes if change.after is not None]
    return sorted(await snapshots.entries(manifest.project) or ())
