"""The change of one file as a diff for the user."""

from difflib import unified_diff
from pathlib import PurePosixPath

from msgspec import Struct

from cdd_agent.files.charsets import NOTHING_DECLARED, Charsets
from cdd_agent.files.text import FileText, decode_versions

LONGEST_DIFF = 200_000
"""In characters."""
LARGEST_COMPARED = 500_000
"""In bytes of either version."""
MOST_LINES = 10_000
"""In lines of either version."""


class FileDiff(Struct, frozen=True):
    """The difference between two versions of a file's text."""

    path: str
    added: int
    """Added lines; 0 if the file is too large to compare."""
    removed: int
    diff: str
    """A unified diff, shortened if very long; or a sentence if the file is too large or
    its text is unchanged.
    """

    @classmethod
    def compare(
        cls,
        path: str,
        before: bytes | None,
        after: bytes | None,
        charsets: Charsets = NOTHING_DECLARED,
    ) -> "FileDiff":
        """None stands for no file."""
        size = max(len(before or b""), len(after or b""))
        too_large = f"{path} has {size:,} bytes, too many to show the difference.\n"
        if size > LARGEST_COMPARED:
            return cls(path, 0, 0, too_large)
        texts = decode_versions(PurePosixPath(path), before, after, charsets)
        old, new = (_split_lines(text) for text in texts)
        if max(len(old), len(new)) > MOST_LINES:
            return cls(path, 0, 0, too_large)
        old_name, new_name = ("/dev/null" if text is None else path for text in texts)
        lines = list(unified_diff(old, new, old_name, new_name, lineterm=""))
        if not lines and before and after and before != after:
            lines = [f"Only the encoding or the line ends of {path} changed."]
        added = sum(line.startswith("+") for line in lines[2:])
        removed = sum(line.startswith("-") for line in lines[2:])
        diff = "".join(f"{line}\n" for line in lines)
        if more := max(len(diff) - LONGEST_DIFF, 0):
            diff = f"{diff[:LONGEST_DIFF]}\n… {more:,} more characters\n"
        return cls(path, added, removed, diff)


def _split_lines(text: FileText | None) -> list[str]:
    return [] if text is None else text.shown.splitlines()


class LeftOut(Struct, frozen=True):
    """A part of the proposal that the user did not accept."""

    path: str
    where: str
    """`lines 12-18` of the old file; empty for the whole file."""
    reason: str = ""

    def __str__(self) -> str:
        place = f"{self.path}, {self.where}" if self.where else self.path
        return f"{place}: {self.reason}" if self.reason else place
