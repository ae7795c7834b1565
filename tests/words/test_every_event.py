"""The registry of words is whole: each type of event has words, or says that it has
none.
"""

from typing import get_args

from cdd_agent.events.base_event import BaseEvent
from cdd_agent.events.step_events import UndoPreview
from cdd_agent.events.stream import Event
from cdd_agent.wording.describe import describe
from cdd_agent.wording.registry import words_of
from tests.support.every_event import EXAMPLES

EVENTS = get_args(Event)


def event_types(base: type) -> set[type]:
    """Return the types below `base` that are events themselves."""
    found = set()
    for kind in base.__subclasses__():
        below = event_types(kind)
        found |= below or {kind}
    return found


def test_every_event_is_in_the_stream_and_has_an_example() -> None:
    assert event_types(BaseEvent) - {UndoPreview} == set(EVENTS)
    assert {type(event) for event in EXAMPLES} == set(EVENTS)


def test_every_event_is_registered() -> None:
    names = {kind: words_of.dispatch(kind).__name__ for kind in EVENTS}
    wrong = {
        kind.__name__: name
        for kind, name in names.items()
        if not name.startswith(("describe_", "leave_out_"))
    }
    assert wrong == {}


def test_an_event_has_words_if_it_is_not_left_out() -> None:
    for event in EXAMPLES:
        is_left_out = words_of.dispatch(type(event)).__name__.startswith("leave_out_")
        assert (describe(event) == []) == is_left_out, event
