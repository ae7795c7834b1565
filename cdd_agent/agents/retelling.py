"""Turns a saved conversation back into events."""

import json
from collections.abc import Iterable

from cdd_agent.agents.added_lines import ADDED_LINES
from cdd_agent.agents.attachments import without_files
from cdd_agent.agents.compaction import is_summary
from cdd_agent.engine.retelling import LONGEST_TEXT
from cdd_agent.events.dialogue_events import ConversationShortened, ToolFinished
from cdd_agent.events.notices import Answer
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import Message, ToolCall


def retold(messages: Iterable[Message]) -> tuple[Event, ...]:
    """Return the user's lines, the model's answers and tool calls, and the summary
    instead of older messages.
    """
    events: list[Event] = []
    calls: dict[str | None, ToolCall] = {}
    for message in messages:
        text = message.content[:LONGEST_TEXT]
        if is_summary(message):
            events.append(ConversationShortened(0, 0, True, text, ""))
        elif message.role == "user":
            if message.content in ADDED_LINES:
                continue
            events.append(PersonSaid(without_files(text)))
        elif message.role == "assistant":
            if text.strip():
                events.append(Answer(text))
            for call in message.tool_calls:
                calls[call.id] = call
        elif message.role == "tool" and message.tool_call_id in calls:
            call = calls[message.tool_call_id]
            target = _target(call)
            events.append(
                ToolFinished(None, call.name, "", call.name, target, output=text)
            )
    return tuple(events)


def _target(call: ToolCall) -> str:
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return ""
    if isinstance(arguments, dict):
        for value in arguments.values():
            if isinstance(value, str):
                return value
    return ""
