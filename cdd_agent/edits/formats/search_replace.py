"""Search/replace blocks, as aider (https://aider.chat/docs/more/edit-formats.html) and tools after it use them.

    src/app.py
    <<<<<<< SEARCH
    what is there
    =======
    what shall be there
    >>>>>>> REPLACE

Five to nine marks; all three lines have the same number. Where nothing takes the place of the lines, the divider may be
there twice. `------- SEARCH` and `+++++++ REPLACE` are read, too, and a
`:start_line:` below the first mark.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdd_agent.edits.formats.file_names import Grade, grade, is_absolute
from cdd_agent.edits.formats.known import NOTHING_KNOWN, KnownNames
from cdd_agent.edits.model import Hint, ReplyRefused

_BEGIN = re.compile(
    r"^(?P<indent>[\s>]*?)(?P<mark><{5,9}(?=\s?(?i:SEARCH|ORIGINAL)\b)|-{5,9}(?=\s?(?:SEARCH|ORIGINAL)\b))"
    r"\s?\w+:?>?(?P<path>.*)$"
)
_END = re.compile(r"^[\s>]*(?P<mark>>{5,9}|\+{5,9})\s?(?i:REPLACE|UPDATED)\b\s*$")
_START_LINE = re.compile(r"^\s*:start_line:\s*(\d+)\s*$")
_ABOUT_LINES = re.compile(r"^\s*(?::(?:start|end)_line:\s*\d+|-{5,9})\s*$")
_HINT = "A block is `<<<<<<< SEARCH`, the lines to find, `=======`, the new lines, `>>>>>>> REPLACE`."


@dataclass(frozen=True)
class Block:
    """One block in the lines `start` to `end` of a text; `path` is what its first line says, if it does."""

    start: int
    end: int
    path: str | None
    find: tuple[str, ...]
    replace: tuple[str, ...]
    hint: Hint
    longer: tuple[str, ...] | None = None
    """The lines to find where the divider is there twice, and nothing after it: the first may be one of them."""


def find_blocks(lines: Sequence[str], known: KnownNames = NOTHING_KNOWN) -> list[Block]:
    """Every block of a text, wherever it stands. Raises `ReplyRefused` for one whose parts are not clear."""
    blocks: list[Block] = []
    place = 0
    while place < len(lines):
        begin = _BEGIN.match(lines[place])
        if begin is None:
            place += 1
            continue
        block = _block(lines, place, begin, known)
        blocks.append(block)
        place = block.end
    return blocks


def _block(lines: Sequence[str], start: int, begin: re.Match[str], known: KnownNames) -> Block:
    dividers: list[int] = []
    size = len(begin["mark"])
    for place in range(start + 1, len(lines)):
        bare = lines[place].strip(" \t>") if begin["indent"] else lines[place].rstrip()
        if _END.match(lines[place]):
            is_doubled = len(dividers) == 2 and not any(line.strip(" \t>=") for line in lines[dividers[0] : place])
            divider = dividers[0] if is_doubled else _only(dividers, start)
            block = _read(lines, start, place, begin, divider, known)
            return replace(block, replace=(), longer=(*block.find, lines[divider].strip())) if is_doubled else block
        if _BEGIN.match(lines[place]):
            break
        if (len(bare) == size and not bare.strip("=")) or (
            not dividers and 5 <= len(bare) <= 9 and not bare.strip("=") and _is_the_divider(lines, place, size)
        ):
            dividers.append(place)
    raise ReplyRefused(f"The search/replace block in line {start + 1} of the reply is never closed.", hint=_HINT)


def _is_the_divider(lines: Sequence[str], at: int, size: int) -> bool:
    """A divider of another length than its mark: taken where the block has no other."""
    for place in range(at + 1, len(lines)):
        bare = lines[place].strip()
        if _END.match(lines[place]):
            return True
        if len(bare) >= 5 and not bare.strip("="):
            return False
    return False


def _only(dividers: list[int], start: int) -> int:
    if len(dividers) == 1:
        return dividers[0]
    if dividers:
        reason, hint = "has more than one line of `=======`", "Use nine marks in each of its three lines of marks."
    else:
        reason, hint = "has no line of `=======`", _HINT
    raise ReplyRefused(f"The search/replace block in line {start + 1} of the reply {reason}.", hint=hint)


def _read(lines: Sequence[str], start: int, end: int, begin: re.Match[str], divider: int, known: KnownNames) -> Block:
    indent = begin["indent"]
    find = [_without(indent, line) for line in lines[start + 1 : divider]]
    number = None
    if find and (found := _START_LINE.match(find[0])):
        number = int(found[1])
    while number is not None and find and _ABOUT_LINES.match(find[0]):
        del find[0]
    new = [_without(indent, line) for line in lines[divider + 1 : end]]
    path = begin["path"].strip("`*\"' \t")
    find = [] if not any(line.strip() for line in find) else find
    is_name = known.is_file(path) or is_absolute(path) or grade(path) > Grade.WORD
    return Block(start, end + 1, path if is_name else None, tuple(find), tuple(new), Hint(line=number))


def _without(indent: str, line: str) -> str:
    if line.startswith(indent):
        return line.removeprefix(indent)
    return line.lstrip() if not line.strip() else line
