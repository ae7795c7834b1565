"""`cdd compare`: several models carry the same ticket out, and nothing of the ticket's
own run is touched.
"""

from pathlib import Path

import pytest

from cdd_agent.cli.compare import name_of
from tests.fleet.tickets import GOOD, ONE_STEP, cdd, events, project, script, tree
from tests.support.json_lines import faults
from tests.support.projects import says
from tests.travel.copies import git


@pytest.mark.fork
def test_models_are_compared_and_cleared_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = project(tmp_path, {"bug-a": ONE_STEP}, monkeypatch)
    able, unable = (
        script(tmp_path, GOOD, name="able"),
        script(tmp_path, says("a.txt", "bad"), name="unable"),
    )
    assert cdd(root, "exec", "bug-a", "--worktree", "--model", able) == 0
    own = git(root, "rev-parse", "cdd/bug-a")
    (root / "README").write_text("later\n")
    git(root, "commit", "--quiet", "--all", "--message=Later")
    capsys.readouterr()
    words = ("compare", "bug-a", "--models", f"{able},{unable}", "--max-attempts", "1")

    assert cdd(root, *words, "--json") == 0

    told = events(capsys.readouterr().out)
    assert [faults(line) for line in told if faults(line)] == []
    compared = told[-1]
    assert compared["event"] == "compared"
    one, other = compared["runs"]
    assert [one["model"], one["state"], one["done"], one["attempts"]] == [
        able,
        "done",
        1,
        1,
    ]
    assert [other["model"], other["state"], other["done"], other["attempts"]] == [
        unable,
        "failed",
        0,
        1,
    ]
    assert "+good" in Path(one["diff"]).read_text()
    assert git(root, "show", f"{one['branch']}:a.txt") == "good"
    assert git(root, "rev-parse", "cdd/bug-a") == own
    assert tree(root, one["run"]).exists()

    script(tmp_path, name="able")
    monkeypatch.setenv("COLUMNS", "400")
    assert cdd(root, *words) == 0  # what is known is not made again
    out = capsys.readouterr().out
    assert "begins" not in out
    results = [line for line in out.splitlines() if line.startswith("  script:")]
    assert ["1 by exit code" in line for line in results] == [True, False]
    assert [" 0/1 passed" in line for line in results] == [True, True]

    assert cdd(root, "compare", "--clear", "bug-a") == 0
    assert not tree(root, one["run"]).parent.exists()
    assert git(
        root, "for-each-ref", "--format=%(refname:short)", "refs/heads"
    ).split() == ["cdd/bug-a", "main"]
    assert tree(root, "bug-a").exists()


def test_a_model_has_the_same_name_each_time_and_no_other_ones() -> None:
    assert name_of("openai/gpt-5") == "openai-gpt-5"
    models = {
        "ollama/qwen3:8b",
        "ollama/qwen3-8b",
        "ollama/Qwen3-8b",
        "openai/gpt-5.1",
        "openai/gpt-5-1",
    }
    models |= {"x/y/z", "x/y-z", "x-y/z", "x" * 99, "x" * 98}
    assert len({name_of(model) for model in models}) == len(models)
