"""A home folder for what several tests share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def at_home(folder: Path) -> Iterator[None]:
    """Use the folder as the home folder, as `nobody_else` does for a single test."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            patch.setenv(name, str(folder))
        yield
