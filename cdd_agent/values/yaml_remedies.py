"""Find a small change that makes a text valid YAML. Each change is tried before it is
reported.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial

import yaml
from msgspec import Struct

from cdd_agent.pattern import Pattern

_MAX_CHARACTERS = 300_000
_MAX_SHOWN = 100
_LINE = Pattern("[^\n\r\x85\u2028\u2029]*(?:\r\n|[\n\r\x85\u2028\u2029]|$)")
_TEXT = Pattern(
    r"(?P<before>\s*(?:- +)*"
    r"""(?:(?:[^\s"'\[{#&*!|>%@`?-][^:#"'\[{]*?|"[^"]*"|'[^']*'):[ \t]+)?)"""
    r"(?P<text>\S.*)",
    re.DOTALL,
)
_KEY_AT_VALUE = Pattern(r"(\s*(?:- +)*[^\W\d][\w -]*:)([^\s:/\\].*)", re.DOTALL)
_KEY_AND_TEXT = Pattern(r"(\s*)((?:- +)*[^\W\d][\w -]*:) +([^\s|>].*)", re.DOTALL)
_KEY_OR_ITEM = Pattern(r""" *(?:- |[^\s#"'].*:(?:\s|$))""")
_ITEM = Pattern(r"( *)- \S")
# tabs, and the spaces of word processors and East Asian keyboards
_ODD_SPACES = Pattern(r"^ *[\t\u00a0\u2000-\u200a\u202f\u3000][^\S\n\r]*", re.MULTILINE)
_FENCE = Pattern(r"^ *(?:```|~~~).*", re.MULTILINE)
_MARKER = Pattern(r"(?:---|\.\.\.)(?:\s|$)")
_FLOW_ITEM = Pattern(r"""([\[,] *|^\s*)([^\[\],"'\s][^\[\],"']* #[^\[\],]*)""")


class Remedy(Struct, frozen=True):
    """A change of a text, with the advice to make it."""

    lines: list[str]
    advice: str


def find_remedy(
    text: str,
    error: yaml.MarkedYAMLError,
    find_error_line: Callable[[str], int | None],
) -> str:
    """Return advice for the error, or nothing. `find_error_line` returns the line of
    the first error, from 0.
    """
    mark = error.problem_mark or error.context_mark
    if mark is None or len(text) > _MAX_CHARACTERS:
        return ""
    lines = split_lines(text)
    for repair in _REPAIRS:
        for number in _suspect_lines(error, lines):
            for remedy in repair(lines, number):
                line = find_error_line("".join(remedy.lines))
                added = len(remedy.lines) - len(lines)
                if line is None or line > mark.line + added:
                    return remedy.advice[0].upper() + remedy.advice[1:]
    return ""


def split_lines(text: str) -> list[str]:
    """Return the lines of YAML with their ends."""
    return [line for line in _LINE.findall(text) if line]


def quote(text: str) -> str:
    """Put a line of text in quotes, replacing existing ones."""
    if _is_in_quotes(text):
        text = text[1:-1]
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _is_in_quotes(text: str) -> bool:
    """True for `'don't'` and `"a "b" c"`, false for `"a" and "b"`."""
    mark, inner = text[:1], text[1:-1]
    if len(text) < 2 or mark not in "\"'" or not text.endswith(mark):
        return False
    first = inner.find(mark)
    is_opened_again = inner[max(first - 1, 0) : first].isspace()
    return first < 0 or inner.count(mark) % 2 == 1 or is_opened_again


def list_advice(count: int) -> str:
    """Return the advice for a list in place of one mapping."""
    if count == 1:
        return "Remove the dash before its first key, and the spaces before all keys."
    return f"It has {count} items: keep one of them, without its dash."


def separate_key(line: str) -> str:
    """Put a space after the colon of `key:value`. Return an empty text for other
    lines.
    """
    key = _KEY_AT_VALUE.fullmatch(line)
    return f"{key[1]} {key[2]}" if key else ""


def quotes_advice(
    text: str, before: str = "", *, otherwise: str = "put the text in quotes"
) -> str:
    """Return the advice to quote a text, with the result if it is short."""
    result = before + quote(text)
    if len(result) > _MAX_SHOWN or len(split_lines(text)) > 1:
        return otherwise
    return f"put the text in quotes: {result}"


def _suspect_lines(error: yaml.MarkedYAMLError, lines: list[str]) -> list[int]:
    numbers = []
    if error.problem_mark is not None:
        last = min(error.problem_mark.line, len(lines) - 1)
        written = [n for n in range(last + 1) if lines[n].strip()]
        numbers = [last, *reversed(written[-3:])]
    if error.context_mark is not None:
        numbers.append(min(error.context_mark.line, len(lines) - 1))
    return list(dict.fromkeys(numbers))


def _replace_line(lines: list[str], number: int, *new: str) -> list[str]:
    return [*lines[:number], *new, *lines[number + 1 :]]


def _end_document(lines: list[str], number: int) -> Iterator[Remedy]:
    """Leave out a second document."""
    has_content = False
    for marker, line in enumerate(lines[: number + 1]):
        is_marker = bool(_MARKER.match(line))
        if is_marker and has_content:
            advice = (
                f"A second document begins in line {marker + 1}: put its text below a"
                " key, such as notes: |, or remove it with that line."
            )
            yield Remedy(lines[:marker], advice)
            return
        if line.strip() and not is_marker and not line.startswith("#"):
            has_content = True


def _remove_fence(lines: list[str], number: int) -> Iterator[Remedy]:
    text = "".join(lines)
    if _FENCE.match(lines[number]):
        unfenced = split_lines(_FENCE.sub("", text))
        yield Remedy(unfenced, f"Remove the fence in line {number + 1}.")


def _replace_odd_spaces(lines: list[str], number: int) -> Iterator[Remedy]:
    odd = _ODD_SPACES.match(lines[number])
    if odd is None:
        return
    advice = _odd_spaces_advice(odd[0], number)
    text = "".join(lines)
    for width in (1, 2, 0):
        plain = _ODD_SPACES.sub(partial(_plain_spaces, width), text)
        yield Remedy(split_lines(plain), advice)


def _odd_spaces_advice(odd: str, number: int) -> str:
    kind = "the tab" if "\t" in odd else "the other kind of space"
    return f"Use plain spaces instead of {kind} at the start of line {number + 1}."


def _plain_spaces(width: int, odd: re.Match[str]) -> str:
    plain = odd[0].count(" ")
    return " " * (plain + width * (len(odd[0]) - plain))


def _separate_key(lines: list[str], number: int) -> Iterator[Remedy]:
    line = separate_key(lines[number])
    if line:
        advice = f"Put a space after the colon: {_shorten(line)}"
        yield Remedy(_replace_line(lines, number, line), advice)
        # users who omit the space do so in several lines
        yield Remedy([separate_key(other) or other for other in lines], advice)


def _close_quote(lines: list[str], number: int) -> Iterator[Remedy]:
    written, end = _split_end(lines[number])
    for mark in "\"'":
        if written.count(mark) % 2:
            closed = f"{written}{mark}"
            advice = f"Close the quote that opens in line {number + 1}"
            yield Remedy(
                _replace_line(lines, number, closed + end),
                f"{advice}: {_shorten(closed)}",
            )


def _close_bracket(lines: list[str], number: int) -> Iterator[Remedy]:
    written, end = _split_end(lines[number])
    for opening, closing in ("[]", "{}"):
        if written.count(opening) == written.count(closing) + 1:
            closed = f"{written}{closing}"
            yield Remedy(
                _replace_line(lines, number, closed + end),
                f"Close the bracket in line {number + 1}: {_shorten(closed)}",
            )


def _quote_flow_item(lines: list[str], number: int) -> Iterator[Remedy]:
    item = _FLOW_ITEM.search(lines[number])
    if item:
        text = item[2].rstrip()
        quoted = quote(text)
        line = lines[number].replace(text, quoted)
        advice = "Text after a space and # is a comment"
        yield Remedy(
            _replace_line(lines, number, line), f"{advice}: {quotes_advice(text)}"
        )


def _quote_text(lines: list[str], number: int) -> Iterator[Remedy]:
    written, end = _split_end(lines[number])
    value = _TEXT.fullmatch(written)
    if value is None or not value["before"].strip():
        return
    line = value["before"] + quote(value["text"]) + end
    advice = quotes_advice(
        value["text"],
        value["before"].lstrip(),
        otherwise=f"put the text of line {number + 1} in quotes",
    )
    yield Remedy(_replace_line(lines, number, line), advice)


def _add_dash(lines: list[str], number: int) -> Iterator[Remedy]:
    item = _ITEM.match(lines[number - 1]) if number else None
    if item and not lines[number].lstrip().startswith("-"):
        line = f"{item[1]}- {lines[number].lstrip()}"
        advice = f"If line {number + 1} is an item, put a dash before it: "
        yield Remedy(_replace_line(lines, number, line), advice + _shorten(line))


def _indent_text(lines: list[str], number: int) -> Iterator[Remedy]:
    line = lines[number]
    if number and not re.match(r"\s|-\s", line) and not re.search(r":\s", line):
        yield Remedy(
            _replace_line(lines, number, f"  {line}"),
            f"Indent line {number + 1}: each line of a text begins with spaces.",
        )


def _move_or_make_block(lines: list[str], number: int) -> Iterator[Remedy]:
    block = _make_block(lines, number)
    for moved in _move_to_column(lines, number):
        advice = moved.advice
        if block:
            advice = f"{advice} If it is text: {block.advice}"
        yield Remedy(moved.lines, advice)
    if block:
        yield block


def _make_block(lines: list[str], number: int) -> Remedy | None:
    """Write the text of the key above a line as a block of lines."""
    width = _indentation(lines[number])
    above = number - 1
    while above > 0 and _indentation(lines[above]) >= width:
        above -= 1
    key = _KEY_AND_TEXT.fullmatch(lines[above]) if above >= 0 else None
    if key is None or _indentation(lines[above]) >= width:
        return None
    block = (f"{key[1]}{key[2]} |\n", f"{' ' * width}{key[3]}")
    advice = f"write a text of several lines below {key[2]} |"
    return Remedy(_replace_line(lines, above, *block), advice)


def _move_to_column(lines: list[str], number: int) -> Iterator[Remedy]:
    if not _KEY_OR_ITEM.match(lines[number]):
        return
    tried = {_indentation(lines[number])}
    for above in range(number - 1, max(number - 20, -1), -1):
        width = _indentation(lines[above])
        if not lines[above].strip() or width in tried:
            continue
        tried.add(width)
        line = " " * width + lines[number].lstrip(" ")
        advice = f"Begin line {number + 1} in the same column as line {above + 1}."
        yield Remedy(_replace_line(lines, number, line), advice)


def _leave_out(lines: list[str], number: int) -> Iterator[Remedy]:
    line = lines[number]
    if not line.startswith((" ", "#")) and line.strip():
        advice = (
            f"Line {number + 1} is not `key: value`: put text below a key, such as"
            " notes: |, with spaces at the start of each line."
        )
        odd = _ODD_SPACES.match(line)
        if odd:
            # the line has more faults, but this is the first one
            advice = _odd_spaces_advice(odd[0], number)
        yield Remedy(_replace_line(lines, number, "#\n"), advice)


_REPAIRS = (
    _end_document,
    _remove_fence,
    _replace_odd_spaces,
    _separate_key,
    _close_quote,
    _quote_flow_item,
    _close_bracket,
    _quote_text,
    _indent_text,
    _add_dash,
    _move_or_make_block,
    _leave_out,
)
"""Most specific first."""


def _split_end(line: str) -> tuple[str, str]:
    written = line.rstrip()
    return written, line[len(written) :]


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _shorten(line: str) -> str:
    line = line.strip()
    return line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…"
