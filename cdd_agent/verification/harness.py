"""Which of a step's changes decide how tests are run, rather than what they see.

A reply that changes these can make any outcome: a hook in `conftest.py` may drop tests or rewrite results, a setting
may choose other tests. No comparison of outcomes finds that out, so it is looked for in the files. This is a list of
the usual ways, and no proof that there is no other: tests run the project's own code, which can do what its user can.
"""

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from cdd_agent.edits.changes import FileChange

_PYTEST_SETTINGS = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
_FOUND_BEFORE_PYTEST = ("pytest", "_pytest", "pluggy", "sitecustomize", "usercustomize")
"""Modules that a run may take from the project instead of from its environment."""
_CODE = (".py", ".js", ".cjs", ".mjs", ".ts")
_OTHER_SETTINGS = re.compile(
    r"""
      GNUmakefile | [Mm]akefile | tox\.ini | noxfile\.py
    | (jest|vitest|karma|playwright|cypress|ava|wdio)\.(config|conf)\.\w+ | \.mocharc(\.\w+)?
    """,
    re.VERBOSE,
)
_OF_PACKAGE_JSON = ("scripts", "jest", "vitest", "mocha", "ava", "tap", "c8", "nyc")
_STEERING_NAMES = ("collect_ignore", "collect_ignore_glob", "pytest_plugins")
_STEERING_MODULES = ("_pytest", "pluggy", "atexit")
_STEERING_CALLS = ("os._exit", "sys.exit", "pytest.exit", "pytest.hookimpl", "exit", "setattr", "SystemExit")


def changes_of_harness(changes: Iterable[FileChange], *, is_pytest: bool, script: str = "") -> tuple[str, ...]:
    """The files among the changes that decide how tests are run: only pytest's, when it is pytest that runs.

    `script` is the file that the check's command itself runs; a step may make one.
    """

    def decides(change: FileChange) -> bool:
        matters = _what_matters(change.path, is_pytest=is_pytest)
        own_script = str(change.path) == script and change.before is not None
        return own_script or (matters is not None and _differs(change, matters))

    return tuple(str(change.path) for change in changes if decides(change))


def first_settings(changes: Iterable[FileChange]) -> tuple[str, ...]:
    """The files of settings among the changes that were not there before: what a project without tests begins with."""
    return tuple(
        str(change.path)
        for change in changes
        if change.before is None and change.path.suffix not in _CODE and _what_matters(change.path, is_pytest=False)
    )


def conftests(changes: Iterable[FileChange]) -> tuple[str, ...]:
    """The `conftest.py` files among the changes, also those that only hold fixtures."""
    return tuple(str(change.path) for change in changes if change.path.name == "conftest.py")


def _differs(change: FileChange, matters: Callable[[str], object]) -> bool:
    if matters is _whole:
        return True  # also an empty one that is new
    before, after = ((data or b"").decode("utf-8", errors="replace") for data in (change.before, change.after))
    return matters(before) != matters(after)


def _what_matters(path: PurePosixPath, *, is_pytest: bool) -> Callable[[str], object] | None:
    """What to look at in a file of this name; None when it decides nothing."""
    match path.name:
        case "conftest.py":
            return _steering
        case "pyproject.toml":
            return _pytest_table
        case "setup.cfg":
            return partial(_section, name="tool:pytest")
        case "tox.ini" if is_pytest:
            return partial(_section, name="pytest")
        case name if name in _PYTEST_SETTINGS or path.parts[0].removesuffix(".py") in _FOUND_BEFORE_PYTEST:
            return _whole
        case "package.json" if not is_pytest:
            return _npm_keys
        case name if not is_pytest and (_OTHER_SETTINGS.fullmatch(name) or path.parts[0] == ".cargo"):
            return _whole
        case _:
            return None


def _whole(text: str) -> object:
    return text


def _steering(conftest: str) -> object:
    """What of a conftest goes beyond fixtures and helpers."""
    try:
        return {ast.dump(node) for node in ast.walk(ast.parse(conftest)) if _steers(node)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return conftest


def _steers(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name.startswith("pytest_")
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return any(isinstance(part, ast.Name) and _is_for_pytest(part.id) for part in ast.walk(node))
        case ast.Import(names=names):
            return any(alias.name.partition(".")[0] in _STEERING_MODULES for alias in names)
        case ast.ImportFrom(module=str(module), names=names):
            brings_hooks = any(_is_for_pytest(alias.asname or alias.name) or alias.name == "*" for alias in names)
            return brings_hooks or module.partition(".")[0] in _STEERING_MODULES
        case ast.Call(func=called) | ast.Raise(exc=ast.Name() as called):
            return ast.unparse(called) in _STEERING_CALLS
        case _:
            return False


def _is_for_pytest(name: str) -> bool:
    """Whether pytest looks for this name in a conftest."""
    return name in _STEERING_NAMES or name.startswith("pytest_")


def _pytest_table(pyproject: str) -> object:
    try:
        return tomllib.loads(pyproject).get("tool", {}).get("pytest")
    except (tomllib.TOMLDecodeError, AttributeError, RecursionError):
        return pyproject


def _section(ini: str, name: str) -> object:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(ini)
    except configparser.Error:
        return ini
    return dict(parser[name]) if parser.has_section(name) else None


def _npm_keys(package: str) -> object:
    try:
        content: Any = json.loads(package or "{}")
        return {key: content[key] for key in _OF_PACKAGE_JSON if key in content}
    except (ValueError, TypeError, RecursionError):
        return package
