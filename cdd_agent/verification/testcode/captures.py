"""The parts of a test file, found by the query of its language.

A query is a `.scm` file in this folder. It captures, anywhere in a pattern:

- `@test`, `@suite`, `@class` (a class that no runner collects), `@helper`, `@called` (a
  test if the file calls it) and `@marked` (a test after a `@test_mark`), with `@name`
  and `@body`; a `@mark` before one belongs to it;
- `@skip`, `@maybe` (skipped on a condition), `@only`, `@branch`, and `@return`;
- `@check` and `@call`, with `@on` (the receiver) and `@args`; `@value`, `@message`;
- `@row` in a `@table`, `@item` in a `@loop`, `@computed` (any number of rows);
- `@comment`, `@dead` (never runs), `@word` and `@cut` (no part of the body), `@block`
  (its end counts), and `@forget` (the name means something else from here on).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from tree_sitter import Node, Query, QueryCursor

from cdd_agent.context.grammars import grammar_of
from cdd_agent.pattern import Pattern

Span = tuple[int, int]
"""Start and end in bytes, half-open."""

NO_TABLE: Span = (0, 0)
_DEEPEST = 100
"""Deepest capture: time grows with the square of the depth."""
_MOST_MATCHES = 20_000
"""Most matches that tree-sitter tracks at once."""
_MOST_STEPS = 500_000_000
"""Most steps between siblings, over all nodes of a text."""
_FEW = 2_000
"""Nodes with fewer descendants do not matter for that."""
_KINDS = ("test", "suite", "called", "marked", "class", "helper")
"""An earlier kind wins."""
_CHECKS = Pattern(
    r"\w*[aA]ssert\w*|ASSERT\w*|EXPECT\w*|CHECK\w*|REQUIRE\w*|TEST_ASSERT\w*|XCT\w+"
    r"|BOOST_\w+|expect\w*|should\w*|Should|must_\w+|[vV]erify\w*|refute\w*|fail\w*"
    r"|Fail\w*|Error(?:f|Is)?|Fatal(?:f|ln)?|panic|throws?|deepEqual|check\w*|ck_\w+"
    r"|raise_error|exit|die"
)
"""Calls that may be assertions."""
_PYTHON_CHECKS = Pattern(
    r"(?i)\w*(?:assert|expect|raises|warns|fail|verify|check|should|compare|validat"
    r"|match)\w*"
)
_FUNCTION = Pattern(r"function|method|lambda|closure|func_literal|do_block")
"""Types of nodes whose code runs only when called."""


class Language(Struct, frozen=True):
    """Rules of a language that a query cannot state."""

    queries: tuple[str, ...]
    grammar: str
    """Suffix of the grammar to use."""
    checks: Pattern[str] = _CHECKS
    joint: str = " > "
    """Joins the parts of a test's name."""
    nests: bool = True
    """True if tests nest and names may repeat."""
    rewrite: tuple[Pattern[str], Callable[[re.Match[str]], str]] | None = None
    """Makes another language parse, at the same length."""


_LONE_MACRO = Pattern(r"(?m)^[ \t]*[A-Z][A-Z0-9_]+[ \t]*$")
"""A macro that stands for statements, such as `EXPECT_ABORT_BEGIN`."""
_SWIFT_MACRO = Pattern(r"#(?=(?:expect|require)\()")


def _as_identifier(match: re.Match[str]) -> str:
    return re.sub(r"\W", "_", match[0], flags=re.ASCII)


def _as_blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


_LANGUAGES = {
    suffix: language
    for suffixes, language in (
        ("py", Language(("python",), "py", _PYTHON_CHECKS, "::", nests=False)),
        ("js jsx mjs cjs", Language(("javascript",), "js")),
        ("ts mts cts", Language(("javascript", "typescript"), "ts")),
        ("tsx", Language(("javascript", "typescript"), "tsx")),
        ("go", Language(("go",), "go")),
        ("rs", Language(("rust",), "rs")),
        ("java", Language(("java",), "java")),
        (
            "groovy",
            Language(
                ("java", "groovy"),
                "groovy",
                rewrite=(Pattern(r'(?<=\bdef )"[^"\n]*"(?=\()'), _as_identifier),
            ),
        ),
        ("kt kts", Language(("kotlin",), "kt")),
        ("scala", Language(("scala",), "scala")),
        ("cs", Language(("c_sharp",), "cs")),
        ("swift", Language(("swift",), "swift", rewrite=(_SWIFT_MACRO, _as_blank))),
        ("php", Language(("php",), "php")),
        ("rb cr", Language(("ruby",), "rb")),
        ("ex exs", Language(("elixir",), "ex")),
        ("c", Language(("c",), "c", rewrite=(_LONE_MACRO, _as_blank))),
        (
            "h cc cpp cxx hpp",
            Language(("c", "cpp"), "cpp", rewrite=(_LONE_MACRO, _as_blank)),
        ),
        ("m mm", Language(("c", "objc"), "m")),
        (
            "sh bash zsh bats",
            Language(
                ("bash",),
                "sh",
                rewrite=(
                    Pattern(r"(?m)(^[ \t]*@test[ \t].+) (?=\{[ \t]*$|\{ )"),
                    lambda found: f"{found[1]};",
                ),
            ),
        ),
        ("lua", Language(("lua",), "lua")),
        ("jl", Language(("julia",), "jl")),
        ("zig", Language(("zig",), "zig")),
    )
    for suffix in suffixes.split()
}


class Declaration(Struct, frozen=True):
    """A test, group or helper."""

    kind: str
    span: Span
    names: tuple[Span, ...]


class CallSite(Struct, frozen=True):
    """A call, perhaps an assertion."""

    name: Span
    receiver: Span | None = None
    arguments: Span | None = None
    is_check: bool = False
    """True if the query says it is an assertion."""


class Captures(Struct):
    data: bytes
    has_error: bool
    spans: defaultdict[str, set[Span]] = field(default_factory=lambda: defaultdict(set))
    """Capture name → places."""
    declarations: dict[Span, Declaration] = field(default_factory=dict)
    calls: dict[int, CallSite] = field(default_factory=dict)
    """By the place of the name."""
    rows: defaultdict[Span, set[Span]] = field(default_factory=lambda: defaultdict(set))
    """By table; `NO_TABLE` for rows without one."""
    loops: defaultdict[Span, set[Span]] = field(
        default_factory=lambda: defaultdict(set)
    )
    """The listed values of each loop."""
    returns: list[Span] = field(default_factory=list)
    """Code between a return and its block's end."""
    _names: dict[int, Node] = field(default_factory=dict)

    def add(self, captured: dict[str, list[Node]]) -> None:
        spans_by_name = {
            name: [(node.start_byte, node.end_byte) for node in nodes]
            for name, nodes in captured.items()
        }
        for name, spans in spans_by_name.items():
            if not name.startswith("_"):
                self.spans[name].update(spans)
        kind = next((kind for kind in _KINDS if kind in spans_by_name), None)
        if kind is not None:
            self._declare(kind, spans_by_name)
        for name in ("call", "check"):
            if name in spans_by_name:
                self._add_call(name, spans_by_name)
                self._names[spans_by_name[name][0][0]] = captured[name][0]
        self.rows[spans_by_name.get("table", [NO_TABLE])[0]].update(
            spans_by_name.get("row", ())
        )
        for loop in spans_by_name.get("loop", ()):
            self.loops[loop].update(spans_by_name.get("item", ()))
        for node in captured.get("return", ()):
            if node.parent is not None:
                self.returns.append((node.end_byte, node.parent.end_byte))

    def is_in_function(self, call: CallSite) -> bool:
        node = self._names[call.name[0]].parent
        while node is not None:
            if _FUNCTION.search(node.type):
                return True
            node = node.parent
        return False

    def _declare(self, kind: str, spans: Mapping[str, list[Span]]) -> None:
        parts = [
            span for part in (kind, "name", "body") for span in spans.get(part, ())
        ]
        span = (min(start for start, _ in parts), max(end for _, end in parts))
        declaration = self.declarations.get(span)
        if declaration is None or _KINDS.index(kind) < _KINDS.index(declaration.kind):
            names = tuple(spans.get("name", ()))
            self.declarations[span] = Declaration(kind, span, names)

    def _add_call(self, capture: str, spans: Mapping[str, list[Span]]) -> None:
        name = spans[capture][0]
        call = self.calls.get(name[0])
        receiver = spans.get("on", [None])[0]
        arguments = spans.get("args", [None])[0]
        is_check = capture == "check"
        if call is not None:
            receiver = call.receiver or receiver
            arguments = call.arguments or arguments
            is_check = call.is_check or is_check
        self.calls[name[0]] = CallSite(name, receiver, arguments, is_check)


def language_of(suffix: str) -> Language | None:
    """Return the language of a suffix; None if there is no query for it."""
    language = _LANGUAGES.get(suffix)
    if language is None or grammar_of(language.grammar) is None:
        return None
    return language


def is_check_name(name: str) -> bool:
    """True if such a call may be an assertion in any language."""
    return _CHECKS.fullmatch(name) is not None


def capture(language: Language, text: str) -> Captures | None:
    """None if the query would take too long."""
    if language.rewrite is not None:
        pattern, replacement = language.rewrite
        text = pattern.sub(replacement, text)
    data = text.encode("utf-8", "replace")
    grammar = grammar_of(language.grammar)
    assert grammar is not None
    tree = grammar.parse(data)
    if tree is None or not _can_query(tree.root_node):
        return None
    cursor: Any = QueryCursor(_load_query(language), match_limit=_MOST_MATCHES)
    cursor.set_max_start_depth(_DEEPEST)
    captures = Captures(data, tree.root_node.has_error)
    for _, captured in cursor.matches(tree.root_node):
        captures.add(captured)
    return captures


def _can_query(root: Node) -> bool:
    """True if the time of a query is proportional to the text.

    tree-sitter searches the next named sibling of each node. Among thousands of
    brackets, for example, there is none.
    """
    steps = 0
    large = [root]
    while large:
        unnamed = 0
        for node in large.pop().children:
            unnamed = 0 if node.is_named else unnamed + 1
            steps += unnamed
            if node.descendant_count > _FEW:
                large.append(node)
    return steps < _MOST_STEPS


@lru_cache
def _load_query(language: Language) -> Query:
    grammar = grammar_of(language.grammar)
    assert grammar is not None
    texts = [
        Path(__file__).with_name(f"{name}.scm").read_text(encoding="utf-8")
        for name in language.queries
    ]
    return Query(grammar.language, "\n".join(texts))
