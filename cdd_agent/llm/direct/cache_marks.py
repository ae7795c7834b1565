"""Marks for Claude's cache: it writes and reads only prefixes that end at a mark.

A request may have four marks, and a mark finds what was written up to 20 blocks before
it (platform.claude.com/docs, prompt caching). OpenRouter recognizes a conversation by
its first two messages, and asks the same host again (openrouter.ai/docs, provider
sticky routing).
"""

from collections.abc import Sequence
from typing import Any

MARK = {"cache_control": {"type": "ephemeral"}}


def places_to_mark(roles: Sequence[str]) -> set[int]:
    """Return the places of the messages with a mark at their end, by the roles of all
    messages.

    The system prompt and the first question have one in all requests of a
    conversation. The end of the request has one too, and the end of the previous
    request: a round with many calls has more than 20 blocks.
    """
    places = set()
    if roles and roles[0] == "system":
        places.add(0)
    ends = []
    for place, role in enumerate(roles):
        is_end = place + 1 == len(roles) or roles[place + 1] == "assistant"
        if role in ("user", "tool") and is_end:
            ends.append(place)
    return places.union(ends[:1], ends[-2:])


def mark_for_litellm(messages: list[dict[str, Any]]) -> None:
    """Add the marks to messages that litellm writes in the form of their provider.

    litellm carries a mark from a message with a text to its block.
    """
    for place in places_to_mark([message["role"] for message in messages]):
        content = messages[place]["content"]
        if isinstance(content, list):
            messages[place]["content"] = [*content[:-1], {**content[-1], **MARK}]
        elif content:
            messages[place] |= MARK


def mark_messages(messages: list[dict[str, Any]]) -> None:
    """Add the marks to messages in the form of chat completions.

    The content of each message becomes a list of parts, marked or not: the mark moves
    on in the next request, and nothing else of the message may change.
    """
    places = places_to_mark([message["role"] for message in messages])
    for place, message in enumerate(messages):
        if message["role"] == "assistant" or not message["content"]:
            continue
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        last = message["content"][-1]
        if place in places and last.get("text"):
            message["content"] = [*message["content"][:-1], {**last, **MARK}]
