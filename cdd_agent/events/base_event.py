"""The base of all events: names in JSON, labels of steps."""

import re

from msgspec import Struct
from msgspec.structs import force_setattr

from cdd_agent.tickets.status import fill_label


def event_name(class_name: str) -> str:
    """Return the name of an event class in JSON, such as `run_finished`."""
    return re.sub(r"(?<=.)([A-Z])", r"_\1", class_name).lower()


class BaseEvent(Struct, frozen=True, tag_field="event", tag=event_name):
    """In JSON, the name of an event is under `event`."""


class NamesStep(BaseEvent, frozen=True, kw_only=True):
    """An event about a step. `step` is the step's number in the state and the
    record.
    """

    label: str = ""
    """The number in the plan, such as `1b`, which users see and type."""

    def __post_init__(self) -> None:
        step = getattr(self, "step", None)
        if step is not None:
            fill_label(self, step)


class NamesSteps(BaseEvent, frozen=True, kw_only=True):
    """An event about several steps, with their labels."""

    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.labels:
            numbers = getattr(self, "steps", ())
            force_setattr(self, "labels", tuple(map(str, numbers)))
