"""Net changes of several attempts, by file, and how to reverse them.

Ledger entries are folded by time. Each content that the attempts found or made leads
back to an earlier one. A change from any other content means that the user edited the
file: an undo goes back to that edit and no further.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.engine.ledger_file import EntryKind, LedgerEntry
from cdd_agent.git.diff import Change, TreeEntry
from cdd_agent.tickets.state import Files

CHANGING = (EntryKind.REPLY, EntryKind.TOOL, EntryKind.COMMAND, EntryKind.CHECK)
"""Entries whose changes belong to the step."""
_Content = tuple[str, str, int | None] | None


class NetChange(Struct, frozen=True):
    """A file's net change. `before` and `after` may be equal."""

    path: str
    before: TreeEntry | None
    """The content that an undo restores."""
    after: TreeEntry | None
    last: EntryKind
    is_edited: bool = False
    """True if `before` is the user's edit between changes."""
    known: Mapping[_Content, TreeEntry | None] = field(default_factory=dict)
    """Each content found or made → the content it leads back to."""
    by_model: frozenset[_Content] = frozenset()
    """Contents made by replies and calls, which the ledger has."""

    def is_by_model(self, present: TreeEntry | None) -> bool:
        """True if a reply or call made this content."""
        return _content(present) in self.by_model

    @property
    def is_change(self) -> bool:
        return not is_same(self.before, self.after)

    def way_back(self, present: TreeEntry | None) -> Change:
        """Return what an undo reverses, given the current content."""
        content = _content(present)
        if content in self.known:
            return Change(self.path, self.known[content], present)
        return Change(self.path, self.before, self.after)

    @property
    def reverse(self) -> Change:
        return Change(self.path, self.after, self.before)


class NetChanges(Struct, frozen=True):
    all: tuple[NetChange, ...] = ()
    """All touched files, by path, even with their old content."""

    @property
    def changes(self) -> tuple[NetChange, ...]:
        """Files that differ from their old content."""
        return tuple(change for change in self.all if change.is_change)

    @property
    def edited(self) -> frozenset[str]:
        """Files that an undo restores only in part, because of the user's edits."""
        return frozenset(change.path for change in self.all if change.is_edited)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(change.path for change in self.changes)

    @property
    def files(self) -> Files:
        created, modified, deleted = [], [], []
        for change in self.changes:
            if change.before is None:
                created.append(change.path)
            elif change.after is None:
                deleted.append(change.path)
            else:
                modified.append(change.path)
        return Files(tuple(created), tuple(modified), tuple(deleted))


def fold(entries: Iterable[LedgerEntry]) -> NetChanges:
    """Entries must be in order of time."""
    courses = dict[str, _Course]()
    for entry in without_withdrawn(entries):
        if entry.kind is EntryKind.RESTORED:
            for change in entry.changes:
                if change.path in courses:
                    courses[change.path].go_back(change)
        if entry.kind not in CHANGING:
            continue
        for change in entry.changes:
            if change.path not in courses:
                courses[change.path] = _Course(_Origin(change.before))
            courses[change.path].add(change, entry.kind)
    return NetChanges(
        tuple(course.net_change(path) for path, course in sorted(courses.items()))
    )


def without_withdrawn(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Remove changes that were refused and never written."""
    valid: list[LedgerEntry] = []
    for entry in entries:
        if entry.kind is not EntryKind.WITHDRAWN:
            valid.append(entry)
            continue
        for place in range(len(valid) - 1, -1, -1):
            candidate = valid[place]
            if (
                candidate.kind in (EntryKind.REPLY, EntryKind.TOOL)
                and candidate.attempt == entry.attempt
            ):
                valid[place] = replace(candidate, changes=())
                break
    return valid


def is_same(one: TreeEntry | None, other: TreeEntry | None) -> bool:
    """True for equal content and permissions."""
    return _content(one) == _content(other)


def is_same_mode(one: TreeEntry, other: TreeEntry) -> bool:
    """True for equal mode and permissions."""
    return (one.mode, one.permissions) == (other.mode, other.permissions)


class _Origin(Struct, frozen=True):
    entry: TreeEntry | None
    is_edited: bool = False


class _Course(Struct):
    origin: _Origin
    known: dict[_Content, _Origin] = field(default_factory=dict)
    now: TreeEntry | None = None
    last: EntryKind = EntryKind.REPLY
    by_model: set[_Content] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.now = self.origin.entry
        self.known[_content(self.now)] = self.origin

    def add(self, change: Change, cause: EntryKind) -> None:
        """The change may start from the user's edit."""
        if not is_same(change.before, self.now):
            self.origin = self.known.setdefault(
                _content(change.before), _Origin(change.before, is_edited=True)
            )
        self.now = change.after
        self.known[_content(self.now)] = self.origin
        self.last = cause
        if cause in (EntryKind.REPLY, EntryKind.TOOL):
            self.by_model.add(_content(self.now))

    def go_back(self, change: Change) -> None:
        self.origin = self.known.setdefault(
            _content(change.after), _Origin(change.after, is_edited=True)
        )
        self.now = change.after

    def net_change(self, path: str) -> NetChange:
        entries = {content: origin.entry for content, origin in self.known.items()}
        return NetChange(
            path,
            self.origin.entry,
            self.now,
            self.last,
            is_edited=self.origin.is_edited,
            known=entries,
            by_model=frozenset(self.by_model),
        )


def _content(entry: TreeEntry | None) -> _Content:
    """Unlike git's comparison, this includes unusual permissions."""
    return None if entry is None else (entry.mode, entry.content, entry.permissions)
