"""Search/replace blocks, as aider (https://aider.chat/docs/more/edit-formats.html) uses
them.

    src/app.py
    <<<<<<< SEARCH
    lines to find
    =======
    new lines
    >>>>>>> REPLACE

Each mark has the same length, from five to nine. A block that removes lines may have
the divider twice. `------- SEARCH`, `+++++++ REPLACE` and `:start_line:` are read, too.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from cdd_agent.changes.formats.fences import Fence
from cdd_agent.changes.formats.file_names import Grade, grade_name, is_absolute
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import Edit, Hint, Replacement, ReplyRefused, WholeFile
from cdd_agent.pattern import Pattern

_BEGIN = Pattern(
    r"^(?P<indent>[\s>]*?)(?P<mark><{5,9}(?=\s?(?i:SEARCH|ORIGINAL)\b)"
    r"|-{5,9}(?=\s?(?:SEARCH|ORIGINAL)\b))"
    r"\s?\w+:?>?(?P<path>.*)$"
)
_END = Pattern(r"^[\s>]*(?P<mark>>{5,9}|\+{5,9})\s?(?i:REPLACE|UPDATED)\b\s*$")
_START_LINE = Pattern(r"^\s*:start_line:\s*(\d+)\s*$")
_ABOUT_LINES = Pattern(r"^\s*(?::(?:start|end)_line:\s*\d+|-{5,9})\s*$")


_HINT = (
    "A block is `<<<<<<< SEARCH`, the lines to find, `=======`, the new lines,"
    " `>>>>>>> REPLACE`."
)


def begins_replacement(line: str) -> bool:
    return _BEGIN.match(line) is not None


def ends_replacement(line: str) -> bool:
    return _END.match(line) is not None


def may_divide(line: str) -> bool:
    bare = line.strip(" \t>")
    return 5 <= len(bare) <= 9 and not bare.strip("=")


class SearchReplace(Form):
    kind = "search/replace block"

    def marked(self, lines: Sequence[str], project_names: ProjectNames) -> list[Span]:
        spans: list[Span] = []
        for place, line in enumerate(lines):
            begin = _BEGIN.match(line)
            if begin and (not spans or place >= spans[-1].end):
                spans.append(_find_block(lines, place, begin, project_names))
        return spans

    def accepts(self, fence: Fence) -> bool:
        """True for a block that lost its first mark."""
        return fence.path is None and any(map(ends_replacement, fence.lines))

    def read(self, fence: Fence) -> list[Edit]:
        raise _headless_refusal(fence.start + 1)

    def refuse_loose(self, line: str, number: int) -> None:
        if ends_replacement(line):
            raise _headless_refusal(number)


def _headless_refusal(line: int) -> ReplyRefused:
    return ReplyRefused(
        f"The search/replace block in line {line} of the reply has no line of"
        " `<<<<<<< SEARCH`.",
        hint=_HINT,
    )


class _Parts(Struct, frozen=True):
    """Numbers of the lines that hold the marks."""

    divider: int
    end: int
    is_doubled: bool = False
    """True if the divider is doubled, with nothing after it. Then the first may be a
    line to find.
    """


class _Fault(Struct, frozen=True):
    """Why a block cannot be read."""

    end: int
    reason: str
    hint: str = _HINT


def _find_block(
    lines: Sequence[str], start: int, begin: re.Match[str], project_names: ProjectNames
) -> Span:
    parts = _find_parts(lines, start, begin)
    name = begin["path"].strip("`*\"' \t")
    is_name = (
        project_names.is_file(name)
        or is_absolute(name)
        or grade_name(name) > Grade.WORD
    )
    path = name if is_name else None

    def read(named: str | None) -> list[Edit]:
        block = f"The search/replace block in line {start + 1} of the reply"
        if isinstance(parts, _Fault):
            raise ReplyRefused(
                f"{block} {parts.reason}.", hint=parts.hint, path=named or ""
            )
        if named is None:
            raise ReplyRefused(
                f"{block} names no file.",
                hint="Write the file's path on a line of its own just before it.",
            )
        return [_read_block(lines, start, begin["indent"], parts, named)]

    return Span(start, parts.end, read, path, kind=SearchReplace.kind)


def _read_block(
    lines: Sequence[str], start: int, indent: str, parts: _Parts, path: str
) -> Edit:
    number: int | None = None
    find = [_remove_indent(indent, line) for line in lines[start + 1 : parts.divider]]
    if find and (numbered := _START_LINE.match(find[0])):
        number = int(numbered[1])
        while find and _ABOUT_LINES.match(find[0]):
            del find[0]
    if not any(line.strip() for line in find):
        find = []
    new: list[str] = []
    if not parts.is_doubled:
        inside = lines[parts.divider + 1 : parts.end - 1]
        new = [_remove_indent(indent, line) for line in inside]
    if not find:
        content = "".join(f"{line}\n" for line in new)
        return WholeFile(path, content, must_be_new=True)
    if not parts.is_doubled:
        return Replacement(path, tuple(find), tuple(new), Hint(number))
    # the first divider may underline a heading: then both lines are removed
    longer = (*find, lines[parts.divider].strip())
    return Replacement(path, longer, (), Hint(number), otherwise=(tuple(find), ()))


def _find_parts(
    lines: Sequence[str], start: int, begin: re.Match[str]
) -> _Parts | _Fault:
    dividers: list[int] = []
    size = len(begin["mark"])
    for place in range(start + 1, len(lines)):
        bare = lines[place].strip(" \t>") if begin["indent"] else lines[place].rstrip()
        if ends_replacement(lines[place]):
            return _find_divider(lines, place, dividers)
        if begins_replacement(lines[place]):
            return _Fault(place, "is never closed")
        is_mark = bool(bare) and not bare.strip("=")
        if not is_mark:
            continue
        is_odd = not dividers and 5 <= len(bare) <= 9
        if len(bare) == size or (is_odd and _is_the_divider(lines, place)):
            dividers.append(place)
    return _Fault(len(lines), "is never closed")


def _find_divider(
    lines: Sequence[str], end: int, dividers: list[int]
) -> _Parts | _Fault:
    """Return the parts of a block that ends in this line."""
    if not dividers:
        return _Fault(end + 1, "has no line of `=======`")
    if len(dividers) == 1:
        return _Parts(dividers[0], end + 1)
    rest = lines[dividers[0] : end]
    if len(dividers) == 2 and not any(line.strip(" \t>=") for line in rest):
        return _Parts(dividers[0], end + 1, is_doubled=True)
    return _Fault(
        end + 1,
        "has more than one line of `=======`",
        "Use nine marks in each of its three lines of marks.",
    )


def _is_the_divider(lines: Sequence[str], at: int) -> bool:
    """True for a divider whose length differs from its mark's, if it is the only
    one.
    """
    for place in range(at + 1, len(lines)):
        bare = lines[place].strip()
        if ends_replacement(lines[place]):
            return True
        if len(bare) >= 5 and not bare.strip("="):
            break
    return False


def _remove_indent(indent: str, line: str) -> str:
    if line.startswith(indent):
        return line.removeprefix(indent)
    return line if line.strip() else line.lstrip()
