"""Check that a text is valid in its format."""

import json
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import tomli
import yaml

from cdd_agent.files.kinds import FileKind
from cdd_agent.pattern import Pattern
from cdd_agent.values.guarded_yaml import GuardedLoader

_LARGEST = 5_000_000
"""Maximum characters to check."""
_LARGEST_PYTHON = 1_000_000
_DEEPEST_YAML = 200
_COMMENTED_JSON = Pattern(
    r"""
      (?P<comment> //[^\n]* | /\*.*?\*/ )
    | (?P<string> "(?:\\.|[^"\\\n])*+" | '(?:\\.|[^'\\\n])*+' )
    | (?P<key> (?<![\w$]) [A-Za-z_$][\w$]*+ (?=\s*:) )
    | (?P<number>
        (?<![\w.]) [+-]?
        (?: 0x[\da-f]++ | (?:\d++(?:\.\d*+)?|\.\d++)(?:e[+-]?\d++)? | Infinity | NaN )
        (?![\w.])
      )
    | (?P<unfinished> /\*.* | "(?:\\.|[^"\\\n])*+ | '(?:\\.|[^'\\\n])*+ )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
"""Pieces that JSON lacks or writes differently. Each is read once, even an unfinished
one, so no text takes long.
"""
_LAST_COMMA = Pattern(r",(?=\s*[\]}])")


def find_fault(kind: FileKind, text: str) -> str:
    """Return the fault of a file with its line, as a clause. Empty for a valid or blank
    file, or one that is too large or nested too deeply to check.
    """
    largest = _LARGEST_PYTHON if kind is FileKind.PYTHON else _LARGEST
    if len(text) > largest or not text.strip():
        return ""
    try:
        return _READERS[kind](text)
    except (RecursionError, MemoryError):
        # deep nesting is not a fault
        return ""


def is_toml_1_0(text: str) -> bool:
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


def _find_python_fault(text: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "file", "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"line {error.lineno or 1}: {error.msg}"
    except ValueError as error:  # a null byte
        return str(error)
    return ""


def _find_json_fault(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}: {error.msg}"
    except ValueError as error:  # a number that is too long
        return str(error)
    return ""


def _find_commented_json_fault(text: str) -> str:
    plain = _COMMENTED_JSON.sub(_replace_by_json, text)
    return _find_json_fault(_LAST_COMMA.sub(" ", plain))


def _replace_by_json(piece: re.Match[str]) -> str:
    """Replace a comment, key, string or number by plain JSON. Keeps line ends, so that
    a fault has its line. An unfinished piece stays, and is a fault.
    """
    if piece.lastgroup == "unfinished":
        return piece[0]
    plain = {"comment": " ", "number": "0"}.get(piece.lastgroup or "", '""')
    return plain + "\n" * piece[0].count("\n")


def _find_json_lines_fault(text: str) -> str:
    for number, line in enumerate(text.split("\n"), start=1):
        fault = _find_json_fault(line) if line.strip() else ""
        if fault:
            return fault.replace("line 1:", f"line {number}:")
    return ""


def _find_notebook_fault(text: str) -> str:
    if fault := _find_json_fault(text):
        return fault
    notebook = json.loads(text)
    if not isinstance(notebook, dict):
        return "a notebook is an object"
    if not isinstance(notebook.get("nbformat"), int):
        return "a notebook has a number `nbformat`"
    for number, cell in enumerate(_find_cells(notebook), start=1):
        if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
            return f"cell {number} has no `cell_type`"
        # format 3 calls it `input` in code cells
        source = cell.get("source", cell.get("input"))
        if not isinstance(source, str | list):
            return f"cell {number} has no `source`"
    if not isinstance(notebook.get("cells", notebook.get("worksheets")), list):
        return "a notebook has a list `cells`"
    return ""


def _find_cells(notebook: dict[str, Any]) -> Iterator[Any]:
    """Yield the cells of a notebook. In format 3 they are on worksheets."""
    for sheet in (notebook, *_as_list(notebook.get("worksheets"))):
        if isinstance(sheet, dict):
            yield from _as_list(sheet.get("cells"))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _find_toml_fault(text: str) -> str:
    try:
        tomli.loads(text)
    except ValueError as error:
        return str(error)
    return ""


def _find_yaml_fault(text: str) -> str:
    try:
        depth = 0
        for event in yaml.parse(text, Loader=GuardedLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST_YAML:
                return ""
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        return f"line {mark.line + 1 if mark else 1}: {error.problem or error.context}"
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        return " ".join(str(error).split())
    return ""


_READERS: dict[FileKind, Callable[[str], str]] = {
    FileKind.JSON: _find_json_fault,
    FileKind.COMMENTED_JSON: _find_commented_json_fault,
    FileKind.JSON_LINES: _find_json_lines_fault,
    FileKind.NOTEBOOK: _find_notebook_fault,
    FileKind.PYTHON: _find_python_fault,
    FileKind.TOML: _find_toml_fault,
    FileKind.YAML: _find_yaml_fault,
}
