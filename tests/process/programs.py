"""Programs that tests make and start."""

import os
from pathlib import Path

import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="a POSIX shell and its programs")


def script(file: Path, body: str) -> Path:
    """A program that exists."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file
