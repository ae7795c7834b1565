"""A small JSON file that several processes change."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes, write_atomic
from cdd_agent.refusals.kinds import Refusal

_PATIENCE = 30.0
"""Seconds."""


@contextmanager
def change_json(path: Path) -> Iterator[dict[str, Any]]:
    """Lock a file and save the block's changes to its value. Raises `BadInput` if the
    disk refuses, or if another process keeps the lock.
    """
    lock = FileLock(path.with_suffix(".lock"), timeout=_PATIENCE)
    try:
        lock.acquire()
    except Timeout as error:
        raise BadInput(
            f"Another process has locked {path} for {_PATIENCE:g} s",
            hint="If you stopped a cdd with Ctrl+Z, resume it with `fg` or end it.",
            refusal=Refusal.IN_USE,
        ) from error
    except (OSError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(
            f"{lock.lock_file} could not be locked: {reason}", refusal=Refusal.DISK
        ) from error
    try:
        value = read_json(path)
        old = json.dumps(value)
        yield value
        new = json.dumps(value)
        if new != old:
            write_atomic(path, new.encode())
    finally:
        lock.release()


def read_json(path: Path) -> dict[str, Any]:
    """Return an empty value for a missing or damaged file."""
    try:
        value = json.loads(read_bytes(path) or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
