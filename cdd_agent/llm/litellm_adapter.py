"""Every provider there is, through litellm. Its import takes seconds, so it happens
late and in a thread.
"""

import asyncio
import importlib
import json
import logging
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from functools import cache
from typing import Any

import httpx

from cdd_agent.errors import BadInput
from cdd_agent.llm.direct.cache_marks import mark_for_litellm
from cdd_agent.llm.direct.chat_completions import write_message, write_tools
from cdd_agent.llm.direct.chat_reply import ChatReply
from cdd_agent.llm.direct.dialects import openai_word
from cdd_agent.llm.direct.json_values import as_dict, read_json
from cdd_agent.llm.direct.protocol import ServerFailed
from cdd_agent.llm.direct.reported_failures import failure_in
from cdd_agent.llm.direct.server_check import expect_server
from cdd_agent.llm.failures import Failure, Listener, translated
from cdd_agent.llm.incomplete import Received, incomplete
from cdd_agent.llm.known_models import has_provider, known_model
from cdd_agent.llm.options import NO_OPTIONS, ModelOptions
from cdd_agent.llm.port import AuthenticationFailed, Done, Hear, Price, Request
from cdd_agent.llm.timeouts import CONNECT_TIMEOUT, silence_timeout

_HOSTS_OF_CLAUDE = frozenset(
    {"anthropic", "azure_ai", "bedrock", "openrouter", "vertex_ai"}
)
DUMMY_KEY = "no-key"
"""For a server without keys: the OpenAI client demands one."""


class LitellmModel:
    """Any model string of litellm's. Keys and endpoints come from the environment
    variables it knows.
    """

    def __init__(
        self, name: str, api_base: str | None = None, options: ModelOptions = NO_OPTIONS
    ) -> None:
        self.name = name
        self.api_base = api_base
        self.options = options

    @property
    def calls_tools(self) -> bool:
        return known_model(self.name).calls_tools

    @property
    def sees(self) -> bool | None:
        return (
            known_model(self.name).sees
            if self.options.sees is None
            else self.options.sees
        )

    @property
    def window(self) -> int | None:
        return known_model(self.name).window

    @property
    def price(self) -> Price | None:
        return known_model(self.name).price

    def warm_up(self) -> None:
        """Begin the slow import without waiting for it; the first call joins it."""

        def import_early() -> None:
            with suppress(
                ImportError
                # the call that needs it imports again, and raises where somebody can
                # see it
            ):
                _litellm()

        threading.Thread(
            target=import_early, name="import-litellm", daemon=True
        ).start()

    async def check(self, *, connect: bool) -> None:
        if await asyncio.to_thread(self._lacks_key):
            raise AuthenticationFailed(
                f"There is no key for {self.name}.", hint=self._key_hint()
            )
        if connect and self.api_base:
            await expect_server(self.name, self.api_base, self._key_hint)

    def _lacks_key(self) -> bool:
        """True if a call would fail in the client of OpenAI's protocol, which demands a
        key. Other providers have ways to log in that only a call finds out.
        """
        litellm = _litellm()
        try:
            _, provider, key, _ = litellm.get_llm_provider(
                self.name, api_base=self.api_base
            )
        except litellm.exceptions.BadRequestError:  # the call says so
            return False
        if provider not in ("openai", *litellm.openai_compatible_providers):
            return False
        is_missing = bool(missing_keys(self.name)) and not key
        return is_missing and not self._needs_dummy_key(litellm)

    async def reply(self, request: Request, hear: Hear) -> Done:
        outer = sys.exception()
        litellm = await asyncio.to_thread(_litellm)
        _forget_clients_of_other_loops(litellm)
        reply = ChatReply(self._origin, has_tools=bool(request.tools))
        empty, listener = True, Listener(hear)
        try:
            chunks = await litellm.acompletion(**self._call(litellm, request))
            async with aclosing(chunks):
                async for chunk in chunks:
                    empty = empty and not any(
                        one.delta.content or one.delta.tool_calls
                        for one in chunk.choices
                    )
                    piece = chunk.model_dump(exclude_none=True, warnings=False)
                    if failure := failure_in(piece):
                        raise ServerFailed(failure)
                    # by litellm's table, and not the provider's word
                    as_dict(piece.get("usage")).pop("cost", None)
                    for event in reply.read(piece):
                        listener(event)
            if not _was_finished(chunks):
                raise incomplete(self.name, Received(is_reply=not empty))
            for event in reply.end():
                listener(event)
            return reply.done
        except ServerFailed as error:
            raise translated(
                error.failure, self.name, self.api_base, lambda: ""
            ) from error
        except _vendor_errors(litellm) as error:
            if error is listener.raised:
                raise
            raise translated(
                Failure.of(error, outer), self.name, self.api_base, self._key_hint
            ) from error

    def _call(self, litellm: Any, request: Request) -> dict[str, Any]:
        """The arguments of `litellm.acompletion`."""
        messages = []
        for message in request.messages:
            content = write_message(message)
            if message.tool_calls:
                # with what litellm gave for them; it leaves out what their provider
                # refuses
                content |= as_dict(
                    as_dict(read_json(message.data_from(self._origin))).get("message")
                )
            messages.append(content)
        if _is_claude(self.name):
            mark_for_litellm(messages)
        # Without the second, tools need the package `mcp`.
        tools = (
            {"tools": write_tools(request), "_skip_mcp_handler": True}
            if request.tools
            else {}
        )
        options, known = self.options, known_model(self.name)
        chosen = {  # in the words of litellm, which knows those of each provider
            "reasoning_effort": (
                openai_word(options.effort, known) if options.effort else None
            ),
            "temperature": None if known.refuses_sampling else options.temperature,
            "max_tokens": options.max_output_tokens,
            "extra_body": dict(options.body),
            "extra_headers": dict(options.headers),
        }
        return {
            "model": self.name,
            "messages": messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "drop_params": True,  # leaves out what a provider does not know
            **{
                name: value
                for name, value in chosen.items()
                if value is not None and value != {}
            },
            "api_base": self.api_base,
            "api_key": DUMMY_KEY if self._needs_dummy_key(litellm) else None,
            "timeout": httpx.Timeout(silence_timeout(known), connect=CONNECT_TIMEOUT),
            "max_retries": 0,
            "num_retries": 0,
            **tools,
        }

    @property
    def _origin(self) -> str:
        return f"{self.name} by litellm at {self.api_base or 'its provider'}"

    def _key_hint(self) -> str:
        """Which variable to set or to check."""
        if missing := missing_keys(self.name):
            return f"Set in the environment: {', '.join(missing)}."
        _, provider, _, _ = _litellm().get_llm_provider(self.name)
        variable = f"{provider.upper()}_API_KEY"
        return (
            f"Check {variable if variable in os.environ else 'the key'}, and that it"
            " may use this model."
        )

    def _needs_dummy_key(self, litellm: Any) -> bool:
        _, provider, _, _ = litellm.get_llm_provider(self.name)
        if provider != "openai" and provider not in litellm.openai_compatible_providers:
            return False
        own_base = provider == "openai" and (
            os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL")
        )
        is_blank = not os.environ.get(f"{provider.upper()}_API_KEY", "-").strip()
        return bool(self.api_base or own_base) and (
            is_blank or bool(missing_keys(self.name))
        )


def expect_provider(name: str, api_base: str | None) -> None:
    """Raises `BadInput` where a call would find that no provider fits the name. Imports
    litellm only for names that its tables do not know.
    """
    if has_provider(name):
        return
    litellm = _litellm()
    try:
        litellm.get_llm_provider(name, api_base=api_base)
    except litellm.exceptions.BadRequestError as error:
        refusal = translated(Failure.of(error), name, api_base, lambda: "")
        raise BadInput(refusal.message.rstrip("."), hint=refusal.hint) from error


def _is_claude(name: str) -> bool:
    """True for Claude at a provider that takes marks for the cache."""
    provider, slash, _ = name.partition("/")
    return "claude" in name and (not slash or provider in _HOSTS_OF_CLAUDE)


def missing_keys(name: str) -> list[str]:
    """Return the environment variables that this model needs and that are not set.
    Imports litellm.
    """
    return list(_litellm().validate_environment(name)["missing_keys"])


_importing = threading.Lock()


def _litellm() -> Any:
    """Import litellm, or join the import that is under way. Blocks for seconds,
    once.
    """
    with _importing:
        return _import_quietly()


@cache
def _import_quietly() -> Any:
    """Import litellm so that it neither asks the network for anything nor writes to the
    screen.
    """
    warnings.filterwarnings("ignore", module=r"litellm\b")
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
    # on building OpenAI's types
    warnings.filterwarnings("ignore", message="Item .* on TypedDict class")
    # Read at import and at the first call to Anthropic: otherwise both fetch a file
    # from GitHub.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    # otherwise it loads a `.env` above its own folder
    with _environment("LITELLM_MODE", "PRODUCTION"):
        # late: it takes seconds, and reads the environment when imported
        import litellm  # noqa: PLC0415
    # the first call would, for half a second of the event loop
    importlib.import_module("openai.resources")
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.disable_aiohttp_transport = (
        True  # httpx closes its connections without complaints at exit
    )
    # otherwise 100 equal pieces, say of a table, fail
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize
    core_helpers: Any = importlib.import_module(
        "litellm.litellm_core_utils.core_helpers"
    )
    core_helpers._FINISH_REASON_MAP = _FinishReasons(core_helpers._FINISH_REASON_MAP)
    for logger in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(logger).handlers = [logging.NullHandler()]
    return litellm


_loop: weakref.ref[asyncio.AbstractEventLoop] | None = None
"""The event loop of the last call."""


def _forget_clients_of_other_loops(litellm: Any) -> None:
    """litellm has an HTTP client for all event loops, and others by the address of
    their loop, which a later loop may have: a call in a new loop would go out on a
    connection of an old one, and fail.
    """
    global _loop  # noqa: PLW0603  # as global as litellm's clients
    loop = asyncio.get_running_loop()
    if _loop is None or _loop() is not loop:
        # made anew when it is asked for
        vars(litellm).pop("module_level_aclient", None)
        litellm.in_memory_llm_clients_cache.flush_cache()
        _loop = weakref.ref(loop)


class _FinishReasons(dict[str, str]):
    """litellm's table of finish reasons, in which a word that does not mean a whole
    reply stays what it is.

    litellm makes a plain "stop" of each word that it does not know, and of several that
    report a failure.
    """

    def get(self, word: str, default: object = None) -> str:
        del default
        meaning = super().get(word, word)
        return word if meaning == "stop" else meaning


@contextmanager
def _environment(variable: str, value: str) -> Iterator[None]:
    """Set a variable for a moment, unless a person set it: the commands of a project
    must not inherit it.
    """
    if variable in os.environ:
        yield
        return
    os.environ[variable] = value
    try:
        yield
    finally:
        os.environ.pop(variable, None)


def _was_finished(chunks: Any) -> bool:
    """Whether the provider itself said that the answer is over.

    litellm makes up a "stop" when a stream just ends: on a dropped connection, a page
    of HTML, an empty body.
    """
    if not hasattr(chunks, "received_finish_reason"):
        return True
    return bool(chunks.received_finish_reason or chunks.intermittent_finish_reason)


def _vendor_errors(litellm: Any) -> tuple[type[Exception], ...]:
    """The errors of litellm and the libraries under it. A bug of ours is none of these.

    ImportError: some providers need a package that litellm imports at the call.
    """
    return (
        litellm.exceptions.openai.OpenAIError,  # the base of nearly all of litellm's
        httpx.HTTPError,
        httpx.InvalidURL,
        json.JSONDecodeError,
        OSError,
        ImportError,
    )
