"""Edits: every form in which a model asks for changes is read into these values."""

from collections.abc import Mapping, Sequence
from enum import Enum, StrEnum

from msgspec import Struct

from cdd_agent.actions.model import Action, CreateFileAction, EditAction
from cdd_agent.errors import CddError, StepFailed
from cdd_agent.files.line_ranges import Ranges
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.sanitize import sanitize_for_display

_MOST_REASONS = 20


_REPLY = "The model's reply "
"""The beginning of the message of each fault."""


class ReplyFault(Enum):
    """What is wrong with a reply. The reasons of `EditProblem` are for the model."""

    EMPTY = Refusal.REPLY_EMPTY
    UNFINISHED = Refusal.REPLY_UNFINISHED
    NO_FILES = Refusal.REPLY_NO_FILES
    UNCLEAR = Refusal.REPLY_UNCLEAR
    CALLS_IN_TEXT = Refusal.REPLY_CALLS_IN_TEXT
    FORBIDDEN = Refusal.REPLY_FORBIDDEN
    UNSEEN = Refusal.REPLY_UNSEEN
    ABSENT = Refusal.REPLY_ABSENT
    NO_MATCH = Refusal.REPLY_NO_MATCH
    SEVERAL_MATCHES = Refusal.REPLY_SEVERAL_MATCHES
    INCOMPLETE = Refusal.REPLY_INCOMPLETE
    INVALID = Refusal.REPLY_INVALID
    CONTRADICTORY = Refusal.REPLY_CONTRADICTORY
    NAME_TAKEN = Refusal.REPLY_NAME_TAKEN
    CHANGED_SINCE = Refusal.REPLY_CHANGED_SINCE
    ENCODING = Refusal.REPLY_ENCODING
    RECORD_DAMAGED = Refusal.REPLY_RECORD_DAMAGED

    @property
    def refusal(self) -> Refusal:
        return self.value

    @property
    def words(self) -> str:
        """The fault for the user: the end of a sentence that begins with "The model's
        reply".
        """
        return self.refusal.text.message.removeprefix(_REPLY).rstrip(".")


class EditProblem(Struct, frozen=True):
    """Why the reply's change of one file is impossible."""

    path: str
    """Empty if unknown."""
    reason: str
    """For the model: the fault, and what to write instead."""
    fault: ReplyFault = ReplyFault.UNCLEAR
    """For the user."""
    detail: str = ""
    """A clause for the user, if the fault says too little."""

    @classmethod
    def from_error(cls, path: str, error: CddError) -> "EditProblem":
        """An error other than a refused reply comes from a path that must not be
        written.
        """
        if not isinstance(error, ReplyRefused):
            return cls(path, error.in_a_line, ReplyFault.FORBIDDEN)
        first = error.problems[0]
        return cls(path, error.in_a_line, first.fault, first.detail)

    @property
    def for_user(self) -> str:
        """What is wrong, as the end of a sentence."""
        words = self.fault.words
        if self.path:
            words += f" ({sanitize_for_display(self.path)})"
        return f"{words}: {self.detail}" if self.detail else words


class BlockFate(StrEnum):
    APPLIED = "applied"
    REFUSED = "refused"
    EXPLANATION = "explanation"
    IGNORED = "ignored"
    """The model's thoughts, which are no part of its answer."""


class ReplyBlock(Struct, frozen=True):
    """A code block, mark, diff or call of a reply.

    A block that changes several files occurs once for each.
    """

    line: int
    """First line in the reply, from 1."""
    end: int
    """Last line, inclusive."""
    kind: str
    """`code block`, `diff`, `call of create_file`, ..."""
    fate: BlockFate
    path: str = ""
    """The file that it changes, or could change."""
    reason: str = ""
    """Why it was refused, or treated as an explanation."""
    is_doubtful: bool = False
    """True for an explanation that could change a file for which there is no edit."""
    is_requested: bool = False
    """True if it is doubtful and the task lists its file, or names it and the block is
    not code.
    """

    def __str__(self) -> str:
        what = f"The {self.kind} in line {self.line} of the reply"
        if not self.is_doubtful:
            return f"{what}: {self.fate}. {self.reason}".rstrip()
        if self.path:
            return f"{what} could be {self.path}, and was read as an explanation"
        return f"{what} names no file, and was read as an explanation"


class ReplyRefused(StepFailed):
    """A reply that must not be applied. Nothing was written.

    `message` and `hint` are for the model, `for_user` for the user.

    The model must be shown the `unseen` files before it may replace them; of some, only
    `lines`. `blocks` is set if the reply could not be read.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        fault: ReplyFault = ReplyFault.UNCLEAR,
        detail: str = "",
        path: str = "",
        unseen: frozenset[str] = frozenset(),
        lines: Mapping[str, Ranges] | None = None,
        problems: tuple[EditProblem, ...] = (),
        blocks: tuple[ReplyBlock, ...] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.unseen = unseen
        self.lines = lines or {}
        self.problems = problems or (
            EditProblem(path, "\n".join(filter(None, (message, hint))), fault, detail),
        )
        self.blocks = blocks
        self.refusal = self.problems[0].fault.refusal

    @property
    def for_user(self) -> str:
        """A sentence that says what was wrong."""
        words = list(dict.fromkeys(problem.for_user for problem in self.problems))
        text = f"{_REPLY}{words[0].rstrip('.')}."
        if len(words) == 1:
            return text
        more = (
            "1 more problem" if len(words) == 2 else f"{len(words) - 1} more problems"
        )
        return f"{text} It has {more}."


def join_refusals(
    refusals: Sequence[ReplyRefused], blocks: tuple[ReplyBlock, ...] = ()
) -> ReplyRefused:
    if len(refusals) == 1:
        (refusal,) = refusals
        refusal.blocks = blocks
        return refusal
    problems: list[EditProblem] = []
    for refusal in refusals:
        if len(refusal.problems) == 1:
            problems.append(EditProblem.from_error(refusal.path, refusal))
        else:
            problems += refusal.problems
    messages = (EditProblem("", refusal.message) for refusal in refusals)
    hints = dict.fromkeys(refusal.hint for refusal in refusals if refusal.hint)
    return ReplyRefused(
        list_reasons(tuple(messages)),
        hint="\n".join(hints),
        problems=tuple(problems),
        blocks=blocks,
    )


def list_reasons(problems: Sequence[EditProblem]) -> str:
    """Return distinct reasons, one a line."""
    reasons = list(dict.fromkeys(problem.reason for problem in problems))
    more = len(reasons) - _MOST_REASONS
    if more > 0:
        reasons[_MOST_REASONS:] = [f"… and {more} more"]
    return "\n".join(reasons)


class PartialEdits(Struct, frozen=True):
    """A way to change a part of a file, in words for a hint."""

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
    """A whole file of a reply: the path is unchecked, the content exact, with LF line
    ends.
    """

    path: str
    content: str
    must_be_new: bool = False
    """True if the reply creates the file."""


class Hint(Struct, frozen=True):
    """The place that an edit names. It decides between several matches."""

    line: int | None = None
    """First line of the text, from 1, in the file before the reply."""
    after: tuple[str, ...] = ()
    """Lines somewhere above the text, in this order."""


class Replacement(Struct, frozen=True):
    """Replaces whole lines, given without their last line end."""

    path: str
    find: tuple[str, ...]
    replace: tuple[str, ...]
    hint: Hint = Hint()
    final_newline: bool | None = None
    """True if the file's last line gets a line end, False if it loses it, None for
    neither.
    """
    otherwise: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """Another reading of both texts, if the first is not found."""


class TextReplacement(Struct, frozen=True):
    """The `edit` action: the text may be part of a line."""

    path: str
    find: str
    replace: str


class Deletion(Struct, frozen=True):
    """Deletes a file. If the reply shows its lines, the file must have them."""

    path: str
    lines: tuple[str, ...] | None = None


class Renaming(Struct, frozen=True):
    """The file keeps its permissions."""

    path: str
    to: str


class ModeChange(Struct, frozen=True):
    """Not carried out: a reply changes content only."""

    path: str


Edit = WholeFile | Replacement | TextReplacement | Deletion | Renaming | ModeChange


def convert_action(action: Action) -> Edit | None:
    """None if the action changes no file."""
    match action:
        case CreateFileAction(file_path=path, content=content):
            return WholeFile(path, content, must_be_new=True)
        case EditAction(file_path=path, find="", replace=content):
            return WholeFile(path, content)
        case EditAction(file_path=path, find=find, replace=content):
            return TextReplacement(path, find, content)
        case _:
            return None


class Reply(Struct, frozen=True):
    """The edits of a reply, in order, and its prose."""

    edits: tuple[Edit, ...]
    explanation: str = ""
    blocks: tuple[ReplyBlock, ...] = ()

    @property
    def doubts(self) -> tuple[ReplyBlock, ...]:
        """Explanations that could change a file for which there is no edit."""
        return tuple(block for block in self.blocks if block.is_doubtful)

    @property
    def changes_files(self) -> bool:
        """True if an edit changes more than permissions."""
        return not all(isinstance(edit, ModeChange) for edit in self.edits)
