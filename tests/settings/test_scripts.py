"""Which files of a project play a model: no prompt may show them as related code."""

from pathlib import Path

import pytest

from cdd_agent.cli.main import main
from cdd_agent.settings.config import Config, Models, ModelSettings
from cdd_agent.settings.models import list_script_files
from tests.support.projects import Sandbox
from tests.support.tables import each_row


@each_row(
    ("config", "expected"),
    [
        (Config(), []),
        (Config(model="ollama/qwen3"), []),
        (Config(model="script:script.yaml"), ["script.yaml"]),
        (Config(model="replay:runs/last.jsonl"), ["runs/last.jsonl"]),
        (Config(model="script:./a/../script.yaml"), ["script.yaml"]),
        (Config(model="script:../outside.yaml"), []),
        (
            Config(models=Models(executor=ModelSettings(model="script:exec.yaml"))),
            ["exec.yaml"],
        ),
        (
            Config(
                model="script:a.yaml", fallbacks=(ModelSettings(model="script:b.yaml"),)
            ),
            ["a.yaml", "b.yaml"],
        ),
    ],
)
def test_scripts_of_all_models_are_listed(
    tmp_path: Path, config: Config, expected: list[str]
) -> None:
    assert list_script_files(config, tmp_path) == expected


def test_a_script_is_no_related_code(
    sandbox: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "replies:\n- when: the turnip counter\n  reply: Turnip counter.\n"
    (sandbox.root / ".cdd").mkdir()
    (sandbox.root / ".cdd/config.yaml").write_text("model: script:play.yaml\n")
    (sandbox.root / "play.yaml").write_text(script)
    (sandbox.root / "notes.yaml").write_text(script)
    assert main(["context", "turnip counter", "-C", str(sandbox.root)]) == 0
    shown = capsys.readouterr().out
    assert "notes.yaml" in shown
    assert "play.yaml" not in shown
