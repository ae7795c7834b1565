"""What is known of a model without asking it: litellm's own tables, read as the files that they are, since importing
litellm takes seconds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cdd_agent.llm.port import Usage

_TABLE = "model_prices_and_context_window_backup.json"
_PROVIDERS = "provider_endpoints_support_backup.json"


@dataclass(frozen=True)
class Price:
    """US dollars for a token. What a provider takes off for a prompt it has seen before is not known here."""

    prompt: float
    completion: float

    def of(self, usage: Usage) -> float:
        return usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion


FREE = Price(0.0, 0.0)


def price_of(model: str) -> Price | None:
    """The price of a model string; None where the table does not know it."""
    entry = _entry(model)
    match entry.get("input_cost_per_token"), entry.get("output_cost_per_token"):
        case ((int() | float() as prompt), (int() | float() as completion)):
            return Price(prompt, completion)
    return None


def calls_tools(model: str) -> bool:
    """Whether the table says so."""
    return _entry(model).get("supports_function_calling") is True


def window_of(model: str) -> int | None:
    """How many tokens a request may have."""
    tokens = _entry(model).get("max_input_tokens")
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def has_provider(model: str) -> bool:
    """Whether the tables know who offers it. Where they do not, litellm may all the same."""
    prefix, slash, _ = model.partition("/")
    if not slash:
        return bool(_entry(model))
    if prefix in _read(_PROVIDERS).get("providers", {}):
        return True
    return any(entry.get("litellm_provider") == prefix for entry in _read(_TABLE).values())


@cache
def _entry(model: str) -> Mapping[str, Any]:
    """Of a model string, as `provider/name` or as the name alone; empty where the table does not know it."""
    table = _read(_TABLE)
    entry = table.get(model)
    provider, _, name = model.partition("/")
    if entry is None and (found := table.get(name)) and found.get("litellm_provider") == provider:
        entry = found
    return entry or {}


def _read(table: str) -> dict[str, Any]:
    """By model, or as it is; empty where litellm, or a litellm that is like ours, is not installed."""
    found = find_spec("litellm")
    for folder in (found.submodule_search_locations or ()) if found else ():
        try:
            content = json.loads((Path(folder) / table).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return content if isinstance(content, dict) else {}
    return {}
