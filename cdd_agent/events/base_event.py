"""The base of all events: its name in JSON, and the labels of steps."""

import re

from msgspec import Struct
from msgspec.structs import force_setattr

from cdd_agent.tickets.status import fill_label


def event_name(class_name: str) -> str:
    """Return the name of an event class as scripts know it, in snake case."""
    return re.sub(r"(?<=.)([A-Z])", r"_\1", class_name).lower()


class BaseEvent(Struct, frozen=True, tag_field="event", tag=event_name):
    """Something that happened. In JSON its name is under `event`."""


class NamesStep(BaseEvent, frozen=True, kw_only=True):
    """An event about one step that faces show with the step's label. `step` is the
    number by which the state and the record know the step.
    """

    label: str = ""
    """The number as the plan writes it, such as `1b`. Users see and type this."""

    def __post_init__(self) -> None:
        step = getattr(self, "step", None)
        if step is not None:
            fill_label(self, step)


class NamesSteps(BaseEvent, frozen=True, kw_only=True):
    """An event about several `steps` that faces show with their labels."""

    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.labels:
            numbers = getattr(self, "steps", ())
            force_setattr(self, "labels", tuple(map(str, numbers)))
