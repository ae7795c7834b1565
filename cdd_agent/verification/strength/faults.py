"""Small faults for chosen lines of a file: edits that a good test notices.

`queries/` has a tree-sitter query for each language. Its captures:

    @operator              a comparison, `and` or `or`: see the tables below
    @literal               a number, a text, true or false
    @negation, @operand    `not x`, which becomes `x`
    @returned              a returned value, replaced by the pattern's `nothing` or, in
                           a language with declared types, by the zero of the type
    @deleted               a statement, replaced by the pattern's `instead`
    @ignored               code that stays unchanged, such as imports and logs
    @message               code whose texts stay, such as an exception's message
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from typing import Self

from msgspec import Struct
from tree_sitter import Node, Query, QueryCursor

from cdd_agent.context.grammars import Grammar, find_grammar
from cdd_agent.pattern import Pattern
from cdd_agent.verification.strength.fault import Fault, FaultKind
from cdd_agent.verification.strength.zeros import zero_of_returned

_DEEPEST = 200
"""Deepest node that is changed: time grows with the square of the depth."""
_LONGEST_LINE = 300
"""Bytes kept of a fault's line."""
_LONGEST_SHOWN = 60
"""Characters of code in a fault's description."""


_OPPOSITES = {
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "==": "!=",
    "!=": "==",
    "===": "!==",
    "!==": "===",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
}
_BOUNDARIES = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_JUNCTIONS = {"and": "or", "or": "and", "&&": "||", "||": "&&"}
_OPERATORS: dict[str, list[tuple[FaultKind, str]]] = {}
for _kind, _table in (
    (FaultKind.COMPARISON, _OPPOSITES),
    (FaultKind.BOUNDARY, _BOUNDARIES),
    (FaultKind.BOOLEAN, _JUNCTIONS),
):
    for _old, _new in _table.items():
        _OPERATORS.setdefault(_old, []).append((_kind, _new))
_TRUTHS = {"True": "False", "False": "True", "true": "false", "false": "true"}
_NUMBER = Pattern(
    r"(0|[1-9][\d_]*)(?![\d_xXbBoO])((?:\.\d*)?(?:[eE][+-]?\d+)?\w*)", re.ASCII
)
"""A decimal number: those in another base are often bit masks."""
_PLAIN = Pattern(
    r"-?\d[\w.]*|[Tt]rue|[Ff]alse|None|null|nil|NULL|nullptr|default|undefined"
    r"|\[\]|\{\}|\(\)|\"[^\"]*\"|'[^']*'",
    re.ASCII,
)
"""A value that resembles nothing, or has enough other faults."""
_QUOTES = "\"'`"
_WORDS = Pattern(rf"([A-Za-z@$]*)#*[{_QUOTES}]", re.ASCII)
"""The opening of a quoted text, with its prefix."""
_RAW_OR_FILLED = str.maketrans("", "", "rRfF@$")
"""Removes prefixes that an empty text does not need."""


def choose_faults(
    faults: Iterable[Fault], texts: Mapping[str, str], most: int
) -> list[Fault]:
    """Return at most `most` faults, spread over kinds and lines; so are the first few
    of them. With each, the file still parses. `texts` maps paths to texts. The order of
    `faults` does not matter.
    """
    waiting: dict[FaultKind, list[Fault]] = {}
    for fault in sorted(faults, key=_random_order):
        waiting.setdefault(fault.kind, []).append(fault)
    chosen: list[Fault] = []
    uses: Counter[tuple[str, int]] = Counter()
    while len(chosen) < most and any(waiting.values()):
        for kind in FaultKind:
            others = waiting.get(kind)
            if not others or len(chosen) == most:
                continue
            fault = min(others, key=lambda one: uses[one.path, one.line])
            others.remove(fault)
            if _parses(fault, texts[fault.path]):
                uses[fault.path, fault.line] += 1
                chosen.append(fault)
    return chosen


def _random_order(fault: Fault) -> tuple[bytes, int]:
    words = f"{fault.path}\0{fault.source}\0{fault.words}"
    return blake2b(words.encode(), digest_size=8).digest(), fault.start


_Match = tuple[int, dict[str, list[Node]]]


class _Edit(Struct, frozen=True):
    node: Node
    replacement: str
    kind: FaultKind

    @property
    def difference(self) -> tuple[int, int, bytes]:
        old, new = self.node.text or b"", self.replacement.encode()
        head = _length_of_common(old, new)
        old, new = old[head:], new[head:]
        tail = _length_of_common(old[::-1], new[::-1])
        start, length = self.node.start_byte + head, len(old) - tail
        return start, length, new[: len(new) - tail]


def _length_of_common(one: bytes, other: bytes) -> int:
    length = 0
    for first, right in zip(one, other, strict=False):
        if first != right:
            break
        length += 1
    return length


def faults_in(path: str, text: str, lines: Collection[int]) -> list[Fault]:
    """Return the faults in these lines, from 1, in order. Empty for a language without
    a query. The file may not parse with each; see `choose_faults`.
    """
    grammar = find_grammar(path)
    query = _load_query(grammar) if grammar else None
    data = text.encode()
    tree = grammar.parse(data) if grammar and query else None
    if grammar is None or query is None or tree is None:
        return []
    wanted = frozenset(lines)
    source = data.split(b"\n")
    faults: dict[tuple[int, int, bytes], Fault] = {}
    for edit in _find_edits(tree.root_node, query, grammar.name):
        first, last = edit.node.start_point.row, edit.node.end_point.row
        if wanted.issuperset(range(first + 1, last + 2)):
            faults.setdefault(edit.difference, _as_fault(path, edit, source))
    return sorted(faults.values(), key=lambda one: (one.start, one.end, one.words))


@lru_cache
def _load_query(grammar: Grammar) -> Query | None:
    """None if there is no query."""
    file = files("cdd_agent.verification.strength") / f"queries/{grammar.name}.scm"
    if not file.is_file():
        return None
    return Query(grammar.language, file.read_text(encoding="utf-8"))


def _parses(fault: Fault, text: str) -> bool:
    grammar = find_grammar(fault.path)
    assert grammar is not None
    before = grammar.parse(text.encode())
    after = grammar.parse(fault.apply(text).encode())
    if before is None or after is None:
        return False
    if not after.root_node.has_error:
        return True
    return _count_errors(after.root_node) <= _count_errors(before.root_node)


def _count_errors(node: Node) -> int:
    count, nodes = 0, [node]
    while nodes:
        one = nodes.pop()
        count += one.is_error or one.is_missing
        nodes += [child for child in one.children if child.has_error]
    return count


def _as_fault(path: str, edit: _Edit, source: Sequence[bytes]) -> Fault:
    node = edit.node
    line = source[node.start_point.row][:_LONGEST_LINE]
    return Fault(
        path,
        node.start_point.row + 1,
        node.start_byte,
        node.end_byte,
        edit.replacement,
        edit.kind,
        _describe(edit),
        line.decode("utf-8", errors="replace").strip(),
    )


def _describe(edit: _Edit) -> str:
    old = _shorten(_text(edit.node))
    if edit.kind is FaultKind.DELETED:
        return f"`{old.rstrip(';')}` was deleted"
    if edit.kind is FaultKind.RETURNED:
        return f"`{_shorten(edit.replacement)}` was returned instead of `{old}`"
    return f"`{old}` became `{_shorten(edit.replacement)}`"


def _shorten(code: str) -> str:
    line = " ".join(code.split())
    if len(line) <= _LONGEST_SHOWN:
        return line
    return line[: _LONGEST_SHOWN - 1] + "…"


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", errors="replace")


# Reading a query's matches


def _find_edits(root: Node, query: Query, language: str) -> Iterator[_Edit]:
    cursor = QueryCursor(query)
    cursor.set_max_start_depth(_DEEPEST)
    matches = cursor.matches(root)
    ignored = _Ranges.read(matches, "ignored")
    messages = _Ranges.read(matches, "message")
    for pattern, captures in matches:
        settings = query.pattern_settings(pattern)
        for edit in _edits_of_match(captures, settings, language):
            node = edit.node
            if edit.kind is FaultKind.DELETED and node.child_count:
                node = node.children[0]  # to match an ignored call without `;`
            is_text = edit.replacement.endswith('""')
            if not ignored.cover(node) and not (is_text and messages.cover(node)):
                yield edit


class _Ranges(Struct, frozen=True):
    """Byte ranges of nodes, merged and sorted."""

    starts: list[int]
    ends: list[int]

    @classmethod
    def read(cls, matches: Iterable[_Match], name: str) -> Self:
        nodes = [node for _, captures in matches for node in captures.get(name, ())]
        starts, ends = list[int](), list[int]()
        for start, end in sorted(node.byte_range for node in nodes):
            if not ends or end > ends[-1]:  # inside the previous range
                starts.append(start)
                ends.append(end)
        return cls(starts, ends)

    def cover(self, node: Node) -> bool:
        place = bisect_right(self.starts, node.start_byte) - 1
        return place >= 0 and node.end_byte <= self.ends[place]


def _edits_of_match(
    captures: dict[str, list[Node]], settings: dict[str, str | None], language: str
) -> Iterator[_Edit]:
    for node in captures.get("operator", ()):
        for kind, other in _OPERATORS.get(_text(node), ()):
            yield _Edit(node, other, kind)
    for node in captures.get("literal", ()):
        yield from _edits_of_literal(node)
    for node in captures.get("negation", ()):
        (operand,) = captures["operand"]
        yield _Edit(node, _text(operand), FaultKind.BOOLEAN)
    for node in captures.get("returned", ()):
        nothing = settings.get("nothing") or zero_of_returned(node, language)
        is_same = nothing == _text(node) or _PLAIN.fullmatch(_text(node))
        if nothing and not is_same:
            yield _Edit(node, nothing, FaultKind.RETURNED)
    for node in captures.get("deleted", ()):
        yield _Edit(node, settings.get("instead") or "", FaultKind.DELETED)


def _edits_of_literal(node: Node) -> Iterator[_Edit]:
    text = _text(node)
    if text in _TRUTHS:
        yield _Edit(node, _TRUTHS[text], FaultKind.BOOLEAN)
        return
    number = _NUMBER.fullmatch(text)
    if number:
        value = int(number[1].replace("_", "")) + 1
        yield _Edit(node, f"{value}{number[2]}", FaultKind.CONSTANT)
        return
    words = _WORDS.match(text)
    if words and text.strip(_QUOTES) != words[1]:
        prefix = words[1].translate(_RAW_OR_FILLED)
        yield _Edit(node, f'{prefix}""', FaultKind.CONSTANT)
