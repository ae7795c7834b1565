"""Models that are asked over httpx, in whichever protocol: a fraction of a second to import, not three.

One call, one connection: calls share nothing but the certificates that are trusted. So a model can be used from any
event loop, and closing the iterator closes the connection.
"""

import asyncio
import json
import ssl
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from cdd_agent.llm.direct.answers import documents, read_complaint
from cdd_agent.llm.direct.anthropic_messages import AnthropicMessages
from cdd_agent.llm.direct.chat_completions import ChatCompletions
from cdd_agent.llm.direct.ollama_chat import OllamaChat
from cdd_agent.llm.direct.openai_responses import OpenAIResponses
from cdd_agent.llm.direct.protocol import NoReply, ReplyReader, ServerFailed, WireProtocol
from cdd_agent.llm.direct.silent_cut import expect_read_whole, looks_short
from cdd_agent.llm.failures import Failure, translated, unfinished
from cdd_agent.llm.known_models import Price, known_model
from cdd_agent.llm.options import NO_OPTIONS, ModelOptions
from cdd_agent.llm.own_words import OwnWords
from cdd_agent.llm.port import (
    AuthenticationFailed,
    ConnectionFailed,
    Done,
    ModelError,
    ModelEvent,
    ModelNotFound,
    Request,
    Usage,
)
from cdd_agent.llm.providers import Endpoint, Speaks, is_this_computer
from cdd_agent.llm.timeouts import CONNECT_TIMEOUT, SILENCE_TIMEOUT, silence_timeout
from cdd_agent.version import VERSION

if TYPE_CHECKING:
    import httpx


_LAST_PORT = 65_535
_HEADERS = {"Content-Type": "application/json", "User-Agent": f"cdd-agent/{VERSION}"}


class DirectModel:
    """A model at an endpoint, asked in a protocol that it speaks."""

    def __init__(self, name: str, endpoint: Endpoint, options: ModelOptions = NO_OPTIONS) -> None:
        self.name = name
        self.endpoint = endpoint
        self.options = options
        self._own_words = OwnWords(endpoint, known_model(name))
        self.protocol = _protocol(name, endpoint, options, self._own_words)

    @property
    def calls_tools(self) -> bool:
        return self._own_words.facts().calls_tools

    @property
    def sees(self) -> bool | None:
        return self._own_words.sees() if self.options.sees is None else self.options.sees

    @property
    def window(self) -> int | None:
        return self._own_words.facts().window

    @property
    def price(self) -> Price | None:
        return self._own_words.facts().price

    def warm_up(self) -> None:
        """Import httpx and read the trusted certificates, in a thread; the first call joins it. Another one asks what
        the server says of its model."""
        self._own_words.begin()
        threading.Thread(target=prepare, args=(self.endpoint.base,), name="import-httpx", daemon=True).start()

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        outer = sys.exception()
        self._check_key()
        await asyncio.to_thread(self._prepare)
        import httpx

        reply = self.protocol.reader()
        try:
            async with aclosing(self._texts(request)) as texts:
                async for text in texts:
                    for event in reply.take(text):
                        yield event
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ServerFailed, NoReply) as error:
            if not (reply.finished and isinstance(error, httpx.TransportError)):  # then it came whole all the same
                raise self._error(error, outer, reply) from error
        if not reply.finished:
            raise unfinished(self.name, empty=reply.empty)
        try:
            last = list(reply.end())
        except ServerFailed as error:
            raise self._error(error, outer, reply) from error
        for event in last:
            if isinstance(event, Done) and event.usage is not None:
                await self._expect_read_whole(request, event.usage)
        for event in last:
            yield event

    def _prepare(self) -> None:
        prepare(self.endpoint.base)
        if self._own_words.shape_requests:
            self._own_words.facts()
        if self.endpoint.speaks is Speaks.OLLAMA_CHAT:
            self._own_words.ask_ollama()  # others may have loaded the model with another window meanwhile

    async def _expect_read_whole(self, request: Request, usage: Usage) -> None:
        """Raises `ContextTooLong` where Ollama has cut the request: it says how much it takes in once it is loaded."""
        is_short, words = looks_short(request, usage), self._own_words
        if not words.may_be_ollama or not (is_short or words.facts().window is None):
            return
        window = await asyncio.to_thread(words.ask_ollama)
        if window is not None or self.endpoint.provider.startswith("ollama"):
            expect_read_whole(self.name, request, usage, window)

    async def _texts(self, request: Request) -> AsyncGenerator[str, None]:
        """The JSON texts of the answer. Closing it closes the connection."""
        url = _url(self.endpoint.base, self.protocol.path)
        async with (
            client_for(url, silence_timeout(self._own_words.known)) as client,
            aclosing(await self._send(client, url, request)) as response,
            aclosing(documents(response)) as texts,
        ):
            async for text in texts:
                yield text

    async def _send(self, client: "httpx.AsyncClient", url: "httpx.URL", request: Request) -> "httpx.Response":
        """The server's answer, when it begins. Raises `ServerFailed` where it is a refusal."""
        import httpx

        while True:
            call = self.protocol.call(request)
            headers = httpx.Headers({**_HEADERS, **self.endpoint.headers, **call.headers})
            headers.update(self.options.headers)  # a name may be written in other letters
            post = client.build_request("POST", url, content=json.dumps(call.body).encode(), headers=headers)
            response = await client.send(post, stream=True)
            if response.is_success:
                return response
            async with aclosing(response):
                failure = await read_complaint(response)
            if not self.protocol.adapts_to(failure):
                raise ServerFailed(failure)

    def _check_key(self) -> None:
        """Raise before a call that cannot succeed, or cannot even be written."""
        key = self.endpoint.key or ""
        if self.endpoint.lacks_key:
            raise AuthenticationFailed(f"There is no key for {self.name}.", hint=self.endpoint.key_hint)
        if not (key.isascii() and key.isprintable()):
            raise AuthenticationFailed(
                f"The key for {self.name} has characters that no key has.", hint=self.endpoint.key_hint
            )

    def _error(self, error: Exception, outer: BaseException | None, reply: ReplyReader) -> ModelError:
        if isinstance(error, NoReply) and reply.empty:
            return unfinished(self.name, empty=True)
        failure = error.failure if isinstance(error, ServerFailed) else Failure.of(error, outer)
        told = translated(failure, self.name, self.endpoint.base, lambda: self.endpoint.key_hint)
        if self.endpoint.speaks is Speaks.OLLAMA_CHAT and isinstance(told, ModelNotFound) and failure.status == 404:
            told.hint = (
                f"Get it with `ollama pull {self.endpoint.model}`. "
                f"If it is not Ollama that is at {self.endpoint.base}: other API bases often end in /v1."
            )
        return told


def _protocol(name: str, endpoint: Endpoint, options: ModelOptions, own_words: OwnWords) -> WireProtocol:
    match endpoint.speaks:
        case Speaks.CHAT_COMPLETIONS:
            return ChatCompletions(endpoint, options, lambda: own_words.known)
        case Speaks.OLLAMA_CHAT:
            return OllamaChat(endpoint, options, lambda: own_words.known)
        case Speaks.ANTHROPIC_MESSAGES:
            return AnthropicMessages(name, endpoint, options)
        case Speaks.OPENAI_RESPONSES:
            return OpenAIResponses(name, endpoint, options)


def prepare(base: str) -> None:
    """Do what is slow before the first call, once."""
    import httpx

    with suppress(ImportError):  # what httpx would import in the middle of the first call
        import_module("anyio._backends._asyncio")
        import_module("httpcore._async.http11")
    with suppress(httpx.InvalidURL, OSError):  # the call says so
        _trusted(_is_plain_and_local(_url(base)))


def _url(base: str, end: str = "") -> "httpx.URL":
    """Where calls go. Raises `InvalidURL`."""
    import httpx

    try:
        url = httpx.URL(base)
        url.host.encode("idna")  # as the system's resolver does, without a name for its errors
    except UnicodeError as error:
        raise httpx.InvalidURL(str(error)) from error
    if (url.port or 0) > _LAST_PORT:
        raise httpx.InvalidURL(f"there is no port {url.port}")
    path = url.path.rstrip("/")
    return url.copy_with(path=path if path.endswith(end) else f"{path}{end}")


def client_for(url: "httpx.URL", silence: float = SILENCE_TIMEOUT) -> "httpx.AsyncClient":
    """A client that waits for a byte as long as `silence` says.

    Proxies come from the environment, but none stands between this computer and itself.
    Redirects are not followed: the key, and what is asked, are for the server that was configured.
    """
    import httpx

    try:
        return httpx.AsyncClient(**client_settings(url, silence))
    except (ValueError, ImportError) as error:  # of proxies that are not written as URLs, or speak SOCKS
        raise ConnectionFailed(
            "The proxy that the environment names cannot be used.",
            hint="Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; SOCKS needs the package socksio.",
        ) from error


def client_settings(url: "httpx.URL", silence: float = SILENCE_TIMEOUT) -> dict[str, Any]:
    """How a client of httpx has to be made for an address."""
    import httpx

    return {
        "verify": _trusted(_is_plain_and_local(url)),
        "trust_env": not is_this_computer(url.host),
        "timeout": httpx.Timeout(silence, connect=CONNECT_TIMEOUT),
    }


@cache
def _trusted(nobody: bool) -> ssl.SSLContext:
    """The certificates that are trusted; reading them takes a while. `nobody`: where none will be met."""
    import httpx

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if nobody else httpx.create_ssl_context()


def _is_plain_and_local(url: "httpx.URL") -> bool:
    return url.scheme == "http" and is_this_computer(url.host)
