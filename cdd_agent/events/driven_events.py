"""Events of a run that another program controls: `cdd exec --driven`."""

from enum import StrEnum

from cdd_agent.events.base_event import BaseEvent


class QuestionKind(StrEnum):
    """The kind of a question in a driven run."""

    CHANGES = "changes"
    """May these changes be written?"""
    COMMAND = "command"
    ACTION = "action"
    TEST_LOSS = "test_loss"
    """May the step remove or weaken these tests?"""
    TEXT = "text"
    """A free text, without choices."""
    TRUST = "trust"
    """May these settings of the project take effect: all, none or some?"""
    CALL = "call"
    """May the next model call be made? Asked if there is a budget."""


class AnswerNeeded(BaseEvent, frozen=True):
    """The run waits for an answer on standard input."""

    id: int
    kind: QuestionKind
    text: str
    """The question for a user, in full."""
    choices: tuple[str, ...] = ()
    """The accepted answers; empty for a `text`."""
    tokens: int | None = None
    """The maximum tokens of the `call`."""
    usd: float | None = None
    settings: tuple[str, ...] = ()
    """The digests of the settings, for `trust`."""


class AnswerTaken(BaseEvent, frozen=True):
    """The answer was accepted, and the run continues."""

    id: int
    choice: str


class CallEnded(BaseEvent, frozen=True):
    """The model call of a `call` question is over, or was not made."""

    id: int


class BudgetSpent(BaseEvent, frozen=True):
    """The cost of a model call, and the rest of the budget."""

    tokens: int
    usd: float | None
    estimated: bool
    tokens_left: int | None = None
    """None: no budget in tokens."""
    usd_left: float | None = None


class Alive(BaseEvent, frozen=True):
    """The process is alive. This comes at regular intervals."""


class InputRefused(BaseEvent, frozen=True):
    """A line on standard input was not understood, and is ignored."""

    reason: str


DrivenEvent = (
    AnswerNeeded | AnswerTaken | CallEnded | BudgetSpent | Alive | InputRefused
)
