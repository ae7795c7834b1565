"""Model servers of this computer: looked for at the ports they usually have, and asked
which models they offer.

What answers at such a port may be anything: another program, a page, nonsense without
an end.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import httpx
from msgspec import Struct

from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.http_client import client_for, prepare
from cdd_agent.llm.direct.json_values import as_dict, as_string, read_json
from cdd_agent.llm.port import ConnectionFailed
from cdd_agent.llm.quoting import quoted

USUAL_PORTS: Mapping[str, int] = {
    "Ollama": 11434,
    "LM Studio": 1234,
    "llama.cpp": 8080,
    "vLLM": 8000,
}
_LONGEST_ANSWER = 2_000_000
_LONGEST_NAME = 200


class LocalServer(Struct, frozen=True):
    """A server that speaks OpenAI's protocol, or Ollama by its own, and the models that
    it offers, by its own names for them.
    """

    name: str
    api_base: str
    models: tuple[str, ...]


async def find_local_servers(
    ports: Mapping[str, int] = USUAL_PORTS,
) -> tuple[LocalServer, ...]:
    """Ask at all ports at once. Takes a second or two at most, and milliseconds where
    nothing listens.
    """

    async def server_at(name: str, root: str) -> LocalServer | None:
        models, version = None, None
        with suppress(ConnectionFailed):
            models = await models_at(f"{root}/v1")
            version = (
                await _json_at(f"{root}/api/version")
                if name == "Ollama" and models is not None
                else None
            )
        # else another is at its port
        has_own_api = bool(as_string(as_dict(version).get("version")))
        return (
            None
            if models is None
            else LocalServer(name, root if has_own_api else f"{root}/v1", models)
        )

    servers = await asyncio.gather(
        *(server_at(name, f"http://127.0.0.1:{port}") for name, port in ports.items())
    )
    return tuple(filter(None, servers))


async def models_at(
    api_base: str, key: str | None = None, patience: float | None = None
) -> tuple[str, ...] | None:
    """The models that a server offers to talk to; None where it answers with something
    else than their list.

    Raises `ConnectionFailed` where nothing answers in time, and for a proxy that cannot
    be used.
    """
    said = as_dict(await _json_at(f"{api_base.rstrip('/')}/models", key, patience))
    if said.get("data") is None and said.get("object") == "list":
        return ()  # so Ollama says that it has none
    if not isinstance(said.get("data"), list):
        return None
    names = [as_string(as_dict(entry).get("id")) for entry in said["data"]]
    can_be_shown = [
        n
        for n in names
        if n.isprintable() and n == n.strip() and 0 < len(n) <= _LONGEST_NAME
    ]
    return tuple(
        dict.fromkeys(name for name in can_be_shown if "embed" not in name.lower())
    )


async def _json_at(
    address: str, key: str | None = None, patience: float | None = None
) -> object:
    """The JSON that is answered there; None for anything else. Raises
    `ConnectionFailed` where nothing answers.
    """
    await asyncio.to_thread(prepare, address)
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    body = b""
    try:
        url = httpx.URL(address)
        async with (
            asyncio.timeout(
                timeouts.LOCAL_SERVERS_TIMEOUT if patience is None else patience
            ),
            client_for(url) as client,
            client.stream("GET", url, headers=headers) as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                return None
            async for piece in answer.aiter_raw():
                body += piece
                if len(body) > _LONGEST_ANSWER:
                    return None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        why = quoted(str(error))
        hint = f"Check the address, and that the server runs. {why}".rstrip()
        raise ConnectionFailed(f"Nothing answers at {address}.", hint=hint) from error
    return read_json(body.decode(errors="replace"))
