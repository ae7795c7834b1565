from __future__ import annotations

import tempfile
from pathlib import Path

from cdd_agent.errors import BadInput
from cdd_agent.git.command import Git
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import waited_for

LARGEST_MERGED = 8 << 20
"""Maximum bytes of each version. A larger file is left unchanged."""


def merge_texts(current: bytes, base: bytes, other: bytes) -> bytes | None:
    """Return `current` with the changes from `base` to `other`. Keeps bytes and line
    ends.

    None if both changed the same lines, if a version is not text or too long, or if git
    cannot start. Raises `BadInput` if the temporary folder cannot be written.
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
    # there is no repository here; do not search the folders above for one
    git = Git(folder, {"GIT_DIR": str(folder / "none")})
    result = waited_for(git.run("merge-file", "--quiet", *names))
    # the exit code is the number of conflicts, or 255 for a binary file
    if result.return_code or result.timed_out:
        return None
    return (folder / "current").read_bytes()
