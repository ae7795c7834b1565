"""Edits by the model, programs and the user, and what a diff shows of them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from tests.engine.histories_actions import (
    Op,
)
from tests.engine.histories_tree import (
    Conflict,
    Entry,
)


@dataclass(frozen=True)
class Give:
    """A whole file."""

    path: str
    text: str
    is_new: bool

    def result(self, now: Entry | None) -> Entry | None:
        """Raises `Conflict` where it does not fit."""
        if self.is_new and now is not None:
            raise Conflict
        return Entry(self.text.encode(), now.mode if now else 0o644)


@dataclass(frozen=True)
class Replace:
    """One line of a file."""

    path: str
    find: str
    new: str

    def result(self, now: Entry | None) -> Entry | None:
        """Raises `Conflict` where it does not fit."""
        find = self.find.encode()
        if now is None or now.mode is None or now.data.count(find) != 1:
            raise Conflict
        return Entry(now.data.replace(find, self.new.encode()), now.mode)


@dataclass(frozen=True)
class Delete:
    path: str

    def result(self, now: Entry | None) -> Entry | None:
        """A file that is gone already needs no more."""
        del now
        return None


ModelEdit = Give | Replace | Delete


def reply_text(edits: Sequence[ModelEdit]) -> str:
    parts = ["Here it is."]
    for edit in edits:
        match edit:
            case Give(path, text, is_new=True):
                lines = "".join(f"+{line}\n" for line in text.splitlines())
                parts.append(_patch(f"*** Add File: {path}\n{lines}"))
            case Give(path, text):
                parts.append(f"```text:{path}\n{text}```")
            case Replace(path, find, new):
                parts.append(
                    f"{path}\n<<<<<<< SEARCH\n{find}\n=======\n{new}\n>>>>>>> REPLACE"
                )
            case Delete(path):
                parts.append(_patch(f"*** Delete File: {path}\n"))
    return "\n\n".join(parts)


def _patch(body: str) -> str:
    return f"*** Begin Patch\n{body}*** End Patch"


def edited(op: Op, now: Entry | None, text: str) -> Entry | None:
    """An entry after a change by a program or the user."""
    line = f"{text} changed".encode()
    if op in (Op.DELETE, Op.DELETE_FOLDER):
        return None
    if op is Op.LINK:
        return Entry(f"to-{text}".encode(), None)
    if op is Op.BINARY:
        return Entry(b"\0" + line, now.mode or 0o644 if now else 0o644)
    if now is None or not now.is_text:
        return Entry(line + b"\n", now.mode or 0o644 if now else 0o644)
    if op is Op.CHMOD:
        modes = (0o755, 0o644, 0o600, 0o640)
        return Entry(now.data, modes[(modes.index(now.mode or 0o644) + 1) % 4])
    if op is Op.FORMAT:
        lines = [each.rstrip(b"\r") + b" ;" for each in now.data.split(b"\n")[:-1]]
        return Entry(b"".join(each + b"\n" for each in lines), now.mode)
    lines = now.data.splitlines(keepends=True)
    if op is Op.WHOLE or not lines:
        return Entry(line + b"\n" + line + b" too\n", now.mode)
    place = min(1, len(lines) - 1) if op is Op.TOP else max(0, len(lines) - 2)
    end = b"\r\n" if lines[place].endswith(b"\r\n") else b"\n"
    lines[place] = line + end
    return Entry(b"".join(lines), now.mode)


def named_in_diff(text: str) -> set[str]:
    """The paths that a diff names."""
    found = set[str]()
    for line in text.splitlines():
        if not line.startswith("diff --git "):
            continue
        rest = line.removeprefix("diff --git ")
        if rest.startswith('"'):
            first = rest[1:].partition('" ')[0]
            found.add(_unquoted(first).removeprefix("a/"))
        else:
            found.add(rest[: len(rest) // 2].removeprefix("a/"))
    return found


def _unquoted(text: str) -> str:
    data = text.encode().decode("unicode_escape").encode("latin-1")
    return os.fsdecode(data)


def git_sees(one: Entry | None, other: Entry | None) -> bool:
    """True if git tells the two apart: of permissions it knows one bit."""
    if one is None or other is None or None in (one.mode, other.mode):
        return one != other
    assert one.mode is not None
    assert other.mode is not None
    return one.data != other.data or (one.mode ^ other.mode) & 0o100 != 0


def show_entry(entry: Entry | None) -> str:
    if entry is None:
        return "absent"
    if entry.mode is None:
        return f"a link to {os.fsdecode(entry.data)}"
    data = entry.data
    shown = repr(data if len(data) < 200 else data[:90] + b" ... " + data[-90:])
    return f"{entry.mode:o} {shown}"
