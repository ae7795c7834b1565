"""What the stories of runs share."""

import pytest


@pytest.fixture(autouse=True)
def bare_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The projects' own pytest starts without the plugins of whoever runs these tests: that is faster."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
