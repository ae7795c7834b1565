"""Files that differ between two trees, or a tree and an index, in both versions."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from msgspec import Struct

_ABSENT = "000000"
PLAIN, EXECUTABLE, LINK, REPOSITORY = "100644", "100755", "120000", "160000"
"""Git's modes of files, links and nested repositories."""


class TreeEntry(Struct, frozen=True):
    """A file in a tree: git's mode, the id of its content, and unusual permissions in a
    checkpoint. Equality is git's.
    """

    mode: str
    content: str
    permissions: int | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeEntry) and (self.mode, self.content) == (
            other.mode,
            other.content,
        )

    def __hash__(self) -> int:
        return hash((self.mode, self.content))


class Change(Struct, frozen=True):
    """One path before and after; None where it does not exist."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None


def read_raw(text: str) -> Iterator[Change]:
    """Parse git's raw format with `-z`: `:mode mode id id letter`, NUL, path, NUL."""
    fields = text.split("\0")
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        old_mode, new_mode, old_id, new_id, _ = head.removeprefix(":").split(" ")
        before = None if old_mode == _ABSENT else TreeEntry(old_mode, old_id)
        after = None if new_mode == _ABSENT else TreeEntry(new_mode, new_id)
        yield Change(path, before, after)


def diff_contents(change: Change, before: bytes | None, after: bytes | None) -> str:
    """Return a unified diff of one file like `git diff`. None: no file."""
    path = change.path
    head = f"diff --git a/{path} b/{path}\n"
    if change.before is None and change.after is not None:
        head += f"new file mode {change.after.mode}\n"
    elif change.after is None and change.before is not None:
        head += f"deleted file mode {change.before.mode}\n"
    old, new = before or b"", after or b""
    names = (
        "/dev/null" if change.before is None else f"a/{path}",
        "/dev/null" if change.after is None else f"b/{path}",
    )
    if b"\0" in old or b"\0" in new:
        return f"{head}Binary files {names[0]} and {names[1]} differ\n"
    texts = [
        text.decode("utf-8", errors="replace").splitlines(keepends=True)
        for text in (old, new)
    ]
    lines = difflib.unified_diff(texts[0], texts[1], names[0], names[1])
    return head + "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in lines
    )
