"""The whereabouts of a run that travels between copies of a project, as this copy knows
them.

They are a file in the run's record, private to this copy. A run that never travelled
has no such file, and is here.
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
"""The largest error of a computer's clock that is expected."""
CAME_BACK = "cluster.json"
"""The file in a run's record that says that files may have come back from another
machine.
"""
_NAME, _OWN_TREE = "whereabouts.json", "tree.json"
TREE = "tree"
"""The folder of a run's own tree, in its record."""


class RunElsewhere(BadInput):
    """The run must not continue in this copy of the project."""

    refusal = Refusal.RUN_ELSEWHERE


class Phase(StrEnum):
    HERE = "here"
    """It was pulled, and this copy has its lease."""
    LEAVING = "leaving"
    """A push began and may have arrived."""
    AWAY = "away"
    """It was pushed."""
    ARRIVING = "arriving"
    """A pull began. Files of the run and the project may be written in part."""


class Whereabouts(JsonFile, frozen=True):
    """What this copy knows of a run that travels."""

    phase: Phase
    remote: str
    """The remote's name or address at the last push or pull."""
    holder: str
    """The id of this copy at that time, see `copy_id`."""
    tip: str | None
    """The last known commit of the run's reference."""
    content: str | None = None
    """The commit with this copy's version of the run. While it is leaving: the commit
    that was sent.
    """
    until: Moment | None = None
    """The end of this copy's lease."""
    project: str | None = None
    """The tree of the project's files at the last push or pull."""
    project_form: int = 1
    """The form of that tree, as in `Checkpoint`."""
    left_out: tuple[str, ...] = ()
    """Files of this copy that did not travel with the last push, from the root."""
    ticket: dict[str, str] = field(default_factory=dict)
    """The digests of the ticket's files at the last push or pull, by name."""

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
    """The separate tree of a run. It exists until the run has landed."""

    branch: str
    base: str
    prefix: str = ""
    """The project's folder in the repository; empty if it is the top folder."""
    is_made: bool = False
    landing: str | None = None
    """The commit that the user's branch moves to."""
    landing_of: str | None = None
    """The commit of the run's branch that `landing` contains."""

    def keep(self, record: Path) -> None:
        self.save(record / _OWN_TREE)


def load_own_tree(record: Path) -> OwnTreeMade | None:
    """Load the separate tree of the run with this record; None if it has none. Raises
    `Damaged`.
    """
    return OwnTreeMade.load(record / _OWN_TREE)


def forget_own_tree(record: Path) -> None:
    remove(record / _OWN_TREE)


def in_its_tree(ticket: Ticket) -> Ticket:
    """Return the ticket in the run's separate tree, or the given one if there is no
    such tree. The run's record and state are below its `root`. Raises `Damaged`.
    """
    record = ticket.record
    made = load_own_tree(record)
    if made is None:
        return ticket
    root = record / TREE / made.prefix
    ticket_in_tree = ticket.at(root)
    return ticket_in_tree if ticket_in_tree.plan_path.exists() else ticket


def where_in_short(record: Path) -> str:
    """Return where a run continues, in a few words for a list; empty if it does so in
    the user's files. Raises `Damaged`.
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
    """Return how to let others take a run that was pulled; empty if they can take it
    already.
    """
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
    """Load the whereabouts of the run with this record; None if it never travelled.
    Raises `Damaged`.
    """
    return Whereabouts.load(record / _NAME)


def expect_here(root: Path, record: Path, now: datetime) -> None:
    """Raise `RunElsewhere` if the run with this record was pushed, its lease is over,
    or it has a separate tree.
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
    """Raise `RunElsewhere` if a pull of the run was interrupted: its files may be
    written in part.
    """
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
    """Return the id of this copy of a project in leases. Each folder of each machine
    has a different one. Raises `BadInput`.
    """
    machine = _machine_id(root).decode(errors="replace")
    return hashlib.sha256(
        f"{machine}\0{platform.node()}\0{root}".encode(errors="surrogateescape")
    ).hexdigest()[:20]


def _machine_id(root: Path) -> bytes:
    """Return a random id of this machine, created on first use.

    It is in the user's state folder. A user without a writable home has it with the
    project's runs. Raises `BadInput` if neither folder is writable.
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
    """Return the file's content, which is `data` unless another process was faster."""
    with suppress(FileExistsError):
        create_exclusive(file, data, 0o600)
    return read_bytes(file) or b""
