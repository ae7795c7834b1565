from __future__ import annotations

from collections.abc import Mapping

from cdd_agent.events.dialogue_events import (
    ReplyDelayed,
    ReplyDelta,
    ReplyFinished,
    ReplyStarted,
    ThinkingDelta,
    ToolStarted,
)
from cdd_agent.events.question_events import ChangesProposed
from cdd_agent.events.step_events import (
    ChangesApplied,
    CheckpointStarted,
    StepStarted,
    TestsStarted,
)
from cdd_agent.events.stream import Event
from cdd_agent.wording.dialogue_words import tool_use

_PHRASES: Mapping[type, str] = {
    StepStarted: "saving the state of the files",
    CheckpointStarted: "saving the state of the files",
    ThinkingDelta: "the model thinks",
    ReplyDelta: "the reply arrives",
    ReplyFinished: "reading the reply",
    ChangesProposed: "waiting for your answer",
    ChangesApplied: "files are written",
}


def activity_of(event: Event) -> str | None:
    """Return the activity that begins with an event, if any."""
    match event:
        case ReplyStarted():
            return f"asking {event.model}"
        case ReplyDelayed():
            return f"waiting: {event.reason}"
        case ToolStarted():
            return tool_use(event)
        case TestsStarted():
            return f"checking: {event.command}"
        case _:
            return _PHRASES.get(type(event))
