"""The vocabulary of edits: every form in which a model asks for changes of files ends
in these values.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from cdd_agent.actions.model import Action, CreateFileAction, EditAction
from cdd_agent.changes.excerpts import Ranges
from cdd_agent.errors import StepFailed


class EditProblem(Struct, frozen=True):
    """Why one file of a reply cannot become what the reply says; `path` is empty where
    it is not known.
    """

    path: str
    reason: str


class ReplyRefused(StepFailed):
    """A reply that must not be applied: nothing was written.

    `unseen` are paths whose present content the model has to be shown before it may
    replace them; of those in `lines` these lines are enough.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        path: str = "",
        unseen: frozenset[str] = frozenset(),
        lines: Mapping[str, Ranges] | None = None,
        problems: tuple[EditProblem, ...] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.unseen = unseen
        self.lines = lines or {}
        self.problems = problems or (
            EditProblem(path, "\n".join(filter(None, (message, hint)))),
        )


class PartialEdits(Struct, frozen=True):
    """How the author of edits can change a part of a file, in words for a hint."""

    name: str
    how: str


IN_BLOCKS = PartialEdits(
    "search/replace blocks",
    "send blocks of `<<<<<<< SEARCH`, the lines to find, `=======`, the new lines,"
    " `>>>>>>> REPLACE`, with seven marks and the path on the line before",
)
BY_CALL = PartialEdits("`edit_file`", "use `edit_file`")
BY_ACTION = PartialEdits("`edit`", "use `edit`")


class WholeFile(Struct, frozen=True):
    """One file as a reply gives it: the path's text unjudged, the content exact, lines
    ended by `\\n`.
    """

    path: str
    content: str
    must_be_new: bool = False
    """It is given as one that is not there yet."""


class Hint(Struct, frozen=True):
    """Where an edit says it belongs, besides its text: this decides between several
    places, and finds none.
    """

    line: int | None = None
    """The line, from 1, in which the text begins in the file as it was before the
    reply.
    """
    after: tuple[str, ...] = ()
    """Lines that come before it, in this order, each somewhere after the one before."""


class Replacement(Struct, frozen=True):
    """Lines that take the place of others. Both texts are whole lines without their
    last line end.
    """

    path: str
    find: tuple[str, ...]
    replace: tuple[str, ...]
    hint: Hint = Hint()
    final_newline: bool | None = None
    """Whether the file's last line is ended afterwards; None: as it was."""
    otherwise: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """Another reading of both texts, for when the first is not found."""


class TextReplacement(Struct, frozen=True):
    """A text, perhaps less than a line, that takes the place of another: the `edit`
    action.
    """

    path: str
    find: str
    replace: str


class Deletion(Struct, frozen=True):
    """A file that goes. `lines` are its content, where the reply shows it: then they
    must be what is there.
    """

    path: str
    lines: tuple[str, ...] | None = None


class Renaming(Struct, frozen=True):
    """A file that goes on under another name, with its permissions."""

    path: str
    to: str


class ModeChange(Struct, frozen=True):
    """Other permissions for a file. Nobody gives them: what a reply changes is
    content.
    """

    path: str


Edit = WholeFile | Replacement | TextReplacement | Deletion | Renaming | ModeChange


def edit_of(action: Action) -> Edit | None:
    """An action as an edit; None for one that changes no file."""
    match action:
        case CreateFileAction(file_path=path, content=content):
            return WholeFile(path, content, must_be_new=True)
        case EditAction(file_path=path, find="", replace=content):
            return WholeFile(path, content)
        case EditAction(file_path=path, find=find, replace=content):
            return TextReplacement(path, find, content)
        case _:
            return None


class Doubt(Struct, frozen=True):
    """A code block that no form says to be a file, and that could be one: it was taken
    for explanation.
    """

    line: int
    """Of the reply, from 1."""
    path: str
    is_asked: bool = False
    """The task names it, and not as code."""

    def __str__(self) -> str:
        return (
            f"The code block in line {self.line} of the reply could be {self.path}, and"
            " was taken for explanation"
        )


class BlockFate(StrEnum):
    """What became of one block of a reply."""

    APPLIED = "applied"
    REFUSED = "refused"
    EXPLANATION = "explanation"


class ReplyBlock(Struct, frozen=True):
    """One code block, mark, diff or call of a reply, and what became of it."""

    line: int
    """Its first line in the reply, counted from 1."""
    end: int
    """Its last line, included."""
    kind: str
    """What it is, in words: `code block`, `diff`, `call of create_file`."""
    fate: BlockFate
    path: str = ""
    """The file that it changes, or could be."""
    reason: str = ""
    """Why it was refused, or taken as an explanation."""


class Reply(Struct, frozen=True):
    """A reply as it was read: its edits in the order in which they are done, and its
    words.
    """

    edits: tuple[Edit, ...]
    explanation: str = ""
    doubts: tuple[Doubt, ...] = ()
    """Only of files that no edit is about."""
    blocks: tuple[ReplyBlock, ...] = ()
    """Each block of the reply, in its order."""

    @property
    def changes_files(self) -> bool:
        return not all(isinstance(edit, ModeChange) for edit in self.edits)
