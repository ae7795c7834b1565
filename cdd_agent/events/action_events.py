"""Events of an action plan: the actions of `cdd run`."""

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
    """An action is over."""

    number: int
    total: int
    title: str
    status: str
    error: str
    """The reason of a failure; otherwise empty."""


class ActionsFinished(BaseEvent, frozen=True):
    """All actions are over."""

    succeeded: int
    failed: int
    not_run: int
    """Actions that were not approved, or that came after a "quit"."""
    seconds: float
    """Includes the time of questions to the user."""
    cwd: str


ActionEvent = ActionStarted | ActionOutput | ActionFinished | ActionsFinished
