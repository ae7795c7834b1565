"""A server's words are quoted without keys; names of models, hosts, paths and ids stay
readable.
"""

from time import process_time

import pytest

from cdd_agent.llm.quoting import LONGEST_QUOTE, quoted
from tests.support.tables import each_row

KEYS = {
    "openai": "sk-" + "Ab3d" * 12,
    "openai of a project": "sk-proj-" + "Ab_d-" * 30,
    "openai of a service": "sk-svcacct-" + "Ab3d" * 20,
    "anthropic": "sk-ant-api03-" + "Ab_d-" * 18 + "AA",
    "openrouter": "sk-or-v1-" + "0f" * 32,
    "deepseek": "sk-" + "0f" * 16,
    "moonshot": "sk-" + "aB1" * 16,
    "novita": "sk_" + "aB1_" * 12,
    "groq": "gsk_" + "aB12" * 13,
    "cerebras": "csk-" + "a1b2" * 12,
    "xai": "xai-" + "aB12" * 20,
    "perplexity": "pplx-" + "aB12" * 12,
    "hugging face": "hf_" + "aBcD" * 8 + "xY",
    "replicate": "r8_" + "aB12" * 9 + "x",
    "nvidia": "nvapi-" + "aB1_-" * 12,
    "together": "tgp_v1_" + "aB1_" * 11,
    "google": "AIza" + "SyA-1234567890_abcdefghijklmnopqrst"[:35],
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "github": "ghp_" + "a1B2" * 9,
    "gitlab": "glpat-" + "aB1_x" * 4,
    "a signed token": (
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
    ),
}
"""Keys of the providers' own forms."""
WITHOUT_A_FORM = {
    "mistral": "aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV",
    "together, the older form": "0a1b2c3d4e5f6789" * 4,
    "azure": "0a1b2c3d" * 4,
    "cohere": "aB1cD2eF3g" * 4,
    "sambanova": "01234567-89ab-cdef-0123-456789abcdef",
}
READABLE = [
    "gpt-4o-mini-2024-07-18",
    "ft:gpt-4o-mini-2024-07-18:my-org-with-a-name::AbC123xY",
    "anthropic/claude-sonnet-4-5-20250929",
    "us.anthropic.claude-3-5-sonnet-20241022-v2:0",
    "accounts/fireworks/models/llama4-maverick-instruct-basic",
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
    "Qwen/Qwen3-Coder-480B-A35B-Instruct",
    "qwen3-coder-30b-a3b-instruct-q4_k_m.gguf",
    "hf.co/bartowski/Qwen2.5-Coder-32B-Instruct-GGUF:Q4_K_M",
    "xai/grok-4-fast-reasoning-2025-09",
    "https://gpu-inference-cluster-03-eu-west.corp.example/v1",
    "https://sk-models-eu-1.corp.example:8443/v1/chat/completions",
    "a1b2c3d4e5f60718293a4b5c6d7e8f90.us-east-1.elb.example",
    "/srv/models/2026-11-01_llama_finetune_run17/checkpoint-4000.safetensors",
    "C:\\Users\\someone1234567890\\AppData\\Local\\Programs\\model_server\\bin",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "req_011CSHoEeqs5C35K2UUqR7Fy",
    "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
    "01234567-89ab-cdef-0123-456789abcdef",
    "max_tokens=128000",
    "prompt tokens: 131072",
    "Unexpected token: end_of_file",
    "Set OPENAI_API_KEY in the environment",
    "The Bearer token is missing",
]


@each_row("key", KEYS.values(), ids=KEYS)
@each_row(
    "said", ["{} is not valid", "Invalid: '{}'.", "https://api.example/v1?a={}&b=1"]
)
def test_a_key_of_a_known_form_is_hidden_anywhere(key: str, said: str) -> None:
    assert quoted(said.format(key)) == said.format("[redacted]")


@each_row("key", (KEYS | WITHOUT_A_FORM).values(), ids=KEYS | WITHOUT_A_FORM)
@each_row(
    "said",
    [
        "Incorrect API key provided: {}. You can find yours at https://example.com",
        "invalid x-api-key: {}",
        "https://api.example/v1?api_key={}&alt=sse",
        '{{"api-key": "{}"}}',
        "Authorization: Bearer {}",
        "The API key {} has expired",
        "Token '{}' is old",
    ],
)
def test_a_value_that_is_called_a_key_is_hidden_in_any_form(
    key: str, said: str
) -> None:
    assert quoted(said.format(key)) == said.format("[redacted]")


@each_row("key", WITHOUT_A_FORM.values(), ids=WITHOUT_A_FORM)
def test_the_values_of_key_variables_are_hidden(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", key)
    assert (
        quoted(f"{key}? Never heard of it")
        == "[redacted: SOME_API_KEY]? Never heard of it"
    )


@each_row("masked", ["sk-proj-********Ab3", "gsk_12***89", "sk-ant-ap…X9"])
def test_a_key_that_the_server_masked_is_hidden(masked: str) -> None:
    assert quoted(f"No: {masked}, sorry") == "No: [redacted], sorry"


@each_row("text", READABLE)
@each_row(
    "said",
    ["{}", "model: {} is not here", "Check '{}', please", "No key for {}", "({})"],
)
def test_names_hosts_paths_hashes_and_ids_stay_readable(
    text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORP_TOKEN", "internal")  # a word, and no key
    assert quoted(said.format(text)) == said.format(text)


def test_a_word_used_as_a_key_hides_no_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "inference")
    assert (
        quoted("Check https://inference.corp.example/v1")
        == "Check https://inference.corp.example/v1"
    )


@each_row("piece", ["key-", "a-token ", "sk-", "//a@", "****", "key: "])
def test_hostile_text_becomes_one_line_quickly(piece: str) -> None:
    began = process_time()
    assert len(quoted(piece * 5_000)) <= LONGEST_QUOTE
    # a tenth of a second; a search that looks back takes minutes
    assert process_time() - began < 3
