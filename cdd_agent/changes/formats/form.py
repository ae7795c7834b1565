"""The interface of a form of edits. `all_forms.py` lists the built-in ones."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import Edit


class Span(Struct, frozen=True):
    """Lines of a reply, from `start` to before `end`, whose marks make them edits."""

    start: int
    end: int
    read: Callable[[str | None], list[Edit]]
    """Takes the file that the surrounding text names. Raises `ReplyRefused`."""
    path: str | None = None
    """The file that the marks name for all edits."""
    names_files: bool = False
    """True if each edit names its file: the surrounding text is ignored."""
    kind: str = ""
    """See `ReplyBlock.kind`."""


class Form:
    """One way in which models write edits. Each method has a default."""

    kind = "code block"
    """See `ReplyBlock.kind`."""

    def marked(self, lines: Sequence[str], project_names: ProjectNames) -> list[Span]:
        """Return blocks with begin and end marks, in prose or code blocks.

        An unreadable block is a span too: its `read` raises `ReplyRefused`.
        """
        del lines, project_names
        return []

    def in_prose(
        self, lines: Sequence[str], occupied: set[int], ends: set[int]
    ) -> list[Span]:
        """Return blocks without marks. None begins in `occupied` or continues beyond
        `ends`.
        """
        del lines, occupied, ends
        return []

    def accepts(self, fence: Fence) -> bool:
        """True if a whole code block has this form, correct or not."""
        del fence
        return False

    def read(self, fence: Fence) -> list[Edit]:
        """Return the edits of an accepted code block. Raises `ReplyRefused`."""
        raise NotImplementedError

    def refuse_loose(self, line: str, number: int) -> None:
        """Raise `ReplyRefused` for a line outside of all blocks that belongs in one:
        the reply was cut, or lost a mark. `number` is from 1.
        """
