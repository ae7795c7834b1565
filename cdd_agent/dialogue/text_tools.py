"""Tools for models that do not call tools themselves: the prompt describes them, and
code blocks of a reply call them.
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
    """Describe tools for a prompt."""
    return "\n\n".join([_HOW, *(tool.get_ai_prompt_instructions() for tool in tools)])


def read_call(block: str, number: int) -> ToolCall:
    """Read a code block as a call. One that is no call has no name, and its text as
    arguments.
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
            # answers have the order of the calls; models use ids again
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
    """Return the answers of a reply's calls as the text of the next message."""
    paragraphs = []
    for call, answer in answers:
        name = call.name or "the call"
        paragraphs.append(f"Answer of {name}:\n{fenced(answer, 'text')}")
    return "\n\n".join(paragraphs)


def _in_words(message: Message) -> Message:
    """Return a message with its calls as code blocks. What its provider wants back
    belongs to the native calls.
    """
    paragraphs = [message.content] if message.content else []
    for call in message.tool_calls:
        name, arguments = json.dumps(call.name), call.arguments or "{}"
        text = f'{{"tool": {name}, "arguments": {arguments}}}'
        paragraphs.append(fenced(text, FENCE))
    return Message(message.role, "\n\n".join(paragraphs), pictures=message.pictures)
