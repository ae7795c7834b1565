"""Tools for models that have no tool calls of their own: described in the prompt,
called by code blocks of a reply.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cdd_agent.llm.port import Message, ToolCall
from cdd_agent.sanitize import fenced
from cdd_agent.tools.base import Tool

FENCE = "tool"

_HOW = f"""\
# Tools

You may use the tools below. To call one, end your reply with a code block like this, \
and wait: the answer is in the
next message. Several blocks are several calls. Without such a block your reply is \
your last word.

```{FENCE}
{{"tool": "NAME", "arguments": {{}}}}
```"""


def instructions(tools: Sequence[Tool[Any]]) -> str:
    """The tools as a prompt describes them."""
    return "\n\n".join([_HOW, *(tool.get_ai_prompt_instructions() for tool in tools)])


def call_of(block: str, number: int) -> ToolCall:
    """A code block as a call. One that is none is a call of nothing, with what was
    written as its arguments.
    """
    try:
        written = json.loads(block)
        return ToolCall(
            str(number), str(written["tool"]), json.dumps(written.get("arguments", {}))
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ToolCall(str(number), "", block)


def in_words(messages: Iterable[Message]) -> Iterator[Message]:
    """A conversation with native calls as it would be without them."""
    calls: tuple[ToolCall, ...] = ()
    answers: list[tuple[ToolCall, str]] = []
    for message in messages:
        # in the order of the calls: ids are used again by some
        if message.role == "tool":
            call = (
                calls[len(answers)]
                if len(answers) < len(calls)
                else ToolCall("", "", "")
            )
            answers.append((call, message.content))
            continue
        if answers:
            yield Message("user", answer_message(answers))
            answers = []
        calls = message.tool_calls
        written = (
            f'{{"tool": {json.dumps(call.name)}, "arguments":'
            f" {call.arguments or '{}'}}}"
            for call in calls
        )
        blocks = (fenced(call, FENCE) for call in written)
        if calls:
            content = "\n\n".join(filter(None, (message.content, *blocks)))
            yield Message(message.role, content)
        else:
            yield message
    if answers:
        yield Message("user", answer_message(answers))


def answer_message(answers: Sequence[tuple[ToolCall, str]]) -> str:
    """The answers of a reply's calls, as the next message."""
    return "\n\n".join(
        f"Answer of {call.name or 'the call'}:\n{fenced(answer, 'json')}"
        for call, answer in answers
    )
