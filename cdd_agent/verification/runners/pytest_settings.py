"""Files that decide how pytest runs: settings, hooks, and project modules that hide
pytest's.
"""

import ast
import configparser
from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath

from cdd_agent.files.manifests import ManifestUnreadable, parse_manifest, section
from cdd_agent.verification.runner import Matters, whole

SETTINGS_FILES = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
"""For pytest alone."""
_FOUND_BEFORE_PYTEST = ("pytest", "_pytest", "pluggy", "sitecustomize", "usercustomize")
"""Modules that may be imported from the project instead of the environment."""
_STEERING_NAMES = ("collect_ignore", "collect_ignore_glob", "pytest_plugins")
_STEERING_MODULES = ("_pytest", "pluggy", "atexit")
_STEERING_CALLS = (
    *("os._exit", "sys.exit", "pytest.exit", "pytest.hookimpl", "exit", "setattr"),
    "SystemExit",
)


def what_matters(path: PurePosixPath) -> Matters | None:
    """Return what to compare of a file with this name; None if it does not decide how
    pytest runs.
    """
    part = _PARTS.get(path.name)
    if part is not None:
        return part
    module = path.parts[0].removesuffix(".py")
    if module in _FOUND_BEFORE_PYTEST or path.name in SETTINGS_FILES:
        return whole
    return None


def _steering_statements(conftest: str) -> object:
    """Return a conftest's statements that can change how tests run. Fixtures and
    helpers cannot.
    """
    try:
        nodes = list(ast.walk(ast.parse(conftest)))
        return {ast.dump(node) for node in nodes if _steers(node)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return conftest


def _steers(node: ast.AST) -> bool:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name.startswith("pytest_")
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            parts = ast.walk(node)
            names = [part.id for part in parts if isinstance(part, ast.Name)]
            return any(map(_is_for_pytest, names))
        case ast.Import(names=aliases):
            return any(_is_steering_module(alias.name) for alias in aliases)
        case ast.ImportFrom(module=str(module), names=aliases):
            if _is_steering_module(module):
                return True
            names = [alias.asname or alias.name for alias in aliases]
            return "*" in names or any(map(_is_for_pytest, names))
        case ast.Call(func=called) | ast.Raise(exc=ast.Name() as called):
            return ast.unparse(called) in _STEERING_CALLS
        case _:
            return False


def _is_for_pytest(name: str) -> bool:
    return name in _STEERING_NAMES or name.startswith("pytest_")


def _is_steering_module(name: str) -> bool:
    return name.partition(".")[0] in _STEERING_MODULES


def _pytest_table(pyproject: str) -> object:
    try:
        content = parse_manifest("pyproject.toml", pyproject)
    except ManifestUnreadable:
        return pyproject
    return section(content, "tool").get("pytest")


def _section(ini: str, name: str) -> object:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(ini)
    except configparser.Error:
        return ini
    return dict(parser[name]) if parser.has_section(name) else None


_PARTS: Mapping[str, Matters] = {
    "conftest.py": _steering_statements,
    "pyproject.toml": _pytest_table,
    "setup.cfg": partial(_section, name="tool:pytest"),
    "tox.ini": partial(_section, name="pytest"),
}
"""File name → the part that decides how pytest runs."""
