"""The beginning of the stories about checks, and of those about a run that goes on."""

from pathlib import Path

import pytest
import pytest_asyncio

from tests.engine.calculator import begin, calculator
from tests.engine.half_done import half_done
from tests.support.projects import Copied, Sandbox


@pytest_asyncio.fixture(scope="session")
async def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The calculator, with a run that has taken its baseline and no more; for
    `begun`.
    """
    sandbox = calculator(Sandbox(tmp_path_factory.mktemp("original")).in_process())
    await begin(sandbox)
    return sandbox.root


@pytest.fixture
async def half(copied: Copied) -> Sandbox:
    """Two steps, of which the first is completed and the second failed."""
    return await copied(half_done)
