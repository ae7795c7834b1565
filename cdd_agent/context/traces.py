"""The places that a failed command's output points at: lines of files, and what it says
went wrong.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

_MOST = 200_000
"""Characters that are looked at, the last ones."""
_FRAME = re.compile(
    r"File \"(?P<file>[^\"\n]{1,400})\", line (?P<line>\d{1,7})"
    r"|(?<![\w./\\@~+-])(?P<path>[\w./\\@~+-]{1,300}\.\w{1,8})(?:\(|:)(?P<at>\d{1,7})\b"
)
_MOST_FRAMES = 50
_SAYS_WRONG = re.compile(
    r"error|exception|assert|expected|panic|fatal|fail|undefined|cannot|not found",
    re.IGNORECASE,
)
_LINES, _LONGEST = 20, 300
"""Lines that say what went wrong, the last ones; and characters of each."""


class Frame(NamedTuple):
    path: str
    line: int


def frames(output: str, paths: Collection[str], root: Path) -> list[Frame]:
    """Lines of these files of a project that an output names, the last ones first:
    there it went wrong, in most languages.
    """
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    tops = [
        f"/{top.relative_to(top.anchor).as_posix()}"
        for top in (root.absolute(), root.resolve())
    ]
    found: dict[Frame, None] = {}
    meant: dict[str, str | None] = {}
    for match in reversed(list(_FRAME.finditer(output[-_MOST:]))):
        said, line = (
            (match["file"] or match["path"]).replace("\\", "/"),
            int(match["line"] or match["at"]),
        )
        if said not in meant:
            named = by_name.get(said.rpartition("/")[2], ())
            meant[said] = max(
                (path for path in named if _means(said, path, tops)),
                key=len,
                default=None,
            )
        if (file := meant[said]) and line:
            found[Frame(file, line)] = None
        if len(found) == _MOST_FRAMES:
            break
    return list(found)


def _means(said: str, path: str, tops: Collection[str]) -> bool:
    """Whether a file as it was said can be this one of a project."""
    if said.startswith("/") or said[1:3] == ":/":
        whole = (
            f"/{said.removeprefix(said[:2] if said[1:3] == ':/' else '').lstrip('/')}"
        )
        return any(whole == f"{top.rstrip('/')}/{path}" for top in tops)
    # said from a folder inside
    if f"/{path}".endswith(f"/{re.sub(r'^(?:[.][.]?/)+', '', said)}"):
        return True
    # said from one outside, or with the address of a module
    around = said.removesuffix(path).rstrip("/")
    is_address = "." in around.partition("/")[0].strip(".")
    return f"/{said}".endswith(f"/{path}") and (
        is_address or any(f"{top}/".endswith(f"/{around}/") for top in tops)
    )


def error_lines(output: str) -> list[str]:
    lines = [
        line.strip()[:_LONGEST]
        for line in output[-_MOST:].split("\n")
        if _SAYS_WRONG.search(line[:_LONGEST])
    ]
    return list(dict.fromkeys(lines))[-_LINES:]
