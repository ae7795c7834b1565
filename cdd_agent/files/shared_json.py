"""A small file of JSON that several processes change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cdd_agent.files.atomic import read_bytes, write_atomic


@contextmanager
def json_changed(path: Path) -> Iterator[dict[str, Any]]:
    """What is made of the value in the block is written, if it is left without an error; nobody else changes it
    meanwhile. Raises `BadInput` when the disk refuses."""
    from cdd_agent.files.file_lock import FileLock

    with FileLock(path.with_suffix(".lock")):
        value = json_read(path)
        before = json.dumps(value)
        yield value
        if (after := json.dumps(value)) != before:
            write_atomic(path, after.encode())


def json_read(path: Path) -> dict[str, Any]:
    """A file that is not there, or is damaged, is an empty one."""
    try:
        value = json.loads(read_bytes(path) or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
