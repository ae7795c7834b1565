"""Ollama's silent cut: a request longer than the window loses its beginning, and the
answer has status 200.

It affects chat completions, and Ollama's own API before version 0.12.6. Only the token
count shows it. Ollama keeps half of the window and a few tokens, or the newest messages
that fit; older versions fill the window. Some versions do not count cached tokens
(ollama/ollama issues 17427, 3839, pull request 16428), so a low count alone proves
nothing.
"""

from cdd_agent.llm.port import ContextTooLong, Request, Usage
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.pattern import Pattern

_CHINESE = r"\u3040-\u30ff\u3400-\u9fff"
_WORD = Pattern(rf"[{_CHINESE}]{{1,2}}|[^\w\s]?[^\W\d_{_CHINESE}]+|\d{{1,3}}|[^\w\s]+")
"""A word with the sign before it, three digits, consecutive signs, or two characters of
Chinese or Japanese. Each is almost always at least one token: with the tokenizers of
Claude and GPT-4, no file of 5,000 had more matches than tokens; code had 0.74 per
token.
"""
_HINT = (
    "The reply is not used. Ask Ollama by its own API, as `ollama/NAME` at an address"
    " without `/v1`: then its window is as large as it must be. Or start it with a"
    " larger one: `OLLAMA_CONTEXT_LENGTH=32768 ollama serve`."
)


def is_cut(request: Request, usage: Usage, window: int | None) -> bool:
    """True if Ollama has read only a part of a request. `window` is in tokens, if
    Ollama reports it.
    """
    least = fewest_tokens(request)
    if window is None:
        return 0 < usage.prompt_tokens < least
    if max(least, estimate_prompt(request)) <= window:
        return False
    is_full = usage.prompt_tokens + usage.completion_tokens >= window
    return is_full or usage.prompt_tokens < least


def fewest_tokens(request: Request) -> int:
    """Return a lower bound of a request's tokens. Tools do not count, because some
    templates omit them.
    """
    texts = [message.content for message in request.messages]
    for message in request.messages:
        texts += [call.arguments for call in message.tool_calls]
    return sum(len(_WORD.findall(text)) for text in texts)


def cut_error(
    name: str, request: Request, usage: Usage, window: int | None
) -> ContextTooLong:
    size = f", and its window has {window:,}" if window is not None else ""
    return ContextTooLong(
        f"Ollama has cut the request for {name} without a message: of about"
        f" {estimate_prompt(request):,} tokens it read {usage.prompt_tokens:,}{size}",
        hint=_HINT,
    )
