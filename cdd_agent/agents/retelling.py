"""A conversation told again: the messages that were kept, as the events that they were
once.
"""

import json
from collections.abc import Iterable

from cdd_agent.agents.attachments import without_files
from cdd_agent.agents.compaction import is_summary
from cdd_agent.engine.retelling import LONGEST_TEXT
from cdd_agent.events.dialogue_events import ConversationShortened, ToolFinished
from cdd_agent.events.notices import Answer
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import Message, ToolCall


def retold(messages: Iterable[Message]) -> tuple[Event, ...]:
    """A conversation as events: a person's words, the model's answers, its calls of
    tools.
    """
    told, calls = list[Event](), dict[str | None, ToolCall]()
    for message in messages:
        text = message.content[:LONGEST_TEXT]
        match message.role:
            case "user" if is_summary(message):
                told.append(ConversationShortened(0, 0, True, text, ""))
            case "user":
                told.append(PersonSaid(without_files(text)))
            case "assistant":
                told += [Answer(text)] if text.strip() else []
                calls |= {call.id: call for call in message.tool_calls}
            case "tool" if call := calls.get(message.tool_call_id):
                told.append(
                    ToolFinished(
                        None, call.name, "", call.name, _target(call), output=text
                    )
                )
            case _:
                pass
    return tuple(told)


def _target(call: ToolCall) -> str:
    """The first of a call's arguments that is a text: a path, a command, a pattern."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return ""
    values = arguments.values() if isinstance(arguments, dict) else ()
    return next((value for value in values if isinstance(value, str)), "")
