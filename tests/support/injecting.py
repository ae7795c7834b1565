"""Faults of the program itself, put where a test wants them."""

from functools import wraps
from typing import Any

import pytest

SECRET = "s3cr3t-t0k3n-1234567890"


class Injected(RuntimeError):
    """Not one that anybody expects."""


def fail_once(monkeypatch: pytest.MonkeyPatch, where: type, name: str) -> None:
    """The next call raises; those after it do what they always did."""
    usual = getattr(where, name)
    left = [Injected(f"injected into {name}, which knew {SECRET}")]

    @wraps(usual)
    def failing(*args: Any, **kwargs: Any) -> Any:
        if left:
            raise left.pop()
        return usual(*args, **kwargs)

    # each is another fault, not the same one again
    failing.__code__ = failing.__code__.replace(co_name=name)
    monkeypatch.setattr(where, name, failing)
