"""The copy of litellm's tables that the program reads: made before a release, and never
from litellm's own files.
"""

import json
import subprocess
import sys
from importlib.resources import files

import pytest

from cdd_agent.llm.known_models import UNKNOWN, known_model
from tests.support.tables import each_row


def test_every_row_of_the_copy_has_plausible_facts() -> None:
    table = json.loads((files("cdd_agent.llm") / "known_models.json").read_text())
    assert len(table["models"]) > 1_000
    for name, row in table["models"].items():
        known = known_model(name)
        assert known != UNKNOWN or len(row) == 1, name
        assert row[0] in table["providers"], name
        assert known.window is None or 0 < known.window <= 100_000_000, name
        assert known.longest_reply is None or 0 < known.longest_reply <= 100_000_000, (
            name
        )
        if (price := known.price) is not None:
            amounts = (
                price.prompt,
                price.completion,
                price.cache_read or 0.0,
                price.cache_write or 0.0,
            )
            # dollars for a token
            assert all(0 <= amount < 0.01 for amount in amounts), name


@pytest.mark.fork
def test_the_facts_of_models_are_known_without_litellm() -> None:
    code = """
import sys
from cdd_agent.llm.known_models import UNKNOWN, has_provider, known_model
claude = known_model("anthropic/claude-opus-5")
assert claude.window > 500_000 and claude.longest_reply > 50_000
assert claude.price.cache_read < claude.price.prompt
assert claude.calls_tools and claude.sees and claude.refuses_sampling
assert claude.thinks and claude.thinks_adaptively
assert known_model("openai/gpt-5-codex").only_by_responses
assert not known_model("openai/gpt-5").only_by_responses
assert known_model("openai/gpt-5.6").price.above is not None
assert known_model("nobody/nothing") == UNKNOWN
assert has_provider("anthropic/new") and not has_provider("nobody/new")
print(*{"litellm"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (done.stdout.strip(), done.stderr) == ("", "")


BY_VENDOR = {
    "openrouter/anthropic/claude-opus-5": "anthropic/claude-opus-5",
    "openrouter/anthropic/claude-sonnet-4.5": "anthropic/claude-sonnet-4-5",
    "openrouter/anthropic/claude-opus-5.5:beta": "anthropic/claude-opus-5-5",
    "openrouter/google/gemini-3.5-flash": "gemini/gemini-3.5-flash",
    "openrouter/minimax/minimax-m2.5": "minimax/MiniMax-M2.5",
    "openrouter/moonshotai/kimi-k2.5": "moonshot/kimi-k2.5",
    "openrouter/openai/gpt-5.6": "openai/gpt-5.6",
    "openrouter/qwen/qwen3-coder-plus": "dashscope/qwen3-coder-plus",
    "openrouter/x-ai/grok-4.6": "xai/grok-4.6",
    "openrouter/z-ai/glm-5.3": "zai/glm-5.3",
}


@each_row(("model", "at_home"), BY_VENDOR.items(), ids=BY_VENDOR)
def test_a_model_behind_openrouter_has_the_abilities_of_its_vendor_s_row(
    model: str, at_home: str
) -> None:
    known, vendor = known_model(model), known_model(at_home)

    assert known.calls_tools
    assert (known.thinks, known.sees) == (vendor.thinks, vendor.sees)
    assert (known.window, known.price) == (None, None)


@each_row(
    "model",
    [
        "bedrock/us.anthropic.claude-opus-5",
        "bedrock/anthropic.claude-sonnet-4-6",
        "vertex_ai/gemini-2.5-pro",
        "vertex_ai/claude-opus-5",
    ],
)
def test_a_cloud_has_the_rows_of_all_its_apis(model: str) -> None:
    known = known_model(model)

    assert known.calls_tools
    assert known.window
    assert known.price


CALL_TOOLS = [
    "anthropic/claude-opus-9",
    "claude-opus-9",
    "openrouter/anthropic/claude-opus-9",
    "deepseek/deepseek-v9",
    "gemini/gemini-9-pro",
    "openrouter/google/gemini-9-pro",
    "openai/gpt-9",
    "openrouter/moonshotai/kimi-k9",
    "openrouter/mistralai/devstral-9",
    "openrouter/qwen/qwen9-coder",
]


@each_row("model", CALL_TOOLS)
def test_a_new_model_of_a_known_family_calls_tools(model: str) -> None:
    assert known_model(model).calls_tools


@each_row(
    "model",
    [
        "openai/qwen3-coder",
        "openai/gpt-oss-20b",
        "openrouter/maker/model-9",
        "ollama/x",
    ],
)
def test_nothing_is_known_of_a_model_of_no_family(model: str) -> None:
    assert known_model(model) == UNKNOWN
