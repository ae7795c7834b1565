"""The definitions in a file's text, exactly: what each is called, from which line to
which. The one place that parses.

One question is put to every language: which nodes have a name? What kinds of those
define something, their types' names say alike in almost all grammars.
"""

import re
from functools import lru_cache
from importlib import import_module
from typing import Any

from msgspec import Struct
from tree_sitter import Language, Node, Parser, Query, QueryCursor, QueryError

from cdd_agent.context.source import suffix_of

_LARGEST = 500_000
"""Bytes of a text that is parsed."""
_MOST = 5_000
"""Definitions of one text."""
_DEEPEST = 60
"""Nodes around a definition. The time for looking deeper grows with the depth's square.
"""
_GRAMMARS = {
    suffix: (package, function)
    for package, function, suffixes in (
        ("tree_sitter_bash", "language", "sh bash"),
        ("tree_sitter_c", "language", "c"),
        ("tree_sitter_c_sharp", "language", "cs"),
        ("tree_sitter_cpp", "language", "h cc cpp cxx hh hpp hxx cu ino"),
        ("tree_sitter_go", "language", "go"),
        ("tree_sitter_groovy", "language", "groovy"),
        ("tree_sitter_haskell", "language", "hs"),
        ("tree_sitter_java", "language", "java"),
        ("tree_sitter_javascript", "language", "js jsx mjs cjs"),
        ("tree_sitter_julia", "language", "jl"),
        ("tree_sitter_kotlin", "language", "kt kts"),
        ("tree_sitter_lua", "language", "lua"),
        ("tree_sitter_objc", "language", "m mm"),
        ("tree_sitter_php", "language_php", "php"),
        ("tree_sitter_python", "language", "py pyi"),
        ("tree_sitter_ruby", "language", "rb"),
        ("tree_sitter_rust", "language", "rs"),
        ("tree_sitter_scala", "language", "scala"),
        ("tree_sitter_swift", "language", "swift"),
        ("tree_sitter_typescript", "language_tsx", "tsx"),
        ("tree_sitter_typescript", "language_typescript", "ts mts cts"),
        ("tree_sitter_zig", "language", "zig"),
    )
    for suffix in suffixes.split()
}
"""By suffix, the package of a language's grammar and its function that returns it.

Clojure, Dart, Erlang and R have no well-kept package with wheels for all platforms.
Perl's has none for Macs with Intel processors. In Elixir and OCaml no query finds
anything. Files in these languages are found by their text alone.
"""
_DEFINES = re.compile(
    r"(?:function|method|class|struct|enum|trait|interface|module|namespace"
    r"|constructor|macro|record|object|protocol"
    r"|union|impl|type(?:_alias)?|mixin|extension|singleton_method)"
    r"(?:_definition|_declaration|_item|_spec|_statement|_specifier|_signature|_def"
    r"|_decl|_block)?|type_spec|class"
    r"|template_function|generator_function_declaration|abstract_class_declaration"
    r"|internal_module|method_spec"
)
_QUERIES = (
    "(_ name: (_) @name) @whole",
    "(function_definition declarator: (_) @name) @whole",
    "(impl_item type: (_) @name) @whole",
    (
        "(variable_declarator name: (identifier) @name value: [(arrow_function)"
        " (function_expression) (class)]) @whole"
    ),
    (
        "(assignment_expression left: (_) @name right: [(arrow_function)"
        " (function_expression) (class)]) @whole"
    ),
    (
        "(pair key: (property_identifier) @name value: [(arrow_function)"
        " (function_expression)]) @whole"
    ),
)


class Definition(Struct, frozen=True):
    name: str
    """With the names of what it is in: `Parser.parse`."""
    first: int
    """Line, from 1; decorators and such belong to it."""
    last: int
    head: int
    """The line on which it itself begins."""
    depth: int


def definitions(path: str, data: bytes) -> tuple[Definition, ...]:
    """Return the definitions in the order of the text.

    There are none for a language without a grammar, or for a very large text. Callers
    then search the text itself.
    """
    names = _GRAMMARS.get(suffix_of(path))
    if names is None or len(data) > _LARGEST:
        return ()
    grammar = _load_grammar(*names)
    if grammar is None:
        return ()
    parser, queries = grammar
    return tuple(_nested(_named(parser.parse(data).root_node, queries)))


@lru_cache
def _load_grammar(
    package: str, function: str
) -> tuple[Parser, tuple[Query, ...]] | None:
    """Return the parser and its queries; None if the installed package is missing or
    does not fit tree-sitter.
    """
    try:
        # late: only the grammar of this language is loaded
        module = import_module(package)
        language = Language(getattr(module, function)())
    except (ImportError, AttributeError, ValueError):
        return None
    queries = []
    for text in _QUERIES:
        try:
            queries.append(Query(language, text))
        except QueryError:
            continue  # the language has no such nodes
    return Parser(language), tuple(queries)


def _named(root: Node, queries: tuple[Query, ...]) -> list[tuple[int, int, int, str]]:
    """The first line, the last, the head's and the name of each definition, the outer
    ones first.
    """
    found: dict[tuple[int, int], tuple[int, int, int, str]] = {}
    for at, query in enumerate(queries):
        cursor: Any = QueryCursor(query, match_limit=20_000)
        cursor.set_max_start_depth(_DEEPEST)
        for _, captures in cursor.matches(root):
            whole, name = captures["whole"][0], captures["name"][0]
            if at == 0 and not _DEFINES.fullmatch(whole.type):
                continue
            head = whole.start_point[0] + 1
            last = whole.end_point[0] + (whole.end_point[1] > 0)
            first = head
            around = whole.parent
            if around is not None and around.type in (
                "decorated_definition",
                "export_statement",
                "template_declaration",
            ):
                first = around.start_point[0] + 1
            text = re.sub(rb"\s+", b" ", name.text or b"").decode("utf-8", "replace")
            if whole.type == "function_definition" and at == 1:
                text = (re.match(r"[*&\s]*([\w:~]+)", text) or [text, text])[1]
            found.setdefault(
                (whole.start_byte, whole.end_byte), (first, last, head, text[:100])
            )
            if len(found) > _MOST:
                break
    return [
        found[place] for place in sorted(found, key=lambda place: (place[0], -place[1]))
    ]


def _nested(named: list[tuple[int, int, int, str]]) -> list[Definition]:
    around: list[Definition] = []
    result = []
    for first, last, head, name in named:
        while around and head > around[-1].last:
            around.pop()
        inner = f"{around[-1].name}.{name}" if around else name
        made = Definition(inner, first, last, head, len(around))
        around.append(made)
        result.append(made)
    return result
