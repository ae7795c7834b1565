"""Shared by the tests of Socrates: a model's turns, and what came of them."""

import json
from collections.abc import Iterable
from typing import Any

from cdd_agent.events.dialogue_events import ReplyDelta
from cdd_agent.events.notices import Answer, Notice
from cdd_agent.events.stream import Event
from cdd_agent.events.ticket_events import SpecShown
from cdd_agent.llm.port import ToolCall
from cdd_agent.llm.scripted_reply import ScriptedReply

TEMPLATE = """\
# A feature, asked for by Ada.
title: "<one line: what people will be able to do>"
type: feature
priority: medium # low, medium or high
owner: Ada   # unknown to the program

# Who needs it?
description: |
  <who needs this, what for, and what it has to do>

# What can be checked?
acceptance_criteria:
  - <what can be seen or tested when this works>
"""
COMPLETE: dict[str, Any] = {
    "title": "Say words",
    "description": "Readers need words.\n\nAll of them.",
    "acceptance_criteria": [{"text": "a.txt says good", "check": "grep good a.txt"}],
}


def asks(*questions: str, words: str | None = None, **fields: Any) -> str:
    """A model's turn: questions, and what it keeps of the spec."""
    said = (
        words
        if words is not None
        else "\n".join(questions) or "All is clear; `approve` writes it."
    )
    kept = {"questions": questions, **fields}
    return f"{said}\n\n```json\n{json.dumps(kept)}\n```\n"


def looks(path: str, text: str = "I look.") -> ScriptedReply:
    return ScriptedReply(
        text, tool_calls=(ToolCall("1", "read_file", json.dumps({"path": path})),)
    )


def told(events: Iterable[Event]) -> str:
    """All that a person was told in words."""
    return "\n".join(
        event.text for event in events if isinstance(event, Notice | Answer)
    )


def streamed(events: Iterable[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReplyDelta))


def open_questions(events: Iterable[Event]) -> tuple[str, ...]:
    """The open questions as they were shown last."""
    return tuple(question.text for question in shown(events).open_questions)


def shown(events: Iterable[Event]) -> SpecShown:
    """The spec as it was shown last."""
    return [event for event in events if isinstance(event, SpecShown)][-1]
