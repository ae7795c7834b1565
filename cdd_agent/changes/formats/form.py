"""A form of edits, as the reader of a reply (`parse.py`) sees it. A new one is a module
here with a `Form`, and a name in the list there.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.known import KnownNames
from cdd_agent.changes.model import Edit


class Span(Struct, frozen=True):
    """The lines of a reply, from `start` to before `end`, that are edits by their own
    marks.
    """

    start: int
    end: int
    read: Callable[[str | None], list[Edit]]
    """The edits; of the file that is named around them, where they name none. Raises
    `ReplyRefused`.
    """
    path: str | None = None
    """The file that its marks name, where they name only one for all."""
    names_files: bool = False
    """It says itself which files it is about: a name around it is none of its."""
    kind: str = ""
    """What it is, in words for `ReplyBlock.kind`: `search/replace block`, `call of
    create_file`.
    """


class Form:
    """One way in which models write edits, with what most of them do not have."""

    kind = "code block"
    """What a code block that it takes is, in words for `ReplyBlock.kind`."""

    def marked(self, lines: Sequence[str], known: KnownNames) -> list[Span]:
        """Those that begin and end with marks of their own, in prose or in a code
        block.

        A block that cannot be read is a span all the same, as far as it goes: its
        `read` raises `ReplyRefused`. Then its lines are known, and those after it.
        """
        del lines, known
        return []

    def in_prose(
        self, lines: Sequence[str], taken: set[int], ends: set[int]
    ) -> list[Span]:
        """Those without such marks: none begins in a line that is taken, and none goes
        beyond one that `ends` it.
        """
        del lines, taken, ends
        return []

    def takes(self, fence: Fence) -> bool:
        """Whether a code block is of this form as a whole, be it a good one or not."""
        del fence
        return False

    def read(self, fence: Fence) -> list[Edit]:
        """The edits of a code block that it takes. Raises `ReplyRefused`."""
        raise NotImplementedError

    def refuse_loose(self, line: str, number: int) -> None:
        """Raise `ReplyRefused` for a line outside of all edits that belongs into one:
        the reply was cut, or has lost a mark. `number` is the line's in the reply.
        """
