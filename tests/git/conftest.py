"""Projects that checkpoints are taken of."""

from pathlib import Path

import pytest

from tests.git.test_status import git


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    return root


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A project that is in no repository."""
    root = tmp_path / "plain"
    root.mkdir()
    return root
