"""Setting up a model: the sources of models, and a check of the configured model. The
shell shows a dialog; terminals get commands to type.
"""

import asyncio
import os
import shlex
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from cdd_agent.errors import BadInput
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.llm.port import ModelError
from cdd_agent.llm.providers import PROVIDERS, Endpoint, endpoint_of
from cdd_agent.llm.session_keys import KeySource, export_line, find_key_source
from cdd_agent.network.web_address import is_this_computer
from cdd_agent.settings.config import Config

NO_MODEL = "No model set up yet"
"""The same words in the shell and in terminals."""
CHOOSE_ONE = f"{NO_MODEL}. Choose one:"

SUGGESTED: Mapping[str, str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-5.6",
    "gemini": "gemini-3.8-flash",
    "openrouter": "anthropic/claude-sonnet-5.5",
    "mistral": "devstral-latest",
    "deepseek": "deepseek-v4-pro",
    "xai": "grok-4.7",
    "groq": "openai/gpt-oss-120b",
    "moonshot": "kimi-k3",
    "zai": "glm-5.3",
    "minimax": "MiniMax-M3",
    "dashscope": "qwen3.8-max",
}
"""A model by provider that can do the work."""
_TITLES = {
    "anthropic": "Anthropic",
    "openai": "OpenAI",
    "gemini": "Google Gemini",
    "openrouter": "OpenRouter",
    "mistral": "Mistral",
    "deepseek": "DeepSeek",
    "xai": "xAI",
    "groq": "Groq",
    "moonshot": "Moonshot",
    "zai": "Z.AI",
    "minimax": "MiniMax",
    "dashscope": "Alibaba DashScope",
    "codestral": "Codestral",
    "together_ai": "Together AI",
    "cerebras": "Cerebras",
    "deepinfra": "DeepInfra",
    "novita": "Novita",
    "nvidia_nim": "NVIDIA NIM",
    "sambanova": "SambaNova",
}
_SHOWN_FIRST = 6
"""Number of providers without a key in the list; the others share one row."""
_MOMENT = 2.0
"""Seconds to wait for a server of the configured model."""
_LOCAL = "Found on this computer"
_KEYED = "Ready: the key is there"
_HOSTED = "Hosted, with an API key"
_OTHERS = "Others"
COMPATIBLE = "openai"
"""The provider whose protocol and key variable other servers share."""


class LocalSource(Struct, frozen=True):
    models: tuple[OfferedModel, ...]


class HostedSource(Struct, frozen=True):
    """A provider, and its key if there is one."""

    provider: str
    key: KeySource | None = None


class AddressSource(Struct, frozen=True):
    """A server whose address the user types."""


class MoreSource(Struct, frozen=True):
    """The hosted providers that are not shown at first."""

    providers: tuple[HostedSource, ...]


class DemoSource(Struct, frozen=True):
    """The sample project with scripted replies."""


Source = LocalSource | HostedSource | AddressSource | MoreSource | DemoSource


class SourceRow(Struct, frozen=True):
    source: Source
    title: str
    detail: str
    section: str


def title_of(provider: str) -> str:
    return _TITLES.get(provider, provider)


def find_sources(
    offers: Sequence[OfferedModel], environment: Mapping[str, str] = os.environ
) -> list[SourceRow]:
    """Return the sources of models: local servers, providers with a key, other
    providers, a server by address, the demo.
    """
    rows = [
        _local_row(name, offers) for name in dict.fromkeys(o.server for o in offers)
    ]
    hosted = _hosted_sources(environment)
    rows += [_hosted_row(source) for source in hosted if source.key]
    without_key = tuple(source for source in hosted if not source.key)
    rows += [_hosted_row(source) for source in without_key[:_SHOWN_FIRST]]
    more = MoreSource(without_key[_SHOWN_FIRST:])
    if more.providers:
        names = ", ".join(title_of(source.provider) for source in more.providers)
        rows.append(SourceRow(more, "More providers …", names, _HOSTED))
    rows.append(
        SourceRow(
            AddressSource(),
            "Another server",
            "OpenAI-compatible: vLLM, llama.cpp, LM Studio, a gateway",
            _OTHERS,
        )
    )
    rows.append(
        SourceRow(
            DemoSource(),
            "The demo",
            "sample project, scripted model; ends this session",
            _OTHERS,
        )
    )
    return rows


def _hosted_sources(environment: Mapping[str, str]) -> list[HostedSource]:
    names = [*SUGGESTED, *(name for name in PROVIDERS if name not in SUGGESTED)]
    return [
        HostedSource(name, find_key_source(PROVIDERS[name], environment))
        for name in names
        if PROVIDERS[name].needs_key
    ]


def _local_row(server: str, offers: Sequence[OfferedModel]) -> SourceRow:
    models = tuple(offer for offer in offers if offer.server == server)
    first, more = models[0].name, len(models) - 1
    words = first if not more else f"{first} and {more} more"
    return SourceRow(LocalSource(models), server, words, _LOCAL)


def _hosted_row(source: HostedSource) -> SourceRow:
    suggested = SUGGESTED.get(source.provider, "you name the model")
    title = title_of(source.provider)
    if source.key:
        return SourceRow(source, title, f"{suggested} · {source.key.in_words}", _KEYED)
    return SourceRow(source, title, suggested, _HOSTED)


def more_rows(more: MoreSource) -> list[SourceRow]:
    return [_hosted_row(source) for source in more.providers]


def model_line(model: str, api_base: str | None = None) -> str:
    words = [model] if api_base is None else [model, api_base]
    return f"/model {shlex.join(words)} --save"


def suggested_first(provider: str, models: Sequence[str]) -> list[str]:
    suggestion = SUGGESTED.get(provider)
    first = [f"{provider}/{suggestion}"] if suggestion else []
    return [*first, *(name for name in models if name not in first)]


def describe_model(provider: str, model: str) -> str:
    facts = known_model(model).in_short
    if model != f"{provider}/{SUGGESTED.get(provider)}":
        return facts
    return f"suggested · {facts}" if facts else "suggested"


def key_variable(provider: str) -> str:
    return PROVIDERS[provider].keys[0]


_PASTE_KEY = (
    "Or paste the key here. cdd keeps it in memory until you quit, and never saves it."
)


def ask_for_key(provider: str, environment: Mapping[str, str] = os.environ) -> str:
    line = export_line(key_variable(provider), environment)
    return f"Set the key in your shell, then restart cdd:\n\n  {line}\n\n{_PASTE_KEY}"


def ask_for_server_key(environment: Mapping[str, str] = os.environ) -> str:
    text = ask_for_key(COMPATIBLE, environment)
    if source := find_key_source(PROVIDERS[COMPATIBLE], environment):
        text += f" With an empty field, Enter tries the {source.in_words}."
    return text


def keep_key_hint(provider: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return how to store the typed key."""
    line = export_line(key_variable(provider), environment)
    return f"The key lasts until you quit. For next time: {line}"


def how_to_set_up(*, in_shell: bool) -> str:
    """Return the ways to a model as commands to type, without a screen."""
    hosted = f"anthropic/{SUGGESTED['anthropic']}"
    export = export_line(key_variable("anthropic"))
    base = "http://127.0.0.1:8080/v1"
    if in_shell:
        return f"""\
{CHOOSE_ONE}
- hosted: `{export}`, restart cdd, then `/model {hosted} --save`
- a server: `/model openai/NAME {base} --save`; `/model` lists those on this computer
- no model: `cdd demo --headless` shows a sample run"""
    return f"""\
{CHOOSE_ONE}
- hosted: `{export}`, and `model: {hosted}` in .cdd/config.yaml
- a server: `model: openai/NAME` and `api_base: {base}` in .cdd/config.yaml
- in a dialog: `cdd model`
- no model: `cdd demo`"""


async def find_model_problem(config: Config) -> str:
    """Return why the configured model cannot be called; empty if no problem is found
    within a moment.
    """
    if config.model is None:
        return NO_MODEL
    try:
        endpoint = endpoint_of(config.model, config.api_base)
    except BadInput as error:
        return error.message
    if endpoint is None:
        return ""
    if endpoint.lacks_key:
        return f"{config.model} has no key: {endpoint.key_variable} is not set"
    if not is_this_computer(urlsplit(endpoint.base).hostname or ""):
        return ""
    return await _find_server_problem(endpoint)


async def _find_server_problem(endpoint: Endpoint) -> str:
    # late: httpx takes 50 ms to import
    from cdd_agent.llm.direct.server_check import expect_server  # noqa: PLC0415

    try:
        async with asyncio.timeout(_MOMENT):
            await expect_server(endpoint.model, endpoint.base, lambda: "")
    except TimeoutError:
        return ""
    except ModelError:
        return f"No server answers at {endpoint.base}"
    return ""
