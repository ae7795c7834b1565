"""An attempt's journal: which files it wrote, what they were before, and what it made
of them.

It is saved before the files are written, so that the attempt can be restored after a
kill at any moment. It is a chain: for each file what it was first, and everything that
the attempt made of it since, be it by an edit or by a command that a tool's call ran.
Whichever of these is there is the attempt's to restore; anything else is somebody's
own. Files are known by the ids of their contents. What is replaced is kept beside the
journal, so that nothing else is needed to go back: no git, no repository, no
checkpoint.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from cdd_agent.edits.changes import ChangeSet, permissions
from cdd_agent.edits.model import ReplyRefused
from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes, remove, write_atomic
from cdd_agent.files.json_file import JsonFile, set_aside
from cdd_agent.files.paths import without_links
from cdd_agent.git.diff import Change
from cdd_agent.git.restore import (
    Contents,
    Piece,
    RestoreResult,
    held,
    is_there,
    restore,
)

_OF_CALL = re.compile(r"call-([0-9]+)(?:-[0-9]+|\.json)")


def expect_inside(paths: Iterable[str]) -> None:
    """Raises `ValueError` for a path that leaves the project."""
    for path in map(PurePosixPath, paths):
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{path} is not in the project")


class _Entries(JsonFile, frozen=True):
    files: tuple[Change, ...]
    """The files that were written, in that order; the content before the N-th is in
    `before-N`.

    A file that was written more than once is there more than once, each time with what
    it was before the first.
    """

    def __post_init__(self) -> None:
        expect_inside(change.path for change in self.files)


class _Copy(JsonFile, frozen=True):
    name: Annotated[str, Meta(pattern=r"^call-[0-9]+-[0-9]+\Z")]
    permissions: int


class _Copies(JsonFile, frozen=True):
    files: dict[str, _Copy | None]
    """By path; None for a file that is gone."""

    def __post_init__(self) -> None:
        expect_inside(self.files)


class WrittenFile(Struct, frozen=True):
    """A file as a command left it."""

    content: bytes
    permissions: int


CommandWrites = Mapping[PurePosixPath, WrittenFile | None]
"""Files as a command left them; None: it removed them."""


class Journal(Struct, frozen=True):
    """Kept in the attempt's folder; paths in it are relative to the project's
    `root`.
    """

    root: Path
    folder: Path
    side: Path | None = None
    """Kept here instead, while the attempt is made in a tree beside the person's; but
    for what commands made, which has to be done again in theirs.
    """

    @contextmanager
    def writing(self, changes: ChangeSet) -> Iterator[None]:
        """Note what is about to be written, with the content that it replaces. A
        refusal, after which nothing of it was written, is forgotten again.
        """
        known = self._entries
        first, entries = _first(known), list(known)
        for change in changes.changes:
            entry = change.by_id(self.root)
            if entry.path in first:
                entry = replace(entry, before=known[first[entry.path]].before)
            elif change.before is not None:
                write_atomic(self._doings / f"before-{len(entries)}", change.before)
            entries.append(entry)
        self._save(entries)
        try:
            yield
        except ReplyRefused:
            self._save(known)
            raise

    def record_command_writes(self, made: CommandWrites) -> None:
        """Note what a command made, or is about to be made once more, of files that the
        attempt wrote.
        """
        known = self._entries
        first = _first(known)
        new = [
            Change(
                str(path),
                known[first[str(path)]].before,
                held(file.content, file.permissions) if file else None,
            )
            for path, file in made.items()
        ]
        self._save((*known, *new))

    def keep_command_writes(self, call: int, made: CommandWrites) -> None:
        """The same, and keep it to be done again: the command was run by a tool's call,
        with this number.
        """
        copies: dict[str, _Copy | None] = {}
        for index, (path, file) in enumerate(made.items()):
            copies[str(path)] = (
                _Copy(name=f"call-{call}-{index}", permissions=file.permissions)
                if file
                else None
            )
            if file is not None:
                write_atomic(self.folder / f"call-{call}-{index}", file.content)
        _Copies(files=copies).save(self.folder / f"call-{call}.json")
        self.record_command_writes(made)

    def command_writes(self, call: int) -> CommandWrites:
        """The writes of the command of a call, as they were kept."""
        saved = _Copies.load(self.folder / f"call-{call}.json")
        made: dict[PurePosixPath, WrittenFile | None] = {}
        for path, copy in saved.files.items() if saved else ():
            content = copy and read_bytes(self.folder / copy.name)
            if copy is not None and content is None:
                raise BadInput(
                    f"{self.folder / copy.name} is gone: what a command of the step"
                    " made of a file"
                )
            made[PurePosixPath(path)] = (
                None if copy is None else WrittenFile(content or b"", copy.permissions)
            )
        return made

    def copies(self) -> dict[str, str]:
        """The names of the files here that hold contents, and which file of the project
        each content is of.

        Raises `Damaged`.
        """
        kept = {
            f"before-{index}": entry.path for index, entry in enumerate(self._entries)
        }
        for place in self.folder.glob("call-*.json"):
            saved = _Copies.load(place)
            kept |= (
                {copy.name: path for path, copy in saved.files.items() if copy}
                if saved
                else {}
            )
        return kept

    def set_calls_aside(self, since: int) -> None:
        """The writes of commands from this call on, in a round that was interrupted:
        others have their numbers now.
        """
        for path in self.folder.glob("call-*"):
            found = _OF_CALL.fullmatch(path.name)
            if found and int(found[1]) >= since:
                set_aside(path)

    @property
    def paths(self) -> frozenset[str]:
        """The files that the attempt has written."""
        return frozenset(change.path for change in self._entries)

    @property
    def changes(self) -> dict[str, Change]:
        """The files that the attempt has written, by path: each from what it was first
        to what the attempt made of it last.
        """
        return {change.path: change for change in self._entries}

    def changed_since(self) -> frozenset[PurePosixPath]:
        """Files that are no longer as the attempt left them, whoever it was."""
        left = {change.path: change for change in self._entries}
        return frozenset(
            PurePosixPath(path)
            for path, last in left.items()
            if not self._is_made(last)
        )

    def left_by_command(self, others: Set[PurePosixPath]) -> CommandWrites:
        """The attempt's files as a command has just left them, but for those that were
        others' by then; as far as it can be told: no link, pipe or the like, and
        readable.
        """
        made: dict[PurePosixPath, WrittenFile | None] = {}
        for path in sorted(self.changed_since() - others):
            place = self.root / path
            if place.is_file() and not place.is_symlink() and os.access(place, os.R_OK):
                content = read_bytes(place)
                made[path] = (
                    None
                    if content is None
                    else WrittenFile(content, permissions(place))
                )
            elif place.is_dir() or not os.path.lexists(place):
                made[path] = None
        return made

    def restore(self, *, forget: bool = True) -> RestoreResult:
        """Undo what was written; harmless when repeated, or when nothing was written.

        Only a file that still holds what the attempt made of it is restored: anybody's
        later edit stays. Where the journal is not forgotten, the same is found when it
        is repeated.
        """
        entries = self._entries
        if not entries:
            return RestoreResult()
        last: dict[str, Change] = {}
        # a kill may have come before the last of them was written
        for change in entries:
            if change.path not in last or self._is_made(change):
                last[change.path] = change
        changes = [
            replace(change, path=without_links(self.root, change.path))
            for change in last.values()
        ]
        back = restore(self.root, changes, self._contents_before(entries))
        if forget:
            self.forget()
        return back

    def forget(self) -> None:
        """To be called when it is restored."""
        remove(self._path)

    @property
    def _doings(self) -> Path:
        return self.side or self.folder

    @property
    def _path(self) -> Path:
        return self._doings / "changes.json"

    @property
    def _entries(self) -> tuple[Change, ...]:
        saved = _Entries.load(self._path)
        return saved.files if saved else ()

    def _save(self, entries: Iterable[Change]) -> None:
        _Entries(files=tuple(entries)).save(self._path)

    def _is_made(self, change: Change) -> bool:
        """Whether a file is now as this made it."""
        return is_there(self.root, without_links(self.root, change.path), change.after)

    def _contents_before(self, entries: Sequence[Change]) -> Contents:
        places: dict[str, Piece | bytes] = {}
        for name, index in _first(entries).items():
            before, path = entries[index].before, self._doings / f"before-{index}"
            if before is None:
                continue
            content = read_bytes(path)
            if content is None or held(content, 0).content != before.content:
                raise BadInput(
                    f"{path} no longer holds what {name} was before the step",
                    hint=f"Put {name} in order by hand, then remove {self._path}.",
                )
            places[before.content] = Piece(path, 0, len(content))
        return Contents(places)


def _first(entries: Sequence[Change]) -> dict[str, int]:
    """Which of them is the first one of each file."""
    return {entries[index].path: index for index in reversed(range(len(entries)))}
