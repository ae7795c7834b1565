"""Pack a run into one commit: ticket, state, record, checkpoints, and the project's
current files. `manifest.py` has the layout.

Not sent: files of this machine such as the lock, the conversations with Socrates and
the Planner, contents of ignored files and of other repositories, and files that may
have secrets, unless the project's commit contains them. Texts that are only read lose
their secrets and the names of this machine's folders. Texts that are used again, such
as replies, are sent unchanged or not at all.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.attempt import VERSIONS
from cdd_agent.engine.ledger_file import LedgerEntry as LedgerEntry
from cdd_agent.engine.ledger_file import LedgerFile, encode_ledger
from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes
from cdd_agent.files.json_file import as_json
from cdd_agent.git.checkpoint import FORM, Checkpoint, Checkpoints, name_in_json
from cdd_agent.git.diff import Change
from cdd_agent.git.new_commit import CommitEntry, new_commit
from cdd_agent.git.objects import find_objects
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.user_folders import home_folder
from cdd_agent.threads import in_thread
from cdd_agent.tickets.store import Ticket
from cdd_agent.travel.manifest import (
    EMPTY_TREE,
    LEDGER,
    MANIFEST,
    PROJECT,
    RECORD_FILES,
    TICKET_FILES,
    Manifest,
    is_attempt_file,
)
from cdd_agent.travel.secret_files import (
    LARGEST_SEARCHED,
    Reason,
    SecretSearch,
    has_secret,
    judge_name,
)

_FOR_READING = Pattern(
    r"events\.jsonl|report\.(json|md)|(execution-)?state\.json|baseline\.txt"
    r"|(request|reply-partial)\.md|output(-[0-9]+)?\.txt|failure\.json|changes\.diff"
)
"""Texts in which secrets may be replaced: nothing depends on their exact words."""


class PackedRun(Struct, frozen=True):
    """A run as it is sent."""

    manifest: Manifest
    entries: tuple[CommitEntry, ...]
    left_out: dict[str, Reason]
    """Files of the project and the record that are not sent."""
    stayed: dict[str, Reason]
    """Files whose contents before or after a step are not sent."""

    async def commit(self, checkpoints: Checkpoints, parent: str | None) -> str:
        """Return a new commit of the run, on top of `parent` and the project's commit.
        Raises `BadInput`, `GitUnusable`.
        """
        manifest, snapshots = self.manifest, checkpoints.snapshots
        parents = dict.fromkeys(filter(None, (parent, manifest.head)))
        return await new_commit(
            snapshots.git,
            snapshots.folder,
            f"The run of {manifest.slug}, from {manifest.host}",
            manifest.pushed,
            [*parents],
            self.entries,
            afresh=True,
        )


class Packing(Struct):
    ticket: Ticket
    record: RunRecord
    checkpoints: Checkpoints
    head: str | None
    """The project's commit."""
    left_out: dict[str, Reason] = field(default_factory=dict)
    stayed: dict[str, Reason] = field(default_factory=dict)

    async def pack(self, project: Checkpoint) -> PackedRun:
        """Pack the run with the files of this checkpoint. Raises `BadInput` if the spec
        or plan contains a secret.
        """
        sent = await self._select_checkpoints(project)
        trees = {name: one.id for name, one in sent.items() if name != PROJECT}

        def read_files() -> list[CommitEntry]:
            record = self._pack_record(sent, project.folders)
            return [*self._pack_ticket(), *record]

        files = await in_thread(read_files, name="pack")
        manifest = Manifest(
            slug=self.ticket.slug,
            host=platform.node()[:255],
            pushed=datetime.now(UTC),
            head=self.head,
            checkpoints=trees,
            project=sent[PROJECT].id,
            notes=tuple(sent[name] for name in trees),
            left_out=tuple(sorted(map(name_in_json, self.left_out))),
            stayed=tuple(sorted(map(name_in_json, self.stayed))),
        )
        entries = [CommitEntry(MANIFEST, as_json(manifest)), *files]
        entries += [
            CommitEntry(f"checkpoints/{name}", tree) for name, tree in trees.items()
        ]
        entries.append(CommitEntry("project", manifest.project))
        return PackedRun(manifest, tuple(entries), self.left_out, self.stayed)

    async def _select_checkpoints(self, project: Checkpoint) -> dict[str, Checkpoint]:
        """Return the checkpoints to send, by name. Those in the format of version 0.1
        stay: the ledgers replace them.
        """
        sent = dict[str, Checkpoint]()
        for one in await self.checkpoints.all():
            if one.form == FORM and not one.name.startswith("travel/"):
                sent[one.name] = one
        sent[PROJECT] = project
        search = SecretSearch(
            self.checkpoints.snapshots, self.record.redactor, self.head
        )
        secret_files = await search.find([*sent.values()])
        if secret_files:
            self.left_out |= secret_files
            sent = await self._remove_files(sent, sorted(secret_files))
        # contents of ignored files and of other repositories are not sent
        return {name: replace(one, inner={}, saved={}) for name, one in sent.items()}

    async def _remove_files(
        self, checkpoints: dict[str, Checkpoint], paths: Sequence[str]
    ) -> dict[str, Checkpoint]:
        """Return the checkpoints without these files, as if unreadable."""
        git = self.checkpoints.snapshots.git
        folder = self.checkpoints.snapshots.folder
        entries = list[CommitEntry]()
        for name, one in checkpoints.items():
            entries.append(CommitEntry(name, one.id))
            entries += [CommitEntry(f"{name}/{path}", None) for path in paths]
        commit = await new_commit(
            git, folder, "Without secrets", datetime.now(UTC), [], entries, afresh=True
        )
        trees = await find_objects(
            git, folder, [f"{commit}:{name}" for name in checkpoints]
        )
        smaller = dict[str, Checkpoint]()
        for (name, one), tree in zip(checkpoints.items(), trees, strict=True):
            # git drops a folder without files
            tree_id = tree.id if tree else EMPTY_TREE[len(commit)]
            unseen = sorted({*one.unseen, *map(name_in_json, paths)})
            smaller[name] = replace(one, id=tree_id, unseen=tuple(unseen))
        return smaller

    def _pack_ticket(self) -> Iterator[CommitEntry]:
        for name in TICKET_FILES:
            path = self.ticket.folder / name
            content = read_bytes(path)
            if content is None:
                continue
            if _FOR_READING.fullmatch(name):
                content = self._make_presentable(content)
            elif has_secret(content, self.record.redactor):
                raise BadInput(
                    f"{self.ticket.shown(path)} seems to hold a secret, so it is not"
                    " sent",
                    hint="Remove the secret. In the ticket, write the name of the"
                    " variable that holds it.",
                    refusal=Refusal.SECRET_NOT_SENT,
                )
            yield CommitEntry(f"ticket/{name}", content)

    def _pack_record(
        self, sent: Mapping[str, Checkpoint], inner: Collection[str]
    ) -> Iterator[CommitEntry]:
        """Yield the files of the record to send. `inner` are the folders of other
        repositories in the project.
        """
        record = self.record.folder
        for name in RECORD_FILES:
            yield from self._pack_file(name, read_bytes(record / name))
        changes = list[Change]()
        private_diffs = set[str]()
        for place in sorted(record.glob("step-*/**/*.jsonl")):
            name = place.relative_to(record).as_posix()
            if not LEDGER.fullmatch(name):
                continue
            entries = LedgerFile(place).entries()
            for number, ignored in _ignored_changes(entries).items():
                self.stayed |= dict.fromkeys(ignored, Reason.IGNORED)
                folder = PurePosixPath(name).parent
                private_diffs.add(f"{folder}/attempt-{number}/changes.diff")
            for entry in entries:
                changes += entry.changes
            travelling = (_with_sent_tree(entry, sent) for entry in entries)
            yield from self._pack_file(name, encode_ledger(travelling))
        yield from self._pack_versions(changes, inner)
        for place in sorted(record.glob("step-*/attempt-*/*")):
            name = place.relative_to(record).as_posix()
            is_sent = is_attempt_file(name) and name not in private_diffs
            if is_sent and place.is_file():
                yield from self._pack_file(name, read_bytes(place))

    def _pack_versions(
        self, changes: Iterable[Change], inner: Collection[str]
    ) -> Iterator[CommitEntry]:
        """Yield the contents that the ledgers name, except private ones."""
        paths = dict[str, set[str]]()
        for change in changes:
            for entry in (change.before, change.after):
                if entry is not None:
                    paths.setdefault(entry.content, set()).add(change.path)
        for content_id, files in sorted(paths.items()):
            content = read_bytes(self.record.folder / VERSIONS / content_id)
            if content is None:
                continue
            reasons = {path: _judge_path(path, inner) for path in files}
            reason = next(filter(None, reasons.values()), None)
            is_searched = len(content) <= LARGEST_SEARCHED
            if is_searched and has_secret(content, self.record.redactor):
                reason = reason or Reason.CONTENT
            if reason is None:
                yield CommitEntry(f"record/{VERSIONS}/{content_id}", content)
                continue
            for path in files:
                self.stayed[path] = reasons[path] or reason

    def _pack_file(self, name: str, content: bytes | None) -> Iterator[CommitEntry]:
        """Yield a file of the record, unless it has secrets and is used again."""
        if content is None:
            return
        if _FOR_READING.fullmatch(PurePosixPath(name).name):
            yield CommitEntry(f"record/{name}", self._make_presentable(content))
        elif has_secret(content, self.record.redactor):
            path = (self.record.folder / name).relative_to(self.record.root)
            self.left_out[path.as_posix()] = Reason.CONTENT
        else:
            yield CommitEntry(f"record/{name}", content)

    def _make_presentable(self, content: bytes) -> bytes:
        """Remove secrets and names of this machine's folders."""
        text = self.record.redactor.redact(content.decode(errors="replace"))
        root, home = self.record.root, home_folder()
        for folder, short in ((root, "."), (home, "~")):
            if folder is None or len(folder.parts) < 2:
                continue
            for name in {str(folder), json.dumps(str(folder))[1:-1]}:
                if folder == root:
                    text = re.sub(re.escape(name) + r"/(?=[\w.])", "", text)
                text = re.sub(re.escape(name) + r"(?![\w.-])", short, text)
        return text.encode()


def _ignored_changes(entries: Iterable[LedgerEntry]) -> dict[int, set[str]]:
    """Return the changed files that git ignores, by attempt number."""
    changed = dict[int, set[str]]()
    ignored = dict[int, set[str]]()
    for entry in entries:
        paths = {change.path for change in entry.changes}
        changed.setdefault(entry.attempt, set()).update(paths)
        ignored.setdefault(entry.attempt, set()).update(entry.private)
    both = {number: paths & ignored[number] for number, paths in changed.items()}
    return {number: paths for number, paths in both.items() if paths}


def _with_sent_tree(entry: LedgerEntry, sent: Mapping[str, Checkpoint]) -> LedgerEntry:
    if entry.tree is None:
        return entry
    return replace(entry, tree=sent.get(entry.tree.name))


def _judge_path(path: str, inner: Collection[str]) -> Reason | None:
    """Return why the contents of a file that git does not ignore are not sent."""
    if any(path.startswith(f"{folder}/") for folder in inner):
        return Reason.INNER
    return judge_name(path)
