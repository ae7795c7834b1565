"""The files of a project to index, with the names that each defines and imports.

Regular expressions find these names, because parsers take about ten times as long. Only
the few files whose lines are shown are parsed (`definitions.py`).
"""

import re

from msgspec import Struct

from cdd_agent.files.ignore import IgnoreRules
from cdd_agent.pattern import Pattern

LARGEST = 1_000_000
"""Maximum bytes of a file to read."""
_LONG_LINES = 300
"""Average bytes per line, at most, of a handwritten file."""
_HEAD = 1_000
"""Bytes to search for a remark that the file is generated."""
_NOT_BY_HAND = Pattern(
    r"(?:^|/)(?:dist|vendor|vendored|_vendor|node_modules|bower_components"
    r"|third[_-]party|Pods|Godeps|\.yarn)/"
    r"|\.min\.(?:js|css|mjs)$|[.-]bundle\.js$|\.(?:map|snap|lock|lockb|sum|svg|csv|tsv"
    r"|po|pot|ipynb)$"
    r"|\.pb\.(?:go|cc|h)$|_pb2(?:_grpc)?\.pyi?$|\.(?:g|generated|designer)\.\w+$"
    r"|(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml)$",
    re.IGNORECASE,
)
_GENERATED = Pattern(
    rb"@generated\b|\bDO NOT (?:EDIT|MODIFY)\b"
    rb"|^[^\w\n]{0,8}(?:this (?:file|code) (?:was|is|has been) )?(?:code |auto[-"
    rb" ]?|automatically )?generated"
    rb"(?: by\b| from\b| file\b| code\b|[.!]?\s*$)",
    re.IGNORECASE | re.MULTILINE,
)


def _expression(*alternatives: bytes) -> Pattern[bytes]:
    """Join expressions. Each begins with the previous line's end, which is several
    times as fast as `^`.
    """
    return Pattern(b"|".join(alternatives), re.MULTILINE)


_NAME = rb"([A-Za-z_$\x80-\xff][\w$\x80-\xff]*)"


class _Family(Struct, frozen=True):
    """Languages with similar definitions and imports. Groups of the expressions are
    names.
    """

    defined: Pattern[bytes]
    imported: Pattern[bytes]


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
    defined: frozenset[str]
    imported: frozenset[str]
    """Modules, headers and paths, spelled as in the file."""


class Handwritten:
    """Decides by its name if a file is handwritten: not vendored, not generated, no
    list of versions. `linguist-generated` and `linguist-vendored` in the project's
    `.gitattributes` take precedence.
    """

    def __init__(self, attributes: str) -> None:
        lines = []
        for line in attributes.split("\n"):
            pattern, *words = line.split() or ("",)
            if pattern.startswith("!"):
                continue
            for word in words:
                name, _, value = word.lstrip("-!").partition("=")
                if name in ("linguist-generated", "linguist-vendored"):
                    is_unset = word[0] in "-!" or value == "false"
                    lines.append(f"!{pattern}" if is_unset else pattern)
        self._rules = IgnoreRules("\n".join(lines), 0)

    def __call__(self, path: str) -> bool:
        verdict = None
        if self._rules:
            name = path.rpartition("/")[2]
            verdict = self._rules.decide(path, name, is_folder=False)
        if verdict is None:
            return _NOT_BY_HAND.search(path) is None
        return not verdict


def suffix_of(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def read_as_source(path: str, data: bytes) -> Source | None:
    """Return the names in a file; None if it is binary, generated or too large."""
    if len(data) > LARGEST or b"\0" in data[:8_000]:
        return None
    if len(data) > _LONG_LINES * (data.count(b"\n") + 10):
        return None
    head = data[:_HEAD].lower()
    may_be_generated = b"generated" in head or b"do not " in head
    if may_be_generated and _GENERATED.search(data, 0, _HEAD):
        return None
    family = _FAMILIES.get(suffix_of(path))
    if family is None:
        return Source(frozenset(), frozenset())
    lines = b"\n" + data
    defined: set[str] = set()
    for match in family.defined.finditer(lines):
        defined.update(_read_groups(match))
    imported: set[str] = set()
    for match in family.imported.finditer(lines):
        names = _read_groups(match)
        if family is _PYTHON:
            names = _read_python_import(names, is_from=match[1] is not None)
        imported.update(names)
    return Source(frozenset(defined), frozenset(imported))


def _read_groups(match: re.Match[bytes]) -> list[str]:
    return [group.decode("utf-8", "replace") for group in match.groups() if group]


def _read_python_import(names: list[str], *, is_from: bool) -> list[str]:
    """Return the modules of `from a import b, c` or `import b, c`. In the first form
    also `a.b`, which may be a module.
    """
    modules = [name.split()[0] for name in names[-1].split(",") if name.strip()]
    if not is_from:
        return modules
    package = names[0]
    # the names of `from a import (` may be on the lines below
    members = modules if len(names) > 1 else []
    return [package, *(f"{package}.{name}" for name in members)]
