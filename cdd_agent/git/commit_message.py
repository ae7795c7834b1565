"""A commit message in which no part can be mistaken for another.

Subject and body may come from a model. The trailer is cdd's: it identifies the commit.
"""

import re

from msgspec import Struct

from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import CONTROL_CHARACTERS

_SUBJECT = 72
"""Characters of a subject that every tool shows in full."""
_UNSEEN = Pattern(f"[{CONTROL_CHARACTERS}]")
_TRAILER = Pattern(r"[A-Za-z][A-Za-z-]*: \S.*")
_MEANT_FOR_GIT = Pattern(
    r"[\w-]+-by[ \t]*:|---|#|>*From |diff -|Index: ", re.IGNORECASE
)
"""Beginnings of a line that git or a git host would read as a signature, a comment, or
the start of a patch.
"""


class CommitMessage(Struct, frozen=True):
    """A subject, a body of any length, and a trailer such as `Cdd-Step:
    feature-user-auth/2`.
    """

    subject: str
    body: str
    trailer: str

    def __post_init__(self) -> None:
        if not _TRAILER.fullmatch(_one_line(self.trailer)):
            raise ValueError(
                f"a trailer is a key, a colon and a value, not {self.trailer!r}"
            )

    @property
    def first_line(self) -> str:
        """The subject as one line that is never empty and never special to git."""
        line = _one_line(self.subject) or "(no title)"
        if self._is_more_than_text(line):
            line = f"“{line}”"
        return line if len(line) <= _SUBJECT else f"{line[: _SUBJECT - 1].rstrip()}…"

    @property
    def text(self) -> str:
        """The whole message. The trailer is its last paragraph, and no other line looks
        like it.
        """
        lines = [_UNSEEN.sub("", line).rstrip() for line in self.body.splitlines()]
        lines = [
            f"    {line}" if self._is_more_than_text(line) else line for line in lines
        ]
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
        return (
            "\n\n".join(filter(None, (self.first_line, body, _one_line(self.trailer))))
            + "\n"
        )

    def _is_more_than_text(self, line: str) -> bool:
        key, _, _ = _one_line(self.trailer).partition(":")
        return bool(
            _MEANT_FOR_GIT.match(line) or re.match(rf"{key}\s*:", line, re.IGNORECASE)
        )


def carries(text: str, trailer: str) -> bool:
    """True if a trailer in the last paragraph is this one."""
    _, gap, last = text.strip("\n").rpartition("\n\n")
    return bool(gap) and _one_line(trailer) in last.split("\n")


def carries_prefix(text: str, prefix: str) -> bool:
    """True if a trailer in the last paragraph begins with `prefix`."""
    _, gap, last = text.strip("\n").rpartition("\n\n")
    return bool(gap) and any(line.startswith(prefix) for line in last.split("\n"))


def _one_line(text: str) -> str:
    return " ".join(_UNSEEN.sub("", " ".join(text.split())).split())
