"""A model's reply as text → the files it gives.

The format: a fenced code block whose info string is `language:path` holds that file, whole. Fences are found by
CommonMark's rules (https://spec.commonmark.org/0.31.2/#fenced-code-blocks); a fence without a path is explanation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from cdd_agent.errors import StepFailed

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_INFO = re.compile(r"^(?P<language>[\w+#.-]*):(?P<path>\S.*)$")


class ReplyRefused(StepFailed):
    """A reply that must not be applied: nothing was written.

    `unseen` are paths whose present content the model has to be shown before it may replace them.
    """

    def __init__(self, message: str, *, hint: str = "", unseen: frozenset[str] = frozenset()) -> None:
        super().__init__(message, hint=hint)
        self.unseen = unseen


@dataclass(frozen=True)
class FileBlock:
    """One file as a reply gives it: the path's text unjudged, the content exact, lines ended by `\\n`."""

    path: str
    content: str


def parse_reply(text: str) -> tuple[FileBlock, ...]:
    """Find the files in a reply. Raises `ReplyRefused` where their content cannot be known for certain."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    files: dict[str, FileBlock] = {}
    last: str | None = None
    for token in _parser().parse(text):
        path = _path(token)
        if token.type == "fence" and last is not None and not token.info.strip():
            raise _unclear(last, token.markup)
        last = path if token.type == "fence" else last
        if path is None or token.map is None:
            continue
        start, end = token.map
        _refuse_unless_whole(path, token, lines[start:end])
        block = FileBlock(path, token.content)
        if files.setdefault(path, block) != block:
            raise ReplyRefused(f"The reply gives {path} twice, with different content.")
    return tuple(files.values())


@cache
def _parser() -> MarkdownIt:
    """Asked for blocks only; imported when the first reply comes."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").disable(["inline", "html_block"])


def _path(token: Token) -> str | None:
    if token.type != "fence":
        return None
    info = _INFO.match(token.info.strip())
    return info["path"].strip() if info else None


def _refuse_unless_whole(path: str, token: Token, lines: list[str]) -> None:
    """A fence that never closes was cut; one that holds the opening of another may have been closed too early."""
    mark = token.markup
    if len(lines) < 2 or lines[-1].strip(" \t>").rstrip(mark[0]) or len(lines[-1].strip(" \t>")) < len(mark):
        raise ReplyRefused(f"The code block of {path} is never closed: the reply seems to be cut.")
    opening = re.compile(rf"^\s*{re.escape(mark)}[`~]*[ \t]*[A-Za-z{{]", re.MULTILINE)
    if opening.search(token.content):
        raise _unclear(path, mark)


def _unclear(path: str, mark: str) -> ReplyRefused:
    """A bare fence after a file's may be the rest of that file, whose own code block has closed it too early."""
    return ReplyRefused(
        f"It is unclear where the code block of {path} ends.",
        hint=f"If it contains code blocks itself, open and close it with {mark[0] * (len(mark) + 1)}. "
        f"Give blocks that are not files a language, as in {mark}text.",
    )
