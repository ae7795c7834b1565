"""The inspection of the project after a soak: what was promised, step by step."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.crash.views import strays
from tests.soak.lanes import read_state
from tests.soak.processes import Starter
from tests.soak.tickets import Ticket, git
from tests.soak.world import World

RUN_VARIABLE = "SOAK_RUN"
"""The environment variable that all processes of a soak have."""
_UNFINISHED = ("running-*", "going-back.json", "holder.json", "side", "tree", "landing")
"""Files and folders that no finished run has."""
_CHECKPOINTS = "refs/cdd/"
_SHARED_LOCK = ".cdd/runs/.together/waits.lock"
"""The lock of a file that all runs of a project share. It stays."""
_VERIFIED = 5
"""Tickets that `cdd verify` checks in addition."""


def inspect_project(world: World, run: str) -> None:
    """Report each broken promise as a finding of the world."""
    for ticket in world.open:
        world.find(ticket.slug, "was begun and is not done")
    tickets = [finished.ticket for finished in world.finished]
    for ticket in tickets:
        _inspect_ticket(world, ticket)
    _inspect_repository(world)
    for stray in strays(world.root):
        if stray != _SHARED_LOCK:
            world.find("leftover file", stray)
    for log in world.disk.folder.rglob("errors.log"):
        world.find("internal error", log.read_text(errors="replace")[-2000:])
    for process in leftover_processes(run):
        command = " ".join(process.cmdline())
        world.find("leftover process", f"{process.pid} {command}")
    _inspect_temporary_files(world)
    _verify_sample(world, tickets)


def _inspect_ticket(world: World, ticket: Ticket) -> None:
    state = read_state(world.root, ticket.slug)
    statuses = [step["status"] for step in state["step_executions"].values()]
    if statuses != ["completed"] * len(ticket.steps):
        world.find(ticket.slug, f"steps are {statuses}")
    for step in ticket.steps:
        if step.holds(world.root, world.environment):
            world.count("checks that hold")
        else:
            world.find(ticket.slug, f"the check of {step.path} fails")
    folder = world.root / ".cdd/runs" / ticket.slug
    for pattern in _UNFINISHED:
        for path in folder.glob(pattern):
            world.find(ticket.slug, f"leftover {path.name}")
    _inspect_ledgers(world, ticket, folder)
    _inspect_log(world, folder)


def _inspect_ledgers(world: World, ticket: Ticket, folder: Path) -> None:
    """Compare the files with the last change of each in the ledgers."""
    changes: dict[str, Any] = {}
    entries = _read_ledgers(folder)
    redone = {entry["by"] for entry in entries if entry["kind"] == "redone"}
    for entry in entries:
        if entry["kind"] == "undone" and entry["by"] in redone:
            continue
        for change in entry.get("changes", ()):
            changes[change["path"]] = change["after"]
        if entry.get("kept"):
            world.find(ticket.slug, f"kept as the user's: {entry['kept']}")
    for step in ticket.steps:
        if step.path not in changes:
            world.find(ticket.slug, f"no ledger has {step.path}")
    for path, after in changes.items():
        expected = after["content"] if after else None
        if expected != _blob_id(world.root / path):
            world.find(ticket.slug, f"{path} differs from the ledger")
        if expected and not (folder / "versions" / expected).exists():
            world.find(ticket.slug, f"versions lacks {path} ({expected})")


def _read_ledgers(folder: Path) -> list[dict[str, Any]]:
    """Return the whole entries of all steps in the order of their times."""
    entries: list[dict[str, Any]] = []
    for file in folder.glob("step-*/ledger.jsonl"):
        lines = file.read_bytes().split(b"\n")[1:-1]
        entries.extend(json.loads(line) for line in lines)
    return sorted(entries, key=lambda entry: entry["at"])


def _blob_id(path: Path) -> str | None:
    """Return the id of a file's content as git computes it; None for no file."""
    if not path.exists():
        return None
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content)).hexdigest()


def _inspect_log(world: World, folder: Path) -> None:
    """Count the lines of the log that a killed process left unfinished."""
    for line in (folder / "events.jsonl").read_bytes().splitlines():
        try:
            json.loads(line)
        except ValueError:
            world.count("unfinished lines of logs")


def _inspect_repository(world: World) -> None:
    worktrees = git(world.root, "worktree", "list").splitlines()
    if len(worktrees) > 1:
        world.find("git", f"leftover worktrees: {worktrees[1:]}")
    branches = git(world.root, "branch", "--list", "cdd/*").split()
    if branches:
        world.find("git", f"leftover branches: {branches}")
    for ref in git(world.root, "for-each-ref", "--format=%(refname)").split():
        if ref != "refs/heads/main" and not ref.startswith(_CHECKPOINTS):
            world.find("git", f"leftover ref: {ref}")
    git(world.root, "fsck", "--connectivity-only")
    staged = git(world.root, "diff", "--cached", "--name-only").split()
    if staged:
        world.find("git", f"leftover staged files: {staged}")


def leftover_processes(run: str) -> Iterator[psutil.Process]:
    """Yield the processes that a soak has started and that still run."""
    for process in psutil.process_iter():
        try:
            is_ours = process.environ().get(RUN_VARIABLE) == run
        except psutil.Error:
            continue
        if is_ours and process.status() != psutil.STATUS_ZOMBIE:
            yield process


def _inspect_temporary_files(world: World) -> None:
    folder = Path(world.environment["TMPDIR"])
    for path in folder.iterdir():
        world.find("leftover temporary file", path.name)
    private = world.root / ".cdd/runs/.private"
    if private.exists():
        for path in private.iterdir():
            world.find("leftover copy of the project", path.name)


def _verify_sample(world: World, tickets: Iterable[Ticket]) -> None:
    starter = Starter(world, "verify", world.rng("verify"))
    for ticket in list(tickets)[-_VERIFIED:]:
        ended = starter.run("verify", ticket.slug, disturb=False)
        if ended.code != 0:
            world.find(ticket.slug, f"cdd verify: exit code {ended.code}")


@dataclass(frozen=True)
class RecordSize:
    """The size of a ticket's record after its run."""

    at: float
    bytes: int
    attempts: int

    @property
    def bytes_per_attempt(self) -> float:
        return self.bytes / max(1, self.attempts)


def measure_records(world: World) -> list[RecordSize]:
    """Return the sizes of the finished tickets' records in the order of their ends."""
    sizes = []
    for finished in sorted(world.finished, key=lambda finished: finished.at):
        folder = world.root / ".cdd/runs" / finished.ticket.slug
        attempts = len([*folder.glob("step-*/attempt-*")])
        sizes.append(RecordSize(finished.at, folder_size(folder), attempts))
    return sizes


def folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    size = 0
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            size += path.stat().st_size
    return size
