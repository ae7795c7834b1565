"""Find out, before a call, whether a model's server answers at all."""

import asyncio
from collections.abc import Callable

import httpx

from cdd_agent.llm import timeouts
from cdd_agent.llm.direct.http_client import checked_url, client_for, prepare
from cdd_agent.llm.failure_rules import translated
from cdd_agent.llm.failures import Failure


async def expect_server(name: str, base: str, key_hint: Callable[[], str]) -> None:
    """Raise the `ModelError` of a call if no server answers at the address. Any HTTP
    answer will do, and neither a key nor a prompt is sent. A server that is slow to
    answer is left to the call.
    """
    await asyncio.to_thread(prepare, base)
    try:
        async with asyncio.timeout(timeouts.SERVER_CHECK_TIMEOUT):
            url = checked_url(base)
            async with client_for(url) as client, client.stream("HEAD", url):
                return
    except TimeoutError:
        return
    except httpx.RemoteProtocolError:  # it answers, if not to this
        return
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        failure = Failure.of(error, None)
        raise translated(failure, name, base, key_hint) from error
