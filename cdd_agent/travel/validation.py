"""Validate an arriving run as untrusted input. Each file is parsed by its later reader,
and no path or link leads out of the project.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.engine.attempt import VERSIONS, Attempt
from cdd_agent.engine.ledger_file import LedgerFile, expect_inside
from cdd_agent.engine.old_records import expect_readable
from cdd_agent.engine.record import GoingBack
from cdd_agent.errors import CddError
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.content_store import ContentStore, hash_content
from cdd_agent.git.diff import Change
from cdd_agent.git.restore import FILE_MODES
from cdd_agent.pattern import Pattern
from cdd_agent.settings.config import PROJECT_FILE
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state_file import read_state_file
from cdd_agent.travel.manifest import Manifest
from cdd_agent.travel.reference import NotARun
from cdd_agent.verification.baseline import Baseline

LINK = "120000"
_UNDO = Pattern(r"[A-Za-z0-9-]+")
_PERMISSIONS = range(0o1000)


def expect_valid(folder: Path, manifest: Manifest) -> None:
    """Raise `NotARun` if a file of the run in this folder is invalid."""
    validation = _Validation(folder, manifest, manifest.list_checkpoints())
    try:
        validation.check_ticket()
        validation.check_record()
    except NotARun:
        raise
    except (CddError, ValueError) as error:
        why = error.message if isinstance(error, CddError) else str(error)
        raise NotARun(why.replace(f"{folder}/", "")) from error


def leads_out(path: str, target: str) -> bool:
    """True if a link at this path leads out of the project."""
    reached = os.path.normpath(PurePosixPath(path).parent / target)
    if PurePosixPath(target).is_absolute():
        return True
    return reached == ".." or reached.startswith("../")


class _Validation(Struct, frozen=True):
    """The checks raise `NotARun`, another `CddError`, or `ValueError`."""

    folder: Path
    manifest: Manifest
    checkpoints: dict[str, Checkpoint]

    def check_ticket(self) -> None:
        ticket = self.folder / "ticket"
        self._check_state(ticket / "execution-state.json")
        for name in ("spec.yaml", "spec.yml"):
            if (ticket / name).exists():
                TicketSpec.from_yaml(
                    _read(ticket / name), "spec.yaml", slug=self.manifest.slug
                )
        if (ticket / "plan.md").exists():
            read_plan(_read(ticket / "plan.md"))

    def check_record(self) -> None:
        record = self.folder / "record"
        self._check_state(record / "state.json")
        Baseline.load(record / "baseline.json")
        going_back = GoingBack.load(record / "going-back.json")
        if going_back is not None:
            _check_undo(going_back.id)
        for folder in record.glob("step-*/attempt-*"):
            self._check_attempt(Attempt(self.folder, folder))
        for name in ("step-*/ledger.jsonl", "step-*/attempt-*/beside.jsonl"):
            for place in record.glob(name):
                self._check_ledger(LedgerFile(place))
        for place in record.glob(f"{VERSIONS}/*"):
            content = place.read_bytes()
            if hash_content([content], len(content), "sha1") != place.name:
                raise NotARun(f"{VERSIONS}/{place.name} has unexpected content")

    def _check_state(self, path: Path) -> None:
        state = read_state_file(path)
        if state is None:
            return
        if state.ticket_slug != self.manifest.slug:
            raise NotARun(f"it has the state of {state.ticket_slug[:100]!r}")
        for undo in state.undone:
            _check_undo(undo.id)

    def _check_attempt(self, attempt: Attempt) -> None:
        expect_readable(attempt, self.manifest.checkpoints)
        expect_inside(attempt.shown.all_files if attempt.shown else ())
        # values that must only be readable
        _ = attempt.failure, attempt.tests, attempt.dialogue, attempt.all_guidance

    def _check_ledger(self, ledger: LedgerFile) -> None:
        """Check paths, because an undo writes the files that a ledger names."""
        for entry in ledger.entries():
            expect_inside((*entry.kept, *entry.merged, *entry.ignored, *entry.private))
            for change in entry.changes:
                self._check_change(change)
            tree = entry.tree
            if tree is not None and tree != self.checkpoints.get(tree.name):
                raise NotARun(f"the checkpoint {tree.name[:100]!r} is not part of it")

    def _check_change(self, change: Change) -> None:
        shown = change.path[:200]
        if change.path.casefold() == PROJECT_FILE.as_posix():
            raise NotARun(f"{shown!r} is not a file of a project")
        contents = ContentStore(self.folder / "record" / VERSIONS)
        for entry in (change.before, change.after):
            if entry is None:
                continue
            is_file = entry.mode == LINK or entry.mode in FILE_MODES
            if not is_file or (entry.permissions or 0) not in _PERMISSIONS:
                raise NotARun(f"{shown!r} is no file")
            if entry.mode == LINK and contents.has(entry.content):
                target = os.fsdecode(contents.read(entry.content))
                if leads_out(change.path, target):
                    raise NotARun(f"a link of it leads out of the project: {shown}")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")


def _check_undo(undo: str) -> None:
    if not _UNDO.fullmatch(undo):
        raise NotARun(f"{undo!r} is no undo")
