"""Which files of a project are looked into, and what is taken from one: its definitions
and its imports.

All of it is read by expressions, not by a parser, so that a large project takes
seconds: parsers take about ten times as long. They read only the few files whose lines
are shown (`definitions.py`).
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from cdd_agent.files.ignore import IgnoreRules

LARGEST = 1_000_000
"""Bytes of a file that is looked into."""
_LONG_LINES = 300
"""Bytes of a line on the average, above which nobody wrote the file by hand."""
_HEAD = 1_000
"""Bytes in which a generated file says so."""
_NOT_BY_HAND = re.compile(
    r"(?:^|/)(?:dist|vendor|vendored|_vendor|node_modules|bower_components"
    r"|third[_-]party|Pods|Godeps|\.yarn)/"
    r"|\.min\.(?:js|css|mjs)$|[.-]bundle\.js$|\.(?:map|snap|lock|lockb|sum|svg|csv|tsv"
    r"|po|pot|ipynb)$"
    r"|\.pb\.(?:go|cc|h)$|_pb2(?:_grpc)?\.pyi?$|\.(?:g|generated|designer)\.\w+$"
    r"|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml)$",
    re.IGNORECASE,
)
_GENERATED = re.compile(
    rb"@generated\b|\bDO NOT (?:EDIT|MODIFY)\b"
    rb"|^[^\w\n]{0,8}(?:this (?:file|code) (?:was|is|has been) )?(?:code |auto[-"
    rb" ]?|automatically )?generated"
    rb"(?: by\b| from\b| file\b| code\b|[.!]?\s*$)",
    re.IGNORECASE | re.MULTILINE,
)


def _expression(*alternatives: bytes) -> re.Pattern[bytes]:
    """Lines are found by the end of the one before: that is several times as fast as
    `^`.
    """
    return re.compile(b"|".join(alternatives), re.MULTILINE)


_NAME = rb"([A-Za-z_$\x80-\xff][\w$\x80-\xff]*)"


class _Family(Struct, frozen=True):
    """Languages that define and import in one way. Each expression's groups are
    names.
    """

    defined: re.Pattern[bytes]
    imported: re.Pattern[bytes]


_PYTHON = _Family(
    _expression(
        rb"\n[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+" + _NAME,
        rb"\n" + _NAME + rb"[ \t]*(?::[^=\n]+)?=(?!=)",
    ),
    _expression(
        rb"\n[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b[ \t(]*([\w, \t]*)|import"
        rb"[ \t]+([\w., \t]+))"
    ),
)
_SCRIPT = _Family(
    _expression(
        rb"\n[ \t]*(?:(?:export|default|declare|abstract|async)[ \t]+)*"
        rb"(?:class|function\*?|interface|type|enum|namespace)[ \t]+" + _NAME,
        rb"\n(?:export[ \t]+)?(?:const|let|var)[ \t]+" + _NAME,
        rb"\n[ \t]+(?:(?:public|private|protected|static|async|readonly|get|set)"
        rb"[ \t]+)*"
        rb"(?!(?:if|for|while|switch|catch|with)\b)" + _NAME + rb"\([^;\n]*\{$",
        rb"\n[\w.$]+\." + _NAME + rb"[ \t]*=[ \t]*(?:async[ \t]+)?(?:function|\()",
    ),
    _expression(rb"(?:\bfrom|\brequire\(|\bimport\(?)[ \t]*[\"']([^\"'\n]+)[\"']"),
)
_GO = _Family(
    _expression(
        rb"\n(?:func(?:[ \t]*\([^)\n]*\))?|type|var|const)[ \t]+" + _NAME,
        rb"\n\t" + _NAME + rb"[ \t]+(?:=|func|struct)",
    ),
    _expression(rb"\n[ \t]*(?:import[ \t]+)?(?:[\w.]+[ \t]+)?\"([\w./~-]+)\"\r?$"),
)
_RUST = _Family(
    _expression(
        rb"\n[ \t]*(?:(?:pub(?:\([^)\n]*\))?|async|unsafe|const|extern(?:"
        rb"[ \t]+\"\w*\")?)[ \t]+)*"
        rb"(?:fn|struct|enum|trait|type|mod|union|macro_rules!|static|const)[ \t]+"
        + _NAME
    ),
    _expression(rb"\n[ \t]*(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:use|mod)[ \t]+([\w:]+)"),
)
_C = _Family(
    _expression(
        rb"\n[A-Za-z_][\w \t*&:<>,]{0,200}?\b([A-Za-z_~]\w*)[ \t]*\([^;\n]*$",
        rb"\n[ \t]*(?:typedef[ \t]+)?(?:struct|union|enum|class|namespace)"
        rb"[ \t]+([A-Za-z_]\w*)[^;\n]*$",
        rb"\n[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)",
        rb"\n\}[ \t]*([A-Za-z_]\w*)[ \t]*;",
    ),
    _expression(rb"\n[ \t]*#[ \t]*include[ \t]*[\"<]([^\">\n]+)[\">]"),
)
_OTHER = _Family(
    _expression(
        rb"\n[ \t]*"
        rb"(?:(?:public|private|protected|internal|static|abstract|final|override|open"
        rb"|sealed|data)[ \t]+)*"
        rb"(?:def|class|func|fun|function|struct|enum|trait|interface|module|namespace"
        rb"|record|object|protocol|sub|proc)"
        rb"[ \t]+(?:self\.)?" + _NAME,
        rb"\n[ \t]+"
        rb"(?:(?:public|private|protected|internal|static|abstract|final|override"
        rb"|virtual|async)[ \t]+)+"
        rb"[\w<>\[\], .?]{1,200}[ \t]" + _NAME + rb"[ \t]*\(",
    ),
    _expression(
        rb"\n[ \t]*(?:import|using|use|open)[ \t]+(?:static[ \t]+)?([\w.\\]+)",
        rb"\brequire(?:_relative|_once)?[ \t(]+[\"']([^\"'\n]+)[\"']",
    ),
)
_FAMILIES = {
    suffix: family
    for family, suffixes in (
        (_PYTHON, "py pyi pyx"),
        (_SCRIPT, "js jsx mjs cjs ts tsx mts cts vue svelte"),
        (_GO, "go"),
        (_RUST, "rs"),
        (_C, "c h cc cpp cxx hh hpp hxx m mm cu ino y l"),
        (
            _OTHER,
            (
                "java kt kts scala cs php rb swift lua pl pm dart groovy ex exs jl hs"
                " ml sh bash tcl r erl clj zig nim"
            ),
        ),
    )
    for suffix in suffixes.split()
}


class Source(Struct, frozen=True):
    """The index's knowledge of a file's text."""

    defined: frozenset[str]
    imported: frozenset[str]
    """Modules, headers and paths, as they are written."""


class Handwritten:
    """Which files people write, by their names: those that are not vendored, not
    generated, and no lists of versions.

    The project's own `.gitattributes` can say otherwise, by `linguist-generated` and
    `linguist-vendored`.
    """

    def __init__(self, attributes: str) -> None:
        lines = []
        for line in attributes.split("\n"):
            pattern, *said = line.split() or ("",)
            for word in said:
                name, _, value = word.lstrip("-!").partition("=")
                if name in (
                    "linguist-generated",
                    "linguist-vendored",
                ) and not pattern.startswith("!"):
                    is_not = word[0] in "-!" or value == "false"
                    lines.append(f"!{pattern}" if is_not else pattern)
        self._rules = IgnoreRules("\n".join(lines), 0)

    def __call__(self, path: str) -> bool:
        verdict = (
            self._rules.decide(path, path.rpartition("/")[2], is_folder=False)
            if self._rules
            else None
        )
        return not (_NOT_BY_HAND.search(path) if verdict is None else verdict)


def suffix_of(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def is_code(path: str) -> bool:
    return suffix_of(path) in _FAMILIES


def read_as_source(path: str, data: bytes) -> Source | None:
    """None for what is binary, generated, or too large to be read by people."""
    if (
        len(data) > LARGEST
        or b"\0" in data[:8_000]
        or len(data) > _LONG_LINES * (data.count(b"\n") + 10)
    ):
        return None
    head = data[:_HEAD].lower()
    if (b"generated" in head or b"do not " in head) and _GENERATED.search(
        data, 0, _HEAD
    ):
        return None
    family = _FAMILIES.get(suffix_of(path))
    if family is None:
        return Source(frozenset(), frozenset())
    lines = b"\n" + data
    names = [
        found if isinstance(found, bytes) else b" ".join(found)
        for found in family.defined.findall(lines)
    ]
    return Source(
        frozenset(filter(None, b" ".join(names).decode("utf-8", "replace").split(" "))),
        frozenset(_imports(family.imported, lines)),
    )


def _imports(expression: re.Pattern[bytes], data: bytes) -> Iterator[str]:
    for found in expression.finditer(data):
        first, *names = (
            group.decode("utf-8", "replace") for group in found.groups() if group
        )
        if expression is _PYTHON.imported:
            modules = [
                name.split()[0]
                for name in (names[0] if names else first).split(",")
                if name.strip()
            ]
            yield from (
                [first, *(f"{first}.{name}" for name in modules)]
                if found[1]
                else modules
            )
        else:
            yield first
