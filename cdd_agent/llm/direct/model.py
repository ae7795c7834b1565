"""Models that are called over httpx, which takes a fraction of a second to import.

Each call has its own connection, and calls share only the trusted certificates. So any
event loop can use a model, and cancelling a call closes its connection.
"""

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

import httpx

from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.answers import IncomingAnswer, read_complaint
from cdd_agent.llm.direct.anthropic_messages import AnthropicMessages
from cdd_agent.llm.direct.chat_or_responses import ChatOrResponses
from cdd_agent.llm.direct.http_client import (
    NETWORK_ERRORS,
    load_certificates,
    open_client,
    parse_url,
)
from cdd_agent.llm.direct.json_values import as_bytes
from cdd_agent.llm.direct.ollama_chat import OllamaChat
from cdd_agent.llm.direct.openai_responses import OpenAIResponses
from cdd_agent.llm.direct.protocol import NoReply, ServerFailed
from cdd_agent.llm.direct.server_check import expect_server
from cdd_agent.llm.direct.silent_cut import cut_error, fewest_tokens, is_cut
from cdd_agent.llm.direct.wire_protocol import WireProtocol
from cdd_agent.llm.failure_rules import explain_failure
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.incomplete_answers import explain_incomplete
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.model_facts import ModelFacts
from cdd_agent.llm.options import NO_OPTIONS, ModelOptions
from cdd_agent.llm.port import (
    AuthenticationFailed,
    Done,
    ModelError,
    ModelNotFound,
    OnEvent,
    Price,
    Request,
    Usage,
)
from cdd_agent.llm.providers import Endpoint, Speaks
from cdd_agent.version import VERSION

_HEADERS = {"Content-Type": "application/json", "User-Agent": f"cdd-agent/{VERSION}"}


_CALL_ERRORS = (
    *NETWORK_ERRORS,
    ServerFailed,
    NoReply,
)


class DirectModel:
    """A model at an endpoint, called in one of its protocols."""

    def __init__(
        self, name: str, endpoint: Endpoint, options: ModelOptions = NO_OPTIONS
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        self.options = options
        self._model_facts = ModelFacts(endpoint, known_model(name))
        self._is_prepared = False
        """The work before the first call is done."""
        self.protocol = self._make_protocol()

    def _make_protocol(self) -> WireProtocol:
        name, endpoint, options = self.name, self.endpoint, self.options
        facts = self._model_facts
        match endpoint.speaks:
            case Speaks.CHAT_COMPLETIONS:
                return ChatOrResponses(name, endpoint, options, lambda: facts.current)
            case Speaks.OLLAMA_CHAT:
                return OllamaChat(endpoint, options, lambda: facts.current)
            case Speaks.ANTHROPIC_MESSAGES:
                return AnthropicMessages(name, endpoint, options)
            case Speaks.OPENAI_RESPONSES:
                return OpenAIResponses(name, endpoint, options)

    @property
    def calls_tools(self) -> bool:
        return self._model_facts.facts().calls_tools

    @property
    def sees(self) -> bool | None:
        if self.options.sees is not None:
            return self.options.sees
        return self._model_facts.sees()

    @property
    def window(self) -> int | None:
        return self._model_facts.facts().window

    @property
    def price(self) -> Price | None:
        return self._model_facts.facts().price

    def warm_up(self) -> None:
        """Read the trusted certificates in a thread, which the first call waits for.
        Another thread asks the server about its model.
        """
        self._model_facts.start()
        threading.Thread(
            target=load_certificates,
            args=(self.endpoint.base,),
            name="read-certificates",
            daemon=True,
        ).start()

    async def check(self, *, connect: bool) -> None:
        self._check_key()
        if connect:
            await expect_server(self.name, self.endpoint.base, self._key_hint)

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        outer = sys.exception()
        self._check_key()
        if not self._is_prepared or self.endpoint.speaks is Speaks.OLLAMA_CHAT:
            await asyncio.to_thread(self._prepare)
        answer = IncomingAnswer(self.protocol.reader(request), on_event)
        try:
            await self._ask_until_accepted(request, answer)
            last_events = answer.end(self.name)
        except _CALL_ERRORS as error:
            if error is answer.listener.raised:
                raise
            raise self._error(error, outer, answer) from error
        done = answer.reader.done
        if done.usage is not None:
            await self._expect_complete(request, done.usage)
        for event in last_events:
            on_event(event)
        return done

    def _prepare(self) -> None:
        load_certificates(self.endpoint.base)
        if self._model_facts.shape_requests:
            self._model_facts.facts()
        if self.endpoint.speaks is Speaks.OLLAMA_CHAT:
            # another program may have loaded the model with another window
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
        url = parse_url(self.endpoint.base, self.protocol.path)
        silence = timeouts.silence_timeout(self._model_facts.current)
        async with open_client(url, silence) as client:
            while True:
                refusal = await self._ask(client, request, answer)
                if refusal is None:
                    return
                if not self.protocol.adapts_to(refusal):
                    raise ServerFailed(refusal)

    async def _ask(
        self, client: httpx.AsyncClient, request: Request, answer: IncomingAnswer
    ) -> Failure | None:
        """Send the request and read the whole answer. Return the failure if the server
        refuses the request.
        """
        # the protocol may change when the server refuses another call
        url = parse_url(self.endpoint.base, self.protocol.path)
        call = self.protocol.call(request)
        answer.reader = self.protocol.reader(request)
        headers = httpx.Headers({**_HEADERS, **self.endpoint.headers, **call.headers})
        # the user may write header names in another case
        headers.update(self.options.headers)
        body = as_bytes(call.body)
        async with (
            # httpx limits only the time between two bytes of the headers
            asyncio.timeout(timeouts.KEEP_ALIVE_TIMEOUT) as limit,
            client.stream("POST", url, content=body, headers=headers) as response,
        ):
            limit.reschedule(None)
            bytes_of_body = cast("AsyncGenerator[bytes, None]", response.aiter_bytes())
            async with aclosing(bytes_of_body) as pieces:
                if not response.is_success:
                    return await read_complaint(response, pieces)
                await answer.read(pieces)
        return None

    def _check_key(self) -> None:
        """Raise before a call that cannot succeed or cannot even be written."""
        if self.endpoint.lacks_key:
            raise AuthenticationFailed(
                f"There is no key for {self.name}.", hint=self._key_hint()
            )
        if problem := self.endpoint.key_problem:
            raise AuthenticationFailed(
                f"The key for {self.name} {problem}.",
                hint=self._key_hint(),
            )

    def _key_hint(self) -> str:
        return self.endpoint.key_hint

    def _error(
        self, error: Exception, outer: BaseException | None, answer: IncomingAnswer
    ) -> ModelError:
        received = answer.received
        is_other_answer = not (received.is_reply or received.is_stream)
        if isinstance(error, NoReply) and is_other_answer:
            return explain_incomplete(self.name, received)
        if isinstance(error, ServerFailed):
            failure = error.failure
        else:
            failure = Failure.from_exception(error, outer)
        base = self.endpoint.base
        model_error = explain_failure(failure, self.name, base, self._key_hint)
        is_missing = isinstance(model_error, ModelNotFound) and failure.status == 404
        if is_missing and self.endpoint.speaks is Speaks.OLLAMA_CHAT:
            model_error.hint = (
                f"Get it with `ollama pull {self.endpoint.model}`. If it is not Ollama"
                f" that is at {base}: other API bases often end in /v1."
            )
        return model_error
