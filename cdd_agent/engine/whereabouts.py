"""Where a run is that travels between copies of a project, as far as this copy knows.

It is a file in the run's record, and private to this copy. A run that never travelled
has none, and is here.
"""

from __future__ import annotations

import hashlib
import platform
import secrets
from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from msgspec import field

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import NotRead, create_exclusive, read_bytes, remove
from cdd_agent.files.json_file import JsonFile, Moment
from cdd_agent.redaction import Redactor
from cdd_agent.tickets.store import Ticket
from cdd_agent.user_folders import state_folder

MARGIN = timedelta(minutes=5)
"""By how much the clocks of two machines may differ from the true time."""
CAME_BACK = "cluster.json"
"""Is in the record of a run of which something may have come back from another machine.
"""
_NAME, _OWN_TREE = "whereabouts.json", "tree.json"
TREE = "tree"
"""The folder of a run's own tree, in its record."""


class RunElsewhere(BadInput):
    """The run may not go on in this copy of the project."""


class Phase(StrEnum):
    HERE = "here"
    """It was pulled, and its lease is this copy's."""
    LEAVING = "leaving"
    """A push was begun, and it is not known whether it arrived."""
    AWAY = "away"
    """It was pushed."""
    ARRIVING = "arriving"
    """A pull was begun: files of the run and of the project are on their way to their
    places.
    """


class Whereabouts(JsonFile, frozen=True):
    """This copy's knowledge of a run that travels."""

    phase: Phase
    remote: str
    """As it was named when the run was pushed or pulled."""
    holder: str
    """This copy, as it was then: see `copy_id`."""
    tip: str | None
    """The last commit of the run's reference that this copy knows of."""
    content: str | None = None
    """The commit with the run as this copy has it, or had it when it was pulled. While
    it is leaving: the one sent.
    """
    until: Moment | None = None
    """The end of this copy's lease."""
    project: str | None = None
    """The tree of the project's files as they travelled last."""
    project_form: int = 1
    """The form of that tree, as in `Checkpoint`."""
    left_out: tuple[str, ...] = ()
    """Files of this copy that did not travel when it was pushed, from the root."""
    ticket: dict[str, str] = field(default_factory=dict)
    """The digests of the ticket's files as they travelled last, by name."""

    @property
    def shown(self) -> str:
        """The remote without a password."""
        return Redactor().redact(self.remote)

    def expect_here(self, slug: str, holder: str, now: datetime) -> None:
        """Raises `RunElsewhere` where the run may not go on."""
        take = f"`cdd pull {slug} {self.shown}` takes it"
        match self.phase:
            case Phase.AWAY:
                raise RunElsewhere(
                    f"{slug} was pushed to {self.shown}, and is not here any more",
                    hint=f"{take} back.",
                )
            case Phase.LEAVING:
                raise RunElsewhere(
                    f"A push of {slug} to {self.shown} was interrupted, and may have"
                    " arrived",
                    hint=f"`cdd push {slug} {self.shown}` finishes it; {take} back.",
                )
            case Phase.ARRIVING:
                raise RunElsewhere(
                    f"A pull of {slug} from {self.shown} was interrupted",
                    hint=f"{take} to its end.",
                )
        if self.holder != holder:
            raise RunElsewhere(
                f"{slug} was pulled by another copy of this project, of which this one"
                " was made",
                hint=(
                    "Go on there. If that one is gone:"
                    f" `cdd pull {slug} {self.shown} --take-over`."
                ),
            )
        if self.until is None or now > self.until - MARGIN:
            since = (
                f"{self.until.astimezone():%Y-%m-%d %H:%M}"
                if self.until
                else "the beginning"
            )
            raise RunElsewhere(
                f"The lease of {slug} is over since {since}, and another machine may"
                " have taken it",
                hint=f"{take} anew.",
            )


class OwnTreeMade(JsonFile, frozen=True):
    """That a run has a tree of its own, beside the person's: it is there until it has
    landed.
    """

    branch: str
    base: str
    """The commit that it began at."""
    prefix: str = ""
    """The project's folder in the repository; empty where it is the top."""
    is_made: bool = False
    landing: str | None = None
    """The commit that the person's branch is moved to."""
    landing_of: str | None = None
    """The commit of the run's branch that this has."""

    def keep(self, record: Path) -> None:
        self.save(record / _OWN_TREE)


def load_own_tree(record: Path) -> OwnTreeMade | None:
    """Of the run with its record in this folder. Raises `Damaged`."""
    return OwnTreeMade.load(record / _OWN_TREE)


def forget_own_tree(record: Path) -> None:
    remove(record / _OWN_TREE)


def in_its_tree(ticket: Ticket) -> Ticket:
    """The ticket where its run goes on: in the tree that the run has of its own, or
    else where the person has it. Its record and state are below its `root`. Raises
    `Damaged`.
    """
    record = ticket.record
    made = load_own_tree(record)
    if made is None:
        return ticket
    root = record / TREE / made.prefix
    there = ticket.at(root)
    return there if there.plan_path.exists() else ticket


def where_in_short(record: Path) -> str:
    """Where the run with its record in this folder goes on, for a list; empty where it
    does among the person's own files. Raises `Damaged`.
    """
    if load_own_tree(record) is not None:
        return "in its own tree"
    known = load_whereabouts(record)
    if known is None or known.phase is Phase.HERE:
        return ""
    return (
        f"pushed to {known.shown}"
        if known.phase is not Phase.ARRIVING
        else f"half pulled from {known.shown}"
    )


def how_to_hand_back(record: Path) -> str:
    """For whoever has finished with a run that was pulled, which others cannot take
    yet; else empty.
    """
    known = load_whereabouts(record)
    if known is None or known.phase is not Phase.HERE or known.until is None:
        return ""
    until = f"{known.until.astimezone():%H:%M}"
    return (
        f"{record.name} is held by this copy until {until}; `cdd push {record.name}`"
        " lets others have it."
    )


def load_whereabouts(record: Path) -> Whereabouts | None:
    """Of the run with its record in this folder; None where it never travelled. Raises
    `Damaged`.
    """
    return Whereabouts.load(record / _NAME)


def expect_here(root: Path, record: Path, now: datetime) -> None:
    """Raises `RunElsewhere` where the run with its record in this folder was pushed
    from this copy of the project, or its lease is over, or it has a tree of its own.
    """
    slug = record.name
    if (tree := load_own_tree(record)) is not None:
        raise RunElsewhere(
            f"{slug} has a tree of its own, on the branch {tree.branch}",
            hint=(
                f"`cdd exec {slug} --worktree` goes on there, `cdd land {slug}` brings"
                " it over when all is done."
            ),
        )
    known = load_whereabouts(record)
    if known is not None:
        known.expect_here(slug, copy_id(root), now)


def save_whereabouts(record: Path, whereabouts: Whereabouts | None) -> None:
    """Raises `BadInput` when the disk refuses."""
    if whereabouts is None:
        remove(record / _NAME)
    else:
        whereabouts.save(record / _NAME)


def copy_id(root: Path) -> str:
    """The name of this copy of a project in leases: another folder or machine has
    another one. Raises `BadInput`.
    """
    known = _machine_id(root).decode(errors="replace")
    return hashlib.sha256(
        f"{known}\0{platform.node()}\0{root}".encode(errors="surrogateescape")
    ).hexdigest()[:20]


def _machine_id(root: Path) -> bytes:
    """Return a random id of this machine, created on first use.

    It is in the user's state folder. A user without a writable home has it with the
    project's runs. Raises `BadInput` if neither folder is writable.
    """
    files = [root / ".cdd" / "runs" / "machine"]
    if folder := state_folder():
        files.insert(0, folder / "machine")
    for file in files:
        with suppress(NotRead):
            if known := read_bytes(file):
                return known
    *at_home, in_project = files
    known = secrets.token_hex(16).encode()
    for file in at_home:
        with suppress(BadInput):
            return _create_once(file, known)
    return _create_once(in_project, known)


def _create_once(file: Path, data: bytes) -> bytes:
    """Return the file's content, which is `data` unless another process was faster."""
    with suppress(FileExistsError):
        create_exclusive(file, data, 0o600)
    return read_bytes(file) or b""
