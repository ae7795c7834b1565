"""The sample project of the demo."""

import shutil
from pathlib import Path

import pytest

from cdd_agent.demo.sample import copy_sample
from cdd_agent.llm.port import Message, Request
from cdd_agent.llm.scripted import ScriptedModel
from tests.workspace.test_git import git


def test_the_sample_is_under_git_of_its_own_also_in_a_hook_of_another_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    folder = copy_sample()
    try:
        monkeypatch.delenv("GIT_DIR")
        assert git(folder, "log", "--format=%s").strip() == "The sample project"
        assert git(folder, "status", "--porcelain") == ""
        assert git(tmp_path, "status", "--porcelain") == ""
    finally:
        shutil.rmtree(folder)


def test_its_script_answers_whatever_is_asked_as_often_as_it_is() -> None:
    folder = copy_sample()
    try:
        model = ScriptedModel.from_yaml(folder / ".cdd/demo-script.yaml")
    finally:
        shutil.rmtree(folder)
    for question in ("why did it fail?", "hello", "why did it fail?"):
        assert "This is a demo" in model.next_reply(Request((Message("user", question),))).text
    step = Request((Message("user", "# Step 1 of 4: Read the file"),))
    assert "This is a demo" not in model.next_reply(step).text
