"""Fixtures of these tests."""

from pathlib import Path

import pytest

from tests.support.projects import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path, request: pytest.FixtureRequest) -> Sandbox:
    """A project whose commands and checkpoints start no process, but in stories and
    where a test is about processes.
    """
    sandbox = Sandbox(tmp_path)
    kinds = {mark.name for mark in request.node.iter_markers()}
    return sandbox if kinds & {"story", "fork"} else sandbox.in_process()
