"""The facts about one model. Its server's facts override the table's."""

import threading
import time
from functools import cached_property

from msgspec.structs import replace

from cdd_agent.llm import timeouts
from cdd_agent.llm.known_models import KnownModel
from cdd_agent.llm.local_facts import ServerFacts, ask_ollama_about, host_of
from cdd_agent.llm.openrouter_list import OpenRouterList
from cdd_agent.llm.providers import Endpoint, Speaks
from cdd_agent.network.web_address import is_this_computer

_MOST_SILENCES = 2
"""After this many, a server on this computer is not Ollama."""


class ModelFacts:
    """Asks the server once, in a thread."""

    def __init__(self, endpoint: Endpoint, facts: KnownModel) -> None:
        self._endpoint, self._facts = endpoint, facts
        self._starting = threading.Lock()
        self._wait_until: float | None = None
        self._ready = threading.Event()
        self._is_here = is_this_computer(host_of(endpoint))
        self._is_ollama = endpoint.speaks is Speaks.OLLAMA_CHAT
        self.shape_requests = endpoint.provider == "openrouter" or self._is_ollama
        """True if requests cannot be written without the facts."""
        self._silences = 0
        """Number of questions without an answer from Ollama."""

    def start(self) -> None:
        """Ask the server, without waiting, if it reports facts."""
        with self._starting:
            is_silent = not (self._is_here or self.shape_requests)
            if self._wait_until is not None or is_silent:
                return
            patience = timeouts.LOCAL_FACTS_TIMEOUT
            if self.shape_requests:
                patience = timeouts.FACTS_TIMEOUT
            self._wait_until = time.monotonic() + patience
        threading.Thread(target=self._ask, name="ask-about-model", daemon=True).start()

    def facts(self) -> KnownModel:
        """Return the facts after a short wait for the first answer. Later answers
        appear in later results.
        """
        self.start()
        if self._wait_until is not None and not self._ready.is_set():
            self._ready.wait(max(0.0, self._wait_until - time.monotonic()))
        return self._facts

    @property
    def current(self) -> KnownModel:
        """The present facts, without waiting."""
        return self._facts

    def sees(self) -> bool | None:
        """Return True if the model accepts pictures. The first call asks a server on
        this computer.
        """
        if self._sees_here is not None:
            return self._sees_here
        return self.facts().sees

    @cached_property
    def _sees_here(self) -> bool | None:
        if not self._is_here or self._is_ollama:
            return None
        return ServerFacts(self._endpoint).find_sight()

    @property
    def may_be_ollama(self) -> bool:
        """False if the server is certainly not Ollama."""
        if self._endpoint.provider.startswith("ollama"):
            return True
        return self._is_here and self._silences < _MOST_SILENCES

    def ask_ollama(self) -> int | None:
        """Return the window of the loaded model; None if it is not loaded, or if the
        server is not Ollama.
        """
        server = ServerFacts(self._endpoint)
        loaded = server.loaded_models()
        if loaded is None:
            self._silences += 1
            return None
        self._silences = 0
        window = server.window_of_loaded(loaded)
        if window is not None and self._is_ollama:
            self._facts = replace(self._facts, window_now=window)
        elif window is not None:
            self._facts = replace(self._facts, window=window)
        return window

    def _ask(self) -> None:
        try:
            if self._endpoint.provider == "openrouter":
                self._ask_openrouter()
            elif self._is_ollama:
                self._facts = ask_ollama_about(self._endpoint, self._facts)
            elif window := ServerFacts(self._endpoint).find_window():
                self._facts = replace(self._facts, window=window)
        finally:
            self._ready.set()

    def _ask_openrouter(self) -> None:
        name = self._endpoint.model
        saved = OpenRouterList.load(self._endpoint.base)
        facts = saved.facts(name, self._facts)
        if facts is not None:
            self._facts = facts
            self._ready.set()
        if saved.is_fresh(has_model=facts is not None):
            return
        listed = OpenRouterList.download(self._endpoint)
        if listed.entries:
            listed.save()
            self._facts = listed.facts(name, self._facts) or self._facts
