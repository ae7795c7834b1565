"""The beginning of the stories about checks."""

from pathlib import Path

import pytest
import pytest_asyncio

from tests.engine.calculator import begin, calculator
from tests.support.projects import Sandbox


@pytest_asyncio.fixture(scope="session")
async def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The calculator, with a run that has taken its baseline and no more; for
    `begun`.
    """
    sandbox = calculator(Sandbox(tmp_path_factory.mktemp("original")).in_process())
    await begin(sandbox)
    return sandbox.root
