"""The code blocks of a reply, and which file each is.

Fences are found by CommonMark's rules
(https://spec.commonmark.org/0.31.2/#fenced-code-blocks). What stands inside of
search/replace blocks and patches is kept out of its sight: the marks of these forms say
better where they end.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import PurePosixPath

from markdown_it import MarkdownIt
from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.changes.formats.file_names import SHELLS, Grade, grade, is_in_language
from cdd_agent.changes.formats.known import NOTHING_KNOWN, KnownNames
from cdd_agent.changes.formats.naming import (
    Named,
    in_comment,
    in_info,
    in_line,
    mentioned,
    of_edits,
)

_OPENING = re.compile(r"^(?P<container>[\s>]*)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
_WRAPPERS = {"", "markdown", "md", "text", "txt", "plaintext"}
_STAND_INS = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE))
"""The numbers of characters that mean nothing: a pair that a text does not have hides
fences in it.
"""


class Fence(Struct, frozen=True):
    """One code block. Lines are numbered from 0; `end` is the line after its closing
    fence.
    """

    start: int
    end: int
    mark: str
    language: str
    path: str | None
    content: str
    is_closed: bool
    info: str = ""
    is_named_apart: bool = True
    """Its name is in its info string, or stands after a blank line: it is not the end
    of what was before.
    """
    above: str | None = None
    """The file that the line above names, whatever the language: for edits in any kind
    of code block.
    """
    doubt: str = ""
    """A name that it is given, where it is of no file for certain, but could be."""

    @property
    def lines(self) -> list[str]:
        return self.content.removesuffix("\n").split("\n") if self.content else []

    @property
    def is_file_of_diffs(self) -> bool:
        """It is a file that holds diffs, and no edits by them."""
        return self.path is not None and self.path.lower().endswith((".diff", ".patch"))

    def holds_a_name(self, known: KnownNames) -> bool:
        """Whether a file's name is all that it holds: it names the block after it."""
        is_plain = (
            self.path is None and self.language not in SHELLS and len(self.lines) == 1
        )
        named = in_line(self.content.strip(), "", known) if is_plain else None
        return named is not None and named.is_file

    @property
    def holds_an_opening(self) -> bool:
        """A line that opens a fence just like this one: perhaps this one should have
        ended later.
        """
        opening = re.compile(
            rf"^[ \t>]*{re.escape(self.mark)}[`~]*[ \t]*[A-Za-z{{]", re.MULTILINE
        )
        return opening.search(self.content) is not None


def find_fences(
    lines: Sequence[str],
    hidden: Collection[int] = (),
    known: KnownNames = NOTHING_KNOWN,
) -> list[Fence]:
    """The fences of a text, in its order; `hidden` are lines in which none begins or
    ends.
    """
    hidden_lines = set(hidden)
    lines = _straightened(lines, hidden_lines)
    hide: dict[int, str] = {}
    show: dict[int, str] = {}
    if hidden_lines:
        # a line that has no fence is made of one that may have, also behind the mark of
        # a list
        there = set().union(*lines)
        backtick, tilde = islice(
            (char for char in map(chr, chain(*_STAND_INS)) if char not in there), 2
        )
        hide, show = (
            {ord("`"): backtick, ord("~"): tilde},
            {ord(backtick): "`", ord(tilde): "~"},
        )
    text = "\n".join(
        line.translate(hide) if place in hidden_lines else line
        for place, line in enumerate(lines)
    )
    fences: list[Fence] = []
    last_end = 0
    for token in _parser().parse(text):
        if token.type != "fence" or token.map is None:
            continue
        (start, end), mark = token.map, token.markup
        last = lines[end - 1].strip(" \t>")
        is_closed = (
            end - start > 1 and len(last) >= len(mark) and not last.rstrip(mark[0])
        )
        above, is_apart = _above(lines, last_end, start)
        if (
            fences
            and not any(line.strip(" \t>") for line in lines[last_end:start])
            and fences[-1].holds_a_name(known)
        ):
            above, is_apart = fences[-1].content.strip(), True
        fence = Fence(
            start,
            end,
            mark,
            "",
            None,
            token.content.translate(show),
            is_closed,
            token.info,
        )
        fences.append(_named(fence, above, is_apart, known))
        last_end = end
    return fences


def unwrapped(lines: Sequence[str]) -> range | None:
    """The lines inside of a reply that is itself in a fence; None for any other."""
    told = [place for place, line in enumerate(lines) if line.strip()]
    if len(told) < 3:
        return None
    opening = _OPENING.match(lines[told[0]])
    if (
        opening is None
        or opening["container"]
        or opening["info"].strip().lower() not in _WRAPPERS
    ):
        return None
    if lines[told[-1]].strip() != opening["mark"]:
        return None
    return range(told[0] + 1, told[-1])


@cache
def _parser() -> MarkdownIt:
    """Asked for blocks only; imported when the first reply comes. Indented code is what
    a list makes of a fence.
    """
    return MarkdownIt("commonmark").disable(["inline", "html_block", "reference"])


def _straightened(lines: Sequence[str], hidden: Collection[int]) -> list[str]:
    """The same lines, but a fence is not indented where a line in it is less so: then
    only the fence was moved.
    """
    straight = list(lines)
    place = 0
    while place < len(lines):
        opening = _OPENING.match(lines[place]) if place not in hidden else None
        if opening and not ("`" in opening["mark"] and "`" in opening["info"]):
            start, mark = place, opening["mark"]
            place += 1
            while place < len(lines):
                bare = lines[place].strip(" \t>")
                if (
                    place not in hidden
                    and len(bare) >= len(mark)
                    and not bare.strip(mark[0])
                ):
                    break
                place += 1
            indent = opening["container"]
            inside = (line for line in lines[start + 1 : place] if line.strip())
            is_moved = (
                bool(indent)
                and not indent.strip()
                and not all(line.startswith(indent) for line in inside)
            )
            if is_moved and place < len(lines):
                straight[start], straight[place] = (
                    lines[start].lstrip(),
                    lines[place].lstrip(),
                )
        place += 1
    return straight


def _above(lines: Sequence[str], floor: int, start: int) -> tuple[str, bool]:
    """The line above a fence, at most one blank line away, and whether it stands apart
    from what is before it.
    """
    place = start - 1
    if place >= floor and not lines[place].strip(" \t>"):
        place -= 1
    if place < floor or not lines[place].strip():
        return "", False
    line = lines[place]
    return line, place == 0 or (
        place > floor and not lines[place - 1].strip()
    ) or "#" in line[:4]


def _named(fence: Fence, above: str, is_apart: bool, known: KnownNames) -> Fence:
    """A fence with its language and its file: its info string, the line above, and its
    first line may say which; and a sentence above, as in "Change `src/app.py` as
    follows:", which it could be.
    """
    language, named = in_info(fence.info, known)
    fence = replace(fence, language=language)
    if named is not None and named.is_file:
        return replace(fence, path=named.path)
    content = fence.content
    by_line = _not_of_commands(content, language, in_line(above, language, known))
    by_comment = None
    if content and not (by_line and by_line.is_file):
        first, _, rest = content.partition("\n")
        by_comment = in_comment(first, language, known)
        if by_comment is not None and by_comment.path.endswith(".json"):
            content = rest  # JSON has no comments: the line is not the file's
    said = [one for one in (by_line, by_comment, named) if one is not None]
    path = next((one.path for one in said if one.is_file), None)
    spoken_of = (
        set(mentioned(above, known))
        if above.rstrip(" *_").endswith(":")
        else set[str]()
    )
    others = [
        name
        for name in spoken_of
        if len(spoken_of) == 1 and is_in_language(language, name)
    ]
    doubt = "" if path else next(iter([*(one.path for one in said), *others]), "")
    of_blocks = of_edits(above, known) or (doubt if known.is_file(doubt) else None)
    is_apart = is_apart and by_line is not None and by_line.is_file
    return replace(
        fence,
        path=path,
        content=content,
        is_named_apart=is_apart,
        above=of_blocks,
        doubt=doubt,
    )


def _not_of_commands(content: str, language: str, named: Named | None) -> Named | None:
    """Not a program whose name stands above commands that call it; nor, for certain, a
    word above others.
    """
    name = PurePosixPath(named.path).name if named else ""
    if named is None or PurePosixPath(name).suffix or content.startswith("#!"):
        return named
    if re.search(
        rf"^[ \t]*(?:\$ +)?(?:\S*/)?{re.escape(name)}(?:\s|$)", content, re.MULTILINE
    ):
        return None
    return (
        Named(named.path, False)
        if language in SHELLS and grade(named.path) is Grade.WORD
        else named
    )
