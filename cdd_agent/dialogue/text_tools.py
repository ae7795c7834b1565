"""Tools for models without native tool calls. The prompt describes the tools, and code
blocks of a reply call them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cdd_agent.llm.port import Message, ToolCall
from cdd_agent.text.sanitize import fenced
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
    return "\n\n".join([_HOW, *(tool.get_ai_prompt_instructions() for tool in tools)])


def read_call(block: str, number: int) -> ToolCall:
    """Read a code block as a call. If it is not a call, the name is empty and the
    arguments are the block.
    """
    try:
        written = json.loads(block)
        name = str(written["tool"])
        arguments = json.dumps(written.get("arguments", {}))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ToolCall(str(number), "", block)
    return ToolCall(str(number), name, arguments)


def in_words(messages: Iterable[Message]) -> Iterator[Message]:
    """Return a conversation with its native calls and answers as text."""
    calls: tuple[ToolCall, ...] = ()
    answers: list[tuple[ToolCall, str]] = []
    for message in messages:
        if message.role == "tool":
            # Answers are matched by order: models use ids more than once.
            call = ToolCall("", "", "")
            if len(answers) < len(calls):
                call = calls[len(answers)]
            answers.append((call, message.content))
            continue
        if answers:
            yield Message("user", answer_text(answers))
            answers = []
        calls = message.tool_calls
        yield _in_words(message) if calls else message
    if answers:
        yield Message("user", answer_text(answers))


def answer_text(answers: Sequence[tuple[ToolCall, str]]) -> str:
    """Return the answers as the text of the next message."""
    paragraphs = []
    for call, answer in answers:
        name = call.name or "the call"
        paragraphs.append(f"Answer of {name}:\n{fenced(answer, 'text')}")
    return "\n\n".join(paragraphs)


def _in_words(message: Message) -> Message:
    """Return a message with its calls as code blocks, without provider data, which
    belongs to native calls.
    """
    paragraphs = [message.content] if message.content else []
    for call in message.tool_calls:
        name, arguments = json.dumps(call.name), call.arguments or "{}"
        text = f'{{"tool": {name}, "arguments": {arguments}}}'
        paragraphs.append(fenced(text, FENCE))
    return Message(message.role, "\n\n".join(paragraphs), pictures=message.pictures)
