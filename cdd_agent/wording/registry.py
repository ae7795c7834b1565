"""The registry of words: one function for each type of event."""

from functools import singledispatch

from cdd_agent.events.notices import Tone
from cdd_agent.events.stream import Event

Lines = list[tuple[str, Tone]]


@singledispatch
def words_of(event: Event) -> Lines:
    """Return the words of an event. The modules of this package register a function for
    each type of event; `describe.py` imports them.
    """
    raise TypeError(f"{type(event).__name__} has no words")
