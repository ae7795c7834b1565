"""Search for models: at an address that the user typed, or at a provider with a key. A
search sends a few requests and takes seconds at most.
"""

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.llm.direct.anthropic_messages import key_headers
from cdd_agent.llm.known_models import models_of
from cdd_agent.llm.local_servers import NoModelList, get_json, is_ollama, models_at
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.llm.port import ConnectionFailed, ModelError
from cdd_agent.llm.providers import Endpoint, Speaks, endpoint_of
from cdd_agent.network.keys import Key
from cdd_agent.network.web_address import is_local_server, web_address
from cdd_agent.pattern import Pattern
from cdd_agent.text.redaction import Redactor

PATIENCE = 4.0
"""Seconds for one request."""
_LONGEST_SEARCH = 10.0
"""Seconds for all requests of a search."""
_METHODS = Pattern(r"/(?:chat/completions|completions|responses|models|messages)$")
_KEY_TESTS: Mapping[str, str] = {"openrouter": "https://openrouter.ai/api/v1/key"}
"""Addresses for testing a key, at providers whose model lists are public."""


class ServerFound(Struct, frozen=True):
    models: tuple[OfferedModel, ...]


class KeyWanted(Struct, frozen=True):
    """A server that answers only with a key, or refuses the given one."""

    api_base: str
    reason: str


class NothingFound(Struct, frozen=True):
    """No address led to a list of models."""

    tried: tuple[str, ...]


class KeyAccepted(Struct, frozen=True):
    """A provider's models, named as in the settings."""

    models: tuple[str, ...]
    note: str = ""
    """Why the key could not be tested."""


class KeyRefused(Struct, frozen=True):
    reason: str


def candidate_addresses(text: str) -> tuple[str, ...]:
    """Return the addresses that a typed text may mean, likeliest first. Raises
    `BadInput` if there are none.
    """
    text = text.strip().strip("\"'`<>")
    expect_no_secret(text)
    if not text.endswith("://"):
        text = text.rstrip("/")
    addresses: list[str] = []
    try:
        bases = [_METHODS.sub("", web_address(start)) for start in _with_scheme(text)]
    except ValueError as error:
        raise BadInput(
            f"This is not the address of a server: {text or 'nothing'}",
            hint="Type one such as http://127.0.0.1:8080/v1 or llm.example.com.",
        ) from error
    for base in bases:
        if base.endswith("/v1"):
            addresses.append(base)
        elif urlsplit(base).path in ("", "/"):
            addresses += [f"{base}/v1", base]
        else:
            addresses += [base, f"{base}/v1"]
    return tuple(addresses)


def expect_no_secret(text: str) -> None:
    """Raise `BadInput` for a key, which would be looked up as a host name, and for a
    password, which would be saved with the address. The message contains neither.
    """
    if "@" in text:
        raise BadInput(
            "Leave out the user name and the password",
            hint="cdd would save them with the address. It asks for a key if needed.",
        )
    if Redactor().redact(text) != text:
        raise BadInput(
            "This looks like an API key",
            hint="Type the address of the server, such as http://127.0.0.1:8080/v1.",
        )


def _with_scheme(text: str) -> list[str]:
    if "://" in text:
        return [text]
    if is_local_server(f"http://{text}"):
        return [f"http://{text}"]
    return [f"https://{text}", f"http://{text}"]


async def search_server(
    addresses: Sequence[str], key: str | None = None
) -> ServerFound | KeyWanted | NothingFound:
    """Ask each address for a list of models, until one has it or wants a key."""
    tried: list[str] = []
    unreachable: set[str] = set()
    try:
        async with asyncio.timeout(_LONGEST_SEARCH):
            for address in addresses:
                origin = _origin(address)
                if origin in unreachable:
                    continue
                try:
                    models = await models_at(address, key, PATIENCE)
                except NoModelList as error:
                    if error.is_refusal:
                        return KeyWanted(address, str(error))
                    tried.append(str(error))
                except ConnectionFailed as error:
                    unreachable.add(origin)
                    tried.append(error.message)
                except ModelError as error:
                    unreachable.add(origin)
                    tried.append(error.in_a_line)
                else:
                    return ServerFound(await _offers(address, models))
    except TimeoutError:
        tried.append(f"no answer within {_LONGEST_SEARCH:.0f} seconds")
    return NothingFound(tuple(tried))


async def try_key(
    provider: str, key: Key, environment: Mapping[str, str]
) -> KeyAccepted | KeyRefused:
    """Ask a provider for its models with a key. The key is accepted if the provider
    cannot be asked.
    """
    known = tuple(models_of(provider))
    endpoint = endpoint_of(f"{provider}/any", environment=environment)
    if endpoint is None:
        return KeyAccepted(known)
    try:
        async with asyncio.timeout(_LONGEST_SEARCH):
            if address := _KEY_TESTS.get(provider):
                await get_json(address, key.text, PATIENCE)
            names = await models_at(
                endpoint.compatible_base, key.text, PATIENCE, _headers(endpoint, key)
            )
    except NoModelList as error:
        if error.refuses_key:
            return KeyRefused(str(error))
        return KeyAccepted(known, f"The key is not tested: {error}.")
    except ModelError as error:
        return KeyAccepted(known, f"The key is not tested: {error.in_a_line}")
    except TimeoutError:
        return KeyAccepted(known, "The key is not tested: no answer in time.")
    return KeyAccepted(tuple(f"{provider}/{_bare(name)}" for name in names) or known)


def _headers(endpoint: Endpoint, key: Key) -> Mapping[str, str]:
    if endpoint.speaks is Speaks.ANTHROPIC_MESSAGES:
        return key_headers(key.text)
    return {}


def _bare(name: str) -> str:
    return name.removeprefix("models/")


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


async def _offers(address: str, models: Sequence[str]) -> tuple[OfferedModel, ...]:
    """Name the models of a server as in the settings. Ollama is called by its own API,
    which lets a request choose its window.
    """
    root = _origin(address)
    server, api_base = urlsplit(address).netloc.rpartition("@")[2], address
    if address == f"{root}/v1" and await is_ollama(root):
        server, api_base = "Ollama", root
    return tuple(OfferedModel(model, server, api_base) for model in models)
