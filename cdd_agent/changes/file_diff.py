"""How one file changed, as people are shown it."""

from difflib import unified_diff

from msgspec import Struct

LONGEST_DIFF = 200_000
"""Characters of a diff that is told."""
_LARGEST_COMPARED = 500_000
_MOST_LINES = 10_000


class FileDiff(Struct, frozen=True):
    """The difference between two states of a file's text."""

    path: str
    added: int
    """Lines; where the file is too large to be compared, 0."""
    removed: int
    diff: str
    """Unified; of a very long one the beginning; of a file that is too large to be
    compared, words that say so.
    """

    @classmethod
    def of(cls, path: str, before: bytes | None, after: bytes | None) -> "FileDiff":
        """None: it was not there, or is not there any more."""
        size = max(len(data or b"") for data in (before, after))
        old, new = (
            (data or b"").decode("utf-8", errors="replace").splitlines()
            for data in (before, after)
        )
        if size > _LARGEST_COMPARED or max(len(old), len(new)) > _MOST_LINES:
            return cls(
                path,
                0,
                0,
                f"{path} has {size:,} bytes, too many to show what is different.\n",
            )
        was, is_now = (
            "/dev/null" if data is None else path for data in (before, after)
        )
        lines = list(unified_diff(old, new, was, is_now, lineterm=""))
        added, removed = (
            sum(line.startswith(sign) for line in lines[2:]) for sign in "+-"
        )
        diff = "".join(f"{line}\n" for line in lines)
        if more := max(len(diff) - LONGEST_DIFF, 0):
            diff = f"{diff[:LONGEST_DIFF]}\n… {more:,} more characters\n"
        return cls(path, added, removed, diff)


class LeftOut(Struct, frozen=True):
    """A part of the proposed changes that the person did not take."""

    path: str
    where: str
    """`lines 12-18` of the file as it was before; empty for all of it."""
    reason: str = ""

    def __str__(self) -> str:
        place = f"{self.path}, {self.where}" if self.where else self.path
        return f"{place}: {self.reason}" if self.reason else place
