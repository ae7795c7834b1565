"""Find model servers on this computer at their usual ports, and list their models. Any
other program may answer there instead.
"""

import asyncio
import re
from collections.abc import Mapping

import httpx
from msgspec import Struct

from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.http_client import (
    NETWORK_ERRORS,
    load_certificates,
    open_client,
)
from cdd_agent.llm.direct.json_values import as_dict, as_list, as_string, read_json
from cdd_agent.llm.direct.reported_failures import read_failure
from cdd_agent.llm.failure_rules import explain_failure
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.fetched_json import json_headers
from cdd_agent.llm.port import ModelError
from cdd_agent.llm.quoting import quoted
from cdd_agent.llm.web_page import is_web_page
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal

USUAL_PORTS: Mapping[str, int] = {
    "Ollama": 11434,
    "LM Studio": 1234,
    "llama.cpp": 8080,
    "vLLM": 8000,
}
_LONGEST_ANSWER = 2_000_000
_LONGEST_NAME = 200
# Google and xAI answer 400 for a wrong key
_WRONG_KEY = Pattern(
    r"api[_ ]key (?:is )?(?:not valid|invalid)|(?:invalid|incorrect) api[_ ]key",
    re.IGNORECASE,
)


class NoModelList(ModelError):
    """A server answers something else than its list of models."""

    refusal = Refusal.MODEL_UNREACHABLE

    def __init__(
        self, message: str, *, is_refusal: bool = False, refuses_key: bool = False
    ) -> None:
        super().__init__(message)
        self.is_refusal = is_refusal
        """True if the server wants another key, or this key may not list models."""
        self.refuses_key = refuses_key
        """True if the key is unknown or missing."""


class LocalServer(Struct, frozen=True):
    """A server with OpenAI's or Ollama's protocol, and its models."""

    name: str
    api_base: str
    models: tuple[str, ...]


async def find_local_servers(
    ports: Mapping[str, int] = USUAL_PORTS,
) -> tuple[LocalServer, ...]:
    """Ask at all ports in parallel. Takes at most two seconds, and milliseconds if no
    server listens.
    """
    servers = await asyncio.gather(
        *(_server_at(name, f"http://127.0.0.1:{port}") for name, port in ports.items())
    )
    return tuple(server for server in servers if server is not None)


async def models_at(
    api_base: str,
    key: str | None = None,
    time_limit: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the models that a server offers for chat. `headers` carry the key if the
    server does not take it like OpenAI. Raises `NoModelList` for any other answer,
    another `ModelError` if no server answers in time.
    """
    address = f"{api_base.rstrip('/')}/models"
    answer = as_dict(await get_json(address, key, time_limit, headers))
    entries = answer.get("data")
    # Ollama without models sends null
    if entries is None and answer.get("object") == "list":
        return ()
    if not isinstance(entries, list):
        raise NoModelList(f"no list of models at {address}")
    names = [as_string(as_dict(entry).get("id")) for entry in as_list(entries)]
    return tuple(dict.fromkeys(filter(_is_name_of_chat_model, names)))


async def _server_at(name: str, root: str) -> LocalServer | None:
    try:
        models = await models_at(f"{root}/v1")
    except ModelError:
        return None
    has_own_api = name == "Ollama" and await is_ollama(root)
    return LocalServer(name, root if has_own_api else f"{root}/v1", models)


async def is_ollama(root: str) -> bool:
    """False if another server uses its port."""
    try:
        version = as_dict(await get_json(f"{root}/api/version"))
    except ModelError:
        return False
    return bool(as_string(version.get("version")))


def _is_name_of_chat_model(name: str) -> bool:
    can_be_shown = name.isprintable() and name == name.strip()
    return (
        can_be_shown and 0 < len(name) <= _LONGEST_NAME and "embed" not in name.lower()
    )


async def get_json(
    address: str,
    key: str | None = None,
    time_limit: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> object:
    """Return the JSON at an address, or None for any other text. Raises `NoModelList`
    if the server refuses the request or its answer is too long, another `ModelError` if
    no answer arrives.
    """
    await asyncio.to_thread(load_certificates, address)
    sent = {**json_headers(key), **(headers or {})}
    body = b""
    try:
        url = httpx.URL(address)
        async with (
            asyncio.timeout(time_limit or timeouts.LOCAL_SERVERS_TIMEOUT),
            open_client(url) as client,
            client.stream("GET", url, headers=sent) as answer,
        ):
            async for piece in answer.aiter_raw():
                body += piece
                if len(body) > _LONGEST_ANSWER:
                    raise NoModelList(f"no list of models at {address}")
            status = answer.status_code
    except NETWORK_ERRORS as error:
        failure = Failure.from_exception(error)
        raise explain_failure(failure, quoted(address), address) from error
    text = body.decode(errors="replace")
    if status != httpx.codes.OK or is_web_page(text):
        raise _explain_refusal(address, text, status)
    return read_json(text)


def _explain_refusal(address: str, text: str, status: int) -> NoModelList:
    failure = read_failure(text, status)
    if failure.page is not None:
        return NoModelList(
            f"{address} sent a web page instead of an API response ({status}):"
            f" {quoted(failure.page)}. A firewall, a proxy or a login page may"
            " block it, or the address is wrong"
        )
    refuses_key = status == httpx.codes.UNAUTHORIZED or bool(
        _WRONG_KEY.search(failure.all_words)
    )
    if refuses_key or status == httpx.codes.FORBIDDEN:
        reason = quoted(failure.words)
        words = f"{address} refused the request ({status})"
        if reason:
            words = f"{words}: {reason}"
        return NoModelList(words, is_refusal=True, refuses_key=refuses_key)
    return NoModelList(f"no list of models at {address} ({status})")
