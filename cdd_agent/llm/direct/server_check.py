"""Check before a call that a model's server answers at all."""

import asyncio
from collections.abc import Callable

import httpx

from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.http_client import (
    NETWORK_ERRORS,
    load_certificates,
    open_client,
    parse_url,
)
from cdd_agent.llm.failure_rules import explain_failure
from cdd_agent.llm.failures import Failure


async def expect_server(name: str, base: str, key_hint: Callable[[], str]) -> None:
    """Raise the call's `ModelError` if no server answers at the address. Any HTTP
    answer counts, and a slow server is no error. Sends neither key nor prompt.
    """
    await asyncio.to_thread(load_certificates, base)
    try:
        async with asyncio.timeout(timeouts.SERVER_CHECK_TIMEOUT):
            url = parse_url(base)
            async with open_client(url) as client, client.stream("HEAD", url):
                return
    # the server is slow, or it answers, but not to this request
    except (TimeoutError, httpx.RemoteProtocolError):
        return
    except NETWORK_ERRORS as error:
        failure = Failure.from_exception(error)
        raise explain_failure(failure, name, base, key_hint) from error
