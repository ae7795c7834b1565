"""Providers' words for why a reply is over. Only words that are known to mean a whole
reply are taken so.
"""

from collections.abc import Mapping

from cdd_agent.llm.direct.protocol import ServerFailed
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.port import StopReason

_MEANINGS: Mapping[StopReason, frozenset[str]] = {
    StopReason.STOP: frozenset(
        {
            *("stop", "tool_calls", "function_call"),  # OpenAI, and most others
            *("end_turn", "stop_sequence", "tool_use"),  # Anthropic, Bedrock
            *("eos", "eos_token", "complete"),  # Together, Hugging Face, Cohere
        }
    ),
    StopReason.LENGTH: frozenset(
        {
            "length",
            "max_tokens",
            "max_output_tokens",
            "model_length",
            "model_context_window_exceeded",
        }
    ),
    StopReason.REFUSED: frozenset(
        {
            *(
                "content_filter",
                "content_filtered",
                "refusal",
                "sensitive",
                "guardrail_intervened",
                "error_toxic",
            ),
            # Gemini
            *(
                "safety",
                "recitation",
                "language",
                "blocklist",
                "prohibited_content",
                "spii",
                "image_safety",
            ),
        }
    ),
}
_FAILED: Mapping[str, int | None] = {
    "error": None,
    "network_error": 502,
    "insufficient_system_resource": 503,
    "malformed_function_call": None,
    "malformed_response": None,
    "unexpected_tool_call": None,
}
"""Words for a call that came to nothing and may be made again, with the HTTP statuses
that say the same.
"""
_BY_WORD = {word: reason for reason, words in _MEANINGS.items() for word in words}


def stop_reason_of(word: str) -> StopReason:
    """The meaning of a provider's word, in any case. Raises `ServerFailed` for one that
    reports a failure.
    """
    if (known := word.lower()) in _FAILED:
        raise ServerFailed(
            Failure(status=_FAILED[known], words=f"it stopped with `{word}`")
        )
    return _BY_WORD.get(known, StopReason.UNKNOWN)
