"""The parts of a run that are sent: its ticket, state and record, its checkpoints, and
the project's current files.

    run.json                     what is in it, see `Manifest`
    lease.json                   who holds it, see `lease.py`; without it, no copy
    ticket/                      spec.yaml (or .yml)  plan.md  execution-state.json
    record/                      events.jsonl  report.json  state.json …
                                 step-01/ledger.jsonl  versions/…
                                 step-01/attempt-1/reply.md …
    checkpoints/step-01/…        the files of each, see `git/checkpoint.py`
    project/                     the files of the project at the time

Not sent: the lock and files of this machine, renamed leftovers, the conversations with
Socrates and the Planner; files that hold secrets, by their names or
by what redaction finds in them, unless they are in the commit that the project is at;
and in texts that are only looked at, the path of the project and of the home folder.
Texts that are used again word for word, such as replies, are sent unchanged or not at
all. Contents of ignored files, and of files in repositories below, are not sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from cdd_agent.engine.attempt import VERSIONS
from cdd_agent.engine.ledger_file import Entry as LedgerEntry
from cdd_agent.engine.ledger_file import LedgerFile, encode_ledger
from cdd_agent.engine.named_files import named
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.hidden_from_models import is_secret_path
from cdd_agent.files.json_file import JsonFile, Moment, as_json
from cdd_agent.git.checkpoint import FORM, Checkpoint, Checkpoints
from cdd_agent.git.diff import Change
from cdd_agent.git.new_commit import Entry, new_commit
from cdd_agent.git.snapshot import Snapshots
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.config import PROJECT_FILE
from cdd_agent.settings.user_folders import home_folder
from cdd_agent.text.redaction import Redactor
from cdd_agent.threads import in_thread
from cdd_agent.tickets.store import Ticket
from cdd_agent.version import VERSION

MANIFEST = "run.json"
VERSION_OF_FORM = 2
EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""Git's ids of a tree without files, by the length of an id. No commit can hold it."""
EMPTY_TREES = frozenset(EMPTY_TREE.values())
TICKET_TEXTS = ("spec.yaml", "spec.yml", "plan.md")
TICKET_FILES = (*TICKET_TEXTS, "execution-state.json")
RECORD_FILES = (
    "events.jsonl",
    "report.json",
    "report.md",
    "state.json",
    "baseline.json",
    "baseline.txt",
    "going-back.json",
)
ATTEMPT = re.compile(r"step-[0-9]{2,}/attempt-[0-9]+")
ATTEMPT_FILES = re.compile(
    r"(guidance|request|reply|reply-partial)\.md|(meanwhile|shown|dialogue|command|tests"
    r"|failure)\.json|output(-[0-9]+)?\.txt|changes\.diff"
)
LEDGER = re.compile(r"step-[0-9]{2,}/(ledger|attempt-[0-9]+/beside)\.jsonl")
VERSION_FILE = re.compile(r"versions/[0-9a-f]{40}")
_FOR_READING = re.compile(
    r"events\.jsonl|report\.(json|md)|(execution-)?state\.json|baseline\.txt"
    r"|(request|reply-partial)\.md|output(-[0-9]+)?\.txt|failure\.json|changes\.diff"
)
"""Texts in which secrets can be replaced: nothing depends on their exact words."""
_LARGEST_SEARCHED = 5_000_000
"""Bytes of a file in which secrets are looked for."""
PROJECT = "travel/project"
"""The name of the checkpoint that cdd makes for it."""


class Manifest(JsonFile, frozen=True, kw_only=True):
    """The list of what is in a commit of a run's reference."""

    version: int = VERSION_OF_FORM
    made_by: Annotated[str, Meta(max_length=100)] = VERSION
    slug: Annotated[str, Meta(max_length=200)]
    host: Annotated[str, Meta(max_length=255)]
    pushed: Moment
    head: Annotated[str, Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})\Z")] | None = None
    """The commit that the project was at."""
    checkpoints: dict[str, str]
    """The ids of the trees, by name."""
    project: str
    notes: tuple[Checkpoint, ...] = ()
    """The checkpoints, without those in the form of version 0.1."""
    left_out: tuple[str, ...] = ()
    """Files of the project and of the record that did not travel."""
    stayed: tuple[str, ...] = ()
    """Files of which contents before or after a step did not travel."""

    @property
    def project_checkpoint(self) -> Checkpoint:
        if self.version == 1:
            return Checkpoint(PROJECT, self.project)
        return Checkpoint(PROJECT, self.project, FORM, unseen=self.left_out)

    @property
    def references(self) -> dict[str, str]:
        """The checkpoints that need a reference: git knows a tree without files."""
        return {
            name: tree
            for name, tree in self.checkpoints.items()
            if tree not in EMPTY_TREES
        }


class Parcel(Struct):
    """A run that is ready to be sent."""

    ticket: Ticket
    record: RunRecord
    checkpoints: Checkpoints
    redactor: Redactor
    head: str | None
    left_out: set[str] = field(default_factory=set)
    stayed: set[str] = field(default_factory=set)
    """As in `Manifest`."""

    async def pack(
        self, project: Checkpoint, manifest: Callable[..., Manifest], parent: str | None
    ) -> tuple[str, Manifest]:
        """The commit, on top of the one that the reference is at; and what is in it.
        `manifest` is given what only this knows. Raises `BadInput` where secrets would
        travel.
        """
        taken = await self._checkpoints()
        sent = {**taken, PROJECT: project}
        # of files that are alike, git names one at a time
        while secret := await self._secret_files(sent.values()):
            if not secret - self.left_out:
                raise BadInput(
                    "These files seem to hold secrets, and the run needs them:"
                    f" {named(sorted(secret))}",
                    hint=(
                        "Rename them or add them to .gitignore. For old checkpoints,"
                        " see docs/reference/records.md."
                    ),
                    refusal=Refusal.SECRET_NOT_SENT,
                )
            self.left_out |= secret
            sent = await self._without(sent, secret)
        # what is inside other repositories and ignored files do not travel
        folders = project.folders
        sent = {name: replace(one, inner={}, saved={}) for name, one in sent.items()}
        project = sent.pop(PROJECT)
        files = await in_thread(
            lambda: [*self._ticket_files(), *self._record_files(sent, folders)],
            name="pack",
        )
        made = manifest(
            checkpoints={name: one.id for name, one in sent.items()},
            project=project.id,
            notes=tuple(one for one in sent.values() if one.files == one.id),
            left_out=tuple(sorted(self.left_out)),
            stayed=tuple(sorted(self.stayed)),
        )
        trees = [
            Entry(f"checkpoints/{name}", tree)
            for name, tree in made.checkpoints.items()
        ]
        entries = [
            Entry(MANIFEST, as_json(made)),
            *files,
            *trees,
            Entry("project", made.project),
        ]
        parents = list(
            dict.fromkeys(commit for commit in (parent, self.head) if commit)
        )
        git, folder = self.snapshots.git, self.snapshots.folder
        message = f"The run of {made.slug}, from {made.host}"
        return (
            await new_commit(
                git, folder, message, made.pushed, parents, entries, afresh=True
            ),
            made,
        )

    async def _checkpoints(self) -> dict[str, Checkpoint]:
        return {
            one.name: one
            for one in await self.checkpoints.all()
            if not one.name.startswith("travel/")
        }

    @property
    def snapshots(self) -> Snapshots:
        return self.checkpoints.snapshots

    async def _secret_files(self, checkpoints: Iterable[Checkpoint]) -> set[str]:
        """The files with secrets among those that are in none of the project's commits;
        and this copy's settings.
        """
        snapshots, target = self.snapshots, self.snapshots.folder / "listed"
        base = [f"^{self.head}^{{tree}}"] if self.head else []
        trees = dict.fromkeys(one.files for one in checkpoints)
        asked = snapshots.input(f"{name}\n" for name in (*base, *trees))
        await snapshots.git(
            "rev-list", "--objects", "--stdin", stdin=asked, stdout=target
        )
        lines = (line.partition(b" ") for line in target.read_bytes().splitlines())
        paths = {name.decode(): path for name, _, path in lines if path}
        asked = snapshots.input(f"{name}\n" for name in paths)
        await snapshots.git(
            "cat-file",
            "--batch-check=%(objectname) %(objecttype) %(objectsize)",
            stdin=asked,
            stdout=target,
        )
        known = (line.split() for line in target.read_text().splitlines())
        blobs = {name: int(size) for name, kind, size in known if kind == "blob"}
        found = {name for name in blobs if is_secret_path(_text(paths[name]))}
        found |= {
            name for name in blobs if _text(paths[name]) == PROJECT_FILE.as_posix()
        }
        small = [
            name
            for name, size in blobs.items()
            if size <= _LARGEST_SEARCHED and name not in found
        ]
        if small:
            await snapshots.git(
                "cat-file",
                "--batch",
                "--buffer",
                stdin=snapshots.input(f"{n}\n" for n in small),
                stdout=target,
            )
            found |= await in_thread(
                lambda: set(self._with_secrets(target)), name="secrets"
            )
        return {_text(paths[name]) for name in found}

    def _with_secrets(self, batch: Path) -> Iterator[str]:
        """The contents with something that redaction would take out, in what
        `git cat-file --batch` wrote.
        """
        with batch.open("rb") as file:
            while head := file.readline().split():
                content = file.read(int(head[2]) + 1)
                if b"\0" not in content and self._has_secret(content):
                    yield head[0].decode()

    async def _without(
        self, checkpoints: dict[str, Checkpoint], files: set[str]
    ) -> dict[str, Checkpoint]:
        """The same checkpoints without these files. Each says that it could not see
        them.
        """
        entries, made = list[Entry](), dict[str, Checkpoint]()
        for name, one in checkpoints.items():
            is_old = one.files != one.id
            unseen = (await self.checkpoints.own_part(one)).unseen | files
            inside = f"{name}/files" if is_old else name
            entries.append(Entry(name, one.id))
            entries += [Entry(f"{inside}/{path}", None) for path in sorted(files)]
            made[name] = replace(one, unseen=tuple(sorted(unseen)))
            if is_old:
                listed = "".join(f"{path}\0" for path in sorted(unseen)).encode()
                entries.append(Entry(f"{name}/unseen", listed))
                made[name] = one
        git, folder = self.snapshots.git, self.snapshots.folder
        commit = await new_commit(
            git, folder, "Without secrets", datetime.now(UTC), [], entries, afresh=True
        )
        asked, told = (
            self.snapshots.input(f"{commit}:{name}\n" for name in made),
            folder / "listed",
        )
        await git("cat-file", "--batch-check=%(objectname)", stdin=asked, stdout=told)
        ids = {}
        for name, line in zip(made, told.read_text().splitlines(), strict=True):
            # git leaves out a folder in which nothing remains
            ids[name] = EMPTY_TREE[len(commit)] if line.endswith(" missing") else line
        return {name: replace(one, id=ids[name]) for name, one in made.items()}

    def _ticket_files(self) -> Iterator[Entry]:
        for name in TICKET_FILES:
            path = self.ticket.folder / name
            content = read_bytes(path)
            if content is None:
                continue
            if _FOR_READING.fullmatch(name):
                content = self._presentable(content)
            elif self._has_secret(content):
                raise BadInput(
                    f"{self.ticket.shown(path)} seems to hold a secret, so it is not"
                    " sent",
                    hint="Remove the secret. In the ticket, write the name of the"
                    " variable that holds it.",
                    refusal=Refusal.SECRET_NOT_SENT,
                )
            yield Entry(f"ticket/{name}", content)

    def _record_files(
        self, sent: Mapping[str, Checkpoint], folders: Collection[str]
    ) -> Iterator[Entry]:
        """Yield what travels of the record. `sent` are the checkpoints that travel, by
        their names, `folders` the repositories below.
        """
        record = self.record.folder
        for name in RECORD_FILES:
            content = read_bytes(record / name)
            if content is not None:
                yield from self._record_file(name, content)
        changes: list[Change] = []
        with_private = set[Path]()
        for place in sorted(record.glob("step-*/**/*.jsonl")):
            name = place.relative_to(record).as_posix()
            if not LEDGER.fullmatch(name):
                continue
            entries = LedgerFile(place).entries()
            changes += [change for entry in entries for change in entry.changes]
            for number, private in _private_changes(entries).items():
                with_private.add(place.parent / f"attempt-{number}")
                self.stayed |= private
            travelling = (_with_tree(entry, sent) for entry in entries)
            yield from self._record_file(name, encode_ledger(travelling))
        yield from self._versions(changes, folders)
        for place in sorted(record.glob("step-*/attempt-*/*")):
            name = place.relative_to(record).as_posix()
            folder, _, file = name.rpartition("/")
            if not (ATTEMPT.fullmatch(folder) and ATTEMPT_FILES.fullmatch(file)):
                continue
            if file == "changes.diff" and place.parent in with_private:
                continue
            content = read_bytes(place) if place.is_file() else None
            if content is not None:
                yield from self._record_file(name, content)

    def _versions(
        self, changes: Iterable[Change], folders: Collection[str]
    ) -> Iterator[Entry]:
        """Yield the contents that the ledgers name, but those of files that do not
        travel.
        """
        paths = dict[str, set[str]]()
        for change in changes:
            for entry in (change.before, change.after):
                if entry is not None:
                    paths.setdefault(entry.content, set()).add(change.path)
        for content_id, files in sorted(paths.items()):
            content = read_bytes(self.record.folder / VERSIONS / content_id)
            if content is None:
                continue
            is_secret = len(content) <= _LARGEST_SEARCHED and self._has_secret(content)
            if is_secret or any(_stays(path, folders) for path in files):
                self.stayed |= files
            else:
                yield Entry(f"record/{VERSIONS}/{content_id}", content)

    def _record_file(self, name: str, content: bytes) -> Iterator[Entry]:
        if _FOR_READING.fullmatch(PurePosixPath(name).name):
            yield Entry(f"record/{name}", self._presentable(content))
        elif self._has_secret(content):
            self._leave_out(name)
        else:
            yield Entry(f"record/{name}", content)

    def _leave_out(self, name: str) -> None:
        self.left_out.add(
            (self.record.folder / name).relative_to(self.record.root).as_posix()
        )

    def _has_secret(self, content: bytes) -> bool:
        text = content.decode(errors="replace")
        return self.redactor.redact(text) != text

    def _presentable(self, content: bytes) -> bytes:
        """A text without secrets, and without the names of folders of this machine."""
        text = self.redactor.redact(content.decode(errors="replace"))
        folders = [(self.record.root, ".")]
        if home := home_folder():
            folders.append((home, "~"))
        for folder, short in folders:
            for name in {str(folder), json.dumps(str(folder))[1:-1]}:
                if len(folder.parts) > 1 and name in text:
                    if folder == self.record.root:
                        text = re.sub(re.escape(name) + r"/(?=[\w.])", "", text)
                    text = re.sub(re.escape(name) + r"(?![\w.-])", short, text)
        return text.encode()


def _private_changes(entries: Iterable[LedgerEntry]) -> dict[int, set[str]]:
    """Return the files that attempts changed and that git ignores, by the numbers of
    the attempts that have some.
    """
    changed: dict[int, set[str]] = {}
    private: dict[int, set[str]] = {}
    for entry in entries:
        paths = {change.path for change in entry.changes}
        changed.setdefault(entry.attempt, set()).update(paths)
        private.setdefault(entry.attempt, set()).update(entry.private)
    both = {number: paths & private[number] for number, paths in changed.items()}
    return {number: paths for number, paths in both.items() if paths}


def _with_tree(entry: LedgerEntry, sent: Mapping[str, Checkpoint]) -> LedgerEntry:
    """Return the entry with its checkpoint as it travels."""
    if entry.tree is None:
        return entry
    return replace(entry, tree=sent.get(entry.tree.name))


def _stays(path: str, folders: Collection[str]) -> bool:
    """True for a file whose contents do not travel, though git does not ignore it."""
    if is_secret_path(path) or path == PROJECT_FILE.as_posix():
        return True
    return any(path.startswith(f"{folder}/") for folder in folders)


def _text(path: bytes) -> str:
    return path.decode(errors="surrogateescape")
