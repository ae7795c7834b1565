"""The copy of litellm's tables that the program reads: made before a release, and never
from litellm's own files.
"""

import json
import subprocess
import sys
from importlib.resources import files

import pytest

from cdd_agent.llm.known_models import UNKNOWN, known_model


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
