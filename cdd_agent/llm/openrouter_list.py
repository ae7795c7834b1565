"""OpenRouter's model list, cached for a day in the user's cache folder."""

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import write_atomic
from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.json_values import (
    as_amount,
    as_dict,
    as_list,
    as_string,
    as_window,
    read_json,
)
from cdd_agent.llm.fetched_json import LONGEST_DOCUMENT, fetch_json
from cdd_agent.llm.known_models import KnownModel
from cdd_agent.llm.port import Price
from cdd_agent.llm.providers import Endpoint
from cdd_agent.settings.user_folders import cache_folder

_A_DAY, _AN_HOUR = 86_400.0, 3_600.0
_KEPT_FIELDS = (
    "id",
    "context_length",
    "pricing",
    "supported_parameters",
    "top_provider",
    "architecture",
)
_PRICES = ("prompt", "completion", "input_cache_read", "input_cache_write")


class OpenRouterList(Struct, frozen=True):
    base: str
    asked_at: float = 0.0
    """Unix seconds."""
    entries: Iterable[dict[str, Any]] = ()

    @classmethod
    def load(cls, base: str) -> "OpenRouterList":
        """Return the saved list of an address, or an empty one."""
        path, text = _file(), ""
        with suppress(OSError):
            if path and path.stat().st_size <= LONGEST_DOCUMENT:
                text = path.read_text(encoding="utf-8", errors="replace")
        content = as_dict(read_json(text))
        if content.get("base") != base:
            return cls(base)
        entries = [as_dict(entry) for entry in as_list(content.get("data"))]
        return cls(base, as_amount(content.get("asked_at")) or 0.0, entries)

    @classmethod
    def download(cls, endpoint: Endpoint) -> "OpenRouterList":
        """Return the current list, or an empty one if unreadable."""
        answer = fetch_json(
            f"{endpoint.base}/models", endpoint.key, timeouts.FACTS_TIMEOUT * 10
        )
        entries = []
        for listed in map(as_dict, as_list(as_dict(answer).get("data"))):
            entries.append(
                {name: listed[name] for name in _KEPT_FIELDS & listed.keys()}
            )
        return cls(endpoint.base, time.time(), entries)

    def save(self) -> None:
        path = _file()
        if path is None:
            return
        content = {
            "base": self.base,
            "asked_at": self.asked_at,
            "data": list(self.entries),
        }
        with suppress(CddError, OSError):
            write_atomic(path, json.dumps(content).encode())

    def is_fresh(self, *, has_model: bool) -> bool:
        """Without the model, the list expires sooner: the model may be new."""
        age = time.time() - self.asked_at
        return 0 <= age < (_A_DAY if has_model else _AN_HOUR)

    def facts(self, name: str, facts: KnownModel) -> KnownModel | None:
        """Return the facts about a model. An unlisted variant (`:nitro`) has those of
        its base model. None if neither is listed.
        """
        by_name = {as_string(entry.get("id")): entry for entry in self.entries}
        entry = by_name.get(name) or by_name.get(name.partition(":")[0])
        return _facts_in(entry, facts) if entry else None


def _facts_in(entry: dict[str, Any], facts: KnownModel) -> KnownModel:
    provider = as_dict(entry.get("top_provider"))
    window = as_window(provider.get("context_length"))
    window = window or as_window(entry.get("context_length"))
    longest_reply = as_window(provider.get("max_completion_tokens"))
    parameters = as_list(entry.get("supported_parameters"))
    modalities = as_list(as_dict(entry.get("architecture")).get("input_modalities"))
    sees = "image" in modalities if modalities else facts.sees
    return replace(
        facts,
        window=window or facts.window,
        longest_reply=longest_reply or facts.longest_reply,
        price=_price_in(entry) or facts.price,
        calls_tools="tools" in parameters,
        thinks="reasoning" in parameters,
        sees=sees,
    )


def _price_in(entry: dict[str, Any]) -> Price | None:
    pricing = as_dict(entry.get("pricing"))
    prompt, completion, read, write = (_dollars(pricing.get(name)) for name in _PRICES)
    if prompt is None or completion is None:
        return None
    return Price(prompt, completion, read, write)


def _dollars(value: object) -> float | None:
    """OpenRouter writes amounts as strings. A negative amount means a varying price."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return as_amount(value)


def _file() -> Path | None:
    folder = cache_folder()
    return folder / "openrouter-models.json" if folder else None
