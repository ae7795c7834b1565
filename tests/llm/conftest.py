"""What the tests of the adapters share."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_keys_of_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see neither the keys and endpoints of whoever runs them nor a proxy."""
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_API_BASE", "_BASE_URL", "_PROXY")):
            monkeypatch.delenv(name)
