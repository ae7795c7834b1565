"""An arriving run: validated as untrusted input from the remote, then installed. The
whole run is first read into a separate folder and validated there: names, sizes, kinds
of files, and every file by the reader that will read it later. Then it is installed,
the files of the run last. A killed pull starts again from the beginning.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.engine.attempt import VERSIONS, Attempt
from cdd_agent.engine.ledger_file import LedgerFile, expect_inside
from cdd_agent.engine.old_records import OLD_FILES, expect_readable
from cdd_agent.engine.record import GoingBack, RunRecord
from cdd_agent.errors import BadInput, CddError
from cdd_agent.files.atomic import read_bytes, remove, write_atomic
from cdd_agent.files.json_file import from_json, set_aside
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.content_store import ContentStore, hash_content
from cdd_agent.git.diff import Change
from cdd_agent.git.restore import FILE_MODES
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import PROJECT_FILE
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState, read_state_file
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.parcel import (
    ATTEMPT,
    ATTEMPT_FILES,
    EMPTY_TREES,
    LEDGER,
    MANIFEST,
    RECORD_FILES,
    TICKET_FILES,
    TICKET_TEXTS,
    VERSION_FILE,
    VERSION_OF_FORM,
    Manifest,
)
from cdd_agent.travel.reference import LARGEST_LEASE, LEASE, NotARun, RunReference
from cdd_agent.verification.baseline import Baseline

_LARGEST_MANIFEST = 20_000_000
_LARGEST = {MANIFEST: _LARGEST_MANIFEST, LEASE: LARGEST_LEASE}
_MOST_FILES = 200_000
LARGEST_FILE = 200_000_000
_MOST = 1_000_000_000
"""Bytes of a ticket and its record."""
_CHECKPOINT = re.compile(r"[a-z0-9-]+(/[A-Za-z0-9-]+)+")
_UNDO = re.compile(r"[A-Za-z0-9-]+")
_CHUNK = 1 << 20
_LINK, _FILE = "120000", "100644"
_PERMISSIONS = range(0o1000)


class Arrival(Struct, frozen=True):
    """The content of a commit that has been validated as a run."""

    tip: str
    manifest: Manifest
    folder: Path
    """With `ticket` and `record`, as they will be."""

    @classmethod
    async def read(cls, reference: RunReference, tip: str, folder: Path) -> Arrival:
        """Read it into this folder, which is emptied first. Raises `NotARun`, and
        `BadInput` when the disk refuses.
        """
        shutil.rmtree(folder, ignore_errors=True)
        try:
            await _unpack_all(reference, tip, folder)
            for name in (MANIFEST, LEASE):
                reference.contents[f"{tip}:{name}"] = read_bytes(folder / name)
            arrival = cls(tip, await read_manifest(reference, tip), folder)
            try:
                arrival._judge()
            except NotARun:
                raise
            except (CddError, ValueError) as error:
                why = error.message if isinstance(error, CddError) else str(error)
                raise NotARun(why.replace(f"{folder}/", "")) from error
            await arrival._expect_checkpoints(reference)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return arrival

    @property
    def state(self) -> ExecutionState | None:
        return self._read_state(self.folder / "ticket" / "execution-state.json")

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def install_record(self, record: RunRecord) -> None:
        """Replace the record's files of the run by the arrived ones. Files that only
        this copy has stay. Raises `BadInput`.
        """
        source = self.folder / "record"
        new = {
            path.relative_to(source).as_posix()
            for path in source.rglob("*")
            if path.is_file()
        }
        here = [record.folder / name for name in RECORD_FILES]
        here += [
            path
            for path in record.folder.glob("step-*/**/*")
            if _belongs_to_step(path.relative_to(record.folder).as_posix())
        ]
        left_out = {record.root / name for name in self.manifest.left_out}
        for path in here:
            if (
                path not in left_out
                and path.relative_to(record.folder).as_posix() not in new
            ):
                remove(path)
        try:
            for folder in source.glob("step-*/attempt-*"):
                target = record.folder / folder.relative_to(source)
                if not target.exists():  # with all that is in it
                    target.parent.mkdir(exist_ok=True)
                    folder.replace(target)
            new = {name for name in new if (source / name).exists()}
            for name in sorted(new, key=lambda name: (name == "state.json", name)):
                target = record.folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                (source / name).replace(target)
        except OSError as error:
            raise BadInput(
                f"{record.folder} could not be written: {error.strerror or error}",
                refusal=Refusal.DISK,
            ) from error

    def install_ticket(self, ticket: Ticket) -> None:
        """Put its files into the ticket's folder, the state last. Raises `BadInput`."""
        for name in TICKET_FILES:
            content, place = self.ticket_file(name), ticket.folder / name
            if content is not None:
                write_atomic(place, content)
            elif name == ticket.state_path.name and place.exists():
                set_aside(place)

    def ticket_file(self, name: str) -> bytes | None:
        path = self.folder / "ticket" / name
        return path.read_bytes() if path.exists() else None

    def _judge(self) -> None:
        """By the readers of each file. Raises `BadInput` or `ValueError`."""
        ticket, record = self.folder / "ticket", self.folder / "record"
        for state in (self.state, self._read_state(record / "state.json")):
            for undo in state.undone if state else ():
                if not _UNDO.fullmatch(undo.id):
                    raise NotARun(f"{undo.id!r} is no undo")
        for name in TICKET_TEXTS:
            parse = read_plan if name == "plan.md" else self._parse_spec
            if (ticket / name).exists():
                parse((ticket / name).read_text(encoding="utf-8-sig"))
        Baseline.load(record / "baseline.json")
        going = GoingBack.load(record / "going-back.json")
        if going is not None and not _UNDO.fullmatch(going.id):
            raise NotARun(f"{going.id!r} is no undo")
        for folder in record.glob("step-*/attempt-*"):
            attempt = Attempt(self.folder, folder)
            expect_readable(attempt, self.manifest.checkpoints)
            expect_inside(attempt.shown.all_files if attempt.shown else ())
            # Structs that must only be readable, without further checks.
            _ = attempt.failure, attempt.tests, attempt.dialogue, attempt.all_guidance

        for name in ("step-*/ledger.jsonl", "step-*/attempt-*/beside.jsonl"):
            for place in record.glob(name):
                self._judge_ledger(LedgerFile(place))
        for place in record.glob(f"{VERSIONS}/*"):
            content = place.read_bytes()
            if hash_content([content], len(content), "sha1") != place.name:
                raise NotARun(f"{VERSIONS}/{place.name} has unexpected content")

    def _judge_ledger(self, ledger: LedgerFile) -> None:
        """An undo writes what a ledger names."""
        notes = {one.name: one for one in self.manifest.notes}
        for entry in ledger.entries():
            expect_inside((*entry.kept, *entry.merged, *entry.ignored, *entry.private))
            for change in entry.changes:
                self._judge_change(change)
            tree = entry.tree
            if tree is None:
                continue
            known = notes.get(tree.name)
            if known is None and tree.name in self.manifest.checkpoints:
                known = Checkpoint(tree.name, self.manifest.checkpoints[tree.name])
            if tree != known:
                raise NotARun(f"the checkpoint {tree.name[:100]!r} is not part of it")

    def _judge_change(self, change: Change) -> None:
        """Raise `NotARun` for settings, what is no file, and a link elsewhere."""
        if change.path.casefold() == PROJECT_FILE.as_posix():
            raise NotARun(f"{change.path[:200]!r} is not a file of a project")
        for entry in (change.before, change.after):
            if entry is None:
                continue
            permissions = entry.permissions or 0
            if (
                entry.mode not in (*FILE_MODES, _LINK)
                or permissions not in _PERMISSIONS
            ):
                raise NotARun(f"{change.path[:200]!r} is no file")
            store = ContentStore(self.folder / "record" / VERSIONS)
            if entry.mode == _LINK and store.has(entry.content):
                target = os.fsdecode(store.read(entry.content))
                if [*links_away({change.path: target})]:
                    shown = change.path[:200]
                    raise NotARun(f"a link of it leads out of the project: {shown}")

    def _read_state(self, path: Path) -> ExecutionState | None:
        state = read_state_file(path)
        if state is not None and state.ticket_slug != self.manifest.slug:
            raise NotARun(f"it has the state of {state.ticket_slug[:100]!r}")
        return state

    def _parse_spec(self, text: str) -> object:
        return TicketSpec.from_yaml(text, "spec.yaml", slug=self.manifest.slug)

    async def _expect_checkpoints(self, reference: RunReference) -> None:
        """Each is where the manifest says, and is a tree; in the form of version 0.1 it
        has the entry `files`.
        """
        wanted = {
            f"checkpoints/{name}": tree
            for name, tree in self.manifest.checkpoints.items()
        }
        wanted["project"] = self.manifest.project
        new = {f"checkpoints/{one.name}" for one in self.manifest.notes}
        if self.manifest.project_checkpoint.files == self.manifest.project:
            new.add("project")
        old = wanted.keys() - new
        asked, told = reference.folder / "asked", reference.folder / "told"
        asked.write_text(
            "".join(f"{self.tip}:{name}\n{self.tip}:{name}/files\n" for name in wanted)
        )
        await reference.git(
            "cat-file",
            "--batch-check=%(objectname) %(objecttype)",
            stdin=asked,
            stdout=told,
        )
        answers = told.read_text().splitlines()
        for (name, tree), found, files in zip(
            wanted.items(), answers[::2], answers[1::2], strict=True
        ):
            has_files = name not in old or files.endswith(" tree")
            is_empty = name not in old and tree in EMPTY_TREES
            if not is_empty and (found != f"{tree} tree" or not has_files):
                raise NotARun(f"{name} is not there")


async def _unpack_all(reference: RunReference, tip: str, folder: Path) -> None:
    """Write the files of a run into a folder, if all of them belong into one. Raises
    `NotARun`, `BadInput`.
    """
    listed, asked, told = (
        reference.folder / name for name in ("listed", "asked", "told")
    )
    where = (MANIFEST, LEASE, "ticket/", "record/")
    await reference.git("ls-tree", "-r", "-l", "-z", tip, "--", *where, stdout=listed)
    names, total = dict[str, str](), 0
    with listed.open("rb") as file:
        entries = file.read(_MOST_FILES * 200).split(b"\0")[:-1]
    if len(entries) > _MOST_FILES:
        raise NotARun(f"it has more than {_MOST_FILES} files")
    for entry in entries:
        head, _, path = entry.decode(errors="replace").partition("\t")
        mode, kind, name, size = head.split()
        if mode != _FILE or kind != "blob" or not _belongs(path):
            raise NotARun(f"{path[:200]!r} does not belong in it")
        total += int(size)
        if int(size) > _LARGEST.get(path, LARGEST_FILE) or total > _MOST:
            raise NotARun(f"{path} is too large")
        names[path] = name
    asked.write_text("".join(f"{name}\n" for name in names.values()))
    await reference.git("cat-file", "--batch", "--buffer", stdin=asked, stdout=told)
    try:
        _unpack(told, folder, list(names))
    except OSError as error:
        raise BadInput(
            f"{folder} could not be written: {error.strerror or error}",
            refusal=Refusal.DISK,
        ) from error


def _unpack(told: Path, folder: Path, names: list[str]) -> None:
    for name in ("ticket", "record"):
        (folder / name).mkdir(parents=True)
    with told.open("rb") as file:
        for name in names:
            _, kind, size = file.readline().split()
            if kind != b"blob":
                raise NotARun(f"{name} is not there")
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            left = int(size)
            with target.open("wb") as copy:
                while left and (data := file.read(min(left, _CHUNK))):
                    left -= copy.write(data)
            file.read(1)


async def read_manifest(reference: RunReference, tip: str) -> Manifest:
    """The manifest in a commit. Raises `NotARun`."""
    data = await reference.content(f"{tip}:{MANIFEST}", _LARGEST_MANIFEST)
    if data is None:
        raise NotARun(f"it has no {MANIFEST}")
    version = re.match(rb'\{\s*"version":\s*([0-9]+)', data)
    if version and int(version[1]) > VERSION_OF_FORM:
        raise NotARun("it was pushed by a newer cdd; update cdd here, too")
    try:
        manifest = from_json(data, Manifest)
    except ValueError as error:
        raise NotARun(f"{MANIFEST}: {error}") from error
    if manifest.slug != reference.slug:
        raise NotARun(f"it is the run of {manifest.slug[:100]!r}")
    for one in manifest.notes:
        if manifest.checkpoints.get(one.name) != one.id or one.saved or one.inner:
            raise NotARun(f"the notes of {one.name[:100]!r} do not belong to it")
    for name in manifest.checkpoints:
        if not _CHECKPOINT.fullmatch(name) or name.startswith("travel/"):
            raise NotARun(f"{name[:100]!r} is not the name of a checkpoint")
    return manifest


def links_away(changes: dict[str, str]) -> Iterator[str]:
    """The links, given with where they lead, that lead out of the project."""
    for path, target in changes.items():
        reached = os.path.normpath(PurePosixPath(path).parent / target)
        if (
            PurePosixPath(target).is_absolute()
            or reached == ".."
            or reached.startswith("../")
        ):
            yield path


def is_link(change: Change) -> bool:
    return change.before is not None and change.before.mode == _LINK


def _belongs(path: str) -> bool:
    top, _, name = path.partition("/")
    if path in (MANIFEST, LEASE):
        return True
    if top == "ticket":
        return name in TICKET_FILES
    return (
        name in RECORD_FILES
        or VERSION_FILE.fullmatch(name) is not None
        or _belongs_to_step(name)
    )


def _belongs_to_step(name: str) -> bool:
    """True for a file of a step that travels, also one of version 0.1."""
    folder, _, file = name.rpartition("/")
    if LEDGER.fullmatch(name):
        return True
    is_known = ATTEMPT_FILES.fullmatch(file) or OLD_FILES.fullmatch(file)
    return bool(ATTEMPT.fullmatch(folder) and is_known)
