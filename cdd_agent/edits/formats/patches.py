"""Patches between `*** Begin Patch` and `*** End Patch`, as edits.

The format is that of the `apply_patch` tool (https://github.com/openai/codex/blob/main/codex-rs/apply-patch):
`*** Update File:` with hunks below `@@` lines that may name a line above them, `*** Add File:`, `*** Delete File:`,
`*** Move to:`. Where a hunk names a line, the first place after it is meant.
"""

import re
from collections.abc import Iterator, Sequence

from cdd_agent.edits.formats.diffs import replacement
from cdd_agent.edits.model import Deletion, Edit, Hint, NewFile, Renaming, ReplyRefused

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_FILE = re.compile(r"^\*\*\* (?P<kind>Update|Add|Delete) File:\s*+(?P<path>.*\S)\s*$")
_OTHER_FILE = re.compile(r"^\*\*\* \w+ File:")
_MOVE = re.compile(r"^\*\*\* Move to:\s*+(?P<path>.*\S)\s*$")
_RANGE = re.compile(r"^@@\s*-(?P<line>\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?\s*@@")


def find_patches(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Where whole patches stand, as first line and the one after the last."""
    found: list[tuple[int, int]] = []
    start: int | None = None
    for place, line in enumerate(lines):
        bare = line.strip()
        if bare == _BEGIN:
            start = place
        elif bare == _END and start is not None:
            found.append((start, place + 1))
            start = None
    return found


def is_patch(lines: Sequence[str]) -> bool:
    """Whether a text begins as a patch, or as a file's part of one."""
    first = next((line for line in lines if line.strip()), "").strip()
    return first == _BEGIN or _FILE.match(first) is not None


def begins_patch(line: str) -> bool:
    return line.strip() == _BEGIN


def read_patch(lines: Sequence[str]) -> list[Edit]:
    """The edits of a patch. Raises `ReplyRefused`."""
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.lstrip().startswith("*** ")), default=0)
    lines = [line[indent:] if not line[:indent].strip() else line for line in lines]
    files = list(_files(lines))
    if not files:
        raise _unnamed("The patch")
    return [edit for kind, path, body in files for edit in _edits(kind, path, body)]


def names_file(line: str) -> bool:
    """Whether a line is the head of a file in a patch."""
    return _FILE.match(line) is not None


def _unnamed(what: str) -> ReplyRefused:
    return ReplyRefused(
        f"{what} does not say what is done to which file.",
        hint="Before its lines there is `*** Update File: PATH`, `*** Add File: PATH` or `*** Delete File: PATH`.",
    )


def _files(lines: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    kind, path = "", ""
    body: list[str] = []
    for line in lines:
        if file := _FILE.match(line):
            if kind:
                yield kind, path, body
            kind, path, body = file["kind"], file["path"].strip("`\"'"), []
        elif line.strip() not in (_BEGIN, _END, "*** End of File"):
            if _OTHER_FILE.match(line) or (not kind and line.startswith(("@@", "+", "-"))):
                raise _unnamed(f"The patch's line {line.strip()[:80]!r}")
            body.append(line)
    if kind:
        yield kind, path, body


def _edits(kind: str, path: str, body: list[str]) -> list[Edit]:
    while body and not body[-1]:
        body.pop()
    if kind == "Delete":
        return [Deletion(path)]
    if kind == "Add":
        if any(line and not line.startswith("+") for line in body):
            raise ReplyRefused(f"In `*** Add File: {path}` every line begins with `+`.", path=path)
        return [NewFile(path, "".join(line[1:] + "\n" for line in body))]
    edits: list[Edit] = []
    if body and (move := _MOVE.match(body[0])):
        edits.append(Renaming(path, move["path"]))
        path, body = move["path"], body[1:]
    for hint, hunk in _hunks(body):
        edits += replacement(path, hunk, hint)
    return edits


def _hunks(lines: Sequence[str]) -> Iterator[tuple[Hint, list[str]]]:
    number: int | None = None
    names: list[str] = []
    hunk: list[str] = []
    for line in lines:
        if not line.startswith("@@"):
            hunk.append(line)
            continue
        if any(hunk):
            yield Hint(number, tuple(names)), hunk
            number, names = None, []
        hunk = []
        if numbers := _RANGE.match(line):
            number = int(numbers["line"][:9])
        elif name := line[2:].strip().removesuffix("@@").strip():
            names.append(name)
    if any(hunk):
        while not hunk[-1]:
            hunk.pop()
        yield Hint(number, tuple(names)), hunk
