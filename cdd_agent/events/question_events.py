"""Events about questions to the user, and about the answers."""

from enum import StrEnum
from typing import ClassVar

from msgspec import Struct

from cdd_agent.changes.file_diff import LeftOut
from cdd_agent.events.base_event import BaseEvent
from cdd_agent.settings.config import Approval


class Choice(StrEnum):
    """The answers to a proposal."""

    YES = "yes"
    NO = "no"
    ALWAYS = "always"
    """Yes, and yes to everything like it in this session."""
    QUIT = "quit"
    """No, and no to all that would follow."""


class ChangesProposed(BaseEvent, frozen=True):
    """Changes to files wait for approval. The question is a `Review`."""

    step: int
    created: tuple[str, ...]
    modified: tuple[str, ...]
    deleted: tuple[str, ...] = ()


class ChangesReviewed(BaseEvent, frozen=True):
    """The user reviewed the changes. `step` is None in chat."""

    step: int | None
    choice: Choice
    reason: str = ""
    """Why the user takes none of them. The model gets this text."""
    left_out: tuple[LeftOut, ...] = ()
    edited: tuple[str, ...] = ()
    """Files whose proposed content the user edited."""


class AcceptingAll(BaseEvent, frozen=True):
    """The user accepts all further changes of this run, or no longer."""

    is_on: bool


class ApprovalChanged(BaseEvent, frozen=True):
    """The session has another approval mode."""

    approval: Approval


class CommandProposed(BaseEvent, frozen=True):
    """A command needs approval."""

    choices: ClassVar = (Choice.YES, Choice.NO, Choice.ALWAYS)

    command: str
    reason: str
    """Why the user is asked, as a sentence: "`rm` is not on the list of allowed
    commands".
    """


class ActionProposed(BaseEvent, frozen=True):
    """An action of `cdd run` needs approval."""

    choices: ClassVar = (Choice.YES, Choice.NO, Choice.ALWAYS, Choice.QUIT)

    number: int
    total: int
    title: str
    details: str = ""
    """The content of a file, or the two texts of an edit."""


class LostTest(Struct, frozen=True):
    """A test that proves less than before a step, or nothing."""

    test: str
    how: str
    """The fault, as the end of a sentence: "is skipped"."""


class TestLossProposed(BaseEvent, frozen=True):
    """A step removes or weakens tests that its plan does not name. Everything else
    about the step is fine.
    """

    choices: ClassVar = (Choice.YES, Choice.NO)
    # pytest would collect a class of this name
    __test__ = False

    step: int
    label: str
    """The step's number, as the plan writes it."""
    tests: tuple[LostTest, ...]


class UndoProposed(BaseEvent, frozen=True):
    """The newest change is about to be undone."""

    choices: ClassVar = (Choice.YES, Choice.NO)

    title: str
    """The change, such as `step 2 of feature-a, Add them up`."""
    restored: tuple[str, ...]
    kept: tuple[str, ...] = ()
    """Files that were edited since and will be left unchanged."""
    merged: tuple[str, ...] = ()
    """Files that were edited since: the edit stays, the change will be removed."""
    others: tuple[str, ...] = ()
    """Files that commands changed. They will be left unchanged."""
    commits: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Commands that ran. Their other effects cannot be undone."""


Proposal = CommandProposed | ActionProposed | TestLossProposed | UndoProposed
"""The questions of a face, other than reviews of changes. `choices` are the possible
answers.
"""


class PersonAnswered(BaseEvent, frozen=True):
    """The user's answer to a question."""

    question: str
    answer: str
    """Empty if the question was withdrawn before the user answered."""


QuestionEvent = (
    Proposal
    | ChangesProposed
    | ChangesReviewed
    | AcceptingAll
    | ApprovalChanged
    | PersonAnswered
)
