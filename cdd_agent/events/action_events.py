"""Events of an action plan, which `cdd run` carries out."""

from cdd_agent.events.base_event import BaseEvent


class ActionStarted(BaseEvent, frozen=True):
    """An action starts."""

    number: int
    total: int
    title: str


class ActionOutput(BaseEvent, frozen=True):
    """A piece of the output of an action."""

    number: int
    text: str


class ActionFinished(BaseEvent, frozen=True):
    """An action is over. `status` is SUCCESS, FAILURE or COMPLETED."""

    number: int
    total: int
    title: str
    status: str
    error: str
    """The reason of a failure, else empty."""


class ActionsFinished(BaseEvent, frozen=True):
    """All actions are over."""

    succeeded: int
    failed: int
    not_run: int
    """Not approved, or after a "quit"."""
    seconds: float
    """Including the time in which the user was asked."""
    cwd: str


ActionEvent = ActionStarted | ActionOutput | ActionFinished | ActionsFinished
