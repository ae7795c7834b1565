"""An attempt's journal: which files it wrote, what they were before, and what it made of them.

It is saved before the files are written, so that the attempt can be restored after a kill at any moment. It is a chain:
for each file what it was first, and everything that the attempt made of it since, be it by an edit or by a command that
a tool's call ran. Whichever of these is there is the attempt's to restore; anything else is somebody's own.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import field_validator

from cdd_agent.edits.changes import ChangeSet, permissions
from cdd_agent.edits.model import ReplyRefused
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes, remove, write_atomic
from cdd_agent.files.json_file import JsonFile, set_aside
from cdd_agent.git.diff import Change, TreeEntry
from cdd_agent.git.restore import Contents, Piece, RestoreResult, held, is_there, restore

_OF_CALL = re.compile(r"call-([0-9]+)(?:-[0-9]+|\.json)")


class _Entries(JsonFile):
    files: tuple[Change, ...]
    """What was written, in that order; the content before the N-th is in `before-N`.

    A file that was written more than once is there more than once, each time with what it was before the first.
    """

    @field_validator("files")
    @classmethod
    def _are_inside(cls, files: tuple[Change, ...]) -> tuple[Change, ...]:
        for path in (PurePosixPath(change.path) for change in files):
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"{path} is not in the project")
        return files


class _Copy(JsonFile):
    name: str
    permissions: int


class _Copies(JsonFile):
    files: dict[str, _Copy | None]
    """By path; None for a file that is gone."""


@dataclass(frozen=True)
class WrittenFile:
    """A file as a command left it."""

    content: bytes
    permissions: int


def is_file_or_free(place: Path) -> bool:
    """Whether what a command left in a file's place can be told: no link, pipe or the like, and readable."""
    if place.is_symlink():
        return False
    return not place.exists() or place.is_dir() or (place.is_file() and os.access(place, os.R_OK))


def written_file_at(place: Path) -> WrittenFile | None:
    """What is there now; None for no file."""
    content = read_bytes(place) if place.is_file() else None
    return None if content is None else WrittenFile(content, permissions(place))


@dataclass(frozen=True)
class Journal:
    """Kept in the attempt's folder; paths in it are relative to the project's `root`."""

    root: Path
    folder: Path

    @contextmanager
    def writing(self, changes: ChangeSet) -> Iterator[None]:
        """Note what is about to be written, with the content that it replaces. A refusal, after which nothing of it
        was written, is forgotten again."""
        known = self._entries
        firsts = _firsts(known)
        entries = list(known)
        for change in changes.changes:
            place, path = self.root / change.path, str(change.path)
            before = firsts[path] if path in firsts else self._keep_before(len(entries), place, change.before)
            like = permissions(self.root / (change.like or change.path))
            after = None if change.after is None else held(change.after, like)
            entries.append(Change(path, before, after))
        self._save(entries)
        try:
            yield
        except ReplyRefused:
            self._save(known)
            raise

    def record_command_writes(self, made: Mapping[PurePosixPath, WrittenFile | None]) -> None:
        """Note what a command made, or is about to be made once more, of files that the attempt wrote."""
        known = self._entries
        firsts = _firsts(known)
        new = [
            Change(str(path), firsts[str(path)], None if file is None else held(file.content, file.permissions))
            for path, file in made.items()
        ]
        self._save((*known, *new))

    def keep_command_writes(self, call: int, made: Mapping[PurePosixPath, WrittenFile | None]) -> None:
        """The same, and keep it to be done again: the command was run by a tool's call, with this number."""
        copies: dict[str, _Copy | None] = {}
        for index, (path, file) in enumerate(made.items()):
            copies[str(path)] = _Copy(name=f"call-{call}-{index}", permissions=file.permissions) if file else None
            if file is not None:
                write_atomic(self.folder / f"call-{call}-{index}", file.content)
        _Copies(files=copies).save(self._call(call))
        self.record_command_writes(made)

    def command_writes(self, call: int) -> dict[PurePosixPath, WrittenFile | None]:
        """What the command of a call made of the attempt's files, as it was kept."""
        saved = _Copies.load(self._call(call))
        copies = saved.files.items() if saved else ()
        return {PurePosixPath(path): self._made(copy) if copy else None for path, copy in copies}

    def set_calls_aside(self, since: int) -> None:
        """What commands made from this call on, in a round that was interrupted: other calls have their numbers now."""
        for path in self.folder.glob("call-*"):
            found = _OF_CALL.fullmatch(path.name)
            if found and int(found[1]) >= since:
                set_aside(path)

    def changed_since(self) -> frozenset[PurePosixPath]:
        """Files that are no longer as the attempt left them, whoever it was."""
        left = {change.path: change.after for change in self._entries}
        return frozenset(PurePosixPath(path) for path in left if not is_there(self.root, path, left[path]))

    def restore(self, *, forget: bool = True) -> RestoreResult:
        """Undo what was written; harmless when repeated, or when nothing was written.

        Only a file that still holds what the attempt made of it is restored: anybody's later edit stays. Where the
        journal is not forgotten, the same is found when it is repeated.
        """
        entries = self._entries
        if not entries:
            return RestoreResult()
        last: dict[str, Change] = {}
        for change in entries:  # a kill may have come before the last of them was written
            if change.path not in last or is_there(self.root, change.path, change.after):
                last[change.path] = change
        back = restore(self.root, tuple(last.values()), self._contents_before(entries))
        if forget:
            self.forget()
        return back

    def forget(self) -> None:
        """What was written is restored."""
        remove(self._path)

    @property
    def _path(self) -> Path:
        return self.folder / "changes.json"

    @property
    def _entries(self) -> tuple[Change, ...]:
        saved = _Entries.load(self._path)
        return saved.files if saved else ()

    def _save(self, entries: Iterable[Change]) -> None:
        _Entries(files=tuple(entries)).save(self._path)

    def _keep_before(self, number: int, place: Path, content: bytes | None) -> TreeEntry | None:
        if content is None:
            return None
        write_atomic(self.folder / f"before-{number}", content)
        return held(content, permissions(place))

    def _contents_before(self, entries: Sequence[Change]) -> Contents:
        places: dict[str, Piece] = {}
        for index, change in enumerate(entries):
            if change.before is None or change.path in {earlier.path for earlier in entries[:index]}:
                continue
            path = self.folder / f"before-{index}"
            content = read_bytes(path)
            if content is None or held(content, 0).content != change.before.content:
                raise BadInput(
                    f"{path} no longer holds what {change.path} was before the step",
                    hint=f"Put {change.path} in order by hand, then remove {self._path}.",
                )
            places[change.before.content] = Piece(path, 0, len(content))
        return Contents(places)

    def _call(self, number: int) -> Path:
        return self.folder / f"call-{number}.json"

    def _made(self, copy: _Copy) -> WrittenFile:
        content = read_bytes(self.folder / copy.name)
        if content is None:
            raise BadInput(f"{self.folder / copy.name} is gone: what a command of the step made of a file")
        return WrittenFile(content, copy.permissions)


def _firsts(entries: Sequence[Change]) -> dict[str, TreeEntry | None]:
    """What each file was before the attempt."""
    return {change.path: change.before for change in reversed(entries)}
