"""Ollama's silent cut: a request that is longer than its window loses its beginning,
and the answer is a 200.

So it is with its chat completions, and with its own API before version 0.12.6, where it
cannot be told not to. Nothing says so but the count of tokens, which is that of what
was left: half of the window and a few, or whatever the newest messages have.
"""

import re

from cdd_agent.llm.port import ContextTooLong, Request, Usage
from cdd_agent.llm.token_estimates import estimated_prompt

_MOST_CHARACTERS = 6
"""Of a token, on average of a whole request: of English four to five."""
_A_FEW = 16
"""Tokens that are left beside half of a window: it keeps the first ones."""
_HINT = (
    "The reply is not used. Ask Ollama by its own API, as `ollama/NAME` at an address"
    " without `/v1`: then its window is as large as it must be. Or start it with a"
    " larger one: `OLLAMA_CONTEXT_LENGTH=32768 ollama serve`."
)


def looks_short(request: Request, usage: Usage) -> bool:
    """Whether so few tokens were read that it is worth asking for the window."""
    return 0 < usage.prompt_tokens < 0.7 * estimated_prompt(request)


def expect_read_whole(
    name: str, request: Request, usage: Usage, window: int | None
) -> None:
    """Raises `ContextTooLong` for a reply to a request that was cut. `window`: Ollama's
    own word; None: it has none.
    """
    most, read = estimated_prompt(request), usage.prompt_tokens
    if window is not None and most <= window:
        return
    is_half = window is not None and window // 2 <= read <= window // 2 + _A_FEW
    is_full = window is not None and read + usage.completion_tokens >= window
    if not (is_half or is_full or _has_more_than(read, request)):
        return
    of = f", and its window has {window:,}" if window is not None else ""
    raise ContextTooLong(
        f"Ollama has cut the request for {name} without a word: of about {most:,}"
        f" tokens it read {read:,}{of}",
        hint=_HINT,
    )


def _has_more_than(tokens: int, request: Request) -> bool:
    """Whether a request has more tokens at least: what is repeated may be one, and not
    every template shows tools.
    """
    texts = [message.content for message in request.messages]
    texts += [
        call.arguments for message in request.messages for call in message.tool_calls
    ]
    if sum(map(len, texts)) // _MOST_CHARACTERS <= tokens:
        return False
    return (
        sum(len(re.sub(r"(.)\1+", r"\1", re.sub(r"\s+", " ", text))) for text in texts)
        // _MOST_CHARACTERS
        > tokens
    )
