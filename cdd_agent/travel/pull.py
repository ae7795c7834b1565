"""Pull a run. It is validated as a whole before the lease is taken. Then the record
marks it as arriving, and it is installed. The next pull finishes a killed one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace

from cdd_agent.engine.named_files import named
from cdd_agent.engine.whereabouts import (
    Phase,
    RunElsewhere,
    Whereabouts,
    save_whereabouts,
)
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.files.atomic import digest, read_bytes, remove, sync_all, write_atomic
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.diff import Change, read_raw
from cdd_agent.git.objects import find_objects
from cdd_agent.git.restore import held
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import in_thread
from cdd_agent.travel.arrival import Arrival
from cdd_agent.travel.bundles import FOUND
from cdd_agent.travel.manifest import (
    LARGEST_MANIFEST,
    MANIFEST,
    PROJECT,
    TICKET_TEXTS,
    Manifest,
)
from cdd_agent.travel.transfer import TIP, Connection, Travel, show_path


async def pull(
    run: Travel, remote: str | None, *, force: bool = False, replace: bool = False
) -> None:
    """Fetch the run from a remote; afterwards this copy holds it.

    `force`: even if another copy's lease has not ended. `replace`: rename the record of
    another run of the ticket. Raises `CddError`; then nothing was changed, or the pull
    must be repeated.
    """
    slug = run.ticket.slug
    async with run.connect(remote) as connection:
        tip = await connection.reference.fetch()
        if tip is None:
            shown = connection.reference.remote.address.shown
            raise BadInput(
                f"{shown} has no run of {slug}",
                hint=(
                    "A pull needs the whole slug. If that is right, push the run there"
                    f" first: `cdd push {slug}`."
                ),
                refusal=Refusal.NOTHING_TO_MOVE,
            )
        if await _has_content(connection, tip):
            here = await _take_back(connection, tip, force=force)
        else:
            if not replace:
                await _expect_replaceable(connection, tip)
            here = await _receive(connection, tip, force=force, replace_run=replace)
    until = f"{here.until.astimezone():%H:%M}" if here.until else ""
    text = (
        f"Pulled {slug}. This copy holds it until {until}. To resume it, run `cdd exec"
        f" {slug}`, which also renews that time."
    )
    run.emit(Notice(text, Tone.GOOD, kind=NoticeKind.RUN_MOVED))


async def _has_content(connection: Connection, tip: str) -> bool:
    """True if this copy has the content of a commit, or a later one. Each push has a
    different manifest.
    """
    whereabouts, reference = connection.whereabouts, connection.reference
    if whereabouts is None or whereabouts.phase is Phase.ARRIVING:
        return False
    pushed = await reference.read_file(tip, MANIFEST, LARGEST_MANIFEST)
    if pushed is None:
        return False
    commits = [whereabouts.content]
    if whereabouts.phase is Phase.LEAVING:
        commits.append(whereabouts.tip)
    for commit in filter(None, commits):
        if await reference.read_file(commit, MANIFEST, LARGEST_MANIFEST) == pushed:
            return True
    return False


async def _take_back(connection: Connection, tip: str, *, force: bool) -> Whereabouts:
    whereabouts = connection.whereabouts
    assert whereabouts is not None, "it has the content"
    new, lease = await connection.claim.take(tip, force=force)
    connection.reference.accept()
    here = replace(
        whereabouts,
        phase=Phase.HERE,
        remote=connection.remote,
        holder=connection.claim.holder,
        tip=new,
        until=lease.until,
    )
    save_whereabouts(connection.run.record.folder, here)
    return here


async def _expect_replaceable(connection: Connection, tip: str) -> None:
    """Raise `RunElsewhere` if a pull would replace a run that exists only here."""
    run, whereabouts, reference = (
        connection.run,
        connection.whereabouts,
        connection.reference,
    )
    if whereabouts is None:
        if not run.ticket.state_path.exists() and not run.record.state.exists():
            return
        why = "this copy has a run of it that was never pushed"
    else:
        if whereabouts.phase is Phase.ARRIVING:
            return
        is_continued_here = whereabouts.phase is Phase.HERE
        if not is_continued_here and whereabouts.content:
            words = ("merge-base", "--is-ancestor", whereabouts.content, tip)
            answer = await reference.git(*words, codes=(0, 1, 128))
            if answer.return_code == 0:
                return
        why = "it was continued both here and elsewhere"
    raise RunElsewhere(
        f"{run.ticket.slug} was not pulled: {why}",
        hint=(
            "To use the remote's run, pull with `--replace`; the run here is kept"
            " in its record. To use the run here, run `cdd push --take-over`."
        ),
    )


async def _receive(
    connection: Connection, tip: str, *, force: bool, replace_run: bool
) -> Whereabouts:
    run, reference, whereabouts = (
        connection.run,
        connection.reference,
        connection.whereabouts,
    )
    folder = run.record.folder
    arrival = await Arrival.read(reference, tip, folder / "arriving")
    try:
        manifest = arrival.manifest
        here = connection.here
        current = await here.checkpoints.take(FOUND)
        reference.accept()  # nothing refers to the objects yet
        only_here = whereabouts.left_out if whereabouts else ()
        changes = await here.list_changes(manifest, current, only_here)
        await _expect_no_edits(connection, manifest, current, changes)
        await _expect_same_ticket(connection, arrival)
        new, lease = await connection.claim.take(tip, force=force)
        arriving = replace(
            whereabouts or connection.describe(Phase.ARRIVING, manifest),
            phase=Phase.ARRIVING,
            remote=connection.remote,
            holder=connection.claim.holder,
            tip=new,
            content=tip,
            until=lease.until,
        )
        save_whereabouts(folder, arriving)
        if replace_run:
            _set_run_aside(run)
        await here.install(arrival, changes, {TIP: new})
        await in_thread(sync_all, name="sync")
        pulled = replace(
            connection.describe(Phase.HERE, manifest),
            tip=new,
            content=tip,
            until=lease.until,
            left_out=arriving.left_out,
        )
        save_whereabouts(folder, pulled)
    finally:
        arrival.discard()
    text = (
        f"The run was pulled from {pulled.shown}, where {manifest.host} had pushed it."
    )
    notice = Notice(text, kind=NoticeKind.RUN_MOVED)
    run.record.log.add(run.record.redactor.redacted(notice))
    _report_missing(run, manifest)
    return pulled


def _set_run_aside(run: Travel) -> None:
    earlier = run.record.start_over()
    state = run.ticket.state_path
    if state.exists():
        write_atomic(earlier / state.name, state.read_bytes())
        remove(state)


def _report_missing(run: Travel, manifest: Manifest) -> None:
    if manifest.left_out:
        paths = named([show_path(name) for name in manifest.left_out])
        run.report_not_sent(f"Not included, because they hold secrets: {paths}")
    if manifest.stayed:
        paths = named([show_path(name) for name in manifest.stayed])
        run.report_not_sent(
            f"Not included: changes of steps in {paths}. `undo` does not restore these"
            " files here"
        )


async def _expect_no_edits(
    connection: Connection,
    manifest: Manifest,
    current: Checkpoint,
    changes: Sequence[Change],
) -> None:
    """Raise `BadInput` if a file to replace equals neither its version in the run's
    commit, nor that of the last push or pull.
    """
    snapshots, whereabouts = (
        connection.here.checkpoints.snapshots,
        connection.whereabouts,
    )

    async def list_differing(tree: str) -> set[str] | None:
        """Return the files that differ from a tree; None if the tree is unknown."""
        listed = await snapshots.changes(current.files, tree)
        if listed is None:
            return None
        return {change.path for change in read_raw(os.fsdecode(listed))}

    edited = {change.path for change in changes}
    if edited:
        committed = None
        if manifest.head:
            prefix = snapshots.prefix.removesuffix("/")
            committed = await list_differing(f"{manifest.head}:{prefix}")
        if committed is None:
            committed = {change.path for change in changes if change.after is not None}
        edited &= committed
    if edited and whereabouts is not None and whereabouts.project is not None:
        travelled = Checkpoint(PROJECT, whereabouts.project, whereabouts.project_form)
        differing = await list_differing(travelled.files)
        if differing is not None:
            edited &= differing
    if edited:
        raise BadInput(
            "These files differ from the run and from its commit:"
            f" {named(sorted(edited))}",
            hint=_how_to_clear(manifest, connection.reference.head),
            refusal=Refusal.TREE_DIFFERS,
        )


def _how_to_clear(manifest: Manifest, head: str | None) -> str:
    if manifest.head is None or manifest.head == head:
        return (
            "Move them to another folder, or run `git stash --include-untracked`."
            " Then pull again."
        )
    commit = manifest.head[:12]
    return (
        f"The run is at the commit {commit}. Run `git checkout {commit}`, then pull"
        " again."
    )


async def _expect_same_ticket(connection: Connection, arrival: Arrival) -> None:
    """Raise `BadInput` for a spec or plan that equals neither the arriving one, nor
    that in the run's commit, nor that of the last push or pull.
    """
    ticket = connection.run.ticket
    for name in TICKET_TEXTS:
        place = ticket.folder / name
        ticket.refuse_to_write(place)
        content, arriving = read_bytes(place), arrival.ticket_file(name)
        if content is None or arriving is None or content == arriving:
            continue
        travelled = connection.whereabouts.ticket if connection.whereabouts else {}
        if travelled.get(name) == digest(content):
            continue
        if await _is_committed(connection, arrival.manifest, name, content):
            continue
        raise BadInput(
            f"{ticket.shown(place)} differs from the run's version",
            hint="Move your file to another folder, then pull again.",
            refusal=Refusal.TREE_DIFFERS,
        )


async def _is_committed(
    connection: Connection, manifest: Manifest, name: str, content: bytes
) -> bool:
    """True if the run's commit has this content of a ticket's file."""
    repository, reference = connection.repository, connection.reference
    if repository is None or manifest.head is None:
        return False
    place = connection.run.ticket.folder / name
    path = place.relative_to(repository.top).as_posix()
    names = [f"{manifest.head}:{path}"]
    (committed,) = await find_objects(reference.git, reference.folder, names)
    return committed is not None and committed.id == held(content, 0).content
