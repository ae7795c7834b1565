"""Prepared copies of a project: made once, and then copied for each test."""

from pathlib import Path

import pytest

from tests.support.homes import at_home
from tests.support.projects import SLUG
from tests.travel.copies import GOOD, Copies, cdd, run


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    folder = tmp_path_factory.mktemp("prepared").resolve()
    with at_home(folder):
        copies = Copies.made(folder / "copies")
        copies.clone("second")
    return copies


@pytest.fixture(scope="session")
def prepared_begun(
    prepared: Copies, tmp_path_factory: pytest.TempPathFactory
) -> Copies:
    folder = tmp_path_factory.mktemp("begun").resolve()
    copies = prepared.copy_to(folder / "copies")
    with at_home(folder):
        assert run(copies.first, GOOD[0]) != 0  # the script has ended
    return copies


@pytest.fixture(scope="session")
def prepared_pushed(
    prepared_begun: Copies, tmp_path_factory: pytest.TempPathFactory
) -> Copies:
    folder = tmp_path_factory.mktemp("pushed").resolve()
    copies = prepared_begun.copy_to(folder / "copies")
    with at_home(folder):
        assert cdd(copies.first, "push", SLUG) == 0
    return copies


@pytest.fixture
def copies(prepared: Copies, tmp_path: Path) -> Copies:
    """Two clones, `first` and `second`, of a project with a plan."""
    return prepared.copy_to(tmp_path.resolve() / "copies")


@pytest.fixture
def begun(prepared_begun: Copies, tmp_path: Path) -> Copies:
    """The same, with a run in `first` of which one step is done."""
    return prepared_begun.copy_to(tmp_path.resolve() / "copies")


@pytest.fixture
def pushed(prepared_pushed: Copies, tmp_path: Path) -> Copies:
    """The same, and `first` has pushed the run."""
    return prepared_pushed.copy_to(tmp_path.resolve() / "copies")
