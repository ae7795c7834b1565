"""The activity of a running step in a few words, by its last event."""

from __future__ import annotations

from functools import singledispatch

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
from cdd_agent.wording.dialogue_words import tool_use


@singledispatch
def activity_of(event: object) -> str | None:
    """Return the activity that begins with an event; None if it begins none."""
    del event
    return None


@activity_of.register
def _start(event: StepStarted | CheckpointStarted) -> str:
    del event
    return "saving the state of the files"


@activity_of.register
def _ask(event: ReplyStarted) -> str:
    return f"asking {event.model}"


@activity_of.register
def _wait(event: ReplyDelayed) -> str:
    return f"waiting: {event.reason}"


@activity_of.register
def _think(event: ThinkingDelta) -> str:
    del event
    return "the model thinks"


@activity_of.register
def _stream(event: ReplyDelta) -> str:
    del event
    return "the reply arrives"


@activity_of.register
def _read_reply(event: ReplyFinished) -> str:
    del event
    return "reading the reply"


@activity_of.register
def _use_tool(event: ToolStarted) -> str:
    return tool_use(event)


@activity_of.register
def _propose(event: ChangesProposed) -> str:
    del event
    return "waiting for your answer"


@activity_of.register
def _write(event: ChangesApplied) -> str:
    del event
    return "files are written"


@activity_of.register
def _check(event: TestsStarted) -> str:
    return f"checking: {event.command}"
