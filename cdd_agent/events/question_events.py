"""Events of questions to the user, and of the answers."""

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
    """Yes, also for similar proposals in this session."""
    QUIT = "quit"
    """No, also for all that follow."""


class ChangesProposed(BaseEvent, frozen=True):
    """Changes to files need approval. The question is a `Review`."""

    step: int
    created: tuple[str, ...]
    modified: tuple[str, ...]
    deleted: tuple[str, ...] = ()


class ChangesReviewed(BaseEvent, frozen=True):
    """The user has decided about changes. In chat, `step` is None."""

    step: int | None
    choice: Choice
    reason: str = ""
    """The reason why the user accepts none of them. The model gets this text."""
    left_out: tuple[LeftOut, ...] = ()
    edited: tuple[str, ...] = ()
    """Files of which the user edited the proposed content."""


class AcceptingAll(BaseEvent, frozen=True):
    """The user accepts all further changes of this run, or stops accepting them."""

    is_on: bool


class ApprovalChanged(BaseEvent, frozen=True):
    """The session has another approval mode."""

    approval: Approval


class CommandProposed(BaseEvent, frozen=True):
    """A command needs approval."""

    choices: ClassVar = (Choice.YES, Choice.NO, Choice.ALWAYS)

    command: str
    reason: str
    """The reason for the question, as a sentence: "`rm` is not on the list of allowed
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
    """A step removes or weakens tests that its plan does not name. It has no other
    fault.
    """

    choices: ClassVar = (Choice.YES, Choice.NO)
    # pytest would collect a class of this name
    __test__ = False

    step: int
    label: str
    """The step's number in the plan."""
    tests: tuple[LostTest, ...]


class UndoProposed(BaseEvent, frozen=True):
    """The newest change will be undone."""

    choices: ClassVar = (Choice.YES, Choice.NO)

    title: str
    """The change, such as `step 2 of feature-a, Add them up`."""
    restored: tuple[str, ...]
    kept: tuple[str, ...] = ()
    """Files that were edited since, and will not be restored."""
    merged: tuple[str, ...] = ()
    """Files that were edited since. The change will be removed, the edit stays."""
    others: tuple[str, ...] = ()
    """Files that commands changed. They will not be restored."""
    commits: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """Commands that ran. Their other effects cannot be undone."""


Proposal = CommandProposed | ActionProposed | TestLossProposed | UndoProposed
"""Questions other than reviews of changes. `choices` are the possible answers."""


class PersonAnswered(BaseEvent, frozen=True):
    """The user's answer to a question."""

    question: str
    answer: str
    """Empty if the question was withdrawn."""


QuestionEvent = (
    Proposal
    | ChangesProposed
    | ChangesReviewed
    | AcceptingAll
    | ApprovalChanged
    | PersonAnswered
)
