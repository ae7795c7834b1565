"""Providers' words for the end of a reply. Only known words mean a complete reply."""

from collections.abc import Mapping

from cdd_agent.llm.direct.protocol import ServerFailed
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.port import StopReason

_WORDS: Mapping[StopReason, tuple[str, ...]] = {
    StopReason.STOP: (
        # OpenAI, and most others
        *("stop", "tool_calls", "function_call"),
        # Anthropic, Bedrock
        *("end_turn", "stop_sequence", "tool_use"),
        # Together, Hugging Face, Cohere
        *("eos", "eos_token", "complete"),
    ),
    StopReason.LENGTH: (
        *("length", "max_tokens", "max_output_tokens", "model_length"),
        "model_context_window_exceeded",
    ),
    StopReason.REFUSED: (
        *("content_filter", "content_filtered", "refusal", "sensitive"),
        *("guardrail_intervened", "error_toxic"),
        # Gemini
        *("safety", "recitation", "language", "blocklist", "prohibited_content"),
        *("spii", "image_safety"),
    ),
}
_REASONS = {word: reason for reason, words in _WORDS.items() for word in words}
_FAILURES: Mapping[str, int | None] = {
    "error": None,
    "network_error": 502,
    "insufficient_system_resource": 503,
    "malformed_function_call": None,
    "malformed_response": None,
    "unexpected_tool_call": None,
}
"""Words for a failed call, with equivalent HTTP statuses."""


def stop_reason_of(word: str) -> StopReason:
    """Return the meaning of a provider's word, ignoring case. Raises `ServerFailed` for
    a word that reports a failure.
    """
    key = word.lower()
    if key in _FAILURES:
        words = f"it stopped with `{word}`"
        raise ServerFailed(Failure(status=_FAILURES[key], words=words))
    return _REASONS.get(key, StopReason.UNKNOWN)
