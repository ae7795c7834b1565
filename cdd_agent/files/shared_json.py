"""A small file of JSON that several processes change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import read_bytes, write_atomic

_PATIENCE = 30.0
"""Seconds; a change takes a thousandth of one."""


@contextmanager
def json_changed(path: Path) -> Iterator[dict[str, Any]]:
    """What is made of the value in the block is written, if it is left without an
    error; nobody else changes it meanwhile. Raises `BadInput` when the disk refuses, or
    somebody else keeps the file for long.
    """
    lock = FileLock(path.with_suffix(".lock"), timeout=_PATIENCE)
    try:
        lock.acquire()
    except Timeout as error:
        raise BadInput(
            f"{path} has been kept by another process for {_PATIENCE:g} s",
            hint="Has a cdd been stopped by Ctrl+Z? Let it go on, or end it.",
        ) from error
    except (OSError, NotImplementedError) as error:
        raise BadInput(
            f"{lock.lock_file} could not be locked:"
            f" {getattr(error, 'strerror', None) or error}"
        ) from error
    try:
        value = json_read(path)
        before = json.dumps(value)
        yield value
        if (after := json.dumps(value)) != before:
            write_atomic(path, after.encode())
    finally:
        lock.release()


def json_read(path: Path) -> dict[str, Any]:
    """A file that is not there, or is damaged, is an empty one."""
    try:
        value = json.loads(read_bytes(path) or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
