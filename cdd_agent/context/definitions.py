"""Parse the definitions in a file's text: name, first and last line.

One query works for every language: which nodes have a name? Almost all grammars use
similar type names for those that define something.
"""

import re
from functools import lru_cache
from typing import Any

from msgspec import Struct
from tree_sitter import Node, Query, QueryCursor, QueryError

from cdd_agent.context.grammars import Grammar, find_grammar
from cdd_agent.pattern import Pattern

_MOST = 5_000
"""Maximum definitions of one text."""
_DEEPEST = 60
"""Maximum depth of a definition. Searching deeper takes time quadratic in the depth."""
_DEFINES = Pattern(
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
    """With the names around it: `Parser.parse`."""
    first: int
    """Counted from 1, including decorators."""
    last: int
    head: int
    """The line of the definition itself."""
    depth: int


def definitions(path: str, data: bytes) -> tuple[Definition, ...]:
    """Return the definitions in the text's order.

    None for a language without a grammar, or a text that is too large or too slow to
    parse. Callers then search the text itself.
    """
    grammar = find_grammar(path)
    tree = grammar.parse(data) if grammar else None
    if grammar is None or tree is None:
        return ()
    return tuple(_nested(_named(tree.root_node, _load_queries(grammar))))


@lru_cache
def _load_queries(grammar: Grammar) -> tuple[Query, ...]:
    queries = []
    for text in _QUERIES:
        try:
            queries.append(Query(grammar.language, text))
        except QueryError:
            continue  # the language has no such nodes
    return tuple(queries)


def _named(root: Node, queries: tuple[Query, ...]) -> list[tuple[int, int, int, str]]:
    names: dict[tuple[int, int], tuple[int, int, int, str]] = {}
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
            names.setdefault(
                (whole.start_byte, whole.end_byte), (first, last, head, text[:100])
            )
            if len(names) > _MOST:
                break
    return [
        names[place] for place in sorted(names, key=lambda place: (place[0], -place[1]))
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
