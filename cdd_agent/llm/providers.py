"""The providers that cdd calls directly: addresses, keys, protocols.

Model prefixes and variable names are litellm's, so the same settings work with both
adapters.
"""

import os
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.server_keys import key_of_server
from cdd_agent.network.keys import Key, clean_key, is_sendable, key_header
from cdd_agent.network.web_address import web_address
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.settings.model_names import provider_of
from cdd_agent.values.partly_shown import PartlyShown


class Speaks(StrEnum):
    CHAT_COMPLETIONS = "chat completions"
    ANTHROPIC_MESSAGES = "anthropic messages"
    OPENAI_RESPONSES = "openai responses"
    OLLAMA_CHAT = "ollama chat"


class Provider(Struct, frozen=True):
    address: str
    """Its address, unless a setting or a variable has another."""
    keys: tuple[str, ...] = ()
    """Variables that may hold the key, the usual one first."""
    addresses: tuple[str, ...] = ()
    """Variables that may hold another address."""
    needs_key: bool = True
    path: str = ""
    """The end of its addresses, which users often omit."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header names, with the variables that hold their values."""
    speaks: Speaks = Speaks.CHAT_COMPLETIONS
    by_responses: Pattern[str] | None = None
    """Names of models to call through the Responses API at OpenAI's own address, in
    addition to those with no other API. A name that begins with `responses/` uses it at
    any address.
    """
    other_api: Pattern[str] | None = None
    """Names of models that have only an API that cdd does not speak."""


def _hosted(name: str, address: str, *more_keys: str) -> Provider:
    return Provider(address, (f"{name}_API_KEY", *more_keys), (f"{name}_API_BASE",))


def _local(name: str, port: int) -> Provider:
    address = f"http://127.0.0.1:{port}"
    return Provider(
        address,
        (f"{name}_API_KEY",),
        (f"{name}_API_BASE",),
        needs_key=False,
        path="/v1",
    )


_OLLAMA = replace(_local("OLLAMA", 11434), path="", speaks=Speaks.OLLAMA_CHAT)
"""An address that ends in `/v1` means chat completions."""

PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
        headers={
            "OpenAI-Organization": "OPENAI_ORGANIZATION",
            "OpenAI-Project": "OPENAI_PROJECT",
        },
        by_responses=Pattern(
            r"^(?!.*-search-)(?:.*(?:codex|-pro\b|deep-research|computer-use)"
            r"|(?:ft:)?gpt-(?:5\.(?:[4-9]|\d\d)|[6-9]|[1-9]\d)(?!\d))"
        ),
        other_api=Pattern("-instruct"),
    ),
    "anthropic": Provider(
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        path="/v1",
        speaks=Speaks.ANTHROPIC_MESSAGES,
    ),
    "openrouter": _hosted("OPENROUTER", "https://openrouter.ai/api/v1", "OR_API_KEY"),
    "deepseek": _hosted("DEEPSEEK", "https://api.deepseek.com/v1"),
    "mistral": Provider(
        "https://api.mistral.ai",
        ("MISTRAL_API_KEY", "MISTRAL_AZURE_API_KEY"),
        ("MISTRAL_API_BASE", "MISTRAL_AZURE_API_BASE"),
        path="/v1",
    ),
    "codestral": _hosted("CODESTRAL", "https://codestral.mistral.ai/v1"),
    "groq": _hosted("GROQ", "https://api.groq.com/openai/v1"),
    "xai": _hosted("XAI", "https://api.x.ai/v1"),
    "together_ai": _hosted(
        "TOGETHER_AI",
        "https://api.together.ai/v1",
        "TOGETHER_API_KEY",
        "TOGETHERAI_API_KEY",
        "TOGETHER_AI_TOKEN",
    ),
    "cerebras": _hosted("CEREBRAS", "https://api.cerebras.ai/v1"),
    "deepinfra": _hosted("DEEPINFRA", "https://api.deepinfra.com/v1/openai"),
    "moonshot": _hosted("MOONSHOT", "https://api.moonshot.ai/v1"),
    "novita": _hosted("NOVITA", "https://api.novita.ai/v3/openai"),
    "nvidia_nim": _hosted("NVIDIA_NIM", "https://integrate.api.nvidia.com/v1"),
    "gemini": _hosted(
        "GEMINI",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GOOGLE_API_KEY",
    ),
    "minimax": _hosted("MINIMAX", "https://api.minimax.io/v1"),
    "zai": _hosted("ZAI", "https://api.z.ai/api/paas/v4"),
    "dashscope": _hosted(
        "DASHSCOPE", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
    ),
    "sambanova": _hosted("SAMBANOVA", "https://api.sambanova.ai/v1"),
    "ollama": _OLLAMA,
    "ollama_chat": _OLLAMA,
    "lm_studio": _local("LM_STUDIO", 1234),
    "llamafile": _local("LLAMAFILE", 8080),
    "hosted_vllm": _local("HOSTED_VLLM", 8000),
}
"""By the prefix of the model string."""

_RESPONSES = "responses/"
_AT_OPENAI = Pattern(r"https://(?:[\w-]+\.)?api\.openai\.com(?:[:/]|$)")


class Endpoint(PartlyShown, frozen=True):
    """The address and key for calling one model."""

    base: str
    model: str
    """The server's name for it."""
    provider: str = ""
    """The prefix of the model string."""
    is_chosen: bool = False
    """True if the user set the address, so it may not be the provider's own."""
    key: str | None = None
    key_variable: str = ""
    """The variable that holds the key, or would hold it."""
    removed_from_key: tuple[str, ...] = ()
    """Text around the key in its variable."""
    needs_key: bool = False
    speaks: Speaks = Speaks.CHAT_COMPLETIONS
    headers: Mapping[str, str] = field(default_factory=dict)

    hidden_fields = ("key",)

    @property
    def lacks_key(self) -> bool:
        return self.needs_key and self.key is None

    @property
    def bearer(self) -> dict[str, str]:
        """The usual header for a key; empty without a key."""
        return key_header(self.key)

    @property
    def key_problem(self) -> str:
        """Why the key cannot be sent, as the end of a sentence."""
        if self.key is None or is_sendable(self.key):
            return ""
        return "has characters that no API key has"

    def origin(self, protocol: str = "") -> str:
        """Identify the source of a model's `ProviderData`. Pass `protocol` if a server
        speaks several.
        """
        model = f"{self.model} by {protocol}" if protocol else self.model
        return f"{model} at {self.base}"

    @property
    def compatible_base(self) -> str:
        """The address at which the server lists its models like OpenAI."""
        return f"{self.base}/v1" if self.speaks is Speaks.OLLAMA_CHAT else self.base

    @property
    def key_hint(self) -> str:
        """A hint that names the variable to set or to check."""
        if self.key is None:
            return (
                f"Set the environment variable {self.key_variable}, then restart cdd."
            )
        return f"Check {self.key_variable}, and that it may use this model."


def _without_api_path(address: str, provider: Provider) -> str:
    base = address.rstrip("/")
    return base.removesuffix("/api") if provider.speaks is Speaks.OLLAMA_CHAT else base


def endpoint_of(
    model: str,
    api_base: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Endpoint | None:
    """Return the endpoint of a model string, or None if only litellm can call it.

    `api_base` overrides the environment, which overrides the table. At a user's own
    address, a key is sent if there is one, but not required. Raises `BadInput` if a
    variable has an unusable address.
    """
    prefix, name = _split_model(model)
    provider = PROVIDERS.get(prefix)
    if provider is None or not name.removeprefix(_RESPONSES):
        return None
    chosen = api_base or _chosen_address(provider, environment)
    if not chosen and _has_other_api(provider, name):
        return None
    base = _without_api_path(chosen or provider.address, provider)
    speaks = _protocol_at(base, provider, model)
    if not base.endswith(provider.path):
        base += provider.path
    if provider.by_responses:
        name = name.removeprefix(_RESPONSES)
    key_variable, key = _find_key(provider, environment)
    key = key_of_server(base) or key
    return Endpoint(
        base,
        name,
        prefix,
        is_chosen=bool(chosen),
        key=key.text or None,
        key_variable=key_variable,
        removed_from_key=key.removed,
        needs_key=provider.needs_key and not chosen,
        speaks=speaks,
        headers=_headers(provider, environment),
    )


def _has_other_api(provider: Provider, name: str) -> bool:
    return provider.other_api is not None and bool(provider.other_api.search(name))


def _protocol_at(base: str, provider: Provider, model: str) -> Speaks:
    if provider.speaks is Speaks.OLLAMA_CHAT and base.endswith("/v1"):
        return Speaks.CHAT_COMPLETIONS
    names = provider.by_responses
    if names is not None and _uses_responses(names, model, base):
        return Speaks.OPENAI_RESPONSES
    return provider.speaks


def _split_model(model: str) -> tuple[str, str]:
    prefix, slash, name = model.partition("/")
    if slash:
        return prefix, name
    return provider_of(model), model


def _chosen_address(provider: Provider, variables: Mapping[str, str]) -> str | None:
    for variable in provider.addresses:
        if value := variables.get(variable, "").strip():
            try:
                return web_address(value)
            except ValueError as error:
                raise BadInput(
                    f"The environment variable {variable} is not an address: {error}",
                    refusal=Refusal.ENVIRONMENT_UNUSABLE,
                ) from error
    return None


def _uses_responses(names: Pattern[str], model: str, base: str) -> bool:
    """True if the model string asks for the Responses API, or OpenAI's model needs
    it.
    """
    _, name = _split_model(model)
    if name.startswith(_RESPONSES):
        return True
    if not _AT_OPENAI.match(base):
        return False
    return bool(names.search(name)) or known_model(model).only_by_responses


def _find_key(provider: Provider, variables: Mapping[str, str]) -> tuple[str, Key]:
    for variable in provider.keys:
        key = clean_key(variables.get(variable, ""))
        if key.text:
            return variable, key
    return provider.keys[0], Key("")


def _headers(provider: Provider, variables: Mapping[str, str]) -> dict[str, str]:
    headers = {}
    for header, variable in provider.headers.items():
        value = variables.get(variable, "").strip()
        if value and value.isascii() and value.isprintable():
            headers[header] = value
    return headers
