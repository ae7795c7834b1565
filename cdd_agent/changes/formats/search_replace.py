"""Search/replace blocks, as aider (https://aider.chat/docs/more/edit-formats.html) and
tools after it use them.

    src/app.py
    <<<<<<< SEARCH
    what is there
    =======
    what shall be there
    >>>>>>> REPLACE

Five to nine marks; all three lines have the same number. Where nothing takes the place
of the lines, the divider may be there twice. `------- SEARCH` and `+++++++ REPLACE` are
read, too, and a `:start_line:` below the first mark.
"""

import re
from collections.abc import Sequence

from cdd_agent.changes.formats.file_names import Grade, grade, is_absolute
from cdd_agent.changes.formats.form import Form, Span
from cdd_agent.changes.formats.known import KnownNames
from cdd_agent.changes.model import Edit, Hint, Replacement, ReplyRefused, WholeFile

_BEGIN = re.compile(
    r"^(?P<indent>[\s>]*?)(?P<mark><{5,9}(?=\s?(?i:SEARCH|ORIGINAL)\b)"
    r"|-{5,9}(?=\s?(?:SEARCH|ORIGINAL)\b))"
    r"\s?\w+:?>?(?P<path>.*)$"
)
_END = re.compile(r"^[\s>]*(?P<mark>>{5,9}|\+{5,9})\s?(?i:REPLACE|UPDATED)\b\s*$")
_START_LINE = re.compile(r"^\s*:start_line:\s*(\d+)\s*$")
_ABOUT_LINES = re.compile(r"^\s*(?::(?:start|end)_line:\s*\d+|-{5,9})\s*$")
_HINT = (
    "A block is `<<<<<<< SEARCH`, the lines to find, `=======`, the new lines,"
    " `>>>>>>> REPLACE`."
)


class SearchReplace(Form):
    """Wherever they stand."""

    def marked(self, lines: Sequence[str], known: KnownNames) -> list[Span]:
        spans: list[Span] = []
        for place, line in enumerate(lines):
            begin = _BEGIN.match(line)
            if begin and (not spans or place >= spans[-1].end):
                spans.append(_block(lines, place, begin, known))
        return spans


def _block(
    lines: Sequence[str], start: int, begin: re.Match[str], known: KnownNames
) -> Span:
    """Raises `ReplyRefused` where it is not clear what its parts are."""
    divider, end, is_doubled = _parts(lines, start, begin)
    indent, number = begin["indent"], None
    find = [_without(indent, line) for line in lines[start + 1 : divider]]
    if find and (found := _START_LINE.match(find[0])):
        number = int(found[1])
    while number is not None and find and _ABOUT_LINES.match(find[0]):
        del find[0]
    find = [] if not any(line.strip() for line in find) else find
    new = (
        []
        if is_doubled
        else [_without(indent, line) for line in lines[divider + 1 : end]]
    )
    path = begin["path"].strip("`*\"' \t")
    is_name = known.is_file(path) or is_absolute(path) or grade(path) > Grade.WORD

    def read(named: str | None) -> list[Edit]:
        if named is None:
            raise ReplyRefused(
                f"The search/replace block in line {start + 1} of the reply names no"
                " file.",
                hint="Write the file's path on a line of its own just before it.",
            )
        if not find:
            return [
                WholeFile(named, "".join(f"{line}\n" for line in new), must_be_new=True)
            ]
        # who takes the underline of a heading for a divider wants both to go
        if is_doubled:
            longer = (*find, lines[divider].strip())
            return [
                Replacement(
                    named, longer, (), Hint(number), otherwise=(tuple(find), ())
                )
            ]
        return [Replacement(named, tuple(find), tuple(new), Hint(number))]

    return Span(
        start,
        end + 1,
        read,
        path if is_name else None,
        kind="search/replace block",
    )


def _parts(
    lines: Sequence[str], start: int, begin: re.Match[str]
) -> tuple[int, int, bool]:
    """Where the divider is and where the last mark, and whether the divider is there
    twice with nothing after it: then the first may be one of the lines to find.
    """
    dividers: list[int] = []
    size = len(begin["mark"])
    for place in range(start + 1, len(lines)):
        bare = lines[place].strip(" \t>") if begin["indent"] else lines[place].rstrip()
        if _END.match(lines[place]):
            is_doubled = len(dividers) == 2 and not any(
                line.strip(" \t>=") for line in lines[dividers[0] : place]
            )
            if len(dividers) == 1 or is_doubled:
                return dividers[0], place, is_doubled
            reason, hint = "has no line of `=======`", _HINT
            if dividers:
                reason, hint = (
                    "has more than one line of `=======`",
                    "Use nine marks in each of its three lines of marks.",
                )
            raise ReplyRefused(
                f"The search/replace block in line {start + 1} of the reply {reason}.",
                hint=hint,
            )
        if _BEGIN.match(lines[place]):
            break
        if (len(bare) == size and not bare.strip("=")) or (
            not dividers
            and 5 <= len(bare) <= 9
            and not bare.strip("=")
            and _is_the_divider(lines, place)
        ):
            dividers.append(place)
    raise ReplyRefused(
        f"The search/replace block in line {start + 1} of the reply is never closed.",
        hint=_HINT,
    )


def _is_the_divider(lines: Sequence[str], at: int) -> bool:
    """A divider of another length than its mark: taken where the block has no other."""
    for place in range(at + 1, len(lines)):
        bare = lines[place].strip()
        if _END.match(lines[place]):
            return True
        if len(bare) >= 5 and not bare.strip("="):
            break
    return False


def _without(indent: str, line: str) -> str:
    if line.startswith(indent):
        return line.removeprefix(indent)
    return line.lstrip() if not line.strip() else line
