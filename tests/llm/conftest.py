"""What the tests of the adapters share."""

import gc
import os
import sys
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_keys_of_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see neither the keys and endpoints of whoever runs them nor a proxy."""
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_API_BASE", "_BASE_URL", "_PROXY")):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def what_litellm_leaves(request: pytest.FixtureRequest) -> Iterator[None]:
    """Event loops and sockets that it does not close go here, and not in the middle of somebody else's test; nor do
    those that others left go in the middle of its import, which is when much is collected."""
    uses_litellm = request.node.get_closest_marker("xdist_group") is not None
    if uses_litellm and "litellm" not in sys.modules:
        _collect()
    yield
    if uses_litellm:
        _collect()


def _collect() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
