"""Shared by the tests of the adapters."""

import gc
import os
import sys
import warnings
from collections.abc import Iterator

import pytest

CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.fixture(autouse=True)
def no_keys_of_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see no keys, endpoints, proxies and certificates of this computer."""
    for name in list(os.environ):
        if name.upper().endswith(("_API_KEY", "_API_BASE", "_BASE_URL", "_PROXY")):
            monkeypatch.delenv(name)
    for name in CERTIFICATES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def frozen() -> set[str]:
    """The modules whose objects are not looked at any more when garbage is
    collected.
    """
    return set()


@pytest.fixture(autouse=True)
def what_litellm_leaves(
    request: pytest.FixtureRequest, frozen: set[str]
) -> Iterator[None]:
    """Connections that it does not close go here, and not in the middle of somebody
    else's test.
    """
    yield
    if request.node.get_closest_marker("xdist_group") is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
        if "litellm" in sys.modules and "litellm" not in frozen:
            frozen.add("litellm")
            gc.freeze()  # half a million objects
