"""Check the token counts and the cost that a provider reports for a call.

Some servers report zeros, the same number for each call, or nonsense. A budget that
believes them is never reached, or at once.
"""

from msgspec.structs import replace

from cdd_agent.llm.port import Price, Request, Usage
from cdd_agent.llm.token_estimates import estimate_text

_FACTOR = 10
"""A count is believed from a tenth of the estimate up to ten times the estimate."""
_ADDED_TO_PROMPT = 4_000
"""Tokens that any prompt may gain: a chat template, a provider's text about tools. So a
short prompt's true count never exceeds the limit.
"""
_MOST_OF_A_PICTURE = 50_000
"""gpt-4o-mini counts 2,833 tokens plus 5,667 per tile, of at most 8. Other servers
count none for pictures, so pictures do not raise the lower limit.
"""
_LONGEST_REPLY = 2**20
"""No known model writes more tokens. Hidden thoughts can be many times the visible
text, so any count up to this is possible.
"""
_EXTRA_USD = 1.0
"""Dollars for extras of a call: searches, fees."""


def believable_usage(reported: Usage, estimate: Usage, request: Request) -> Usage:
    """Replace each count that cannot be true by the estimate. Prompt and completion are
    judged separately. The cost is kept if both are believed.
    """
    usage = _with_separate_parts(reported)
    least_prompt = estimate_text(request) / _FACTOR
    most_prompt = max(estimate.prompt_tokens * _FACTOR, _ADDED_TO_PROMPT)
    for message in request.messages:
        most_prompt += len(message.pictures) * _MOST_OF_A_PICTURE
    if not least_prompt <= usage.prompt_tokens <= most_prompt:
        usage = replace(
            usage,
            prompt_tokens=estimate.prompt_tokens,
            cached_tokens=0,
            cache_write_tokens=0,
            estimated=True,
            usd=None,
        )
    least_completion = estimate.completion_tokens / _FACTOR
    most_completion = max(estimate.completion_tokens * _FACTOR, _LONGEST_REPLY)
    if not least_completion <= usage.completion_tokens <= most_completion:
        usage = replace(
            usage,
            completion_tokens=estimate.completion_tokens,
            thinking_tokens=0,
            estimated=True,
            usd=None,
        )
    return usage


def _with_separate_parts(usage: Usage) -> Usage:
    """Return counts of at least 0. A part greater than its whole is added to it: such
    servers count them separately, like xAI with thoughts.
    """
    cached, written = max(usage.cached_tokens, 0), max(usage.cache_write_tokens, 0)
    thinking = max(usage.thinking_tokens, 0)
    prompt, completion = max(usage.prompt_tokens, 0), max(usage.completion_tokens, 0)
    if cached + written > prompt:
        prompt += cached + written
    if thinking > completion:
        completion += thinking
    return replace(
        usage,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        cache_write_tokens=written,
        thinking_tokens=thinking,
    )


def believable_usd(usage: Usage, price: Price) -> float:
    """Return the reported cost of a call, or the price's if the report is missing or
    cannot be true.
    """
    by_price = price.cost_of(usage)
    if usage.usd is None:
        return by_price
    if by_price / _FACTOR <= usage.usd <= by_price * _FACTOR + _EXTRA_USD:
        return usage.usd
    return by_price
