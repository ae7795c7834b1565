"""Patches between `*** Begin Patch` and `*** End Patch`, as edits.

The format is that of the `apply_patch` tool
(https://github.com/openai/codex/blob/main/codex-rs/apply-patch): `*** Update File:`
with hunks below `@@` lines that may name a line above them, `*** Add File:`,
`*** Delete File:`, `*** Move to:`. Where a hunk names a line, the first place after it
is meant.
"""

import re
from collections.abc import Sequence
from functools import partial

from cdd_agent.changes.formats.diffs import replacement
from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.known import KnownNames
from cdd_agent.changes.model import (
    Deletion,
    Edit,
    Hint,
    Renaming,
    ReplyRefused,
    WholeFile,
)

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_FILE = re.compile(r"^\*\*\* (?P<kind>Update|Add|Delete) File:\s*+(?P<path>.*\S)\s*$")
_OTHER_FILE = re.compile(r"^\*\*\* \w+ File:")
_MOVE = re.compile(r"^\*\*\* Move to:\s*+(?P<path>.*\S)\s*$")
_UNNAMED = "does not say what is done to which file."
_NAMES = (
    "Before its lines there is `*** Update File: PATH`, `*** Add File: PATH` or"
    " `*** Delete File: PATH`."
)
_RANGE = re.compile(r"^@@\s*-(?P<line>\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?\s*@@")


class Patches(Form):
    """Between their marks wherever they stand, and in a code block without these."""

    kind = "patch"

    def marked(self, lines: Sequence[str], known: KnownNames) -> list[Span]:
        del known
        spans: list[Span] = []
        start: int | None = None
        for place, line in enumerate(lines):
            bare = line.strip()
            if bare == _BEGIN:
                start = place
            elif bare == _END and start is not None:
                spans.append(
                    Span(
                        start,
                        place + 1,
                        partial(_read, lines[start : place + 1]),
                        names_files=True,
                        kind=self.kind,
                    )
                )
                start = None
        return spans

    def takes(self, fence: Fence) -> bool:
        """One that begins as a patch, or as a file's part of one."""
        first = next((line for line in fence.lines if line.strip()), "").strip()
        return not fence.is_file_of_diffs and (
            first == _BEGIN or _FILE.match(first) is not None
        )

    def read(self, fence: Fence) -> list[Edit]:
        return _read(fence.lines)

    def refuse_loose(self, line: str, number: int) -> None:
        if line.strip() == _BEGIN:
            raise ReplyRefused(
                "The patch is never closed with `*** End Patch`: the reply seems to be"
                " cut."
            )
        if _FILE.match(line):
            raise ReplyRefused(
                f"Line {number} of the reply is in no patch.",
                hint="Begin a patch with `*** Begin Patch`.",
            )


def _read(lines: Sequence[str], path: str | None = None) -> list[Edit]:
    """The edits of a patch, which names its files itself. Raises `ReplyRefused`."""
    del path
    indent = min(
        (
            len(line) - len(line.lstrip())
            for line in lines
            if line.lstrip().startswith("*** ")
        ),
        default=0,
    )
    files: list[tuple[str, str, list[str]]] = []
    for line in (
        line[indent:] if not line[:indent].strip() else line for line in lines
    ):
        if file := _FILE.match(line):
            files.append((file["kind"], file["path"].strip("`\"'"), []))
        elif line.strip() not in (_BEGIN, _END, "*** End of File"):
            if _OTHER_FILE.match(line) or (
                not files and line.startswith(("@@", "+", "-"))
            ):
                raise ReplyRefused(
                    f"The patch's line {line.strip()[:80]!r} {_UNNAMED}", hint=_NAMES
                )
            if files:
                files[-1][2].append(line)
    if not files:
        raise ReplyRefused(f"The patch {_UNNAMED}", hint=_NAMES)
    return [edit for kind, name, body in files for edit in _edits(kind, name, body)]


def _edits(kind: str, path: str, body: list[str]) -> list[Edit]:
    while body and not body[-1]:
        body.pop()
    if kind == "Delete":
        return [Deletion(path)]
    if kind == "Add":
        if any(line and not line.startswith("+") for line in body):
            raise ReplyRefused(
                f"In `*** Add File: {path}` every line begins with `+`.", path=path
            )
        return [
            WholeFile(path, "".join(line[1:] + "\n" for line in body), must_be_new=True)
        ]
    edits: list[Edit] = []
    if body and (move := _MOVE.match(body[0])):
        edits.append(Renaming(path, move["path"]))
        path, body = move["path"], body[1:]
    number: int | None = None
    names: list[str] = []
    hunk: list[str] = []
    for line in (*body, "@@"):
        if not line.startswith("@@"):
            hunk.append(line)
            continue
        if any(hunk):
            edits += replacement(path, hunk, Hint(number, tuple(names)))
            number, names = None, []
        hunk = []
        if numbers := _RANGE.match(line):
            number = int(numbers["line"][:9])
        elif name := line[2:].strip().removesuffix("@@").strip():
            names.append(name)
    return edits
