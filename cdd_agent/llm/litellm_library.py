"""litellm, imported late and quietly, with corrections where its answers would be
wrong. Its import takes seconds and reads the environment.
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
from contextlib import contextmanager
from functools import cache
from typing import Any

from cdd_agent.llm.clean_streams import CleanTransport
from cdd_agent.llm.direct.http_client import NETWORK_ERRORS, EnvironmentTransport

_importing = threading.Lock()


def load_litellm() -> Any:
    """Return the package. Blocks for seconds the first time, or until a running import
    ends.
    """
    with _importing:
        return _import_quietly()


@cache
def _import_quietly() -> Any:
    """Import litellm without network access or output."""
    warnings.filterwarnings("ignore", module=r"litellm\b")
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
    # when it builds OpenAI's types
    warnings.filterwarnings("ignore", message="Item .* on TypedDict class")
    # otherwise the import and the first call to Anthropic fetch files from GitHub
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    # otherwise it loads a `.env` from a parent folder
    with _variable("LITELLM_MODE", "PRODUCTION"):
        # late: it takes seconds, and reads the environment when imported
        import litellm  # noqa: PLC0415
    # the first call would import this and block the event loop for half a second
    importlib.import_module("openai.resources")
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    # httpx closes its connections at exit without complaints
    litellm.disable_aiohttp_transport = True
    # otherwise 100 equal pieces, as in a table, fail
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = sys.maxsize
    _keep_finish_reasons()
    _replace_transports()
    for logger in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(logger).handlers = [logging.NullHandler()]
    return litellm


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable while the block runs, unless the user set it. A
    project's commands must not inherit it.
    """
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name, None)


class _FinishReasons(dict[str, str]):
    """litellm's table of finish reasons, without its default.

    litellm turns unknown words, and several words for a failure, into "stop".
    """

    def get(self, word: str, default: object = None) -> str:
        del default
        meaning = super().get(word, word)
        return word if meaning == "stop" else meaning


def _keep_finish_reasons() -> None:
    helpers: Any = importlib.import_module("litellm.litellm_core_utils.core_helpers")
    helpers._FINISH_REASON_MAP = _FinishReasons(helpers._FINISH_REASON_MAP)


def _replace_transports() -> None:
    """Make litellm's HTTP clients use the proxies and certificates of `http_client.py`,
    and remove keep-alives from streams. `litellm.aclient_session` would only affect
    OpenAI's package.
    """
    module: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
    handler = module.AsyncHTTPHandler

    def create_async_transport(*_: object, **__: object) -> CleanTransport:
        return CleanTransport(EnvironmentTransport())

    def create_httpx_proxy_mounts(*_: object, **__: object) -> dict[str, object]:
        # the transport handles proxies
        return {}

    handler.create_async_transport = staticmethod(create_async_transport)
    handler.create_httpx_proxy_mounts = staticmethod(create_httpx_proxy_mounts)


_last_loop: weakref.ref[asyncio.AbstractEventLoop] | None = None


def forget_clients_of_other_loops(litellm: Any) -> None:
    """Make the next call create its HTTP client if the last call ran in another loop.

    litellm has one client for all event loops, and others by the address of their loop,
    which a later loop may reuse. A call in a new loop would use an old loop's
    connection and fail.
    """
    global _last_loop  # noqa: PLW0603  # as global as litellm's clients
    loop = asyncio.get_running_loop()
    if _last_loop is None or _last_loop() is not loop:
        # litellm creates it again
        vars(litellm).pop("module_level_aclient", None)
        litellm.in_memory_llm_clients_cache.flush_cache()
        _last_loop = weakref.ref(loop)


def has_finish_reason(chunks: Any) -> bool:
    """True if the provider itself reported the end of a stream.

    litellm invents a "stop" if a stream just ends: after a broken connection, an HTML
    page, an empty body.
    """
    if not hasattr(chunks, "received_finish_reason"):
        return True
    return bool(chunks.received_finish_reason or chunks.intermittent_finish_reason)


def vendor_errors(litellm: Any) -> tuple[type[Exception], ...]:
    """Return the errors of litellm and its libraries. A bug of cdd raises none of
    these.

    ImportError: some providers need a package that litellm imports during the call.
    """
    return (
        # the base of nearly all of litellm's errors
        litellm.exceptions.openai.OpenAIError,
        *NETWORK_ERRORS,
        json.JSONDecodeError,
        ImportError,
    )
