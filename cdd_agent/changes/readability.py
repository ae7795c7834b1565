"""Checks that a changed file still parses in its format."""

import ast
import re
import warnings
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cdd_agent.changes.model import ReplyFault, ReplyRefused
from cdd_agent.context.grammars import grammar_of, has_error, has_token
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.kinds import FileKind, kinds_by_name, kinds_of
from cdd_agent.files.syntax import find_fault, is_toml_1_0
from cdd_agent.files.text import decode_file
from cdd_agent.pattern import Pattern
from cdd_agent.project.interpreters import OURS, allows, opinion

NEWEST_PYTHON = (3, 14)
"""The newest Python that tree-sitter's grammar knows."""
_OLD_STATEMENTS = Pattern(r"\((?:print|exec)_statement\b")
"""Python 2 statements, which the grammar accepts."""
_TYPE_PARAMETERS = frozenset({"type_parameter", "constrained_type"})
"""The grammar lacks defaults of type parameters: `def f[T = int]`."""
_NEED_ALL_LINES = frozenset(
    {FileKind.JSON, FileKind.NOTEBOOK, FileKind.PYTHON, FileKind.TOML}
)
_TEMPLATE = Pattern(r"\{\{|\{%|<%|\$\{[\w.]+\}|@@?\w+@@?|__[a-z]+(?:_[a-z]+)*__\}")
_PYTHON_TEMPLATE = Pattern(r"\{%|\{\{ ?\w[\w.]* ?\}\}")
_NAMED_BROKEN = Pattern(
    r"(?:^|[\W_])(?:bad|broken|invalid|malformed|syntax_?error)(?:$|[\W_])",
    re.IGNORECASE,
)


class _Reading(Struct, frozen=True):
    """Both fields are empty if the file parses."""

    fault: str = ""
    doubt: str = ""
    """Why the result is unknown."""


def refuse_unreadable(
    root: Path, path: PurePosixPath, before: bytes | None, after: bytes
) -> str:
    """Raise `ReplyRefused` if a change breaks a file that parsed before. Return a note
    for the user if this is unknown.

    A new file must parse too, except YAML, which is often a template, and files that
    look like templates or are named as broken.
    """
    if before is not None and not before.strip():
        before = None
    faults = []
    for kind in kinds_of(path, before, after):
        reading = _read(root, path, kind, after)
        if not reading.fault:
            return f"{path} {reading.doubt}" if reading.doubt else ""
        if before is None and _may_be_broken(root, path, kind, after):
            return ""
        if before is None or not _read(root, path, kind, before).fault:
            faults.append(reading.fault)
    if faults:
        raise ReplyRefused(
            f"{path} would not be valid: {faults[0]}.",
            hint="Check the new text, and send it in full.",
            fault=ReplyFault.INVALID,
            detail=faults[0],
            path=str(path),
        )
    return ""


def is_whole(path: str, content: str) -> bool:
    """True if the content parses in a format in which a missing end would show."""
    kinds = kinds_by_name(PurePosixPath(path))
    if not kinds or kinds[0] not in _NEED_ALL_LINES or not content.strip():
        return False
    fault = find_fault(kinds[0], content)
    is_python = kinds[0] is FileKind.PYTHON
    return not fault or (is_python and _may_be_newer_python(content, fault))


def _may_be_broken(
    root: Path, path: PurePosixPath, kind: FileKind, content: bytes
) -> bool:
    if kind is FileKind.YAML or _NAMED_BROKEN.search(str(path)):
        return True
    if kind is FileKind.NOTEBOOK:  # formulas and code have such brackets, too
        return False
    template = _PYTHON_TEMPLATE if kind is FileKind.PYTHON else _TEMPLATE
    return template.search(_decode(root, path, content)) is not None


def _decode(root: Path, path: PurePosixPath, data: bytes) -> str:
    return decode_file(path, data, Charsets(root)).text


def _read(root: Path, path: PurePosixPath, kind: FileKind, data: bytes) -> _Reading:
    text = _decode(root, path, data)
    # a lone `\r` ends a line in Python, which handles line ends itself
    if kind is not FileKind.PYTHON:
        text = text.replace("\r\n", "\n")
    fault = find_fault(kind, text)
    if fault and kind is FileKind.PYTHON:
        return _read_newer_python(root, data, text, fault)
    if not fault and kind is FileKind.TOML and not is_toml_1_0(text):
        return _Reading(doubt="needs a reader of TOML 1.1; TOML 1.0 is not enough")
    return _Reading(fault)


def _read_newer_python(root: Path, data: bytes, text: str, fault: str) -> _Reading:
    """Judge a file that this program's Python rejects. The project's Python decides;
    without one, a newer Python may accept the file.
    """
    result = opinion(root, data)
    if result is not None and not result.wrong:
        return _Reading()
    version = OURS
    if result is not None:
        version = result.version
        fault = f"{result.wrong} (Python {version[0]}.{version[1]})"
        if result.is_of_project:
            return _Reading(fault)
    newer = (
        (version[0], minor) for minor in range(version[1] + 1, NEWEST_PYTHON[1] + 1)
    )
    is_newer_allowed = any(allows(root, each) for each in newer)
    if not is_newer_allowed or not _may_be_newer_python(text, fault):
        return _Reading(fault)
    return _Reading(
        doubt=f"is more than Python {version[0]}.{version[1]} can read ({fault}); a"
        " newer version may, so it was not refused"
    )


def _may_be_newer_python(text: str, fault: str) -> bool:
    """True if a newer Python may accept the file. tree-sitter decides: it knows newer
    syntax, but accepts any indentation.
    """
    if "indent" in fault or _is_python_syntax(text):
        return False
    grammar = grammar_of("py")
    if grammar is None:
        return False
    tree = grammar.parse(text.encode("utf-8", "replace"))
    if tree is None or _OLD_STATEMENTS.search(str(tree.root_node)):
        return False
    if has_token(tree, "string_start", b"`"):  # a Python 2 string
        return False
    return not has_error(tree, _TYPE_PARAMETERS)


def _is_python_syntax(text: str) -> bool:
    """True if this program's Python accepts the syntax: then the fault is one in every
    version, such as `return` outside a function.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
