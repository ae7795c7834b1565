"""Grammars of programming languages, by file suffix. No other module parses with
tree-sitter.
"""

from collections.abc import Collection
from functools import lru_cache
from importlib import import_module
from time import thread_time

from msgspec import Struct
from tree_sitter import Language, Parser, Point, Tree

from cdd_agent.context.source import suffix_of
from cdd_agent.pattern import Pattern

LARGEST_PARSED = 500_000
"""Maximum bytes of a text to parse."""
_PIECE = 1024
"""Bytes that the parser reads at once."""
_SECONDS = 0.2
_SECONDS_A_BYTE = 5e-6
"""Ten times what code takes. For some text, such as thousands of unclosed strings, the
parser searches the whole rest for each of them.
"""
_OPEN_BRACKETS = Pattern(rb"(?:<[^<>;{}]*+){1000}")
"""Text on which C#'s grammar spends hours without a break."""
_GRAMMARS = {
    suffix: (package, function)
    for package, function, suffixes in (
        ("tree_sitter_bash", "language", "sh bash"),
        ("tree_sitter_c", "language", "c"),
        ("tree_sitter_c_sharp", "language", "cs"),
        ("tree_sitter_cpp", "language", "h cc cpp cxx hh hpp hxx cu ino"),
        ("tree_sitter_elixir", "language", "ex exs"),
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
"""By suffix: a grammar's package and the function that returns it. Clojure, Dart,
Erlang and R have no maintained package with wheels for all platforms; Perl's lacks
Intel Macs. Their files are searched as plain text.
"""


class Grammar(Struct, frozen=True):
    name: str
    """From the package name; `tsx` and `typescript` are two grammars."""
    language: Language

    def parse(self, data: bytes) -> Tree | None:
        """Return the syntax tree; None if the text is too large or parsing is too
        slow.
        """
        if len(data) > LARGEST_PARSED or _OPEN_BRACKETS.search(data):
            return None
        end = thread_time() + _SECONDS + _SECONDS_A_BYTE * len(data)

        def is_late(*_: object) -> bool:
            return thread_time() > end

        def read(offset: int, _: Point) -> bytes:
            return b"" if is_late() else data[offset : offset + _PIECE]

        try:
            Parser(self.language).parse(read, progress_callback=is_late)
        except ValueError:  # it was late
            return None
        # a tree that was read in pieces does not keep the text that queries need
        return None if is_late() else Parser(self.language).parse(data)


def has_error(tree: Tree, tolerant: Collection[str] = ()) -> bool:
    """True if a syntax tree has an error. Unknown syntax directly in a node of a
    `tolerant` type does not count.
    """
    nodes = [tree.root_node]
    while nodes:
        node = nodes.pop()
        if node.is_error or node.is_missing:
            return True
        for child in node.children:
            is_tolerated = child.is_error and node.type in tolerant
            if child.has_error and not is_tolerated:
                nodes.append(child)
    return False


def has_token(tree: Tree, kind: str, text: bytes) -> bool:
    nodes = [tree.root_node]
    while nodes:
        node = nodes.pop()
        if node.type == kind and node.text == text:
            return True
        nodes += node.children
    return False


def find_grammar(path: str) -> Grammar | None:
    return grammar_of(suffix_of(path))


def grammar_of(suffix: str) -> Grammar | None:
    names = _GRAMMARS.get(suffix)
    return _load_grammar(*names) if names else None


@lru_cache
def _load_grammar(package: str, function: str) -> Grammar | None:
    """Return a grammar. None if its package is missing or does not fit tree-sitter."""
    name = package.removeprefix("tree_sitter_")
    if name == "typescript":
        name = function.removeprefix("language_")
    try:
        # late: only the grammar of this language is loaded
        module = import_module(package)
        return Grammar(name, Language(getattr(module, function)()))
    except (ImportError, AttributeError, ValueError):
        return None
