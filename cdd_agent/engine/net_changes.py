"""Net changes: what a row of attempts made of each file together, and what an undo of them leads back to.

The attempts are segments between checkpoints. What came between two of them was an attempt being restored, another
step, or somebody's edit. They are folded per file, by one rule: a content that the attempts found or left the file with
is known, and leads back to where it came from; any other one that comes up between them is a person's version, and what
the attempts do to that leads back to it, and no further.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.diff import Change, TreeEntry

_Content = tuple[str, str, int | None] | None


@dataclass(frozen=True)
class Segment:
    """What is different between two checkpoints, one after the other."""

    before: Checkpoint
    after: Checkpoint
    changes: tuple[Change, ...]
    is_ours: bool = True
    """It was the attempts' doing, and did not come between them."""
    not_ours: frozenset[str] = frozenset()
    """But for these files: they were restored afterwards, or kept as somebody else's."""


@dataclass(frozen=True)
class _Origin:
    """Where an undo leads to."""

    entry: TreeEntry | None
    at: Checkpoint
    is_edited: bool


@dataclass(frozen=True)
class NetChange:
    """One file, from where it came to where the attempts left it."""

    change: Change
    since: Checkpoint
    """One in which it is as it was before."""
    is_edited: bool
    """It came from a person, who changed it between these attempts or after them."""

    @property
    def is_one(self) -> bool:
        return _content(self.change.before) != _content(self.change.after)


@dataclass(frozen=True)
class NetChanges:
    """What attempts changed together, and the checkpoint after the last of them."""

    files: tuple[NetChange, ...] = ()
    last: Checkpoint | None = None
    """None: nothing is known of what they did."""

    @property
    def parts(self) -> tuple[NetChange, ...]:
        return tuple(file for file in self.files if file.is_one)

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(file.change for file in self.parts)

    @property
    def reverse(self) -> tuple[Change, ...]:
        return tuple(replace(change, before=change.after, after=change.before) for change in self.changes)

    @property
    def edited(self) -> frozenset[str]:
        """Files that cannot be made what they were before the attempts, as a person has edited them since."""
        return frozenset(file.change.path for file in self.files if file.is_edited)


def fold(segments: Iterable[Segment]) -> NetChanges:
    """The net changes of segments that are in the order in which they came about."""
    courses = dict[str, _Course]()
    last: Checkpoint | None = None
    for segment in segments:
        last = segment.after
        for change in segment.changes:
            course = courses.get(change.path)
            if course is None:
                if not segment.is_ours:
                    continue
                course = courses[change.path] = _Course(_Origin(change.before, segment.before, is_edited=False))
            course.was(change.before, segment.before)
            if segment.is_ours and change.path not in segment.not_ours:
                course.made(change.after)
            else:
                course.was(change.after, segment.after)
    return NetChanges(tuple(courses[path].as_change(path) for path in sorted(courses)), last)


@dataclass
class _Course:
    """One file on its way through the segments."""

    origin: _Origin
    known: dict[_Content, _Origin] = field(default_factory=dict)
    now: TreeEntry | None = None

    def __post_init__(self) -> None:
        self.made(self.origin.entry)

    def made(self, entry: TreeEntry | None) -> None:
        self.now, self.known[_content(entry)] = entry, self.origin

    def was(self, entry: TreeEntry | None, at: Checkpoint) -> None:
        """It was found so: nothing new, or restored, or edited by somebody."""
        if _content(entry) != _content(self.now):
            self.origin = self.known.setdefault(_content(entry), _Origin(entry, at, is_edited=True))
            self.now = entry

    def as_change(self, path: str) -> NetChange:
        return NetChange(Change(path, self.origin.entry, self.now), self.origin.at, self.origin.is_edited)


def _content(entry: TreeEntry | None) -> _Content:
    """Entries compare as git would, without unusual permissions; here these count too."""
    return None if entry is None else (entry.mode, entry.content, entry.permissions)
