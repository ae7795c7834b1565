"""Model servers of this computer: looked for at the ports they usually have, and asked which models they offer.

What answers at such a port may be anything: another program, a page, nonsense without an end.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    import httpx

USUAL_PORTS: Mapping[str, int] = {"Ollama": 11434, "LM Studio": 1234, "llama.cpp": 8080, "vLLM": 8000}
_PATIENCE = 1.0
"""Seconds for the whole of an answer."""
_LONGEST_ANSWER = 2_000_000
_LONGEST_NAME = 200


@dataclass(frozen=True)
class LocalServer:
    """A server that speaks OpenAI's protocol, or Ollama by its own, and the models that it offers, by its own names
    for them."""

    name: str
    api_base: str
    models: tuple[str, ...]


@dataclass(frozen=True)
class OfferedModel:
    """One model of a server, and the two settings that choose it."""

    name: str
    server: str
    api_base: str

    @property
    def model(self) -> str:
        """Ollama's own API is not at the address of the compatible one."""
        is_ollama = self.server == "Ollama" and not self.api_base.endswith("/v1")
        return f"{'ollama' if is_ollama else 'openai'}/{self.name}"


async def find_local_servers(ports: Mapping[str, int] = USUAL_PORTS) -> tuple[LocalServer, ...]:
    """Ask at all ports at once. Takes a second at most, and milliseconds where nothing listens."""
    servers = await asyncio.gather(*(_server_at(name, f"http://127.0.0.1:{port}") for name, port in ports.items()))
    return tuple(filter(None, servers))


async def _server_at(name: str, root: str) -> LocalServer | None:
    if name != "Ollama":
        models = await models_at(f"{root}/v1")
        return LocalServer(name, f"{root}/v1", models) if models is not None else None
    models, version = await asyncio.gather(models_at(f"{root}/v1"), _json_at(f"{root}/api/version"))
    has_own_api = isinstance(version, dict) and isinstance(version.get("version"), str)  # else another is at its port
    return LocalServer(name, root if has_own_api else f"{root}/v1", models) if models is not None else None


async def models_at(api_base: str, key: str | None = None, patience: float = _PATIENCE) -> tuple[str, ...] | None:
    """The models that a server offers to talk to; None when nothing like a model server answers in time.

    Raises `ModelError` for a proxy that cannot be used.
    """
    try:
        return _names(await _json_at(f"{api_base.rstrip('/')}/models", key, patience))
    except ValueError:
        return None


async def _json_at(address: str, key: str | None = None, patience: float = _PATIENCE) -> object:
    """What is answered there, or None."""
    from cdd_agent.llm.direct.model import prepare  # not for a shell whose model is configured

    await asyncio.to_thread(prepare, address)
    import httpx

    try:
        async with asyncio.timeout(patience):
            return json.loads(await _answer(httpx.URL(address), key))
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RecursionError):
        return None


async def _answer(url: "httpx.URL", key: str | None) -> bytes:
    """The body of an answer. Raises `ValueError` for one that is refused, packed or too long."""
    from cdd_agent.llm.direct.model import client_for

    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    body = b""
    async with client_for(url) as client, client.stream("GET", url, headers=headers) as answer:
        if answer.status_code != 200:
            raise ValueError(answer.status_code)
        async for piece in answer.aiter_raw():
            body += piece
            if len(body) > _LONGEST_ANSWER:
                raise ValueError("too long")
    return body


def _names(answer: object) -> tuple[str, ...]:
    """The models of a list as OpenAI has it, without those that only embed. Raises `ValueError` for anything else."""
    entries = answer.get("data") if isinstance(answer, dict) else None
    if entries is None and isinstance(answer, dict) and answer.get("object") == "list":
        return ()  # so Ollama says that it has none
    if not isinstance(entries, list):
        raise ValueError("no list of models")
    names = [entry.get("id") if isinstance(entry, dict) else None for entry in entries]
    return tuple(dict.fromkeys(name for name in names if _can_be_shown(name) and "embed" not in name.lower()))


def _can_be_shown(name: object) -> TypeGuard[str]:
    return isinstance(name, str) and name.isprintable() and name == name.strip() and 0 < len(name) <= _LONGEST_NAME
