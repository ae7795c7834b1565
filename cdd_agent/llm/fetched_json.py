"""Download small JSON documents about models."""

import json
import time

import httpx

from cdd_agent.llm.direct.http_client import (
    NETWORK_ERRORS,
    client_settings,
    load_certificates,
)
from cdd_agent.llm.direct.json_values import read_json
from cdd_agent.llm.port import NotReachable
from cdd_agent.network.keys import key_header

LONGEST_DOCUMENT = 16 * 2**20
"""Bytes."""


def fetch_json(
    address: str, key: str | None, patience: float, body: object = None
) -> object:
    """Return the JSON at an address, or the answer to a posted `body`. None if there is
    none, or if it takes longer than `patience` seconds or is too long.
    """
    load_certificates(address)
    headers = json_headers(key)
    method, content = "GET", None
    if body is not None:
        method, content = "POST", json.dumps(body).encode()
    end = time.monotonic() + patience
    received = bytearray()
    try:
        url = httpx.URL(address)
        settings = {**client_settings(url), "timeout": patience}
        with (
            httpx.Client(**settings) as client,
            client.stream(method, url, headers=headers, content=content) as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                return None
            for piece in answer.iter_raw():
                received += piece
                if len(received) > LONGEST_DOCUMENT or time.monotonic() > end:
                    return None
    except (*NETWORK_ERRORS, NotReachable):
        return None  # the call itself reports the error
    return read_json(received.decode(errors="replace"))


def json_headers(key: str | None) -> dict[str, str]:
    """Return the headers of a request for uncompressed JSON."""
    return {
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        **key_header(key),
    }
