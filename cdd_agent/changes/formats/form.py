"""The interface of a form of edits. The built-in forms are in `all_forms.py`."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import Edit


class Span(Struct, frozen=True):
    """The lines of a reply, from `start` to before `end`, that are edits by their
    marks.
    """

    start: int
    end: int
    read: Callable[[str | None], list[Edit]]
    """Returns the edits. The argument is the file that the text around them names.
    Raises `ReplyRefused`.
    """
    path: str | None = None
    """The file that its marks name, if they name one for all edits."""
    names_files: bool = False
    """True if it names its files itself: a name around it does not count."""
    kind: str = ""
    """The words of `ReplyBlock.kind`: `search/replace block`, `call of create_file`."""


class Form:
    """One way in which models write edits. A method that a form does not need is
    inherited.
    """

    kind = "code block"
    """The words of `ReplyBlock.kind` for a code block of this form."""

    def marked(self, lines: Sequence[str], project_names: ProjectNames) -> list[Span]:
        """Return the blocks that begin and end with marks, in prose or in a code block.

        A block that cannot be read is a span all the same: its `read` raises
        `ReplyRefused`.
        """
        del lines, project_names
        return []

    def in_prose(
        self, lines: Sequence[str], occupied: set[int], ends: set[int]
    ) -> list[Span]:
        """Return the blocks without such marks. None begins in a line of `occupied` or
        continues beyond a line of `ends`.
        """
        del lines, occupied, ends
        return []

    def accepts(self, fence: Fence) -> bool:
        """True if a whole code block has this form, correct or not."""
        del fence
        return False

    def read(self, fence: Fence) -> list[Edit]:
        """Return the edits of a code block that it takes. Raises `ReplyRefused`."""
        raise NotImplementedError

    def refuse_loose(self, line: str, number: int) -> None:
        """Raise `ReplyRefused` for a line outside of all blocks that belongs into one:
        the reply was cut, or has lost a mark. `number` is from 1.
        """
