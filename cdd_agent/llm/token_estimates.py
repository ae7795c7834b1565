"""Estimates of tokens, rather too high than too low."""

import json

from cdd_agent.llm.pictures import picture_tokens
from cdd_agent.llm.port import Request

_BYTES_OF_A_TOKEN = 3
"""English and code have about four bytes per token, Chinese one character of three."""
_FRAME_OF_A_MESSAGE = 4
"""Tokens for a message's role and separators."""


def estimate_prompt(request: Request) -> int:
    """Return the tokens of a request: text, tools and pictures."""
    return estimate_text(request) + estimate_pictures(request)


def estimate_text(request: Request) -> int:
    size = 0
    for message in request.messages:
        size += text_bytes(message.content)
        for call in message.tool_calls:
            size += text_bytes(call.name + call.arguments)
        if message.provider_data is not None:
            size += text_bytes(message.provider_data.data)
    for tool in request.tools:
        parameters = json.dumps(dict(tool.parameters))
        size += text_bytes(tool.name + tool.description + parameters)
    return tokens_of(size) + _FRAME_OF_A_MESSAGE * len(request.messages)


def estimate_pictures(request: Request) -> int:
    tokens = 0
    for message in request.messages:
        tokens += sum(map(picture_tokens, message.pictures))
    return tokens


def estimate_tokens(text: str) -> int:
    return tokens_of(text_bytes(text))


def text_bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def tokens_of(size: int) -> int:
    """Return the tokens of a text with this many bytes."""
    return -(-size // _BYTES_OF_A_TOKEN)
