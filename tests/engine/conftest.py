"""The beginning of the stories about checks."""

from pathlib import Path

import pytest
import pytest_asyncio

from tests.engine.calculator import begin, calculator
from tests.support.projects import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path, request: pytest.FixtureRequest) -> Sandbox:
    """A project whose commands and checkpoints start no process, but in stories and
    where a test is about processes.
    """
    sandbox = Sandbox(tmp_path)
    kinds = {mark.name for mark in request.node.iter_markers()}
    if kinds & {"story", "fork", "crash"}:
        return sandbox
    return sandbox.in_process()


@pytest.fixture
def in_git(sandbox: Sandbox) -> None:
    """The checkpoints of the project are in git after all."""
    sandbox.open_checkpoints = None


@pytest_asyncio.fixture(scope="session")
async def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The calculator, with a run that has taken its baseline and no more; for
    `begun`.
    """
    sandbox = calculator(Sandbox(tmp_path_factory.mktemp("original")).in_process())
    await begin(sandbox)
    return sandbox.root
