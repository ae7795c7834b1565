"""Events as text for users. Faces differ only in the names of commands."""

from cdd_agent.events.notices import Answer
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import PlanProposed

# each of these modules registers the words of its events
from cdd_agent.wording import (  # noqa: F401
    action_words,
    dialogue_words,
    outside_words,
    proposal_words,
    question_words,
    run_words,
    shell_words,
    spec_words,
    step_words,
    strength_words,
    ticket_words,
    verify_words,
)
from cdd_agent.wording.faces import Face
from cdd_agent.wording.registry import Lines, words_of

_QUOTATIONS = (Answer, PersonSaid, PlanProposed)
"""These events contain the user's or a model's words, which are not changed."""


def describe(event: Event, face: Face = Face.TERMINAL) -> Lines:
    """Return an event as lines of text; nothing for events that only drive a
    display.
    """
    lines = words_of(event)
    if isinstance(event, _QUOTATIONS):
        return lines
    return [(face.name_commands(text), tone) for text, tone in lines]
