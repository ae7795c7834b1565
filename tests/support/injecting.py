"""Inject bugs into the program at chosen places."""

from functools import wraps
from typing import Any

import pytest

SECRET = "s3cr3t-t0k3n-1234567890"


class Injected(RuntimeError):
    """An unexpected error."""


def fail_once(monkeypatch: pytest.MonkeyPatch, where: type, name: str) -> None:
    """Make the next call raise; later calls behave normally."""
    usual = getattr(where, name)
    left = [Injected(f"injected into {name}, which knew {SECRET}")]

    @wraps(usual)
    def failing(*args: Any, **kwargs: Any) -> Any:
        if left:
            raise left.pop()
        return usual(*args, **kwargs)

    # make each an individual fault
    failing.__code__ = failing.__code__.replace(co_name=name)
    monkeypatch.setattr(where, name, failing)
