"""A reply as a person sees it while it streams: without the code blocks that are meant
for the program.
"""

import re

from msgspec import Struct, field

_OPENING = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[\w-]*)[^`]*")
_LONGEST_OPENING = 200
"""Characters of a line that may still become an opening fence, and so is not shown yet.
"""


class HiddenBlockFilter(Struct):
    """Keeps back the code blocks whose info string begins with one of `hidden`, and
    hands on the rest.
    """

    hidden: frozenset[str]
    _blocks: list[tuple[str, list[str]]] = field(default_factory=list)
    """Kept back so far: info string and lines of each block."""
    _shown: list[str] = field(default_factory=list)
    """All that was handed on so far."""
    _line: list[str] = field(default_factory=list)
    """The present line, as far as it was not handed on."""
    _is_begun: bool = False
    """Some of the present line was handed on."""
    _mark: str = ""
    """Of the block that is being kept back."""
    _other: str = ""
    """Of a block that is shown: what looks like a fence within it is its content."""

    @property
    def text(self) -> str:
        """All that was handed on so far."""
        return "".join(self._shown)

    @property
    def blocks(self) -> list[tuple[str, str]]:
        """Kept back so far: info string and content of each block."""
        return [(info, "".join(lines)) for info, lines in self._blocks]

    def of(self, info: str) -> tuple[str, ...]:
        """The contents of the blocks of this info string."""
        return tuple(content for kept, content in self.blocks if kept == info)

    def hear(self, piece: str) -> str:
        """Take some text; return what can be shown now."""
        shown: list[str] = []
        for part in piece.splitlines(keepends=True):
            self._line.append(part)
            if part.endswith("\n"):
                shown.append(self._end_line())
            elif not self._mark:
                line = "".join(self._line)
                if (
                    self._is_begun
                    or _is_too_long(line)
                    or line.lstrip(" ")[:1] not in ("", "`", "~")
                ):
                    shown.append(line)
                    self._line, self._is_begun = [], True
        return self._hand_on("".join(shown))

    def end(self) -> str:
        """The reply is over; return what was not known yet to be no fence. A block
        without an end ends here.
        """
        return self._hand_on(self._end_line())

    def _hand_on(self, text: str) -> str:
        self._shown.append(text)
        return text

    def _end_line(self) -> str:
        line, is_begun = "".join(self._line), self._is_begun
        self._line, self._is_begun = [], False
        if self._mark:
            if _closes(line, self._mark):
                self._mark = ""
            else:
                self._blocks[-1][1].append(line)
            return ""
        if is_begun:
            return line
        if self._other:
            self._other = "" if _closes(line, self._other) else self._other
            return line
        opening = (
            None if _is_too_long(line) else _OPENING.fullmatch(line.rstrip("\r\n"))
        )
        if opening is None:
            return line
        if (info := opening["info"].lower()) in self.hidden:
            self._mark = opening["mark"]
            self._blocks.append((info, []))
            return ""
        self._other = opening["mark"]
        return line


def _is_too_long(line: str) -> bool:
    """For an opening fence, however its line came."""
    return len(line.removesuffix("\n").removesuffix("\r")) > _LONGEST_OPENING


def _closes(line: str, mark: str) -> bool:
    text = line.strip()
    return len(text) >= len(mark) and set(text) == {mark[0]}
