"""Three-way merges of single files, as `git merge-file` makes them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cdd_agent.errors import BadInput
from cdd_agent.git.command import Git
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import waited_for

LARGEST_MERGED = 8 << 20
"""Bytes of a version. A larger file is left unchanged."""


def merge_texts(current: bytes, base: bytes, other: bytes) -> bytes | None:
    """Return `current` with the changes from `base` to `other`.

    None if both changed the same lines, if one of the three is not text or is too long,
    or if git cannot be started. Bytes and line ends are kept. Raises `BadInput` if the
    temporary folder cannot be written.
    """
    if current in (base, other) or base == other:
        return other if current == base else current
    versions = (current, base, other)
    if any(b"\0" in text or len(text) > LARGEST_MERGED for text in versions):
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="cdd-merge-") as name:
            return _merge_files(Path(name), versions)
    except OSError as error:
        raise BadInput(
            f"Files cannot be merged: {error.strerror or error}", refusal=Refusal.DISK
        ) from (error)


def _merge_files(folder: Path, versions: tuple[bytes, bytes, bytes]) -> bytes | None:
    names = ("current", "base", "other")
    for name, text in zip(names, versions, strict=True):
        (folder / name).write_bytes(text)
    # There is no repository here, and none of the folders above is looked for.
    git = Git(folder, {"GIT_DIR": str(folder / "none")})
    result = waited_for(git.run("merge-file", "--quiet", *names))
    # Git ends with the number of conflicts, or with 255 for a binary file.
    if result.return_code or result.timed_out:
        return None
    return (folder / "current").read_bytes()
