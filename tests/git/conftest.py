"""Projects that checkpoints are taken of."""

from pathlib import Path

import pytest

from tests.git.repositories import make_repository


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A project that is in no repository."""
    root = tmp_path / "plain"
    root.mkdir()
    return root
