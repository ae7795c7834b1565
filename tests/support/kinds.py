"""The kinds of tests, as pytest markers, and the sample of slow tests for CI."""

import hashlib

import pytest

QUICK = {
    "unit": "in this process; git where git is the subject",
    "story": "a whole run through real git and a real pytest",
}
"""The kinds that `make test` runs, with the resources that they use."""
SLOW = {
    "pty": "a pseudo-terminal",
    "fork": "processes: signals, exit codes, pipes",
    "crash": "kills and faults at chosen points",
    "adapters": "litellm against every simulated provider",
    "cluster": "a Dask cluster on this computer",
    "real": "tools that must be installed",
    "model": "a model on this computer",
}

LONG = {
    "long": "seconds of work; `make test` leaves it out, a quicker test has the rule"
}
"""The mark of a unit test or story that counts as slow."""


def mark_unit_tests(items: list[pytest.Item]) -> None:
    """Mark every test without a kind as a unit test.

    Raises `pytest.UsageError` for a test that is marked as quick and as slow, because
    `make test` would then run it.
    """
    for item in items:
        kinds = {mark.name for mark in item.iter_markers()} & (
            QUICK.keys() | SLOW.keys()
        )
        if not kinds:
            item.add_marker("unit")
        elif kinds & QUICK.keys() and len(kinds) > 1:
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
