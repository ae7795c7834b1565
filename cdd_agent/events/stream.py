"""The stream of events: all kinds, the subscribers, and the form in JSON. The shell,
the headless printer and the `--json` printer read the same stream.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from msgspec import to_builtins

from cdd_agent.events.action_events import ActionEvent
from cdd_agent.events.base_event import BaseEvent
from cdd_agent.events.dialogue_events import DialogueEvent
from cdd_agent.events.driven_events import DrivenEvent
from cdd_agent.events.notices import Words
from cdd_agent.events.outside_events import OutsideEvent
from cdd_agent.events.question_events import QuestionEvent
from cdd_agent.events.run_events import RunEvent
from cdd_agent.events.shell_events import ShellEvent
from cdd_agent.events.step_events import StepEvent
from cdd_agent.events.strength_events import StrengthEvent
from cdd_agent.events.ticket_events import TicketEvent
from cdd_agent.events.verify_events import VerifyEvent


class SessionRestored(BaseEvent, frozen=True):
    """The saved events of an earlier session."""

    key: str
    events: "tuple[Event, ...]"
    left_out: bool = False
    """True if there were earlier events."""


Event = (
    Words
    | ShellEvent
    | SessionRestored
    | TicketEvent
    | DialogueEvent
    | QuestionEvent
    | RunEvent
    | StepEvent
    | OutsideEvent
    | ActionEvent
    | DrivenEvent
    | VerifyEvent
    | StrengthEvent
)

Emit = Callable[[Event], None]
"""Sends an event to all subscribers. It returns at once, and raises nothing."""

JSON_VERSION = 1
"""The version of the JSON lines. It grows if a field is removed or changes its
meaning.
"""

_is_beside: ContextVar[bool] = ContextVar("is_beside", default=False)


@contextmanager
def beside_the_turn() -> Iterator[None]:
    """Mark the events of a line that is carried out during a turn: they do not end
    parts of the turn's display.
    """
    token = _is_beside.set(True)
    try:
        yield
    finally:
        _is_beside.reset(token)


def is_beside_the_turn() -> bool:
    """True if the current event does not belong to the turn."""
    return _is_beside.get()


def ignore_event(event: Event) -> None:
    """Ignore an event, for work without subscribers."""


def to_json(event: Event) -> dict[str, Any]:
    """Return an event as a JSON object: the version as `v`, the name as `event`, and
    the fields.
    """
    return {"v": JSON_VERSION, **to_builtins(event)}
