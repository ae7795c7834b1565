"""Keeps a ticket's run after its folder was renamed.

State and record still have the former name. The first command that changes the run
renames, in this order:

1. lock the record (the lock moves with it);
2. rename the checkpoints' references;
3. rename the record's folder;
4. write the name into the ticket's state, which completes the rename;
5. write it into the record's copy.

Until 4, `Ticket.record` finds the record under either name. A kill loses nothing, and
the next start does the rest. Checkpoints are found by id, so 2 and 3 may be apart.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from cdd_agent.engine.ledger import STORE, OpenCheckpoints
from cdd_agent.engine.load_state import rename_copy
from cdd_agent.engine.lock import locked
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import (
    CAME_BACK,
    TREE,
    load_own_tree,
    load_whereabouts,
)
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.files.atomic import read_bytes, remove, sync_folder
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.redaction import Redactor
from cdd_agent.threads import waited_for
from cdd_agent.tickets.state import StateUnreadable
from cdd_agent.tickets.state_file import read_state, save_state
from cdd_agent.tickets.store import Ticket, TicketStore

_OF_LOCK = {"lock", "holder.json"}


def follow_rename(
    ticket: Ticket, redactor: Redactor, open_checkpoints: OpenCheckpoints
) -> tuple[Notice, ...]:
    """Rename the run of a renamed ticket. Returns a notice, if anything was done.

    A run that travels or has a separate tree keeps its name, by which others know it.
    Raises `BadInput` if another run has the new name, or another process works on the
    ticket.
    """
    former = ticket.former_slug
    if not former or _is_known_elsewhere(ticket.record):
        return ()
    new = RunRecord.of(ticket.root, ticket.slug, redactor)
    old = RunRecord.of(ticket.root, former, redactor)
    _expect_free(new, old)
    if not old.folder.exists():
        new.prepare()
    with locked(ticket.record, ticket.slug):
        if ticket.former_slug != former:
            # Another process was faster.
            return ()
        try:
            state = read_state(ticket)
        except StateUnreadable:
            # Opening the run rebuilds the state, or renames it.
            return ()
        assert state is not None
        if old.folder.exists():
            waited_for(_rename_checkpoints(old, new.slug, open_checkpoints))
            _rename_record(old, new)
        # Separately: the copy may be older, or torn.
        save_state(state, ticket.state_path)
        rename_copy(new)
        text = f"{former} was renamed to {ticket.slug}. Its run continues."
        notice = Notice(text, kind=NoticeKind.TICKET_RENAMED)
        new.log.add(redactor.redacted(notice))
        # The lock's path has the former name.
        remove(new.folder / "holder.json")
    return (notice,)


def expect_no_tree_of_former_name(ticket: Ticket) -> None:
    """Raise `BadInput` if a renamed ticket seems to have a run in a separate tree,
    which no state here leads to.
    """
    plan = read_bytes(ticket.plan_path)
    record = RunRecord(ticket.root, ticket.record)
    has_run = ticket.state_path.exists() or record.state.exists()
    if plan is None or has_run or load_own_tree(record.folder) is not None:
        return
    slugs = {
        other.slug for other in TicketStore(ticket.root, ticket.tickets_dir).list()
    }
    for file in sorted(record.folder.parent.glob("*/tree.json")):
        name = file.parent.name
        made = load_own_tree(file.parent)
        if name in slugs or made is None:
            continue
        tree = TicketStore(file.parent / TREE / made.prefix, ticket.tickets_dir)
        for tree_of_ticket in tree.list():
            if (
                tree_of_ticket.slug == name
                and read_bytes(tree_of_ticket.plan_path) == plan
            ):
                shown = file.relative_to(ticket.root).as_posix()
                raise BadInput(
                    f"{ticket.slug} has the plan of {name}, which is missing. The run"
                    f" of {name} has its own tree on the branch {made.branch}",
                    hint=f"Rename the folder back to {name}, then merge the run"
                    f" with `cdd land {name}`. To start another run instead,"
                    f" delete {shown}.",
                    refusal=Refusal.RUN_ELSEWHERE,
                )


def _is_known_elsewhere(record: Path) -> bool:
    return (
        load_own_tree(record) is not None
        or load_whereabouts(record) is not None
        or (record / CAME_BACK).exists()
    )


def _expect_free(new: RunRecord, old: RunRecord) -> None:
    """Raise `BadInput` if another run's record has the new name."""
    if not new.folder.exists() or not old.folder.exists():
        # A killed process has moved the old one here.
        return
    # Some disks have one folder for both names.
    is_same = old.folder.samefile(new.folder)
    if not is_same and {path.name for path in new.folder.iterdir()} - _OF_LOCK:
        shown = new.folder.relative_to(new.root).as_posix()
        raise BadInput(
            f"{old.slug} was renamed to {new.slug}, but {shown} has the record of"
            " another run with that name",
            hint=f"Rename the ticket's folder back to {old.slug} or to another"
            f" name. To continue the run of {old.slug} here, move {shown}"
            " away.",
            refusal=Refusal.RUN_ELSEWHERE,
        )


async def _rename_checkpoints(
    old: RunRecord, name: str, open_checkpoints: OpenCheckpoints
) -> None:
    if not (old.folder / STORE).exists():
        return
    checkpoints = await open_checkpoints(old.root, old.folder / STORE, old.slug, ())
    await checkpoints.rename(name)


def _rename_record(old: RunRecord, new: RunRecord) -> None:
    """The caller holds the old record's lock."""
    is_there = new.folder.exists() and not old.folder.samefile(new.folder)
    with locked(new.folder, new.slug) if is_there else nullcontext():
        try:
            if is_there:
                for name in _OF_LOCK:
                    (new.folder / name).unlink(missing_ok=True)
                new.folder.rmdir()
            old.folder.rename(new.folder)
            sync_folder(new.folder.parent)
        except OSError as error:
            raise BadInput(
                f"{old.folder} could not be renamed to {new.slug}:"
                f" {error.strerror or error}",
                refusal=Refusal.DISK,
            ) from error
