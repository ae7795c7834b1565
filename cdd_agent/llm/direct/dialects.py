"""How providers of chat completions differ: what each wants otherwise than the
protocol's own servers do.

What a server does not take is learned from its refusals as well
(`ChatCompletions.adapts_to`); here is what is known before. `docs/models.md` has the
sources.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.llm.known_models import KnownModel
from cdd_agent.llm.options import Effort


class Dialect(Struct, frozen=True):
    """One provider's."""

    asks_for_usage: bool = True
    """It knows `stream_options`."""
    limit: str = "max_tokens"
    """The field for the longest reply."""
    takes_thoughts: bool = True
    """It knows the fields in which others send and take thoughts as text."""
    needs_thoughts: bool = False
    """Each message with calls must have `reasoning_content`, if only an empty one."""
    keeps_text: bool = False
    """Thoughts may be in the text, and must stay there word for word."""
    signs_calls: bool = False
    """Calls are signed; the first of a message must have a signature."""
    needs_own_calls: bool = False
    """Calls that another model made are refused, as nothing of its own goes with them.
    """
    short_ids: bool = False
    """Ids of calls are nine letters or digits."""
    answers_end_rounds: bool = False
    """After answers of tools comes the assistant, and no word of a person."""
    routes_by_key: bool = False
    """`prompt_cache_key` helps to find the cache."""
    fixes_sampling: bool = False
    """Models that think take no temperature."""
    states_cost: bool = False
    """It tells what a call cost, if it is asked to."""


DIALECTS: Mapping[str, Dialect] = {
    "openai": Dialect(
        limit="max_completion_tokens", routes_by_key=True, fixes_sampling=True
    ),
    "openrouter": Dialect(states_cost=True),
    "deepseek": Dialect(needs_thoughts=True),
    "moonshot": Dialect(needs_thoughts=True, fixes_sampling=True),
    "mistral": Dialect(
        asks_for_usage=False,
        takes_thoughts=False,
        short_ids=True,
        answers_end_rounds=True,
    ),
    "codestral": Dialect(
        asks_for_usage=False,
        takes_thoughts=False,
        short_ids=True,
        answers_end_rounds=True,
    ),
    "gemini": Dialect(takes_thoughts=False, signs_calls=True),
}
"""By the prefix of the model string."""
PLAIN = Dialect()
_MINIMAX = re.compile(r"minimax", re.IGNORECASE)
UNSIGNED: Mapping[str, Any] = {
    "google": {"thought_signature": "skip_thought_signature_validator"}
}
"""Stands for a signature on calls that another model made."""


def dialect_of(provider: str, model: str) -> Dialect:
    """Return the dialect of a provider for one model.

    MiniMax's models want their thoughts back in the text, whichever server they run on
    (platform.minimax.io/docs, text-m2-function-call).
    """
    dialect = DIALECTS.get(provider, PLAIN)
    if _MINIMAX.search(model):
        return replace(dialect, keeps_text=True)
    return dialect


def effort_fields(
    provider: str, model: str, known: KnownModel, effort: Effort
) -> dict[str, Any]:
    """The fields that tell a model of a provider how much to think."""
    match provider:
        case "openrouter" if known.thinks is False:
            # by its own list; a route that must take every field would not be found
            return {}
        case "openrouter":
            is_off = effort is Effort.NONE
            return {
                "reasoning": {"enabled": False}
                if is_off
                else {"effort": openai_word(effort, known)}
            }
        case "deepseek" | "zai":
            switch = {
                "thinking": {"type": "disabled" if effort is Effort.NONE else "enabled"}
            }
            return (
                {**switch, "reasoning_effort": "max"}
                if effort is Effort.MAX and provider == "deepseek"
                else switch
            )
        case "moonshot" if effort is Effort.NONE:
            return {"thinking": {"type": "disabled"}}
        case "moonshot":
            return {
                "reasoning_effort": "high" if effort is Effort.MEDIUM else effort.value
            }
        case "mistral" | "codestral":
            return {
                "reasoning_effort": "none"
                if effort in (Effort.NONE, Effort.LOW)
                else "high"
            }
        case "xai":
            return {
                "reasoning_effort": "low"
                if effort in (Effort.NONE, Effort.LOW)
                else "high"
            }
        case "openai" if not known.thinks and model.startswith("gpt-4"):
            return {}
        case "openai":
            return {"reasoning_effort": openai_effort(effort, known)}
        case _:
            return {"reasoning_effort": openai_word(effort, known)}


def openai_effort(effort: Effort, known: KnownModel) -> str:
    """For OpenAI's own models, of which some cannot but think."""
    if (
        effort is Effort.NONE
        and known.thinks
        and not known.efforts & {"none", "minimal"}
    ):
        return "low"
    return openai_word(effort, known)


def openai_word(effort: Effort, known: KnownModel) -> str:
    """OpenAI's word for an effort, as far as the model is known to have one."""
    match effort:
        case Effort.MAX:
            return next(
                (word for word in ("max", "xhigh") if word in known.efforts), "high"
            )
        case Effort.NONE:
            return (
                "minimal"
                if "minimal" in known.efforts and "none" not in known.efforts
                else "none"
            )
        case _:
            return effort.value
