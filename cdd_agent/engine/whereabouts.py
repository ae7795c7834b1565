"""The place of a travelling run, as this copy of the project knows it.

A private file in the run's record. A run that never travelled has none, and is here.
"""

from __future__ import annotations

import hashlib
import platform
import secrets
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from msgspec import field

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import NotRead, create_exclusive, read_bytes, remove
from cdd_agent.files.json_file import JsonFile, Moment
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.user_folders import state_folder
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.store import Ticket

MARGIN = timedelta(minutes=5)
"""Largest expected error of a computer's clock."""
CAME_BACK = "cluster.json"
"""File in a run's record: files may have come back from another machine."""
_NAME, _OWN_TREE = "whereabouts.json", "tree.json"
TREE = "tree"
"""The folder of a run's separate tree, in its record."""


class RunElsewhere(BadInput):
    """The run must not continue in this copy of the project."""

    refusal = Refusal.RUN_ELSEWHERE


class Phase(StrEnum):
    HERE = "here"
    """Pulled, with this copy's lease."""
    LEAVING = "leaving"
    """A push began, and may have arrived."""
    AWAY = "away"
    """Pushed."""
    ARRIVING = "arriving"
    """A pull began. Files may be written in part."""


class Whereabouts(JsonFile, frozen=True):
    """This copy's knowledge of a travelling run."""

    phase: Phase
    remote: str
    """Name or address at the last push or pull."""
    holder: str
    """This copy's id at that time, see `copy_id`."""
    tip: str | None
    """The last known commit of the run's reference."""
    content: str | None = None
    """The commit with this copy's version of the run; while leaving, the commit that
    was sent.
    """
    until: Moment | None = None
    """The end of this copy's lease."""
    project: str | None = None
    """Tree of the project's files at the last push or pull."""
    project_form: int = 1
    """The tree's form, as in `Checkpoint`."""
    left_out: tuple[str, ...] = ()
    """Files, from the root, that did not travel with the last push."""
    ticket: dict[str, str] = field(default_factory=dict)
    """Name → digest of the ticket's files at the last push or pull."""

    @property
    def shown(self) -> str:
        """The remote without a password."""
        return Redactor().redact(self.remote)

    def expect_here(self, slug: str, holder: str, now: datetime) -> None:
        """Raise `RunElsewhere` if the run must not continue here."""
        take = f"Take it back with `cdd pull {slug} {self.shown}`."
        match self.phase:
            case Phase.AWAY:
                raise RunElsewhere(
                    f"{slug} was pushed to {self.shown}, so it no longer runs here",
                    hint=take,
                )
            case Phase.LEAVING:
                raise RunElsewhere(
                    f"A push of {slug} to {self.shown} was interrupted. It may"
                    " have arrived",
                    hint=f"Finish it with `cdd push {slug} {self.shown}`, or take it"
                    f" back with `cdd pull {slug} {self.shown}`.",
                )
            case Phase.ARRIVING:
                raise RunElsewhere(
                    f"A pull of {slug} from {self.shown} was interrupted",
                    hint=f"Finish it with `cdd pull {slug} {self.shown}`.",
                )
        if self.holder != holder:
            raise RunElsewhere(
                f"Another copy of this project has pulled {slug}; this folder was"
                " copied from it",
                hint="Continue there. If that copy no longer exists: `cdd pull"
                f" {slug} {self.shown} --take-over`.",
            )
        if self.until is None or now > self.until - MARGIN:
            since = "the beginning"
            if self.until is not None:
                since = f"{self.until.astimezone():%Y-%m-%d %H:%M}"
            raise RunElsewhere(
                f"The lease of {slug} ended at {since}, and another machine may"
                " have taken it",
                hint=f"Take it again with `cdd pull {slug} {self.shown}`.",
            )


class OwnTreeMade(JsonFile, frozen=True):
    """A run's separate tree, until it has landed."""

    branch: str
    base: str
    prefix: str = ""
    """The project's folder in the repository; empty for the top folder."""
    is_made: bool = False
    landing: str | None = None
    """The commit that the user's branch moves to."""
    landing_of: str | None = None
    """The commit of the run's branch that `landing` contains."""

    def keep(self, record: Path) -> None:
        self.save(record / _OWN_TREE)


def load_own_tree(record: Path) -> OwnTreeMade | None:
    """None if the run has no separate tree. Raises `Damaged`."""
    return OwnTreeMade.load(record / _OWN_TREE)


def forget_own_tree(record: Path) -> None:
    remove(record / _OWN_TREE)


def in_its_tree(ticket: Ticket) -> Ticket:
    """Return the ticket in the run's separate tree, if any, with record and state below
    its `root`. Raises `Damaged`.
    """
    record = ticket.record
    made = load_own_tree(record)
    if made is None:
        return ticket
    root = record / TREE / made.prefix
    ticket_in_tree = ticket.at(root)
    return ticket_in_tree if ticket_in_tree.plan_path.exists() else ticket


def where_in_short(record: Path) -> str:
    """Return where a run continues, for a list; empty if in the user's files. Raises
    `Damaged`.
    """
    if load_own_tree(record) is not None:
        return "in its own tree"
    whereabouts = load_whereabouts(record)
    if whereabouts is None or whereabouts.phase is Phase.HERE:
        return ""
    if whereabouts.phase is Phase.ARRIVING:
        return f"half pulled from {whereabouts.shown}"
    return f"pushed to {whereabouts.shown}"


def how_to_hand_back(record: Path) -> str:
    """Return how to let others take a pulled run; empty if they already can."""
    whereabouts = load_whereabouts(record)
    if (
        whereabouts is None
        or whereabouts.phase is not Phase.HERE
        or whereabouts.until is None
    ):
        return ""
    until = f"{whereabouts.until.astimezone():%H:%M}"
    return (
        f"This copy holds {record.name} until {until}. Release it with `cdd push"
        f" {record.name}`."
    )


def load_whereabouts(record: Path) -> Whereabouts | None:
    """None if the run never travelled. Raises `Damaged`."""
    return Whereabouts.load(record / _NAME)


def expect_here(root: Path, record: Path, now: datetime) -> None:
    """Raise `RunElsewhere` if the run was pushed, its lease is over, or it has a
    separate tree.
    """
    slug = record.name
    tree = load_own_tree(record)
    if tree is not None:
        raise RunElsewhere(
            f"{slug} has its own tree on the branch {tree.branch}",
            hint=f"Continue there with `cdd exec {slug} --worktree`. When all"
            f" steps are done, merge it with `cdd land {slug}`.",
        )
    whereabouts = load_whereabouts(record)
    if whereabouts is not None:
        whereabouts.expect_here(slug, copy_id(root), now)


def expect_arrived(record: Path) -> None:
    """Raise `RunElsewhere` after an interrupted pull: files may be written in part."""
    whereabouts = load_whereabouts(record)
    if whereabouts is not None and whereabouts.phase is Phase.ARRIVING:
        whereabouts.expect_here(record.name, whereabouts.holder, datetime.now(UTC))


def save_whereabouts(record: Path, whereabouts: Whereabouts | None) -> None:
    """Raises `BadInput` if the disk refuses."""
    if whereabouts is None:
        remove(record / _NAME)
    else:
        whereabouts.save(record / _NAME)


def copy_id(root: Path) -> str:
    """Return this copy's id for leases, unique to folder and machine. Raises
    `BadInput`.
    """
    machine = _machine_id(root).decode(errors="replace")
    return hashlib.sha256(
        f"{machine}\0{platform.node()}\0{root}".encode(errors="surrogateescape")
    ).hexdigest()[:20]


def _machine_id(root: Path) -> bytes:
    """Return this machine's random id, created on first use.

    It is in the user's state folder or, if not writable, with the project's runs.
    Raises `BadInput` if neither is writable.
    """
    files = [root / ".cdd" / "runs" / "machine"]
    folder = state_folder()
    if folder is not None:
        files.insert(0, folder / "machine")
    for file in files:
        with suppress(NotRead):
            saved = read_bytes(file)
            if saved:
                return saved
    *at_home, in_project = files
    new = secrets.token_hex(16).encode()
    for file in at_home:
        with suppress(BadInput):
            return _create_once(file, new)
    return _create_once(in_project, new)


def _create_once(file: Path, data: bytes) -> bytes:
    """Return the content: `data`, unless another process was faster."""
    with suppress(FileExistsError):
        create_exclusive(file, data, 0o600)
    return read_bytes(file) or b""
