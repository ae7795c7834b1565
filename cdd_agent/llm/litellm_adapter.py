"""Models of every provider, through litellm (`litellm_library.py`)."""

import asyncio
import os
import sys
import threading
from contextlib import aclosing, suppress
from typing import Any

import httpx

from cdd_agent.errors import BadInput
from cdd_agent.llm.clean_streams import received_texts
from cdd_agent.llm.direct.cache_marks import mark_for_litellm
from cdd_agent.llm.direct.chat_completions import write_message, write_tools
from cdd_agent.llm.direct.chat_reply import ChatReply
from cdd_agent.llm.direct.dialects import dialect_of, openai_word
from cdd_agent.llm.direct.json_texts import JsonTexts
from cdd_agent.llm.direct.json_values import as_dict, as_list, as_string, read_json
from cdd_agent.llm.direct.protocol import NoReply, ServerFailed
from cdd_agent.llm.direct.reported_failures import find_failure
from cdd_agent.llm.direct.server_check import expect_server
from cdd_agent.llm.failure_rules import explain_failure
from cdd_agent.llm.failures import Failure, Listener, causes
from cdd_agent.llm.incomplete_answers import Received, explain_incomplete
from cdd_agent.llm.known_models import has_provider, known_model
from cdd_agent.llm.litellm_library import (
    forget_clients_of_other_loops,
    has_finish_reason,
    load_litellm,
    vendor_errors,
)
from cdd_agent.llm.options import NO_OPTIONS, ModelOptions
from cdd_agent.llm.port import (
    AuthenticationFailed,
    Done,
    Message,
    ModelError,
    NotReachable,
    OnEvent,
    Request,
)
from cdd_agent.llm.providers import PROVIDERS, Speaks, endpoint_of
from cdd_agent.llm.server_keys import key_of_server
from cdd_agent.llm.timeouts import CONNECT_TIMEOUT, silence_timeout
from cdd_agent.refusals.kinds import Refusal

_HOSTS_OF_CLAUDE = frozenset(
    {"anthropic", "azure_ai", "bedrock", "openrouter", "vertex_ai"}
)
DUMMY_KEY = "no-key"
"""For a server without keys: OpenAI's client requires a key."""
_SIGNATURE = "__thought__"
"""litellm appends Gemini's thought signature to a call's id, after this mark."""


class LitellmModel:
    """A model that litellm knows, with keys and endpoints from litellm's environment
    variables.
    """

    def __init__(
        self, name: str, api_base: str | None = None, options: ModelOptions = NO_OPTIONS
    ) -> None:
        self.name = name
        self.api_base = api_base
        self.options = options
        self._origin = f"{name} by litellm at {api_base or 'its provider'}"
        self._known = known_model(name)
        self.sees = self._known.sees if options.sees is None else options.sees
        self.window = self._known.window
        self.price = self._known.price
        provider, _, model = name.rpartition("/")
        self._keeps_text = dialect_of(provider, model).keeps_text

    @property
    def calls_tools(self) -> bool:
        """Also False where litellm would need the Responses API for tools."""
        by_responses = PROVIDERS["openai"].by_responses
        assert by_responses is not None
        is_at_azure = self.name.startswith("azure/")
        if is_at_azure and by_responses.search(self.name.rpartition("/")[2]):
            return False
        return self._known.calls_tools

    def warm_up(self) -> None:
        """Begin the slow import in a thread. The first call waits for it."""

        def import_early() -> None:
            # a call imports again and shows the error
            with suppress(ImportError):
                load_litellm()

        threading.Thread(
            target=import_early, name="import-litellm", daemon=True
        ).start()

    async def check(self, *, connect: bool) -> None:
        self._expect_sendable_key()
        if await asyncio.to_thread(self._lacks_key):
            raise AuthenticationFailed(
                f"No API key for {self.name}.", hint=self._key_hint()
            )
        if connect and self.api_base:
            await expect_server(self.name, self.api_base, self._key_hint)

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        outer = sys.exception()
        self._expect_sendable_key()
        litellm = await asyncio.to_thread(load_litellm)
        forget_clients_of_other_loops(litellm)
        reply = ChatReply(
            self._origin,
            keeps_text=self._keeps_text,
            has_tools=bool(request.tools),
        )
        listener = Listener(on_event)
        texts: list[JsonTexts] = []
        received_texts.set(texts)
        has_content = False
        try:
            chunks = await litellm.acompletion(**self._call(litellm, request))
            async with aclosing(chunks):
                async for chunk in chunks:
                    piece = chunk.model_dump(exclude_none=True, warnings=False)
                    has_content |= _has_content(piece)
                    for event in reply.read_object(_cleaned(piece)):
                        listener(event)
            if not has_finish_reason(chunks):
                raise explain_incomplete(self.name, _received(texts, has_content))
            for event in reply.end():
                listener(event)
            return reply.done
        except ServerFailed as error:
            raise self._error(error.failure) from error
        except vendor_errors(litellm) as error:
            if error is listener.raised:
                raise
            received = _received(texts, has_content)
            for cause in causes(error, outer):
                if isinstance(cause, NotReachable):
                    raise cause from error
                if isinstance(cause, NoReply) and not has_content:
                    raise explain_incomplete(self.name, received) from error
            raise self._error(Failure.from_exception(error, outer)) from error

    def _error(self, failure: Failure) -> ModelError:
        return explain_failure(failure, self.name, self.api_base, self._key_hint)

    def _call(self, litellm: Any, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self.name,
            "messages": self._messages(request),
            "stream": True,
            "stream_options": {"include_usage": True},
            # omit parameters that the provider does not know
            "drop_params": True,
            "api_base": self.api_base,
            "api_key": self._chosen_key(litellm),
            "timeout": httpx.Timeout(
                silence_timeout(self._known), connect=CONNECT_TIMEOUT
            ),
            "max_retries": 0,
            "num_retries": 0,
            **self._settings(),
        }
        if request.tools:
            arguments["tools"] = write_tools(request)
            # otherwise tools need the package `mcp`
            arguments["_skip_mcp_handler"] = True
        return arguments

    def _settings(self) -> dict[str, Any]:
        options, facts = self.options, self._known
        settings: dict[str, Any] = {}
        if options.effort:
            settings["reasoning_effort"] = openai_word(options.effort, facts)
        if options.temperature is not None and not facts.refuses_sampling:
            settings["temperature"] = options.temperature
        if options.max_output_tokens is not None:
            settings["max_tokens"] = options.max_output_tokens
        if options.body:
            settings["extra_body"] = dict(options.body)
        if options.headers:
            settings["extra_headers"] = dict(options.headers)
        return settings

    def _messages(self, request: Request) -> list[dict[str, Any]]:
        messages = []
        signed_ids: dict[str, str] = {}
        for message in request.messages:
            content = write_message(message)
            if message.tool_calls or self._keeps_text:
                self._add_data(content, message, signed_ids)
            answered = content.get("tool_call_id")
            if answered in signed_ids:
                content["tool_call_id"] = signed_ids[answered]
            messages.append(content)
        if _takes_cache_marks(self.name):
            mark_for_litellm(messages)
        return messages

    def _add_data(
        self, content: dict[str, Any], message: Message, signed_ids: dict[str, str]
    ) -> None:
        """Add a message's thoughts and signatures. `signed_ids` receives its ids with
        signatures.
        """
        data = as_dict(read_json(message.data_from(self._origin)))
        content.update(as_dict(data.get("message")))
        calls, extras = content.get("tool_calls", []), as_list(data.get("calls"))
        for call, extra in zip(calls, extras, strict=False):
            if signed_id := as_string(as_dict(extra).get("signed_id")):
                signed_ids[call["id"]] = signed_id
                call["id"] = signed_id

    def _expect_sendable_key(self) -> None:
        """Raise before a call that cannot even be written."""
        endpoint = endpoint_of(self.name, self.api_base)
        if endpoint is not None and (problem := endpoint.key_problem):
            raise AuthenticationFailed(
                f"The key for {self.name} {problem}.", hint=endpoint.key_hint
            )

    def _lacks_key(self) -> bool:
        """True if a call would fail in OpenAI's client, which requires a key. Other
        providers have logins that only a call discovers.
        """
        litellm = load_litellm()
        try:
            _, provider, key, _ = litellm.get_llm_provider(
                self.name, api_base=self.api_base
            )
        # the call reports it
        except litellm.exceptions.BadRequestError:
            return False
        if provider not in ("openai", *litellm.openai_compatible_providers):
            return False
        is_missing = bool(missing_keys(self.name)) and not key
        return is_missing and not self._needs_dummy_key(litellm)

    def _chosen_key(self, litellm: Any) -> str | None:
        """Return None if litellm finds the key itself."""
        if self._needs_dummy_key(litellm):
            return DUMMY_KEY
        endpoint = endpoint_of(self.name, self.api_base)
        if endpoint is None:
            return None
        if endpoint.removed_from_key or key_of_server(endpoint.base):
            return endpoint.key
        return None

    def _needs_dummy_key(self, litellm: Any) -> bool:
        _, provider, _, _ = litellm.get_llm_provider(self.name)
        if provider != "openai" and provider not in litellm.openai_compatible_providers:
            return False
        has_base = bool(self.api_base)
        if provider == "openai":
            variables = ("OPENAI_API_BASE", "OPENAI_BASE_URL")
            has_base = has_base or any(map(os.environ.get, variables))
        is_blank = not os.environ.get(f"{provider.upper()}_API_KEY", "-").strip()
        return has_base and (is_blank or bool(missing_keys(self.name)))

    def _key_hint(self) -> str:
        if missing := missing_keys(self.name):
            return (
                "Set these environment variables, then restart cdd:"
                f" {', '.join(missing)}."
            )
        _, provider, _, _ = load_litellm().get_llm_provider(self.name)
        variable = f"{provider.upper()}_API_KEY"
        key = variable if variable in os.environ else "the key"
        return f"Check {key}, and that it may use this model."


def expect_provider(name: str, api_base: str | None) -> None:
    """Raise `BadInput` if no provider fits the name, or if litellm cannot call the
    model properly. Imports litellm only for names that its tables lack.
    """
    if _needs_responses(name, api_base):
        raise BadInput(
            f"litellm cannot call {name}: its Responses API loses the model's thoughts",
            hint="Remove `model_adapter: litellm` to call OpenAI's models"
            " directly. For another host, use `openai/responses/NAME` with"
            " its `api_base`.",
            refusal=Refusal.NO_MODEL,
        )
    if has_provider(name):
        return
    litellm = load_litellm()
    try:
        litellm.get_llm_provider(name, api_base=api_base)
    except litellm.exceptions.BadRequestError as error:
        refusal = explain_failure(Failure.from_exception(error), name, api_base)
        raise BadInput(
            refusal.message.rstrip("."), hint=refusal.hint, refusal=Refusal.NO_MODEL
        ) from error


def _takes_cache_marks(name: str) -> bool:
    """True for Claude, except models that Bedrock does not cache: it refuses the
    marks.
    """
    provider, slash, _ = name.partition("/")
    if "claude" not in name or (slash and provider not in _HOSTS_OF_CLAUDE):
        return False
    price = known_model(name).price
    is_cached = price is not None and price.cache_read is not None
    return is_cached or provider != "bedrock"


def _needs_responses(name: str, api_base: str | None) -> bool:
    """True if litellm would use the Responses API. It needs the package `mcp` for that,
    and does not request the reasoning items that must be sent back.
    """
    _, _, model = name.partition("/")
    if model.startswith("responses/") or known_model(name).only_by_responses:
        return True
    endpoint = endpoint_of(name, api_base)
    return endpoint is not None and endpoint.speaks is Speaks.OPENAI_RESPONSES


def missing_keys(name: str) -> list[str]:
    """Return the environment variables that the model needs and that are not set.
    Imports litellm.
    """
    # for Azure, litellm names all variables if one is missing
    names = load_litellm().validate_environment(name)["missing_keys"]
    return [name for name in names if name not in os.environ]


def _has_content(piece: dict[str, Any]) -> bool:
    deltas = (as_dict(choice.get("delta")) for choice in piece.get("choices", ()))
    return any(delta.get("content") or delta.get("tool_calls") for delta in deltas)


def _cleaned(piece: dict[str, Any]) -> dict[str, Any]:
    """Raises `ServerFailed` if the piece reports a failure."""
    if failure := find_failure(piece):
        raise ServerFailed(failure)
    # from litellm's table, not from the provider
    as_dict(piece.get("usage")).pop("cost", None)
    for choice in piece.get("choices", ()):
        for call in as_list(as_dict(choice.get("delta")).get("tool_calls")):
            signed_id = as_string(call.get("id"))
            if _SIGNATURE in signed_id:
                call["id"] = signed_id.partition(_SIGNATURE)[0]
                call["extra_content"] = {"signed_id": signed_id}
    return piece


def _received(texts: list[JsonTexts], has_content: bool) -> Received:
    if not texts:
        return Received(is_reply=has_content)
    return texts[-1].received(is_reply=has_content)
