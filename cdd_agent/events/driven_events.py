"""Events of a run that another program drives, with `cdd exec --driven`."""

from enum import StrEnum

from cdd_agent.events.base_event import BaseEvent


class QuestionKind(StrEnum):
    """The kinds of questions that a driven run asks."""

    CHANGES = "changes"
    """May these changes be written?"""
    COMMAND = "command"
    ACTION = "action"
    TEST_LOSS = "test_loss"
    """May the step remove or weaken these tests?"""
    TEXT = "text"
    """Wants words, and has no choices."""
    TRUST = "trust"
    """May these settings of the project take effect? All, none or some."""
    CALL = "call"
    """May the next model call be made? Asked where there is a budget."""


class AnswerNeeded(BaseEvent, frozen=True):
    """The run waits for an answer on standard input."""

    id: int
    kind: QuestionKind
    text: str
    """The question in full, for a user."""
    choices: tuple[str, ...] = ()
    """The answers that are accepted; none for a `text`."""
    tokens: int | None = None
    """The most tokens that the `call` could take."""
    usd: float | None = None
    settings: tuple[str, ...] = ()
    """The digests of the settings that need `trust`."""


class AnswerTaken(BaseEvent, frozen=True):
    """The answer arrived, and the run continues."""

    id: int
    choice: str


class CallEnded(BaseEvent, frozen=True):
    """The model call of a `call` question is over, or was not made."""

    id: int


class BudgetSpent(BaseEvent, frozen=True):
    """The cost of a model call, and what remains of the budget."""

    tokens: int
    usd: float | None
    estimated: bool
    tokens_left: int | None = None
    """None without a budget in tokens."""
    usd_left: float | None = None


class Alive(BaseEvent, frozen=True):
    """The process is alive. Printed at regular intervals."""


class InputRefused(BaseEvent, frozen=True):
    """A line on standard input made no sense and was ignored."""

    reason: str


DrivenEvent = (
    AnswerNeeded | AnswerTaken | CallEnded | BudgetSpent | Alive | InputRefused
)
