"""Long pasted texts.

A very long line is saved once in `.cdd/pastes/`. The conversation, the history, the
run's record and the prompt contain only its beginning, its end and the file's name. The
model reads the file with `read_file`.
"""

import contextlib
from hashlib import sha256
from pathlib import Path

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import create_exclusive
from cdd_agent.text.redaction import Redactor

LONGEST = 40_000
"""Maximum characters of a line that is kept and sent whole."""
_HEAD, _TAIL = 4_000, 12_000
"""Shown characters of a longer line: the end of a log says more."""
_FOLDER = Path(".cdd") / "pastes"
_MOST = 50


def save_long_line(root: Path, line: str, redactor: Redactor) -> str:
    """Save a line that is too long, and return its replacement. Return short lines
    unchanged, and any line outside a project or if the disk refuses.
    """
    if len(line) <= LONGEST or not (root / ".cdd").is_dir():
        return line
    text = redactor.redact(line)
    data = text.encode(errors="replace")
    path = _FOLDER / f"{sha256(data).hexdigest()[:16]}.txt"
    try:
        _save(root / path, data)
    except (CddError, OSError):
        return line
    return _shorten(text, path.as_posix())


def _save(place: Path, data: bytes) -> None:
    with contextlib.suppress(FileExistsError):
        create_exclusive(
            place.parent / ".gitignore", b"# Pasted texts stay on this machine.\n*\n"
        )
    try:
        create_exclusive(place, data, 0o600)
    except FileExistsError:
        place.touch()
    saved = sorted(place.parent.glob("*.txt"), key=lambda file: file.stat().st_mtime_ns)
    for old in saved[:-_MOST]:
        old.unlink(missing_ok=True)


def _shorten(text: str, path: str) -> str:
    head, tail = text[:_HEAD], text[-_TAIL:]
    if "\n" in head:
        head = head[: head.rindex("\n")]
    if "\n" in tail[:_HEAD]:
        tail = tail[tail.index("\n") + 1 :]
    count = len(text) - len(head) - len(tail)
    first = head.count("\n") + 2
    last = text.count("\n") - tail.count("\n")
    what = f"{count:,} characters are left out here"
    if first <= last:
        what = f"lines {first:,} to {last:,} are left out here"
    return (
        f"{head}\n… ({what}. The whole text of {len(text):,} characters is in {path},"
        f" and `read_file` reads its lines.) …\n{tail}"
    )
