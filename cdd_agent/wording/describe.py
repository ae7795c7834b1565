"""The words of events for users, the same in the shell and without a screen."""

from cdd_agent.events.stream import Event

# each of these modules registers the words of its events
from cdd_agent.wording import (  # noqa: F401
    action_words,
    dialogue_words,
    outside_words,
    question_words,
    run_words,
    shell_words,
    spec_words,
    step_words,
    strength_words,
    ticket_words,
    verify_words,
)
from cdd_agent.wording.registry import Lines, words_of


def describe(event: Event) -> Lines:
    """Return an event in words for users, as lines with a tone; nothing for events that
    only drive a display.
    """
    return words_of(event)
