"""Facts that servers tell of their own models, which go before any table: OpenRouter's
list, Ollama's of a model, and how much a server on this computer takes in.

What answers may be anything, and so may what was kept: each fact is taken only as what
it has to be.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import write_atomic
from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.http_client import client_settings, load_certificates
from cdd_agent.llm.direct.json_values import (
    as_amount,
    as_dict,
    as_int,
    as_list,
    as_string,
    read_json,
)
from cdd_agent.llm.known_models import KnownModel
from cdd_agent.llm.port import NotReachable, Price
from cdd_agent.llm.providers import Endpoint, Speaks
from cdd_agent.network.web_address import is_this_computer
from cdd_agent.user_folders import cache_folder

_A_DAY, _AN_HOUR = 86_400.0, 3_600.0
_MOST_SILENCES = 2
"""After so many, a server here that was not said to be Ollama is taken for another."""
_LONGEST_LIST = 16 * 2**20
_LARGEST_WINDOW = 10**9


class ModelFacts:
    """The facts about one model, by its server's own words where it has some; asked for
    once, in a thread.
    """

    def __init__(self, endpoint: Endpoint, known: KnownModel) -> None:
        self._endpoint, self._facts = endpoint, known
        self._beginning = threading.Lock()
        self._until: float | None = None
        self._ready = threading.Event()
        self._is_here = is_this_computer(_host(endpoint.base))
        self.shape_requests = (
            endpoint.provider == "openrouter" or endpoint.speaks is Speaks.OLLAMA_CHAT
        )
        """Before a request is written, they have to be known."""
        self._silences = 0
        """How often nothing has answered as Ollama does."""

    def begin(self) -> None:
        """Ask, without waiting, whoever has something to say."""
        with self._beginning:
            if self._until is not None or not (self._is_here or self.shape_requests):
                return
            self._until = time.monotonic() + (
                timeouts.FACTS_TIMEOUT
                if self.shape_requests
                else timeouts.LOCAL_FACTS_TIMEOUT
            )
        threading.Thread(target=self._ask, name="ask-about-model", daemon=True).start()

    def facts(self) -> KnownModel:
        """Those known by now. Waits for the first answer, but not for long; what comes
        later is in later facts.
        """
        self.begin()
        if self._until is not None and not self._ready.is_set():
            self._ready.wait(max(0.0, self._until - time.monotonic()))
        return self._facts

    def sees(self) -> bool | None:
        """Whether it takes pictures. A server on this computer is asked when somebody
        first wants to know.
        """
        return self.facts().sees if self._sees_here is None else self._sees_here

    @cached_property
    def _sees_here(self) -> bool | None:
        is_asked_already = self._endpoint.speaks is Speaks.OLLAMA_CHAT
        return (
            sees_here(self._endpoint)
            if self._is_here and not is_asked_already
            else None
        )

    @property
    def known(self) -> KnownModel:
        """Those known by now, without waiting."""
        return self._facts

    @property
    def may_be_ollama(self) -> bool:
        is_silent = self._silences >= _MOST_SILENCES
        return self._endpoint.provider.startswith("ollama") or (
            self._is_here and not is_silent
        )

    def ask_ollama(self) -> int | None:
        """How much it takes in now, as it says of a loaded model; None where it does
        not, or is something else.
        """
        loaded = _loaded_by_ollama(self._endpoint, timeouts.LOCAL_FACTS_TIMEOUT)
        self._silences = self._silences + 1 if loaded is None else 0
        window = _window_among(loaded, self._endpoint)
        if window is not None and self._endpoint.speaks is Speaks.OLLAMA_CHAT:
            self._facts = replace(self._facts, window_now=window)
        elif window is not None:
            self._facts = replace(self._facts, window=window)
        return window

    def _ask(self) -> None:
        try:
            if self._endpoint.provider == "openrouter":
                self._ask_openrouter()
            elif self._endpoint.speaks is Speaks.OLLAMA_CHAT:
                self._facts = _shown_by_ollama(self._endpoint, self._facts)
            elif window := window_here(self._endpoint):
                self._facts = replace(self._facts, window=window)
        finally:
            self._ready.set()

    def _ask_openrouter(self) -> None:
        kept, name = _CachedList.read(self._endpoint.base), self._endpoint.model
        if found := _facts_of(name, kept.entries, self._facts):
            self._facts = found
            self._ready.set()
        age = time.time() - kept.asked_at
        if 0 <= age < (_A_DAY if found else _AN_HOUR):
            return
        answer = fetched(
            f"{self._endpoint.base}/models",
            self._endpoint.key,
            timeouts.FACTS_TIMEOUT * 10,
        )
        listed = map(as_dict, as_list(as_dict(answer).get("data")))
        if entries := [
            {name: entry[name] for name in _FIELDS if name in entry} for entry in listed
        ]:
            _CachedList(self._endpoint.base, time.time(), entries).write()
            self._facts = _facts_of(name, entries, self._facts) or self._facts


def window_here(endpoint: Endpoint) -> int | None:
    """How many tokens a server on this computer takes in, as far as it says: Ollama of
    a model that is loaded, vLLM, llama.cpp and LM Studio.
    """
    root, model = endpoint.base.removesuffix("/v1"), endpoint.model
    asked: tuple[tuple[str, Callable[[dict[str, Any]], Iterable[object]]], ...] = (
        (
            "/v1/models",
            lambda said: _named(model, said.get("data"), "max_model_len", "id"),
        ),
        (
            "/props",
            lambda said: [
                as_dict(said.get("default_generation_settings")).get("n_ctx")
            ],
        ),
        (
            "/api/v0/models",
            lambda said: _named(model, said.get("data"), "loaded_context_length", "id"),
        ),
    )
    end = time.monotonic() + timeouts.LOCAL_FACTS_TIMEOUT
    if found := _window_among(
        _loaded_by_ollama(endpoint, timeouts.LOCAL_FACTS_TIMEOUT), endpoint
    ):
        return found
    for path, windows in asked:
        left = end - time.monotonic()
        if left <= 0:
            return None
        said = as_dict(fetched(root + path, endpoint.key, left))
        if found := next(filter(None, map(_as_window, windows(said))), None):
            return found
    return None


def _shown_by_ollama(endpoint: Endpoint, known: KnownModel) -> KnownModel:
    """The facts that Ollama tells of a model, loaded or not. Who made the model may
    have set its window (`num_ctx`).
    """
    shown = as_dict(
        fetched(
            f"{endpoint.base}/api/show",
            endpoint.key,
            timeouts.FACTS_TIMEOUT * 10,
            {"model": endpoint.model},
        )
    )
    about = as_dict(shown.get("model_info"))
    window = _as_window(
        about.get(f"{as_string(about.get('general.architecture'))}.context_length")
    )
    setting = re.search(
        r"^num_ctx\s+(\d{1,10})\s*$", as_string(shown.get("parameters")), re.MULTILINE
    )
    is_set = _as_window(int(setting[1])) if setting else None
    is_elsewhere = (
        bool(shown.get("remote_host")) or _host(endpoint.base) == "ollama.com"
    )
    can = as_list(shown.get("capabilities"))
    return replace(
        known,
        window=is_set or window or known.window,
        window_now=is_set or (window if is_elsewhere else None),
        calls_tools="tools" in can if can else known.calls_tools,
        thinks="thinking" in can if can else known.thinks,
        sees="vision" in can if can else known.sees,
    )


def sees_here(endpoint: Endpoint) -> bool | None:
    """Whether the model of a server on this computer takes pictures, as far as that
    says: llama.cpp, LM Studio and Ollama.
    """
    root, model = endpoint.base.removesuffix("/v1"), endpoint.model
    end = time.monotonic() + timeouts.LOCAL_FACTS_TIMEOUT

    def said(path: str, body: object = None) -> dict[str, Any]:
        left = end - time.monotonic()
        return (
            as_dict(fetched(root + path, endpoint.key, left, body)) if left > 0 else {}
        )

    by_llama_cpp = as_dict(said("/props").get("modalities")).get("vision")
    if isinstance(by_llama_cpp, bool):
        return by_llama_cpp
    if kind := next(
        _named(model, said("/api/v0/models").get("data"), "type", "id"), None
    ):
        return kind == "vlm"
    # who is not Ollama is not asked in its own words
    if "models" not in said("/api/ps"):
        return None
    can = as_list(said("/api/show", {"model": model}).get("capabilities"))
    return "vision" in can if can else None


def _loaded_by_ollama(endpoint: Endpoint, patience: float) -> list[Any] | None:
    """Its list of the models that are loaded; None where nothing answers, or something
    else.
    """
    said = as_dict(
        fetched(f"{endpoint.base.removesuffix('/v1')}/api/ps", endpoint.key, patience)
    ).get("models")
    return said if isinstance(said, list) else None


def _window_among(loaded: list[Any] | None, endpoint: Endpoint) -> int | None:
    windows = _named(endpoint.model, loaded, "context_length", "name", "model")
    return next(filter(None, map(_as_window, windows)), None)


def fetched(
    address: str, key: str | None, patience: float, body: object = None
) -> object:
    """The JSON at an address, or the answer to a `body` of JSON; None where there is
    none, it does not come in time, or it has no end.
    """
    load_certificates(address)
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    sent = None if body is None else json.dumps(body).encode()
    if key:
        headers["Authorization"] = f"Bearer {key}"
    end, came = time.monotonic() + patience, bytearray()
    try:
        url = httpx.URL(address)
        with (
            httpx.Client(**{**client_settings(url), "timeout": patience}) as client,
            client.stream(
                "GET" if sent is None else "POST", url, headers=headers, content=sent
            ) as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                return None
            for piece in answer.iter_raw():
                came += piece
                if len(came) > _LONGEST_LIST or time.monotonic() > end:
                    return None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, NotReachable):
        return None  # the call itself says what is wrong there
    return read_json(came.decode(errors="replace"))


class _CachedList(Struct, frozen=True):
    """OpenRouter's list as it is kept in the user's cache folder."""

    base: str
    asked_at: float = 0.0
    """In seconds since 1970."""
    entries: Iterable[dict[str, Any]] = ()

    @classmethod
    def read(cls, base: str) -> "_CachedList":
        """The list that came from this address, or an empty one."""
        path, text = _list_file(), ""
        with suppress(OSError):
            if path and path.stat().st_size <= _LONGEST_LIST:
                text = path.read_text(encoding="utf-8", errors="replace")
        content = as_dict(read_json(text))
        if content.get("base") != base:
            return cls(base)
        entries = [as_dict(entry) for entry in as_list(content.get("data"))]
        return cls(base, as_amount(content.get("asked_at")) or 0.0, entries)

    def write(self) -> None:
        """Save the list, if there is a place to. Otherwise it is downloaded again."""
        path = _list_file()
        if path is None:
            return
        content = {
            "base": self.base,
            "asked_at": self.asked_at,
            "data": list(self.entries),
        }
        with suppress(CddError, OSError):
            write_atomic(path, json.dumps(content).encode())


def _list_file() -> Path | None:
    folder = cache_folder()
    return folder / "openrouter-models.json" if folder else None


_FIELDS = (
    "id",
    "context_length",
    "pricing",
    "supported_parameters",
    "top_provider",
    "architecture",
)
"""Those of an entry that are kept."""


def _facts_of(
    name: str, entries: Iterable[dict[str, Any]], known: KnownModel
) -> KnownModel | None:
    """The facts about a model in a list; for a variant (`:nitro`) that is not in it,
    those of the model.
    """
    by_name = {as_string(entry.get("id")): entry for entry in entries}
    entry = by_name.get(name) or by_name.get(name.partition(":")[0])
    if not entry:
        return None
    modalities = as_list(as_dict(entry.get("architecture")).get("input_modalities"))
    takes, provider = (
        as_list(entry.get("supported_parameters")),
        as_dict(entry.get("top_provider")),
    )
    pricing = as_dict(entry.get("pricing"))
    names = ("prompt", "completion", "input_cache_read", "input_cache_write")
    prompt, completion, read, write = (_dollars(pricing.get(name)) for name in names)
    return replace(
        known,
        window=_as_window(provider.get("context_length"))
        or _as_window(entry.get("context_length"))
        or known.window,
        longest_reply=_as_window(provider.get("max_completion_tokens"))
        or known.longest_reply,
        price=known.price
        if prompt is None or completion is None
        else Price(prompt, completion, read, write),
        calls_tools="tools" in takes,
        thinks="reasoning" in takes,
        sees="image" in modalities if modalities else known.sees,
    )


def _dollars(said: object) -> float | None:
    """OpenRouter writes amounts as strings; less than nothing stands for one that
    depends.
    """
    try:
        return as_amount(float(said)) if isinstance(said, str) else as_amount(said)
    except ValueError:
        return None


def _named(model: str, entries: object, fact: str, *names: str) -> Iterator[object]:
    """A fact of the entries with the model's name; Ollama adds `:latest` to one without
    a tag.
    """
    for entry in map(as_dict, as_list(entries)):
        if any(
            as_string(entry.get(name)) in (model, f"{model}:latest") for name in names
        ):
            yield entry.get(fact)


def _as_window(said: object) -> int | None:
    number = as_int(said)
    return number if number is not None and 0 < number <= _LARGEST_WINDOW else None


def _host(base: str) -> str:
    try:
        return urlsplit(base).hostname or ""
    except ValueError:
        return ""
