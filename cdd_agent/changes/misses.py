"""Explains why a text is not in a file, by the first difference from the most similar
lines.
"""

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from cdd_agent.changes.look_alikes import common_ends, fold, pair_pieces
from cdd_agent.changes.search import (
    LONGEST_COMPARED,
    SURE_RUNGS,
    Lines,
    SearchedLines,
    find_runs,
    likeness,
)
from cdd_agent.pattern import Pattern

_SHOWN_LINES = 8
_MOST_NEAR = 300
"""Most lines to compare letter by letter."""
_MOST_COMPARED = 200
"""Most lines to compare from the first difference on."""
_AROUND = 3
"""Lines around a place to inspect."""
_SLIP = 0.6
"""Likeness from which two lines count as the same line with a typo."""
_LONGEST_SHOWN = 60
_TOKEN = Pattern(r"\s+|\w+|[^\w\s]")
_BLANKS = {" ": "space", "\t": "tab"}


class Miss(Struct, frozen=True):
    closest: str
    """The most similar lines of the file, numbered; empty if there are none."""
    difference: str
    """A sentence; empty if nothing is similar."""


def describe_miss(file: SearchedLines, find: Lines, earlier: Lines) -> Miss:
    """Explain a miss. `earlier` are the file's lines before other edits of the same
    reply; empty if there were none.
    """
    wanted = [line.strip() for line in find]
    start = _vote_for_start(file, wanted)
    near: list[int] = []
    if start is None:
        near = _find_similar_lines(file, wanted)
        places: Sequence[int] = sorted(near)
    else:
        first = max(0, start)
        count = max(3, min(len(find), _SHOWN_LINES))
        places = range(first, min(len(file.lines), first + count))
    closest = "\n".join(f"{place + 1:>5}  {file.lines[place]}" for place in places)
    if earlier and _is_in(earlier, find):
        difference = "An earlier edit of this reply has changed these lines"
    elif start is not None:
        difference = _describe_first_difference(file, find, start)
    elif near:
        number = wanted.index(_longest(wanted))
        difference = _describe_pair(find, number, file.lines, near[0])
    else:
        difference = _describe_part(file, wanted)
    return Miss(closest, difference)


def _vote_for_start(file: SearchedLines, wanted: Lines) -> int | None:
    """Return the line where the text would begin, by a vote of its lines; None if the
    file has none of them.
    """
    voters = sorted({line for line in wanted if line}, key=len, reverse=True)
    votes: Counter[int] = Counter()
    for line in voters[:_SHOWN_LINES]:
        for place in find_runs(file.forms.bare, [line], file.forms.counts):
            votes[place - wanted.index(line)] += 1
    if not votes:
        return None
    return max(votes, key=lambda place: (votes[place], -place))


def _find_similar_lines(file: SearchedLines, wanted: Lines) -> list[int]:
    """Return the lines most similar to the text's longest line, best first. Only lines
    of similar length that share a word are compared.
    """
    longest = _longest(wanted)
    if not longest or len(longest) > LONGEST_COMPARED:
        return []
    words = set(re.findall(r"\w{3,}", longest))
    candidates: list[str] = []
    for line in file.forms.bare:
        is_sized = abs(len(line) - len(longest)) <= len(longest) // 2
        if is_sized and (not words or any(word in line for word in words)):
            candidates.append(line)
    most_similar = difflib.get_close_matches(longest, candidates[:_MOST_NEAR], n=3)
    return [file.forms.bare.index(line) for line in dict.fromkeys(most_similar)]


def _longest(wanted: Lines) -> str:
    return max(wanted, key=len, default="")


def _is_in(lines: Lines, find: Lines) -> bool:
    file = SearchedLines(lines)
    return any(next(rung(file, find, ()), None) for rung in SURE_RUNGS)


def _describe_first_difference(file: SearchedLines, find: Lines, start: int) -> str:
    wanted = [line.strip() for line in find]
    head, _ = common_ends(wanted, file.forms.bare[max(0, start) :])
    if start < 0 or head == len(find):
        head = 0
    first = start + head if head else max(0, start - _AROUND)
    end = max(0, start + head) + _MOST_COMPARED
    present = file.forms.bare[first : end + _AROUND]
    compared = wanted[head : head + _MOST_COMPARED]
    matcher = difflib.SequenceMatcher(None, compared, present, autojunk=False)
    for tag, find_from, find_to, present_from, present_to in matcher.get_opcodes():
        number, place = head + find_from, first + present_from
        if tag == "replace":
            if number == 0:
                # preceding lines are not part of the difference
                place = max(place, first + present_to - find_to)
            last = min(first + present_to, place + 1 + find_to - find_from)
            most_similar = _find_most_similar(
                wanted[number], file.forms.bare, range(place, last)
            )
            return _describe_pair(find, number, file.lines, most_similar)
        if tag == "delete":
            shown = _whole_line(find[number])
            return (
                f"Line {number + 1} of the text to find, {shown}, is not in the file"
                f" at line {place + 1}"
            )
        if tag == "insert" and 0 < number < len(find) and find_from < len(compared):
            return (
                f"After line {number} of the text to find, the file has another"
                f" line: line {place + 1}, {_whole_line(file.lines[place])}"
            )
    return _describe_indentation(file, find, start)


def _find_most_similar(line: str, lines: Lines, places: Sequence[int]) -> int:
    return max(places, key=lambda place: likeness(line, lines[place]))


def _describe_indentation(file: SearchedLines, find: Lines, start: int) -> str:
    shift: int | None = None
    for number, line in enumerate(find):
        place = start + number
        if not line.strip() or not 0 <= place < len(file.lines):
            continue
        present = file.lines[place]
        more = len(_indentation(present)) - len(_indentation(line))
        shift = more if shift is None else shift
        if more != shift and line.strip() == present.strip():
            return _describe_pair(find, number, file.lines, place)
    return "The indentation of the text to find is not that of the file"


def _describe_pair(find: Lines, number: int, lines: Lines, place: int) -> str:
    line, present = find[number], lines[place]
    bare, present_bare = line.strip(), present.strip()
    name = f"Line {number + 1} of the text to find"
    present_name = f"line {place + 1} of the file"
    if bare == present_bare:
        return (
            f"{name} begins with {_blanks(_indentation(line))}, {present_name} with"
            f" {_blanks(_indentation(present))}"
        )
    if fold(bare) == fold(present_bare):
        had, has = _characters(bare, present_bare)
        return f"{name} has {had} where {present_name} has {has}"
    if bare.split() == present_bare.split():
        had, has = _different_blanks(bare, present_bare)
        return f"{name} has {had} where {present_name} has {has}"
    if bare.casefold() == present_bare.casefold():
        had, has = _different_words(bare, present_bare)
        return f"{name} has {had} where {present_name} has {has}: the case differs"
    if bare and bare in present_bare:
        return f"{name}, {_shown(bare)}, is only a part of {present_name}"
    if likeness(bare, present_bare) >= _SLIP:
        had, has = _different_words(bare, present_bare)
        return f"{name} has {had} where {present_name} has {has}"
    return (
        f"{name} is {_whole_line(line)}, and {present_name} is {_whole_line(present)}"
    )


def _describe_part(file: SearchedLines, wanted: Lines) -> str:
    first = next((line for line in wanted if line), "")
    for place, line in enumerate(file.forms.bare):
        if first and first in line:
            number = wanted.index(first) + 1
            return (
                f"Line {number} of the text to find, {_shown(first)}, is only a part of"
                f" line {place + 1} of the file"
            )
    return ""


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _blanks(text: str) -> str:
    """Name white space: `4 spaces`."""
    if not text:
        return "no blank"
    names: list[str] = []
    for char, group in groupby(text):
        count = len(list(group))
        name = _BLANKS.get(char)
        if name is None:
            names.append(f"{count} {_name(char)}")
        else:
            names.append(f"{count} {name}{'s' * (count > 1)}")
    return " and ".join(names)


def _characters(line: str, present: str) -> tuple[str, str]:
    for start, end, present_piece in pair_pieces(line, present):
        piece = line[start:end]
        if piece == present_piece:
            continue
        head, _ = common_ends(piece, present_piece)
        return _names(piece[head:]), _names(present_piece[head:])
    return _names(""), _names("")


def _names(text: str) -> str:
    return " and ".join(_name(char) for char in text) or "nothing"


def _name(char: str) -> str:
    number = f"U+{ord(char):04X}"
    name = unicodedata.name(char, "")
    return f"{name} ({number})" if name else number


def _different_blanks(line: str, present: str) -> tuple[str, str]:
    runs = zip(re.findall(r"\s+", line), re.findall(r"\s+", present), strict=True)
    for run, present_run in runs:
        if run != present_run:
            return _blanks(run), _blanks(present_run)
    return _blanks(""), _blanks("")


def _different_words(line: str, present: str) -> tuple[str, str]:
    if max(len(line), len(present)) > LONGEST_COMPARED:
        return _shown(line), _shown(present)
    tokens, present_tokens = _TOKEN.findall(line), _TOKEN.findall(present)
    matcher = difflib.SequenceMatcher(None, tokens, present_tokens, autojunk=False)
    for tag, start, end, present_start, present_end in matcher.get_opcodes():
        if tag != "equal":
            had = "".join(tokens[start:end])
            has = "".join(present_tokens[present_start:present_end])
            return _shown(had), _shown(has)
    return _shown(line), _shown(present)


def _whole_line(text: str) -> str:
    return _shown(text) if text.strip() else "a blank line"


def _shown(text: str) -> str:
    text = text.strip("\r\n")
    if not text:
        return "nothing"
    if not text.strip():
        return _blanks(text)
    text = text.strip()
    if len(text) > _LONGEST_SHOWN:
        text = f"{text[: _LONGEST_SHOWN - 1]}…"
    return f"`{text}`"
