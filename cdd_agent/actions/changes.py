"""Change sets: a reply's file changes, computed and judged in full before anything is written."""

import codecs
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cdd_agent.actions.replies import FileBlock, ReplyRefused
from cdd_agent.workspace.files import digest, read_bytes, write_atomic
from cdd_agent.workspace.paths import PathRefused, confine

Seen = Mapping[str, str | None]
"""What the model was shown: path → digest of the content, or None for a file that did not exist."""

_LEADER = r"^\s*(?:#|//|/\*|--|;|%|<!--|\*|\"|')?\s*"
_ELISION = re.compile(
    _LEADER + r"(?:"
    r"[\(\[<{]*\s*(?:\.\.\.|…).*\b(?:rest|existing|unchanged|same|previous|remaining|omitted|as before|other)\b"
    r"|[\(\[<{]*\s*(?:the\s+)?(?:rest of|remaining|existing|previous|other)\b.*"
    r"(?:\.\.\.|…|\b(?:unchanged|the same|as before|omitted|goes here|remains?|stays?|here)\b)"
    r").*$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class FileChange:
    """One file before (None: it did not exist) and after, as bytes on the disk."""

    path: PurePosixPath
    before: bytes | None
    after: bytes


@dataclass(frozen=True)
class ChangeSet:
    """Changes that are known to apply together. Files whose content stays as it was are not in it."""

    changes: tuple[FileChange, ...]

    @property
    def created(self) -> tuple[str, ...]:
        return tuple(str(change.path) for change in self.changes if change.before is None)

    @property
    def modified(self) -> tuple[str, ...]:
        return tuple(str(change.path) for change in self.changes if change.before is not None)

    def apply(self, root: Path) -> None:
        """Write every file, each atomically. Raises `BadInput` when the disk refuses one."""
        for change in self.changes:
            write_atomic(root / change.path, change.after)


def change_set(root: Path, files: Iterable[FileBlock], seen: Seen, protected: frozenset[str]) -> ChangeSet:
    """Judge what a reply wants to write and compute the changes, reading but not writing.

    `protected` are paths that no reply may touch. Raises `ReplyRefused` that names every reason at once, in words
    that a model can act on.
    """
    changes: list[FileChange] = []
    problems: list[str] = []
    unseen: set[str] = set()
    for block in files:
        try:
            path = _allowed(root, block.path, protected)
            changes.append(_change(root, path, block.content, seen))
        except (PathRefused, ReplyRefused) as refusal:
            problems.append(refusal.message)
            unseen |= getattr(refusal, "unseen", frozenset())
    problems += _collisions(change.path for change in changes)
    if problems:
        raise ReplyRefused("\n".join(problems), unseen=frozenset(unseen))
    return ChangeSet(tuple(change for change in changes if change.before != change.after))


def _allowed(root: Path, text: str, protected: frozenset[str]) -> PurePosixPath:
    path = confine(root, text)
    folders = [part.casefold() for part in path.parts]
    if ".git" in folders or folders[0] == ".cdd" or str(path).casefold() in protected:
        raise PathRefused(f"{path} belongs to git or to the run itself; a step must not write it")
    return path


def _change(root: Path, path: PurePosixPath, content: str, seen: Seen) -> FileChange:
    place = root / path
    if place.is_dir():
        raise ReplyRefused(f"{path} is a folder.")
    blocker = next((parent for parent in place.parents if parent.exists()), root)
    if not blocker.is_dir():
        raise ReplyRefused(f"{path} cannot be written: {blocker.relative_to(root)} is a file, not a folder.")
    if not os.access(place if place.exists() else blocker, os.W_OK):
        raise ReplyRefused(f"{path} cannot be written: it is read-only.")
    before = read_bytes(place)
    if before is None:
        return FileChange(path, None, content.encode())
    _refuse_blind_replacement(path, before, content, seen)
    return FileChange(path, before, _in_the_habit_of(before, content))


def _refuse_blind_replacement(path: PurePosixPath, before: bytes, content: str, seen: Seen) -> None:
    """A file may be replaced only by someone who saw what is in it, and only by all of its new content."""
    if seen.get(str(path)) is None:
        raise ReplyRefused(f"{path} exists already and was not shown.", unseen=frozenset({str(path)}))
    if seen[str(path)] != digest(before):
        raise ReplyRefused(f"{path} was changed by someone else in the meantime.", unseen=frozenset({str(path)}))
    if before.strip() and not content.strip():
        raise ReplyRefused(f"{path} would be emptied.")
    old_lines = set(before.decode("utf-8", errors="replace").splitlines())
    for number, line in enumerate(content.splitlines(), 1):
        if line not in old_lines and _ELISION.match(line):
            raise ReplyRefused(
                f"{path} is given with a part left out (line {number}: {line.strip()[:80]!r}). "
                "The whole file is needed, every line of it."
            )


def _in_the_habit_of(before: bytes, content: str) -> bytes:
    """The new content with the old file's byte order mark and line ends."""
    new = content.encode()
    if before.count(b"\r\n") * 2 > before.count(b"\n"):
        new = new.replace(b"\n", b"\r\n")
    return codecs.BOM_UTF8 + new if before.startswith(codecs.BOM_UTF8) else new


def _collisions(paths: Iterable[PurePosixPath]) -> list[str]:
    """A reply cannot make one path both a file and a folder, nor write one file under two spellings."""
    found: list[str] = []
    known: dict[str, PurePosixPath] = {}
    for path in paths:
        twin = known.setdefault(str(path).casefold(), path)
        if twin is not path:
            found.append(f"{path} and {twin} are the same file on some disks.")
    for path in known.values():
        found += [
            f"{parent} would be both a file and a folder." for parent in path.parents if str(parent).casefold() in known
        ]
    return found
