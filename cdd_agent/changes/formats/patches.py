"""Edits from patches between `*** Begin Patch` and `*** End Patch`.

The format is that of the `apply_patch` tool
(https://github.com/openai/codex/blob/main/codex-rs/apply-patch): `*** Update File:`
with hunks, `*** Add File:`, `*** Delete File:`, `*** Move to:`. A hunk's `@@` line may
name a line of the file: the hunk then belongs at the first place after it.
"""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct, field

from cdd_agent.changes.formats.diffs import replace_lines
from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import (
    Deletion,
    Edit,
    Hint,
    Renaming,
    ReplyRefused,
    WholeFile,
)
from cdd_agent.pattern import Pattern

PATCH_BEGIN, PATCH_END = "*** Begin Patch", "*** End Patch"
_FILE = Pattern(r"^\*\*\* (?P<kind>Update|Add|Delete) File:\s*+(?P<path>.*\S)\s*$")
_FILE_MARK = Pattern(r"^\*\*\* \w+ File:")
_MOVE = Pattern(r"^\*\*\* Move to:\s*+(?P<path>.*\S)\s*$")
_UNNAMED = "does not say what is done to which file."
_NAMES = (
    "Before its lines there is `*** Update File: PATH`, `*** Add File: PATH` or"
    " `*** Delete File: PATH`."
)
_RANGE = Pattern(r"^@@\s*-(?P<line>\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?\s*@@")


def read_patched_file(line: str) -> tuple[str, str] | None:
    """Return the kind (`Update`, `Add`, `Delete`) and the file if the line begins a
    file's part, else None.
    """
    file = _FILE.match(line)
    return (file["kind"], file["path"].strip("`\"'")) if file else None


class Patches(Form):
    """The marks are optional in a code block."""

    kind = "patch"

    def marked(self, lines: Sequence[str], project_names: ProjectNames) -> list[Span]:
        del project_names
        spans: list[Span] = []
        start: int | None = None
        for place, line in enumerate(lines):
            bare = line.strip()
            if bare == PATCH_BEGIN:
                start = place
            elif bare == PATCH_END and start is not None:
                end = place + 1
                read = partial(_read, lines[start:end])
                spans.append(Span(start, end, read, names_files=True, kind=self.kind))
                start = None
        return spans

    def accepts(self, fence: Fence) -> bool:
        if fence.is_file_of_diffs:
            return False
        first = next((line for line in fence.lines if line.strip()), "").strip()
        return first == PATCH_BEGIN or read_patched_file(first) is not None

    def read(self, fence: Fence) -> list[Edit]:
        return _read(fence.lines)

    def refuse_loose(self, line: str, number: int) -> None:
        if line.strip() == PATCH_BEGIN:
            raise ReplyRefused(
                "The patch is never closed with `*** End Patch`: the reply seems to be"
                " cut."
            )
        if read_patched_file(line):
            raise ReplyRefused(
                f"Line {number} of the reply is in no patch.",
                hint="Begin a patch with `*** Begin Patch`.",
            )


def _read(lines: Sequence[str], path: str | None = None) -> list[Edit]:
    """`path` is unused, because a patch names its files. Raises `ReplyRefused`."""
    del path
    edits: list[Edit] = []
    for part in _split_files(_without_indent(lines)):
        edits += _edit_file(part)
    return edits


def _without_indent(lines: Sequence[str]) -> list[str]:
    """Remove the indentation shared by all `***` lines."""
    marks = [line for line in lines if line.lstrip().startswith("*** ")]
    indent = min((len(line) - len(line.lstrip()) for line in marks), default=0)
    return [line if line[:indent].strip() else line[indent:] for line in lines]


class _FilePart(Struct, frozen=True):
    kind: str
    """`Update`, `Add` or `Delete`."""
    path: str
    lines: list[str] = field(default_factory=list)


def _split_files(lines: Sequence[str]) -> list[_FilePart]:
    parts: list[_FilePart] = []
    for line in lines:
        if file := read_patched_file(line):
            parts.append(_FilePart(*file))
            continue
        if line.strip() in (PATCH_BEGIN, PATCH_END, "*** End of File"):
            continue
        is_unnamed = not parts and line.startswith(("@@", "+", "-"))
        if is_unnamed or _FILE_MARK.match(line):
            raise ReplyRefused(
                f"The patch's line {line.strip()[:80]!r} {_UNNAMED}", hint=_NAMES
            )
        if parts:
            parts[-1].lines.append(line)
    if not parts:
        raise ReplyRefused(f"The patch {_UNNAMED}", hint=_NAMES)
    return parts


def _edit_file(part: _FilePart) -> list[Edit]:
    path, body = part.path, list(part.lines)
    while body and not body[-1]:
        body.pop()
    if part.kind == "Delete":
        return [Deletion(path)]
    if part.kind == "Add":
        return [_create_file(path, body)]
    edits: list[Edit] = []
    if body and (move := _MOVE.match(body[0])):
        edits.append(Renaming(path, move["path"]))
        path, body = move["path"], body[1:]
    return [*edits, *_read_hunks(path, body)]


def _create_file(path: str, lines: list[str]) -> WholeFile:
    if any(line and not line.startswith("+") for line in lines):
        raise ReplyRefused(
            f"In `*** Add File: {path}` every line begins with `+`.", path=path
        )
    content = "".join(f"{line[1:]}\n" for line in lines)
    return WholeFile(path, content, must_be_new=True)


def _read_hunks(path: str, lines: list[str]) -> list[Edit]:
    edits: list[Edit] = []
    number: int | None = None
    names: list[str] = []
    hunk: list[str] = []
    for line in (*lines, "@@"):
        if not line.startswith("@@"):
            hunk.append(line)
            continue
        # adjacent `@@` lines locate one hunk
        if any(hunk):
            edits += replace_lines(path, hunk, Hint(number, tuple(names)))
            number, names = None, []
        hunk = []
        if numbers := _RANGE.match(line):
            number = int(numbers["line"][:9])
        elif name := line[2:].strip().removesuffix("@@").strip():
            names.append(name)
    return edits
