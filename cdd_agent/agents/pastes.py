"""Long pasted texts.

A line of the user that is very long is saved once, in `.cdd/pastes/`. Whatever keeps or
sends the line (the conversation, the history, a run's record, a prompt) has its
beginning, its end and the name of the file. The user can open the file, and the model
reads it with `read_file`.
"""

import contextlib
from hashlib import sha256
from pathlib import Path

from cdd_agent.errors import CddError
from cdd_agent.files.atomic import create_exclusive
from cdd_agent.text.redaction import Redactor

LONGEST = 40_000
"""Characters of a line that is kept and sent whole."""
_HEAD, _TAIL = 4_000, 12_000
"""Characters of a longer line that are shown: the end of a log says more."""
_FOLDER = Path(".cdd") / "pastes"
_MOST = 50
"""Number of texts that are kept. The oldest are deleted."""


def save_long_line(root: Path, line: str, redactor: Redactor) -> str:
    """Save a line that is too long, and return what replaces it. Other lines are
    returned unchanged, and so are all lines outside a project or on a full disk.
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
