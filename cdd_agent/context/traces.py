"""The places that a failed command's output points at: lines of files, and what it says went wrong."""

import re
from collections.abc import Collection
from typing import NamedTuple

_MOST = 200_000
"""Characters that are looked at, the last ones."""
_FRAME = re.compile(r"(?<![\w./\\@~+-])([\w./\\@~+-]{1,300}\.\w{1,8})(?:\", line |\(|:)(\d{1,7})\b")
_SAYS_WRONG = re.compile(r"error|exception|assert|expected|panic|fatal|fail|undefined|cannot|not found", re.IGNORECASE)
_LINES, _LONGEST = 20, 300
"""Lines that say what went wrong, the last ones; and characters of each."""


class Frame(NamedTuple):
    path: str
    line: int


def frames(output: str, paths: Collection[str]) -> list[Frame]:
    """Lines of these files that an output names, the last ones first: there it went wrong, in most languages."""
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    found: dict[Frame, None] = {}
    for match in _FRAME.finditer(output[-_MOST:]):
        said = match[1].replace("\\", "/")
        alike = [path for path in by_name.get(said.rpartition("/")[2], ()) if f"/{said}".endswith(f"/{path}")]
        if not alike:  # said from a folder inside the project
            inner = said.removeprefix("./")
            alike = [path for path in by_name.get(said.rpartition("/")[2], ()) if f"/{path}".endswith(f"/{inner}")]
        if alike:
            frame = Frame(max(alike, key=len), int(match[2]))
            found.pop(frame, None)
            found[frame] = None
    return list(found)[::-1]


def error_lines(output: str) -> list[str]:
    lines = [line.strip()[:_LONGEST] for line in output[-_MOST:].split("\n") if _SAYS_WRONG.search(line[:_LONGEST])]
    return list(dict.fromkeys(lines))[-_LINES:]
