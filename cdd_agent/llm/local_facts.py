"""Facts that a model's server reports: Ollama, and servers on this computer. A fact
counts only if it has the right type.
"""

import re
import time
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.json_values import (
    as_dict,
    as_list,
    as_string,
    as_window,
)
from cdd_agent.llm.fetched_json import fetch_json
from cdd_agent.llm.known_models import KnownModel
from cdd_agent.llm.providers import Endpoint
from cdd_agent.pattern import Pattern

_SET_WINDOW = Pattern(r"^num_ctx\s+(\d{1,10})\s*$", re.MULTILINE)


class ServerFacts:
    """A server that answers several questions within one time limit."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._root = endpoint.base.removesuffix("/v1")
        self._end = time.monotonic() + timeouts.LOCAL_FACTS_TIMEOUT

    def find_window(self) -> int | None:
        """Return the tokens that the server accepts: Ollama for a loaded model, vLLM,
        llama.cpp or LM Studio.
        """
        loaded = self.loaded_models()
        if loaded is not None:
            window = self.window_of_loaded(loaded)
            if window is not None:
                return window
        window = as_window(self._fact_about("/v1/models", "max_model_len"))
        if window is None:
            settings = as_dict(self._ask("/props").get("default_generation_settings"))
            window = as_window(settings.get("n_ctx"))
        if window is None:
            window = as_window(
                self._fact_about("/api/v0/models", "loaded_context_length")
            )
        return window

    def find_sight(self) -> bool | None:
        """Return True if llama.cpp, LM Studio or Ollama reports that the model accepts
        pictures; None if nothing is reported.
        """
        vision = as_dict(self._ask("/props").get("modalities")).get("vision")
        if isinstance(vision, bool):
            return vision
        kind = self._fact_about("/api/v0/models", "type")
        if kind:
            return bool(kind == "vlm")
        if self.loaded_models() is None:
            return None
        shown = self._ask("/api/show", {"model": self._endpoint.model})
        abilities = as_list(shown.get("capabilities"))
        return "vision" in abilities if abilities else None

    def loaded_models(self) -> list[Any] | None:
        """Return Ollama's loaded models; None if the server is not Ollama."""
        models = self._ask("/api/ps").get("models")
        return models if isinstance(models, list) else None

    def window_of_loaded(self, models: list[Any]) -> int | None:
        for entry in map(as_dict, models):
            window = as_window(entry.get("context_length"))
            if window and self._is_named(entry.get("name"), entry.get("model")):
                return window
        return None

    def _fact_about(self, path: str, fact: str) -> Any:
        for entry in map(as_dict, as_list(self._ask(path).get("data"))):
            if self._is_named(entry.get("id")) and entry.get(fact):
                return entry[fact]
        return None

    def _is_named(self, *names: object) -> bool:
        """Ollama adds `:latest` to a name without a tag."""
        model = self._endpoint.model
        return any(name in (model, f"{model}:latest") for name in names)

    def _ask(self, path: str, body: object = None) -> dict[str, Any]:
        remaining = self._end - time.monotonic()
        if remaining <= 0:
            return {}
        answer = fetch_json(self._root + path, self._endpoint.key, remaining, body)
        return as_dict(answer)


def ask_ollama_about(endpoint: Endpoint, facts: KnownModel) -> KnownModel:
    """Return Ollama's facts about a model, loaded or not. The model's maker may have
    set its window.
    """
    shown = as_dict(
        fetch_json(
            f"{endpoint.base}/api/show",
            endpoint.key,
            timeouts.FACTS_TIMEOUT * 10,
            {"model": endpoint.model},
        )
    )
    info = as_dict(shown.get("model_info"))
    family = as_string(info.get("general.architecture"))
    window = as_window(info.get(f"{family}.context_length"))
    setting = _SET_WINDOW.search(as_string(shown.get("parameters")))
    set_window = as_window(int(setting[1])) if setting else None
    is_remote = bool(shown.get("remote_host")) or host_of(endpoint) == "ollama.com"
    facts = replace(
        facts,
        window=set_window or window or facts.window,
        window_now=set_window or (window if is_remote else None),
    )
    abilities = as_list(shown.get("capabilities"))
    if not abilities:
        return facts
    return replace(
        facts,
        calls_tools="tools" in abilities,
        thinks="thinking" in abilities,
        sees="vision" in abilities,
    )


def host_of(endpoint: Endpoint) -> str:
    """Return the host of an endpoint, or an empty text."""
    try:
        return urlsplit(endpoint.base).hostname or ""
    except ValueError:
        return ""
