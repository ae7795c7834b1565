"""Which files differ between two trees, or a tree and an index, and what each was and
is.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

_ABSENT = "000000"


class TreeEntry(Struct, frozen=True):
    """A file in a tree: git's mode, the id of its content, and, in a checkpoint,
    permissions where they are unusual.

    Two are equal when git would say so.
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
    """One path before and after; None where nothing is there."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None


def read_raw(text: str) -> Iterator[Change]:
    """Git's raw format, as `-z` ends it: `:mode mode id id letter`, NUL, path, NUL."""
    fields = text.split("\0")
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        was, now, was_id, now_id, _ = head.removeprefix(":").split(" ")
        before = None if was == _ABSENT else TreeEntry(was, was_id)
        yield Change(path, before, None if now == _ABSENT else TreeEntry(now, now_id))
