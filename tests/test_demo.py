"""The sample project of the demo."""

import shutil
from pathlib import Path

import pytest

from cdd_agent.demo.sample import copy_sample
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
