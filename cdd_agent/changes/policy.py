"""On what terms a reply may change files."""

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from msgspec import Struct, field

from cdd_agent.changes.excerpts import Ranges
from cdd_agent.changes.model import IN_BLOCKS, PartialEdits
from cdd_agent.files.atomic import digest

Seen = Mapping[str, str | None]
"""Files that the model was shown: path → digest of the content, or None for one that
did not exist.
"""


class EditPolicy(Struct, frozen=True):
    """On what terms a reply is used: what its author knew, and what the task lets them
    do.
    """

    seen: Seen | None = field(default_factory=dict)
    """None: whoever applies the reply answers for it."""
    in_part: Mapping[str, Ranges] = field(default_factory=dict)
    """The lines that were shown of those of which no others were: no others may be
    changed.
    """
    may_delete: Callable[[str], bool] = lambda path: False
    """Whether the task says of a file that it goes: then it may without having been
    shown.
    """
    may_shrink: Callable[[str], bool] = lambda path: False
    """Whether the task says of a file that much of it goes."""
    parts: PartialEdits = IN_BLOCKS
    """How its author changes a part of a file: for hints."""

    def knows(self, path: PurePosixPath, content: bytes) -> bool:
        """Whether its author saw this content, and all of it."""
        if self.seen is None:
            return True
        return (
            str(path) not in self.in_part
            and str(path) in self.seen
            and self.seen[str(path)] == digest(content)
        )

    def was_shown(self, path: PurePosixPath) -> bool:
        return self.seen is None or str(path) in self.seen
