"""A shared home folder for several tests."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HOME_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")


@contextmanager
def at_home(folder: Path) -> Iterator[None]:
    """Use the folder as the home folder, as `isolate_from_user` does for one test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in HOME_VARIABLES:
            patch.setenv(name, str(folder))
        yield


@contextmanager
def with_quick_pytest(folder: str) -> Iterator[None]:
    """Use the `pytest` in the folder of the fixture `quick_pytest_folder`, without
    plugins, as each story does.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", folder, prepend=os.pathsep)
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        yield
