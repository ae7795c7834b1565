"""Find the places that a failed command's output names: lines of files, and error
messages.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from cdd_agent.pattern import Pattern

_MOST = 200_000
"""Characters at the end of an output to read."""
_FRAME = Pattern(
    r"File \"(?P<file>[^\"\n]{1,400})\", line (?P<line>\d{1,7})"
    r"|(?<![\w./\\@~+-])(?P<path>[\w./\\@~+-]{1,300}\.\w{1,8})(?:\(|:)(?P<at>\d{1,7})\b"
)
_MOST_FRAMES = 50
_ERROR = Pattern(
    r"error|exception|assert|expected|panic|fatal|fail|undefined|cannot|not found",
    re.IGNORECASE,
)
_MOST_ERRORS = 20
"""Number of last lines about errors."""
_LONGEST = 300
"""Characters of such a line."""


class Frame(NamedTuple):
    path: str
    line: int


def frames(output: str, paths: Collection[str], root: Path) -> list[Frame]:
    """Return the lines of these files that an output names. The last come first,
    because most languages name the fault there.
    """
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    tops = []
    for top in (root.absolute(), root.resolve()):
        tops.append(f"/{top.relative_to(top.anchor).as_posix()}")
    ordered_frames: dict[Frame, None] = {}
    path_by_name: dict[str, str] = {}
    for match in reversed(list(_FRAME.finditer(output[-_MOST:]))):
        name = (match["file"] or match["path"]).replace("\\", "/")
        line = int(match["line"] or match["at"])
        if name not in path_by_name:
            same_name = by_name.get(name.rpartition("/")[2], ())
            candidates = [path for path in same_name if _may_mean(name, path, tops)]
            path_by_name[name] = max(candidates, key=len, default="")
        if path_by_name[name] and line:
            ordered_frames[Frame(path_by_name[name], line)] = None
        if len(ordered_frames) == _MOST_FRAMES:
            break
    return list(ordered_frames)


def _may_mean(name: str, path: str, tops: Collection[str]) -> bool:
    """True if a name in an output may mean this project file. `tops` are the project's
    absolute paths.
    """
    has_drive = name[1:3] == ":/"
    if name.startswith("/") or has_drive:
        absolute = name[2:] if has_drive else name
        absolute = f"/{absolute.lstrip('/')}"
        return any(absolute == f"{top.rstrip('/')}/{path}" for top in tops)
    # relative to a folder of the project
    from_inside = re.sub(r"^(?:[.][.]?/)+", "", name)
    if f"/{path}".endswith(f"/{from_inside}"):
        return True
    if not f"/{name}".endswith(f"/{path}"):
        return False
    # relative to a folder outside, or with a module's address
    around = name.removesuffix(path).rstrip("/")
    if "." in around.partition("/")[0].strip("."):
        return True
    return any(f"{top}/".endswith(f"/{around}/") for top in tops)


def error_lines(output: str) -> list[str]:
    lines: dict[str, None] = {}
    for line in output[-_MOST:].split("\n"):
        if _ERROR.search(line[:_LONGEST]):
            lines[line.strip()[:_LONGEST]] = None
    return list(lines)[-_MOST_ERRORS:]
