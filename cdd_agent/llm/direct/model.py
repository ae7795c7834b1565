"""Models that are asked over httpx, in whichever protocol: a fraction of a second to
import, not three.

One call, one connection: calls share nothing but the certificates that are trusted. So
a model can be used from any event loop, and cancelling the call closes the connection.
"""

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

import httpx

from cdd_agent.llm.direct.answers import IncomingAnswer, read_complaint
from cdd_agent.llm.direct.anthropic_messages import AnthropicMessages
from cdd_agent.llm.direct.chat_or_responses import ChatOrResponses
from cdd_agent.llm.direct.http_client import checked_url, client_for, prepare
from cdd_agent.llm.direct.json_values import as_bytes
from cdd_agent.llm.direct.ollama_chat import OllamaChat
from cdd_agent.llm.direct.openai_responses import OpenAIResponses
from cdd_agent.llm.direct.protocol import (
    NoReply,
    ServerFailed,
    WireProtocol,
)
from cdd_agent.llm.direct.server_check import expect_server
from cdd_agent.llm.direct.silent_cut import cut_error, fewest_tokens, is_cut
from cdd_agent.llm.failure_rules import translated
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.incomplete import incomplete
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.model_facts import ModelFacts
from cdd_agent.llm.options import NO_OPTIONS, ModelOptions
from cdd_agent.llm.port import (
    AuthenticationFailed,
    Done,
    Hear,
    ModelError,
    ModelNotFound,
    Price,
    Request,
    Usage,
)
from cdd_agent.llm.providers import Endpoint, Speaks
from cdd_agent.llm.timeouts import silence_timeout
from cdd_agent.version import VERSION

_HEADERS = {"Content-Type": "application/json", "User-Agent": f"cdd-agent/{VERSION}"}


class DirectModel:
    """A model at an endpoint, asked in a protocol that it speaks."""

    def __init__(
        self, name: str, endpoint: Endpoint, options: ModelOptions = NO_OPTIONS
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.options = options
        self._model_facts = facts = ModelFacts(endpoint, known_model(name))
        self._is_prepared = False
        """What comes before the first call alone is done."""
        self.protocol: WireProtocol
        match endpoint.speaks:
            case Speaks.CHAT_COMPLETIONS:
                self.protocol = ChatOrResponses(
                    name, endpoint, options, lambda: facts.known
                )
            case Speaks.OLLAMA_CHAT:
                self.protocol = OllamaChat(endpoint, options, lambda: facts.known)
            case Speaks.ANTHROPIC_MESSAGES:
                self.protocol = AnthropicMessages(name, endpoint, options)
            case Speaks.OPENAI_RESPONSES:
                self.protocol = OpenAIResponses(name, endpoint, options)

    @property
    def calls_tools(self) -> bool:
        return self._model_facts.facts().calls_tools

    @property
    def sees(self) -> bool | None:
        return (
            self._model_facts.sees() if self.options.sees is None else self.options.sees
        )

    @property
    def window(self) -> int | None:
        return self._model_facts.facts().window

    @property
    def price(self) -> Price | None:
        return self._model_facts.facts().price

    def warm_up(self) -> None:
        """Read the trusted certificates in a thread, which the first call joins.
        Another thread asks what the server says of its model.
        """
        self._model_facts.begin()
        threading.Thread(
            target=prepare,
            args=(self.endpoint.base,),
            name="read-certificates",
            daemon=True,
        ).start()

    async def check(self, *, connect: bool) -> None:
        self._check_key()
        if connect:
            await expect_server(
                self.name, self.endpoint.base, lambda: self.endpoint.key_hint
            )

    async def reply(self, request: Request, hear: Hear) -> Done:
        outer = sys.exception()
        self._check_key()
        if not self._is_prepared or self.endpoint.speaks is Speaks.OLLAMA_CHAT:
            await asyncio.to_thread(self._prepare)
        answer = IncomingAnswer(self.protocol.reader(request), hear)
        try:
            await self._ask_until_accepted(request, answer)
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            OSError,
            ServerFailed,
            NoReply,
        ) as error:
            if error is answer.listener.raised:
                raise
            is_broken = isinstance(error, httpx.TransportError | TimeoutError)
            # a complete reply counts even if the connection broke after it
            if not (answer.reader.finished and is_broken):
                raise self._error(error, outer, answer) from error
        reader = answer.reader
        if not reader.finished:
            raise incomplete(self.name, answer.received)
        try:
            last = list(reader.end())
        except ServerFailed as error:
            raise self._error(error, outer, answer) from error
        if (usage := reader.done.usage) is not None:
            await self._expect_complete(request, usage)
        for event in last:
            hear(event)
        return reader.done

    def _prepare(self) -> None:
        prepare(self.endpoint.base)
        if self._model_facts.shape_requests:
            self._model_facts.facts()
        if self.endpoint.speaks is Speaks.OLLAMA_CHAT:
            # others may have loaded the model with another window meanwhile
            self._model_facts.ask_ollama()
        self._is_prepared = True

    async def _expect_complete(self, request: Request, usage: Usage) -> None:
        """Raise `ContextTooLong` if Ollama has cut the request. Ollama reports its
        window only while the model is loaded.
        """
        facts = self._model_facts
        if not facts.may_be_ollama:
            return
        window = facts.facts().window
        is_small = usage.prompt_tokens < fewest_tokens(request)
        if window is not None and not (is_small or is_cut(request, usage, window)):
            return
        window = await asyncio.to_thread(facts.ask_ollama)
        is_ollama = window is not None or self.endpoint.provider.startswith("ollama")
        if is_ollama and is_cut(request, usage, window):
            raise cut_error(self.name, request, usage, window)

    async def _ask_until_accepted(
        self, request: Request, answer: IncomingAnswer
    ) -> None:
        """Read the answer to a request, which is written differently if the server
        refuses it for a reason that the protocol knows.
        """
        url = checked_url(self.endpoint.base, self.protocol.path)
        silence = silence_timeout(self._model_facts.known)
        async with client_for(url, silence) as client:
            while True:
                refusal = await self._ask(client, request, answer)
                if refusal is None:
                    return
                if not self.protocol.adapts_to(refusal):
                    raise ServerFailed(refusal)

    async def _ask(
        self,
        client: "httpx.AsyncClient",
        request: Request,
        answer: IncomingAnswer,
    ) -> Failure | None:
        """Send the request and read the answer to its end. Return the failure if the
        server refuses the request.
        """
        # the protocol may change when the server refuses another call
        url = checked_url(self.endpoint.base, self.protocol.path)
        call = self.protocol.call(request)
        answer.reader = self.protocol.reader(request)
        headers = httpx.Headers({**_HEADERS, **self.endpoint.headers, **call.headers})
        headers.update(self.options.headers)  # a name may be written in other letters
        async with (
            client.stream(
                "POST", url, content=as_bytes(call.body), headers=headers
            ) as response,
            aclosing(
                cast("AsyncGenerator[bytes, None]", response.aiter_bytes())
            ) as pieces,
        ):
            if not response.is_success:
                return await read_complaint(response, pieces)
            await answer.read(pieces)
        return None

    def _check_key(self) -> None:
        """Raise before a call that cannot succeed, or cannot even be written."""
        key = self.endpoint.key or ""
        if self.endpoint.lacks_key:
            raise AuthenticationFailed(
                f"There is no key for {self.name}.", hint=self.endpoint.key_hint
            )
        if not (key.isascii() and key.isprintable()):
            raise AuthenticationFailed(
                f"The key for {self.name} has characters that no key has.",
                hint=self.endpoint.key_hint,
            )

    def _error(
        self, error: Exception, outer: BaseException | None, answer: IncomingAnswer
    ) -> ModelError:
        received = answer.received
        if isinstance(error, NoReply) and not (received.is_reply or received.is_stream):
            return incomplete(self.name, received)
        failure = (
            error.failure
            if isinstance(error, ServerFailed)
            else Failure.of(error, outer)
        )
        told = translated(
            failure, self.name, self.endpoint.base, lambda: self.endpoint.key_hint
        )
        if (
            self.endpoint.speaks is Speaks.OLLAMA_CHAT
            and isinstance(told, ModelNotFound)
            and failure.status == 404
        ):
            told.hint = (
                f"Get it with `ollama pull {self.endpoint.model}`. If it is not Ollama"
                f" that is at {self.endpoint.base}: other API bases often end in /v1."
            )
        return told
