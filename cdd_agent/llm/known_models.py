"""Facts about models that need no request: a table made from litellm's before a release
(`make models`). Importing litellm takes seconds, and its tables are megabytes.
"""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from msgspec import Raw, Struct, field, json
from msgspec.structs import replace

from cdd_agent.llm.port import Price
from cdd_agent.pattern import Pattern


class KnownModel(Struct, frozen=True):
    """The facts about one model. None: unknown."""

    window: int | None = None
    """Maximum tokens of a request."""
    window_now: int | None = None
    """Tokens that the server allows until a request asks for more."""
    longest_reply: int | None = None
    """Tokens of a reply with its thoughts."""
    price: Price | None = None
    calls_tools: bool = False
    sees: bool | None = None
    """True if the model accepts pictures."""
    thinks: bool | None = None
    thinks_adaptively: bool = False
    """True if the model accepts Anthropic's `thinking: {type: adaptive}`."""
    takes_effort: bool = False
    """True if the model accepts Anthropic's `output_config.effort`."""
    refuses_sampling: bool = False
    """True if the model accepts no temperature."""
    only_by_responses: bool = False
    """True if OpenAI offers the model through the Responses API alone."""
    efforts: frozenset[str] = field(default_factory=frozenset)
    """The efforts among none, minimal, xhigh and max that the model accepts. All accept
    low, medium and high.
    """

    @property
    def in_short(self) -> str:
        words = []
        if self.window:
            words.append(f"{self.window // 1000:,}k tokens")
        if self.price is not None:
            prompt, completion = self.price.prompt * 1e6, self.price.completion * 1e6
            words.append(f"${prompt:.4g} in, ${completion:.4g} out per million")
        return " · ".join(words)


class _Row(Struct, frozen=True, array_like=True):
    provider: str
    window: int | None = None
    longest_reply: int | None = None
    flags: str | None = None
    prices: tuple[float | None, ...] | None = None
    above: tuple[float | None, ...] | None = None
    """A token count, then the prices of longer prompts."""


class _Table(Struct, frozen=True):
    providers: frozenset[str]
    models: dict[str, Raw]
    """Rows as JSON, because few of thousands are read."""


UNKNOWN = KnownModel()
_OPENROUTER_VENDORS = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "google": "gemini",
    "minimax": "minimax",
    "mistralai": "mistral",
    "moonshotai": "moonshot",
    "openai": "openai",
    "qwen": "dashscope",
    "x-ai": "xai",
    "z-ai": "zai",
}
"""OpenRouter's vendor names, and the providers in the table."""
_CALL_TOOLS = Pattern(
    r"(?:anthropic/)?claude-|(?:openai/)?(?:gpt-[4-9]|o[3-9])|gemini/gemini-[2-9]"
    r"|deepseek/deepseek-(?:chat|v\d)|mistral/(?:mistral|devstral|codestral)-"
    r"|xai/grok-|moonshot/kimi-|minimax/minimax-|zai/glm-|dashscope/qwen",
    re.IGNORECASE,
)
"""Families in which all models call tools, including those newer than the table."""
_EFFORTS = {"n": "none", "m": "minimal", "x": "xhigh", "M": "max"}


@cache
def known_model(model: str) -> KnownModel:
    """Return the facts about a model string: `provider/name`, or the name alone.

    `openai/responses/NAME` means `openai/NAME`. The table has no models of OpenRouter:
    their vendors' rows give the abilities, but not windows and prices.
    """
    prefix, _, rest = model.partition("/")
    vendor, _, name = rest.partition("/")
    if prefix == "openrouter" and vendor in _OPENROUTER_VENDORS:
        return _known_by_vendor(_OPENROUTER_VENDORS[vendor], name.partition(":")[0])
    model = re.sub("^openai/responses/", "openai/", model)
    row = _find_row(model)
    if row is not None:
        return _facts_in(row)
    return KnownModel(calls_tools=True) if _CALL_TOOLS.match(model) else UNKNOWN


def _known_by_vendor(provider: str, name: str) -> KnownModel:
    """OpenRouter writes `claude-opus-4.5` for `claude-opus-4-5`, and no capitals."""
    model = f"{provider}/{name}"
    for spelled in (model, name):
        listed = _by_plain_name().get(_plain_name(spelled))
        row = _row(_table().models[listed]) if listed else None
        if row is not None and row.provider == provider:
            facts = _facts_in(row)
            return replace(facts, window=None, longest_reply=None, price=None)
    return known_model(model)


@cache
def _by_plain_name() -> dict[str, str]:
    return {_plain_name(model): model for model in _table().models}


def _plain_name(model: str) -> str:
    return model.replace(".", "-").lower()


def _find_row(model: str) -> "_Row | None":
    models = _table().models
    if model in models:
        return _row(models[model])
    provider, _, name = model.partition("/")
    if name in models:
        row = _row(models[name])
        # such as `bedrock_converse` and `vertex_ai-language-models`
        owner = row.provider.removesuffix("_converse").partition("-")[0]
        return row if provider in (owner, row.provider) else None
    return None


def _facts_in(row: _Row) -> KnownModel:
    flags = row.flags or ""
    price = _price(row.prices) if row.prices else None
    if price and row.above:
        tokens, *prices = row.above
        price = replace(price, above=(int(tokens or 0), _price(prices)))
    return KnownModel(
        window=row.window,
        longest_reply=row.longest_reply,
        price=price,
        calls_tools="t" in flags,
        sees="v" in flags,
        thinks="r" in flags,
        thinks_adaptively="a" in flags,
        takes_effort="o" in flags,
        refuses_sampling="s" in flags,
        only_by_responses="R" in flags,
        efforts=frozenset(effort for flag, effort in _EFFORTS.items() if flag in flags),
    )


def models_of(provider: str) -> list[str]:
    names = []
    for name, raw in _table().models.items():
        row = _row(raw)
        if row.provider == provider and "t" in (row.flags or ""):
            names.append(f"{provider}/{name.removeprefix(f'{provider}/')}")
    return list(dict.fromkeys(names))


def has_provider(model: str) -> bool:
    """Return True if the table has the provider of a model string. litellm may know
    more.
    """
    prefix, slash, _ = model.partition("/")
    if slash:
        return prefix in _table().providers
    return model in _table().models


@cache
def _table() -> _Table:
    return json.decode(
        Path(__file__).with_name("known_models.json").read_bytes(), type=_Table
    )


def _price(amounts: Sequence[float | None]) -> Price:
    prompt, completion, read, write = (*amounts, None, None)[:4]
    assert prompt is not None
    assert completion is not None
    return Price(prompt, completion, read, write)


def _row(row: Raw) -> _Row:
    return json.decode(row, type=_Row)
