"""Which model strings lead where, by which settings and variables."""

import pytest
from rich.pretty import pretty_repr

from cdd_agent.errors import BadInput
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.providers import PROVIDERS, Speaks, endpoint_of
from cdd_agent.network.web_address import is_this_computer
from tests.support.tables import each_row

OWN = "http://127.0.0.1:9000/v1"


@each_row(
    ("model", "api_base", "environment", "base", "name"),
    [
        ("openai/gpt-5", None, {}, "https://api.openai.com/v1", "gpt-5"),
        ("gpt-4o", None, {}, "https://api.openai.com/v1", "gpt-4o"),
        ("o3", None, {}, "https://api.openai.com/v1", "o3"),
        ("openai/gpt-5", None, {"OPENAI_API_BASE": f"{OWN}/"}, OWN, "gpt-5"),
        ("openai/gpt-5", None, {"OPENAI_BASE_URL": OWN}, OWN, "gpt-5"),
        (
            "openai/gpt-5",
            "http://here/v1",
            {"OPENAI_BASE_URL": OWN},
            "http://here/v1",
            "gpt-5",
        ),
        ("openai/o3-pro", OWN, {}, OWN, "o3-pro"),
        (
            "openrouter/meta/llama",
            None,
            {},
            "https://openrouter.ai/api/v1",
            "meta/llama",
        ),
        (
            "deepseek/deepseek-chat",
            None,
            {},
            "https://api.deepseek.com/v1",
            "deepseek-chat",
        ),
        ("mistral/devstral", None, {}, "https://api.mistral.ai/v1", "devstral"),
        ("mistral/devstral", "http://here", {}, "http://here/v1", "devstral"),
        ("groq/llama", None, {}, "https://api.groq.com/openai/v1", "llama"),
        ("xai/grok-4", None, {}, "https://api.x.ai/v1", "grok-4"),
        (
            "anthropic/claude-opus-5",
            None,
            {},
            "https://api.anthropic.com/v1",
            "claude-opus-5",
        ),
        (
            "claude-opus-5",
            None,
            {"ANTHROPIC_BASE_URL": "http://here"},
            "http://here/v1",
            "claude-opus-5",
        ),
        ("ollama/qwen3:8b", None, {}, "http://127.0.0.1:11434", "qwen3:8b"),
        (
            "ollama_chat/qwen3",
            None,
            {"OLLAMA_API_BASE": "http://box:1"},
            "http://box:1",
            "qwen3",
        ),
        ("ollama/qwen3", "http://box:1/api/", {}, "http://box:1", "qwen3"),
        (
            "lm_studio/qwen3",
            "http://127.0.0.1:1/v1",
            {},
            "http://127.0.0.1:1/v1",
            "qwen3",
        ),
    ],
)
def test_a_model_string_determines_the_endpoint(
    model: str, api_base: str | None, environment: dict[str, str], base: str, name: str
) -> None:
    endpoint = endpoint_of(model, api_base, environment)

    assert endpoint is not None
    assert (endpoint.base, endpoint.model) == (base, name)


@each_row(
    "model",
    [
        *(
            "vertex_ai/x",
            "frobnicate",
            "",
            "openai/",
            "/x",
            "azure/gpt-4o",
            "gpt-oss:20b",
        ),
        *("openai/gpt-3.5-turbo-instruct", "openai/responses/"),
    ],
)
def test_the_direct_adapter_refuses_other_providers(model: str) -> None:
    assert endpoint_of(model, None, {}) is None


@each_row(
    ("api_base", "speaks"),
    [
        (None, Speaks.OLLAMA_CHAT),
        ("http://box:1", Speaks.OLLAMA_CHAT),
        ("http://box:1/v1/", Speaks.CHAT_COMPLETIONS),
    ],
)
def test_ollama_uses_its_own_api_except_at_the_compatible_address(
    api_base: str | None, speaks: Speaks
) -> None:
    endpoint = endpoint_of("ollama/qwen3", api_base, {})

    assert endpoint is not None
    assert (endpoint.speaks, endpoint.compatible_base.endswith("/v1")) == (speaks, True)


AT_OPENAI = ("https://api.openai.com/v1", "https://eu.api.openai.com/v1", None)


@each_row(
    ("model", "bases", "by_responses"),
    [
        *(
            (f"openai/{name}", AT_OPENAI, True)
            for name in ("gpt-5-codex", "o3-pro", "gpt-5-pro-2025-10-06")
        ),
        *(
            (f"openai/{name}", AT_OPENAI, True)
            for name in ("o4-mini-deep-research", "computer-use-preview")
        ),
        *(
            (f"openai/{name}", AT_OPENAI, True)
            for name in ("gpt-5.4", "gpt-5.4-mini-2026-03-17", "gpt-5.6-sol")
        ),
        *(
            (f"openai/{name}", AT_OPENAI, True)
            for name in ("gpt-5.10", "gpt-6-astra", "gpt-6.1", "gpt-12", "gpt-6o")
        ),
        *(
            (f"openai/{name}", AT_OPENAI, True)
            for name in ("gpt-daybreak-blue-latest", "ft:gpt-5.4:me::1")
        ),
        *(
            (name, AT_OPENAI, True)
            for name in (
                "gpt-5.6",
                "o1-pro",
                "codex-mini-latest",
                "gpt-daybreak-red-latest",
            )
        ),
        *(
            (f"openai/{name}", AT_OPENAI, False)
            for name in ("gpt-5", "gpt-5.1", "gpt-5.3-chat-latest", "gpt-5-mini")
        ),
        *(
            (f"openai/{name}", AT_OPENAI, False)
            for name in ("gpt-4o", "o3", "gpt-6-search-api", "production", "gpt-oss")
        ),
        *(
            (f"openai/{name}", (OWN,), False)
            for name in ("gpt-5.6", "gpt-5-codex", "qwen3-coder")
        ),
        (
            "openai/gpt-5.6",
            (
                "https://api.openai.com.example.org/v1",
                "https://example.org/api.openai.com/",
            ),
            False,
        ),
        ("openai/responses/anything", (*AT_OPENAI, OWN), True),
        ("hosted_vllm/gpt-5.6", (OWN, None), False),
    ],
)
def test_openai_models_use_responses_where_it_is_better_or_required(
    model: str, bases: tuple[str | None, ...], by_responses: bool
) -> None:
    for base in bases:
        endpoint = endpoint_of(model, base, {})

        assert endpoint is not None
        assert endpoint.speaks is (
            Speaks.OPENAI_RESPONSES if by_responses else Speaks.CHAT_COMPLETIONS
        )
        assert not endpoint.model.startswith("responses/")


def test_the_facts_of_a_model_do_not_depend_on_the_protocol() -> None:
    known = known_model("openai/responses/gpt-5.6")

    assert known == known_model("openai/gpt-5.6")
    assert known.calls_tools
    assert known.window
    assert known.price


@each_row("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
def test_a_wrong_address_in_the_environment_is_refused_with_its_variable(
    variable: str,
) -> None:
    with pytest.raises(
        BadInput,
        match=f"The environment variable {variable} is not an address: give .* http://",
    ):
        endpoint_of("openai/gpt-5", None, {variable: "localhost:1234"})


def test_an_api_base_does_not_make_another_provider_direct() -> None:
    assert endpoint_of("bedrock/claude", OWN, {}) is None


def test_each_provider_has_its_own_key() -> None:
    keys = {f"{name.upper()}_API_KEY": name for name in PROVIDERS}
    for name in (
        "openai",
        "openrouter",
        "deepseek",
        "mistral",
        "groq",
        "xai",
        "cerebras",
        "together_ai",
    ):
        endpoint = endpoint_of(f"{name}/x", None, keys)
        assert endpoint is not None
        assert endpoint.key == name
        # the second is what the shell's tracebacks show
        for written in (repr(endpoint), pretty_repr(endpoint)):
            shown = written.replace(endpoint.base, "").replace(
                endpoint.key_variable, ""
            )
            assert name not in shown.replace(f"provider={name!r}", "")


@each_row(
    ("model", "api_base", "lacks"),
    [
        ("openai/x", None, True),
        ("openai/x", OWN, False),
        ("ollama/x", None, False),
        ("groq/x", None, True),
    ],
)
def test_a_key_is_required_only_at_the_provider_s_own_address(
    model: str, api_base: str | None, lacks: bool
) -> None:
    endpoint = endpoint_of(model, api_base, {})

    assert endpoint is not None
    assert endpoint.lacks_key is lacks


@each_row(
    ("host", "here"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("models.localhost", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("0.0.0.0", True),
        ("10.0.0.1", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_addresses_of_this_computer_are_known(host: str, here: bool) -> None:
    assert is_this_computer(host) is here
