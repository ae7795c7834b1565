"""The files that decide how pytest runs: its settings, its hooks, and modules that it
would import instead of its dependencies.
"""

import ast
import configparser
from functools import partial
from pathlib import PurePosixPath

from cdd_agent.files.manifests import ManifestUnreadable, parsed, section
from cdd_agent.verification.runner import Matters, whole

_SETTINGS = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
_FOUND_BEFORE_PYTEST = ("pytest", "_pytest", "pluggy", "sitecustomize", "usercustomize")
"""Modules that a run may import from the project instead of its environment."""
_STEERING_NAMES = ("collect_ignore", "collect_ignore_glob", "pytest_plugins")
_STEERING_MODULES = ("_pytest", "pluggy", "atexit")
_STEERING_CALLS = (
    "os._exit",
    "sys.exit",
    "pytest.exit",
    "pytest.hookimpl",
    "exit",
    "setattr",
    "SystemExit",
)


def what_matters(path: PurePosixPath) -> Matters | None:
    """Return what to compare of a file of this name; None if it does not decide how
    pytest runs.
    """
    match path.name:
        case "conftest.py":
            return _steering
        case "pyproject.toml":
            return _pytest_table
        case "setup.cfg":
            return partial(_section, name="tool:pytest")
        case "tox.ini":
            return partial(_section, name="pytest")
        case name if (
            name in _SETTINGS
            or path.parts[0].removesuffix(".py") in _FOUND_BEFORE_PYTEST
        ):
            return whole
        case _:
            return None


def _steering(conftest: str) -> object:
    """Return the statements of a conftest other than fixtures and helpers."""
    try:
        return {
            ast.dump(node) for node in ast.walk(ast.parse(conftest)) if _steers(node)
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return conftest


def _steers(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name.startswith("pytest_")
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return any(
                isinstance(part, ast.Name) and _is_for_pytest(part.id)
                for part in ast.walk(node)
            )
        case ast.Import(names=names):
            return any(
                alias.name.partition(".")[0] in _STEERING_MODULES for alias in names
            )
        case ast.ImportFrom(module=str(module), names=names):
            brings_hooks = any(
                _is_for_pytest(alias.asname or alias.name) or alias.name == "*"
                for alias in names
            )
            return brings_hooks or module.partition(".")[0] in _STEERING_MODULES
        case ast.Call(func=called) | ast.Raise(exc=ast.Name() as called):
            return ast.unparse(called) in _STEERING_CALLS
        case _:
            return False


def _is_for_pytest(name: str) -> bool:
    """True if pytest looks for this name in a conftest."""
    return name in _STEERING_NAMES or name.startswith("pytest_")


def _pytest_table(pyproject: str) -> object:
    try:
        return section(parsed("pyproject.toml", pyproject), "tool").get("pytest")
    except ManifestUnreadable:
        return pyproject


def _section(ini: str, name: str) -> object:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(ini)
    except configparser.Error:
        return ini
    return dict(parser[name]) if parser.has_section(name) else None
