"""Net changes: what a row of attempts made of each file together, and what an undo of
them leads back to.

The attempts are segments between checkpoints. What came between two of them was an
attempt being restored, another step, or somebody's edit. They are folded per file, by
one rule: a content that the attempts found or left the file with is known, and leads
back to where it came from; any other one that comes up between them is a person's
version, and what the attempts do to that leads back to it, and no further.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.files.json_file import JsonFile
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.diff import Change, TreeEntry

_Content = tuple[str, str, int | None] | None


class Segment(JsonFile, frozen=True):
    """An attempt's doing, or a part of it: a piece of a run's history, between two
    checkpoints.
    """

    is_ours: ClassVar[bool] = True
    before: Checkpoint
    after: Checkpoint
    own: tuple[str, ...] = ()
    """Files that are no part of what the attempt did: its journal restored them, or
    kept them as somebody else's.
    """


class Between(Segment, frozen=True):
    """What came between two attempts."""

    is_ours: ClassVar[bool] = False


class NetChanges(Struct, frozen=True):
    """The sum of what attempts changed."""

    changes: tuple[Change, ...] = ()
    """Of the files that are not as they were before, each from where it came to where
    the attempts left it.
    """
    edited: frozenset[str] = frozenset()
    """Files that cannot be made what they were before the attempts, as a person has
    edited them since.
    """
    since: Mapping[str, Checkpoint] = field(default_factory=dict)
    """By path, a checkpoint in which it is as it was before."""
    last: Checkpoint | None = None
    """After the last of them. None: nothing is known of what they did."""

    @property
    def reverse(self) -> tuple[Change, ...]:
        return tuple(
            replace(change, before=change.after, after=change.before)
            for change in self.changes
        )


def fold(segments: Iterable[tuple[Segment, Sequence[Change]]]) -> NetChanges:
    """The net changes of segments, each with what differs, in the order in which they
    came about.
    """
    courses = dict[str, _Course]()
    last: Checkpoint | None = None
    for segment, changes in segments:
        last = segment.after
        for change in changes:
            if change.path not in courses:
                if not segment.is_ours:
                    continue
                courses[change.path] = _Course(
                    _Origin(change.before, segment.before, is_edited=False)
                )
            course = courses[change.path]
            course.was(change.before, segment.before)
            if segment.is_ours and change.path not in segment.own:
                course.made(change.after)
            else:
                course.was(change.after, segment.after)
    return NetChanges(
        tuple(
            Change(path, one.origin.entry, one.now)
            for path, one in sorted(courses.items())
            if one.is_change
        ),
        frozenset(path for path, one in courses.items() if one.origin.is_edited),
        {path: one.origin.at for path, one in courses.items()},
        last,
    )


class _Origin(Struct, frozen=True):
    """Where an undo leads to."""

    entry: TreeEntry | None
    at: Checkpoint
    is_edited: bool
    """By a person, between the attempts or after them."""


class _Course(Struct):
    """One file on its way through the segments."""

    origin: _Origin
    known: dict[_Content, _Origin] = field(default_factory=dict)
    now: TreeEntry | None = None

    def __post_init__(self) -> None:
        self.made(self.origin.entry)

    @property
    def is_change(self) -> bool:
        return _content(self.origin.entry) != _content(self.now)

    def made(self, entry: TreeEntry | None) -> None:
        self.now, self.known[_content(entry)] = entry, self.origin

    def was(self, entry: TreeEntry | None, at: Checkpoint) -> None:
        """It was found so: nothing new, or restored, or edited by somebody."""
        if _content(entry) != _content(self.now):
            self.origin = self.known.setdefault(
                _content(entry), _Origin(entry, at, is_edited=True)
            )
            self.now = entry


def _content(entry: TreeEntry | None) -> _Content:
    """Entries compare as git would, without unusual permissions; here these count
    too.
    """
    return None if entry is None else (entry.mode, entry.content, entry.permissions)
