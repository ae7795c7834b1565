"""The differences between providers of chat completions, as a table.

`ChatCompletions.adapts_to` learns more rules from refusals. The sources are in
docs/reference/models.md.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.llm.known_models import KnownModel
from cdd_agent.llm.options import Effort
from cdd_agent.pattern import Pattern

Fields = Mapping[str, Any]
_THINKS: Fields = {"thinking": {"type": "enabled"}}
_DOES_NOT_THINK: Fields = {"thinking": {"type": "disabled"}}


def _by_effort(
    none: Fields, low: Fields, high: Fields, most: Fields
) -> Mapping[Effort, Fields]:
    return {
        Effort.NONE: none,
        Effort.LOW: low,
        Effort.MEDIUM: high,
        Effort.HIGH: high,
        Effort.MAX: most,
    }


def _effort(word: str) -> Fields:
    return {"reasoning_effort": word}


class Dialect(Struct, frozen=True):
    asks_for_usage: bool = True
    """`stream_options` is allowed."""
    limit: str = "max_tokens"
    """The field for the maximum length of a reply."""
    takes_thoughts: bool = True
    """Thoughts may be sent back as text, in their original field."""
    needs_thoughts: bool = False
    """Each message with calls needs `reasoning_content`, even if empty."""
    keeps_text: bool = False
    """Thoughts may be in the text, and must stay there unchanged."""
    signs_calls: bool = False
    """The first call of a message needs a signature."""
    needs_own_calls: bool = False
    """Calls of another model are refused."""
    short_ids: bool = False
    """Call ids have nine letters or digits."""
    answers_end_rounds: bool = False
    """After tool answers, only the assistant may speak."""
    routes_by_key: bool = False
    """`prompt_cache_key` helps to find the cache."""
    fixes_sampling: bool = False
    """Models that think accept no temperature."""
    states_cost: bool = False
    """The usage includes the cost of a call if the request asks for it."""
    efforts: Mapping[Effort, Fields] | None = None
    """The fields for each effort. None: OpenAI's words."""


_MISTRAL = Dialect(
    asks_for_usage=False,
    takes_thoughts=False,
    short_ids=True,
    answers_end_rounds=True,
    efforts=_by_effort(
        _effort("none"), _effort("none"), _effort("high"), _effort("high")
    ),
)
_DIALECTS: Mapping[str, Dialect] = {
    "openai": Dialect(
        limit="max_completion_tokens", routes_by_key=True, fixes_sampling=True
    ),
    "openrouter": Dialect(states_cost=True),
    "deepseek": Dialect(
        needs_thoughts=True,
        efforts=_by_effort(
            _DOES_NOT_THINK, _THINKS, _THINKS, {**_THINKS, **_effort("max")}
        ),
    ),
    "moonshot": Dialect(
        needs_thoughts=True,
        fixes_sampling=True,
        efforts=_by_effort(
            _DOES_NOT_THINK, _effort("low"), _effort("high"), _effort("max")
        ),
    ),
    "mistral": _MISTRAL,
    "codestral": _MISTRAL,
    "gemini": Dialect(takes_thoughts=False, signs_calls=True),
    "xai": Dialect(
        efforts=_by_effort(
            _effort("low"), _effort("low"), _effort("high"), _effort("high")
        )
    ),
    "zai": Dialect(efforts=_by_effort(_DOES_NOT_THINK, _THINKS, _THINKS, _THINKS)),
}
"""By the prefix of the model string."""
_MINIMAX = Pattern("minimax", re.IGNORECASE)


def dialect_of(provider: str, model: str) -> Dialect:
    """Return the dialect of a provider for one model.

    On any server, MiniMax's models need their thoughts back in the text
    (platform.minimax.io/docs, text-m2-function-call).
    """
    dialect = _DIALECTS.get(provider, Dialect())
    if _MINIMAX.search(model):
        return replace(dialect, keeps_text=True)
    return dialect


def effort_fields(
    provider: str, model: str, facts: KnownModel, effort: Effort
) -> Fields:
    efforts = dialect_of(provider, model).efforts
    if efforts is not None:
        return efforts[effort]
    if provider == "openrouter":
        return _openrouter_fields(facts, effort)
    if provider != "openai":
        return _effort(openai_word(effort, facts))
    if model.startswith("gpt-4") and not facts.thinks:
        return {}
    return _effort(openai_effort(effort, facts))


def _openrouter_fields(facts: KnownModel, effort: Effort) -> Fields:
    """A model that does not think gets no field: no route would accept it."""
    if facts.thinks is False:
        return {}
    if effort is Effort.NONE:
        return {"reasoning": {"enabled": False}}
    return {"reasoning": {"effort": openai_word(effort, facts)}}


def openai_effort(effort: Effort, facts: KnownModel) -> str:
    """Return the word for an effort of OpenAI's own models. Some always think."""
    may_stop = facts.efforts & {"none", "minimal"}
    if effort is Effort.NONE and facts.thinks and not may_stop:
        return "low"
    return openai_word(effort, facts)


def openai_word(effort: Effort, facts: KnownModel) -> str:
    if effort is Effort.MAX:
        for word in ("max", "xhigh"):
            if word in facts.efforts:
                return word
        return "high"
    if effort is Effort.NONE and "none" not in facts.efforts:
        return "minimal" if "minimal" in facts.efforts else "none"
    return effort.value
