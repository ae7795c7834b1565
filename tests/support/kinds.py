"""The kinds of tests, as pytest markers, and the sample of slow tests that CI runs.

`make test` runs the unit tests and the stories. `make test-all` runs the other kinds
too, except for those that need tools or a model. CONTRIBUTING.md has the table.
"""

import hashlib

import pytest

QUICK = frozenset({"unit", "story"})
SLOW = frozenset({"pty", "fork", "crash", "adapters", "cluster", "real", "model"})


def mark_unit_tests(items: list[pytest.Item]) -> None:
    """Mark every test without a kind as a unit test.

    Raises `pytest.UsageError` for a test that is marked as quick and as slow, since
    `make test` would then run it.
    """
    for item in items:
        kinds = {mark.name for mark in item.iter_markers()} & (QUICK | SLOW)
        if not kinds:
            item.add_marker("unit")
        elif kinds & QUICK and len(kinds) > 1:
            marked = ", ".join(sorted(kinds))
            raise pytest.UsageError(f"{item.nodeid} is marked as {marked}: choose one")


def choose_sample(
    items: list[pytest.Item], share: float, seed: str
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the tests of the sample and the others, both in their order.

    `share` is the part to choose, from 0 to 1. The same seed chooses the same tests, in
    every worker and on every machine.
    """
    chosen, others = [], []
    for item in items:
        digest = hashlib.sha256(f"{seed} {item.nodeid}".encode()).digest()
        is_chosen = int.from_bytes(digest[:4], "big") < share * 2**32
        (chosen if is_chosen else others).append(item)
    return chosen, others
