"""Shows the net changes of attempts as a unified diff, from the ledger's saved
contents.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from cdd_agent.engine.net_changes import NetChange
from cdd_agent.errors import BadInput
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.read import LARGEST_DECODED
from cdd_agent.files.text import decode_versions
from cdd_agent.git.command import Git
from cdd_agent.git.diff import TreeEntry
from cdd_agent.git.restore import Contents
from cdd_agent.pattern import Pattern
from cdd_agent.refusals.kinds import Refusal

_LONGEST = 2_000_000
"""Characters of a diff. The rest is cut."""
_ONE_SIDED = Pattern(r'^diff --git ("?)([ab])/(.*?)\1 \1\2/\3\1$', re.MULTILINE)
"""git's header for a file that only one folder has."""
_LINK, _EXECUTABLE = "120000", "100755"


async def diff_changes(
    folder: Path,
    changes: Iterable[NetChange],
    contents: Contents,
    charsets: Charsets,
) -> str:
    """Return the diff, shortened if very long. Files with contents on another computer
    are only named. Text is shown as UTF-8. git compares in `folder`. Raises
    `GitUnusable`, or `BadInput` if the disk refuses.
    """
    complete: list[NetChange] = []
    lines: list[str] = []
    for change in changes:
        if _has_both(change, contents):
            complete.append(change)
        else:
            lines.append(
                f"… (the contents of {change.path} are not on this computer)\n"
            )
    missing = "".join(lines)
    if not complete:
        return missing
    try:
        with tempfile.TemporaryDirectory(prefix="diff-", dir=folder) as name:
            place = Path(name)
            for side in ("a", "b"):
                (place / side).mkdir()
            versions = [(place / "a" / one.path, one.before) for one in complete]
            versions += [(place / "b" / one.path, one.after) for one in complete]
            # links last: a ledger from another computer may name a file behind one, and
            # nothing must be written through it
            for path, entry in sorted(versions, key=_is_link):
                _write(path, entry, contents)
            for one in complete:
                _write_as_utf8(PurePosixPath(one.path), place, charsets)
            result = await _git(place)(
                "diff",
                "--no-index",
                "--no-prefix",
                "--find-renames",
                "--binary",
                "--no-ext-diff",
                "--no-textconv",
                "a",
                "b",
                most=_LONGEST,
                codes=(0, 1),
            )
    except OSError as error:
        raise BadInput(
            f"{folder} could not be written: {error.strerror or error}",
            refusal=Refusal.DISK,
        ) from error
    more = "\n… (more was changed)\n" if result.cut else ""
    text = _ONE_SIDED.sub(r"diff --git \1a/\3\1 \1b/\3\1", result.stdout)
    return text + more + missing


def _has_both(change: NetChange, contents: Contents) -> bool:
    entries = (change.before, change.after)
    return all(entry is None or entry.content in contents.places for entry in entries)


def _is_link(version: tuple[Path, TreeEntry | None]) -> bool:
    entry = version[1]
    return entry is not None and entry.mode == _LINK


def _git(place: Path) -> Git:
    return Git(place, {"GIT_DIR": str(place / "none")})


def _write_as_utf8(path: PurePosixPath, folder: Path, charsets: Charsets) -> None:
    """Decode both versions where git would show wrong characters or none. A change of
    encoding alone stays binary.
    """
    places = [folder / side / path for side in ("a", "b")]
    data = [_read_small(place) for place in places]
    texts = decode_versions(path, data[0], data[1], charsets)
    decoded = [text for text in texts if text is not None]
    if all(text.encoding.is_utf8 for text in decoded):
        return
    is_text = not any(text.is_binary for text in decoded)
    if is_text and len({text.text for text in decoded}) == len(decoded):
        for place, text in zip(places, texts, strict=True):
            if text is not None and not text.encoding.is_utf8:
                place.write_bytes(text.text.encode())


def _read_small(place: Path) -> bytes | None:
    if place.is_symlink() or not place.is_file():
        return None
    return place.read_bytes() if place.stat().st_size <= LARGEST_DECODED else None


def _write(place: Path, entry: TreeEntry | None, contents: Contents) -> None:
    if entry is None:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if entry.mode == _LINK:
        target = b"".join(contents.chunks(entry.content))
        place.symlink_to(os.fsdecode(target))
        return
    with place.open("wb") as file:
        for chunk in contents.chunks(entry.content):
            file.write(chunk)
    place.chmod(0o755 if entry.mode == _EXECUTABLE else 0o644)
