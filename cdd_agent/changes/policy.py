"""Rules for replacing, deleting and shortening files."""

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from msgspec import Struct, field

from cdd_agent.changes.model import IN_BLOCKS, PartialEdits
from cdd_agent.files.atomic import digest
from cdd_agent.files.line_ranges import Ranges

Seen = Mapping[str, str | None]
"""Shown files: path → digest of the content, or None if the file did not exist."""


class EditPolicy(Struct, frozen=True):
    """The files that a reply's author has seen, and what the task allows."""

    seen: Seen | None = field(default_factory=dict)
    """None if the user applies the reply: every file counts as seen."""
    in_part: Mapping[str, Ranges] = field(default_factory=dict)
    """Shown lines of files that were shown in part. A reply may change only these."""
    may_delete: Callable[[str], bool] = lambda path: False
    """True if the task says to delete the file. Then it may be deleted unseen."""
    may_shrink: Callable[[str], bool] = lambda path: False
    """True if the task says to remove a large part of the file."""
    parts: PartialEdits = IN_BLOCKS
    """The author's way to change a part of a file, for hints."""

    def knows(self, path: PurePosixPath, content: bytes) -> bool:
        """True if the author has seen exactly this content in full."""
        if self.seen is None:
            return True
        name = str(path)
        if name in self.in_part or name not in self.seen:
            return False
        return self.seen[name] == digest(content)

    def was_shown(self, path: PurePosixPath) -> bool:
        return self.seen is None or str(path) in self.seen
