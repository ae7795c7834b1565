"""Providers and servers that are asked directly: where they are, which key they take,
and which protocol they speak.

The prefixes of model strings and the names of variables are litellm's, so that the same
settings serve both adapters.
"""

import os
import re
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.llm.known_models import known_model
from cdd_agent.model_names import provider_of
from cdd_agent.network.web_address import web_address
from cdd_agent.partly_shown import PartlyShown


class Speaks(StrEnum):
    """The wire protocol of an endpoint."""

    CHAT_COMPLETIONS = "chat completions"
    ANTHROPIC_MESSAGES = "anthropic messages"
    OPENAI_RESPONSES = "openai responses"
    OLLAMA_CHAT = "ollama chat"


class Provider(Struct, frozen=True):
    """One row of the table."""

    address: str
    """Where it is, unless a setting or a variable says otherwise."""
    keys: tuple[str, ...] = ()
    """The variables that may hold the key, the usual one first."""
    addresses: tuple[str, ...] = ()
    """The variables that may say where it is."""
    needs_key: bool = True
    path: str = ""
    """The end of its addresses, where people are used to leaving it out."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers, and the variables that hold their values."""
    speaks: Speaks = Speaks.CHAT_COMPLETIONS
    by_responses: re.Pattern[str] | None = None
    """Names of models that are asked by the Responses API at OpenAI's own address,
    beside those that are known to be offered by that alone. Anywhere else a name that
    begins with `responses/` is.
    """
    other_api: re.Pattern[str] | None = None
    """Names of models that it offers by an API only that is not spoken here."""


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
"""By its own API; at an address that ends in `/v1` by chat completions."""

PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
        headers={
            "OpenAI-Organization": "OPENAI_ORGANIZATION",
            "OpenAI-Project": "OPENAI_PROJECT",
        },
        by_responses=re.compile(
            r"^(?!.*-search-)(?:.*(?:codex|-pro\b|deep-research|computer-use)"
            r"|(?:ft:)?gpt-(?:5\.(?:[4-9]|\d\d)|[6-9]|[1-9]\d)(?!\d))"
        ),
        other_api=re.compile("-instruct"),
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
_AT_OPENAI = re.compile(r"https://(?:[\w-]+\.)?api\.openai\.com(?:[:/]|$)")


class Endpoint(PartlyShown, frozen=True):
    """Where one model is asked, and as who."""

    base: str
    model: str
    """The name that the server knows."""
    provider: str = ""
    """The prefix of the model string."""
    is_chosen: bool = False
    """Somebody has set the address: what is there may not be the provider's own."""
    key: str | None = None
    key_variable: str = ""
    """Where the key is from, or would be."""
    needs_key: bool = False
    speaks: Speaks = Speaks.CHAT_COMPLETIONS
    headers: Mapping[str, str] = field(default_factory=dict)

    hidden_fields = ("key",)

    @property
    def lacks_key(self) -> bool:
        return self.needs_key and self.key is None

    @property
    def bearer(self) -> dict[str, str]:
        """The key in the header that most servers want it in, if there is one."""
        return {"Authorization": f"Bearer {self.key}"} if self.key is not None else {}

    def origin(self, protocol: str = "") -> str:
        """Where its model's own data comes from (`ProviderData`); with the protocol,
        where several are spoken there.
        """
        return f"{self.model}{protocol and f' by {protocol}'} at {self.base}"

    @property
    def compatible_base(self) -> str:
        """Where its server lists its models as OpenAI's does."""
        return f"{self.base}/v1" if self.speaks is Speaks.OLLAMA_CHAT else self.base

    @property
    def key_hint(self) -> str:
        """Which variable to set or to check."""
        if self.key is None:
            return f"Set in the environment: {self.key_variable}."
        return f"Check {self.key_variable}, and that it may use this model."


def endpoint_of(
    model: str,
    api_base: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Endpoint | None:
    """Where a model string leads, or None where its server speaks something else, or
    nobody knows.

    `api_base` goes before the environment, and that before the table. At an address
    that somebody chose a key is sent if there is one, and not missed. Raises `BadInput`
    where the environment has an address that is none.
    """
    variables = os.environ if environment is None else environment
    environment = {
        variable: text
        for variable, value in variables.items()
        if (text := value.strip())
    }
    prefix, slash, name = model.partition("/")
    if not slash:
        prefix, name = provider_of(model), model
    provider = PROVIDERS.get(prefix)
    if provider is None or not name.removeprefix(_RESPONSES):
        return None
    chosen = api_base
    if not chosen and (
        variable := next(filter(environment.get, provider.addresses), None)
    ):
        try:
            chosen = web_address(environment[variable])
        except ValueError as error:
            raise BadInput(
                f"{variable} in the environment is no address; {error}"
            ) from error
    if not chosen and provider.other_api and provider.other_api.search(name):
        return None
    found = next(filter(environment.get, provider.keys), None)
    base = (chosen or provider.address).rstrip("/")
    speaks = provider.speaks
    if provider.by_responses:
        if name.startswith(_RESPONSES) or (
            _AT_OPENAI.match(base)
            and (
                provider.by_responses.search(name)
                or known_model(model).only_by_responses
            )
        ):
            speaks = Speaks.OPENAI_RESPONSES
        name = name.removeprefix(_RESPONSES)
    if speaks is Speaks.OLLAMA_CHAT:
        base = base.removesuffix("/api")
        speaks = Speaks.CHAT_COMPLETIONS if base.endswith("/v1") else speaks
    return Endpoint(
        base if base.endswith(provider.path) else base + provider.path,
        name,
        prefix,
        bool(chosen),
        environment[found] if found else None,
        found or provider.keys[0],
        needs_key=provider.needs_key and not chosen,
        speaks=speaks,
        headers={
            header: value
            for header, variable in provider.headers.items()
            if (value := environment.get(variable, ""))
            and value.isascii()
            and value.isprintable()
        },
    )
