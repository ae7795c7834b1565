"""Which model strings lead where, by which settings and variables."""

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.llm.providers import PROVIDERS, endpoint_of, is_this_computer

OWN = "http://127.0.0.1:9000/v1"


@pytest.mark.parametrize(
    ("model", "api_base", "environment", "base", "name"),
    [
        ("openai/gpt-5", None, {}, "https://api.openai.com/v1", "gpt-5"),
        ("gpt-4o", None, {}, "https://api.openai.com/v1", "gpt-4o"),
        ("o3", None, {}, "https://api.openai.com/v1", "o3"),
        ("openai/gpt-5", None, {"OPENAI_API_BASE": f"{OWN}/"}, OWN, "gpt-5"),
        ("openai/gpt-5", None, {"OPENAI_BASE_URL": OWN}, OWN, "gpt-5"),
        ("openai/gpt-5", "http://here/v1", {"OPENAI_BASE_URL": OWN}, "http://here/v1", "gpt-5"),
        ("openai/o3-pro", OWN, {}, OWN, "o3-pro"),
        ("openrouter/meta/llama", None, {}, "https://openrouter.ai/api/v1", "meta/llama"),
        ("deepseek/deepseek-chat", None, {}, "https://api.deepseek.com/v1", "deepseek-chat"),
        ("mistral/devstral", None, {}, "https://api.mistral.ai/v1", "devstral"),
        ("mistral/devstral", "http://here", {}, "http://here/v1", "devstral"),
        ("groq/llama", None, {}, "https://api.groq.com/openai/v1", "llama"),
        ("xai/grok-4", None, {}, "https://api.x.ai/v1", "grok-4"),
        ("anthropic/claude-opus-5", None, {}, "https://api.anthropic.com/v1", "claude-opus-5"),
        ("claude-opus-5", None, {"ANTHROPIC_BASE_URL": "http://here"}, "http://here/v1", "claude-opus-5"),
        ("ollama/qwen3:8b", None, {}, "http://127.0.0.1:11434/v1", "qwen3:8b"),
        ("ollama_chat/qwen3", None, {"OLLAMA_API_BASE": "http://box:1"}, "http://box:1/v1", "qwen3"),
        ("lm_studio/qwen3", "http://127.0.0.1:1/v1", {}, "http://127.0.0.1:1/v1", "qwen3"),
    ],
)
def test_a_model_string_leads_to_an_endpoint(
    model: str, api_base: str | None, environment: dict[str, str], base: str, name: str
) -> None:
    endpoint = endpoint_of(model, api_base, environment)

    assert endpoint is not None
    assert (endpoint.base, endpoint.model) == (base, name)


@pytest.mark.parametrize(
    "model",
    ["vertex_ai/x", "frobnicate", "", "openai/", "/x", "azure/gpt-4o", "openai/o3-pro", "gpt-oss:20b"],
)
def test_others_are_not_for_the_direct_adapter(model: str) -> None:
    assert endpoint_of(model, None, {}) is None


@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
def test_an_address_in_the_environment_that_is_none_is_refused_with_its_variable(variable: str) -> None:
    with pytest.raises(BadInput, match=f"{variable} in the environment is no address; allowed: .* http://"):
        endpoint_of("openai/gpt-5", None, {variable: "localhost:1234"})


def test_an_api_base_alone_does_not_make_another_provider_s_model_direct() -> None:
    assert endpoint_of("bedrock/claude", OWN, {}) is None


def test_the_key_is_the_provider_s_own() -> None:
    keys = {f"{name.upper()}_API_KEY": name for name in PROVIDERS}
    for name in ("openai", "openrouter", "deepseek", "mistral", "groq", "xai", "cerebras", "together_ai"):
        endpoint = endpoint_of(f"{name}/x", None, keys)
        assert endpoint is not None
        assert endpoint.key == name
        shown = repr(endpoint).replace(endpoint.base, "").replace(endpoint.key_variable, "")
        assert name not in shown.replace(f"provider={name!r}", "")


@pytest.mark.parametrize(
    ("model", "api_base", "lacks"),
    [("openai/x", None, True), ("openai/x", OWN, False), ("ollama/x", None, False), ("groq/x", None, True)],
)
def test_a_key_is_missed_only_at_the_provider_s_own_address(model: str, api_base: str | None, lacks: bool) -> None:
    endpoint = endpoint_of(model, api_base, {})

    assert endpoint is not None
    assert endpoint.lacks_key is lacks


@pytest.mark.parametrize(
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
def test_knows_this_computer(host: str, here: bool) -> None:
    assert is_this_computer(host) is here
