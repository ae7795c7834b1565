"""Change sets: the file changes of a reply or an action, computed and judged in full before anything is written."""

import codecs
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cdd_agent.actions.matching import replaced_once
from cdd_agent.actions.model import FileAlreadyExistsError
from cdd_agent.actions.replies import FileBlock, ReplyRefused
from cdd_agent.workspace.files import create_exclusive, digest, read_bytes, write_atomic
from cdd_agent.workspace.paths import PathRefused, confine
from cdd_agent.workspace.reading import holds_secrets

Seen = Mapping[str, str | None]
"""What the model was shown: path → digest of the content, or None for a file that did not exist."""

_LARGEST = 50_000_000
"""Bytes of a file that may be edited."""
_DOTS = r"[\(\[<{]*\s*(?:\.\.\.|…)"
_REST = r"(?:rest|existing|unchanged|same|previous|remaining|omitted|before|other|above|below|keep)"
_STAYS = r"(?:\.\.\.|…|\b(?:unchanged|the same|as (?:before|is|above)|omitted|goes here|(?:remain|stay)s?)\b)"
_ELISION = re.compile(
    # a comment …
    r"^\s*(?:#|//|/\*|--|;|%|<!--|\*)\s*(?:"
    rf"{_DOTS}\W*$"  # of nothing but dots
    rf"|{_DOTS}.*\b{_REST}\b.*"
    rf"|[\(\[<{{]*(?:the\s+)?(?:rest of|remaining|existing|previous|other|everything else)\b.*{_STAYS}.*"
    r"|(?:the\s+)?rest of (?:the\s+)?(?:file|code|class|function|method|module|implementation)\W*$"
    r"|(?:unchanged|no changes?(?: here)?|same as (?:above|before))\W*$"
    r"|keep (?:the )?(?:rest|everything|existing)\b.*"
    # … or a line that begins with dots
    rf")|^\s*{_DOTS}\s*\w.*\b{_REST}\b.*",
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

    @property
    def written(self) -> tuple[str, ...]:
        return (*self.created, *self.modified)

    def check_still_valid(self, root: Path) -> None:
        """Raises `ReplyRefused` if a file is no longer what it was when this was computed."""
        for change in self.changes:
            if read_bytes(root / change.path) != change.before:
                raise _changed_meanwhile(change.path)

    def apply(self, root: Path) -> None:
        """Write every file, each atomically, if it still is what it was when this was computed.

        Raises `ReplyRefused` for one that is not, and `BadInput` when the disk refuses; files before it are written by
        then. A new one that somebody else has made meanwhile stays as it is: `FileAlreadyExistsError`.
        """
        self.check_still_valid(root)
        for change in self.changes:
            if read_bytes(root / change.path) != change.before:
                raise _changed_meanwhile(change.path)
            if change.before is not None:
                write_atomic(root / change.path, change.after)
                continue
            try:
                create_exclusive(root / change.path, change.after)
            except FileExistsError as error:
                raise FileAlreadyExistsError(str(change.path)) from error


def change_set(
    root: Path, files: Iterable[FileBlock], seen: Seen, protected: Callable[[Path], bool] = lambda place: False
) -> ChangeSet:
    """Judge what a reply wants to write and compute the changes, reading but not writing.

    `protected` tells of a resolved place that no reply may touch it. Raises `ReplyRefused` that names every reason
    at once, in words that a model can act on.
    """
    changes: list[FileChange] = []
    problems: list[str] = []
    unseen: set[str] = set()
    for block in files:
        try:
            path = writable_path(root, block.path, protected)
            changes.append(_change(root, path, block.content, seen))
        except (PathRefused, ReplyRefused) as refusal:
            problems.append(refusal.message)
            unseen |= getattr(refusal, "unseen", frozenset())
    problems += _collisions(change.path for change in changes)
    if problems:
        raise ReplyRefused("\n".join(problems), unseen=frozenset(unseen))
    return ChangeSet(tuple(change for change in changes if change.before != change.after))


def _looked_at(root: Path, path: PurePosixPath) -> os.stat_result | None:
    """What is at a path itself, no link followed; None where nothing is. Raises `PathRefused` where nobody may look."""
    try:
        return (root / path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise PathRefused(f"{path} cannot be looked at: {error.strerror or error}") from error


def writable_path(root: Path, text: str, protected: Callable[[Path], bool]) -> PurePosixPath:
    """A path text of a reply or an action as a file that it may write. Raises `PathRefused`.

    Judged by where the path leads, whatever links it goes through.
    """
    path = confine(root, text)
    place = (root / path).resolve()
    names = [_as_any_disk_reads(part) for part in place.relative_to(root.resolve()).parts]
    if {".git", "git~1"} & set(names) or names[0] == ".cdd" or protected(place):
        raise PathRefused(f"{path} belongs to git or to the program itself; it must not be written")
    return path


def _as_any_disk_reads(name: str) -> str:
    """Windows drops dots and spaces at the end and what follows a colon, macOS case and characters without width."""
    seen = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return seen.partition(":")[0].rstrip(". ").casefold()


def creation(root: Path, file_path: str, content: str, protected: Callable[[Path], bool]) -> ChangeSet:
    """The change that makes a new file. Raises `FileAlreadyExistsError`, `PathRefused` or `ReplyRefused`."""
    path = writable_path(root, file_path, protected)
    found = _looked_at(root, path)
    if found and stat.S_ISREG(found.st_mode):
        raise FileAlreadyExistsError(str(path))
    _refuse_unwritable(root, path)
    return ChangeSet((FileChange(path, None, content.encode()),))


def edit(root: Path, file_path: str, find: str, replace: str, protected: Callable[[Path], bool]) -> ChangeSet:
    """The change that replaces one text by another in a file, or with an empty `find` the whole file.

    Raises `SearchTextNotFoundError`, `MultipleMatchesFoundError`, `PathRefused` or `ReplyRefused`.
    """
    path = writable_path(root, file_path, protected)
    _refuse_unwritable(root, path)
    before = read_bytes(root / path)
    if before is None:
        raise ReplyRefused(f"There is no file {path}.", hint="Use `create_file` to make it.")
    if find:
        after = replaced_once(before, find, replace)
    else:
        refuse_partial(path, before, replace)
        after = in_the_habit_of(before, replace)
    return ChangeSet((FileChange(path, before, after),))


def _change(root: Path, path: PurePosixPath, content: str, seen: Seen) -> FileChange:
    _refuse_unwritable(root, path)
    before = read_bytes(root / path)
    if before is None:
        return FileChange(path, None, content.encode())
    _refuse_blind_replacement(path, before, content, seen)
    return FileChange(path, before, in_the_habit_of(before, content))


def _refuse_unwritable(root: Path, path: PurePosixPath) -> None:
    found = _looked_at(root, path)
    mode = found.st_mode if found else 0
    if stat.S_ISLNK(mode):
        raise ReplyRefused(f"{path} is a link; write the file that it leads to.")
    if stat.S_ISDIR(mode):
        raise ReplyRefused(f"{path} is a folder.")
    if found and (not stat.S_ISREG(mode) or found.st_size > _LARGEST):
        raise ReplyRefused(f"{path} is not a file to be changed here: it is a device, or over {_LARGEST:,} bytes.")
    blocker = next(parent for parent in path.parents if _looked_at(root, parent))  # the last is the project itself
    if not (root / blocker).is_dir():
        raise ReplyRefused(f"{path} cannot be written: {blocker} is a file, not a folder.")
    if not os.access(root / (path if found else blocker), os.W_OK):
        raise ReplyRefused(f"{path} cannot be written: it is read-only.")


def _refuse_blind_replacement(path: PurePosixPath, before: bytes, content: str, seen: Seen) -> None:
    """A file may be replaced only by someone who saw what is in it, and only by all of its new content."""
    if str(path) not in seen and holds_secrets(path.name):
        raise ReplyRefused(f"{path} exists already and is not shown: only a step that names it may replace it.")
    if str(path) not in seen:
        raise ReplyRefused(f"{path} exists already and was not shown.", unseen=frozenset({str(path)}))
    if seen[str(path)] != digest(before):
        raise _changed_meanwhile(path)
    refuse_partial(path, before, content)


def refuse_partial(path: PurePosixPath, before: bytes, content: str) -> None:
    """Raises `ReplyRefused` if the new content of a whole file leaves out what was in it."""
    if before.strip() and not content.strip():
        raise ReplyRefused(f"{path} would be emptied.")
    old_lines = set(before.decode("utf-8", errors="replace").splitlines())
    for number, line in enumerate(content.splitlines(), 1):
        if line not in old_lines and _leaves_out(path, line):
            raise ReplyRefused(
                f"{path} is given with a part left out (line {number}: {line.strip()[:80]!r}). "
                "The whole file is needed, every line of it."
            )


def _changed_meanwhile(path: PurePosixPath) -> ReplyRefused:
    return ReplyRefused(f"{path} was changed by someone else in the meantime.", unseen=frozenset({str(path)}))


def _leaves_out(path: PurePosixPath, line: str) -> bool:
    """A line that stands for others. In prose, `#` begins a heading and not a comment."""
    prose = path.suffix.lower() in {".md", ".markdown", ".rst", ".txt"} and line.lstrip().startswith(("#", "*", "-"))
    return not prose and bool(_ELISION.match(line))


def in_the_habit_of(before: bytes, content: str) -> bytes:
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
