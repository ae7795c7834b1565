"""Marks for Claude's cache, which writes and reads only prefixes that end at a mark.

A request may have four marks. A mark finds what was written up to 20 blocks earlier
(platform.claude.com/docs, prompt caching). OpenRouter recognises a conversation by its
first two messages, and uses the same host again (openrouter.ai/docs, provider sticky
routing).
"""

from collections.abc import Sequence
from typing import Any

MARK = {"cache_control": {"type": "ephemeral"}}


def places_to_mark(roles: Sequence[str]) -> set[int]:
    """Return the indexes of the messages that end with a mark.

    All requests of a conversation mark the system prompt and the first question. A
    request also marks its end and the end of the previous request, because a round with
    many calls has more than 20 blocks.
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
    """Mark messages for litellm, which moves a message's mark to its text block."""
    for place in places_to_mark([message["role"] for message in messages]):
        content = messages[place]["content"]
        if isinstance(content, list):
            messages[place]["content"] = [*content[:-1], {**content[-1], **MARK}]
        elif content:
            messages[place] |= MARK


def mark_messages(messages: list[dict[str, Any]]) -> None:
    """Mark messages of chat completions.

    The content of every message becomes a list of parts, marked or not: in the next
    request only the mark may move, and the rest must stay equal.
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
