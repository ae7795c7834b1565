"""The program can be imported where modules of POSIX are missing.

`make check-platforms` finds functions that another platform lacks, but not modules:
mypy has stubs for `fcntl` on Windows, too.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cdd_agent

_PACKAGE = Path(cdd_agent.__file__).parent
_POSIX = {
    *("crypt", "curses", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource"),
    *("syslog", "termios", "tty"),
}
"""Modules that Windows lacks."""
_ONLY_POSIX = {
    "cdd_agent.tui.terminal_input.driver",
    "cdd_agent.tui.terminal_input.terminal_mode",
}
"""Modules that `choice.py` imports on other systems alone. `make check-platforms`
excludes them.
"""
_WITHOUT_POSIX = """
import importlib
import sys

# What others have imported by now sees the true system.
for name in {modules}:
    importlib.import_module(name)
for name in list(sys.modules):
    if name.partition(".")[0] == "cdd_agent":
        del sys.modules[name]

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {posix}:
            raise ModuleNotFoundError(name)

for name in {posix}:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
sys.platform = "win32"
for name in {modules}:
    importlib.import_module(name)
print(len({modules}), "modules")
"""


def _modules() -> dict[str, Path]:
    found = {}
    for file in _PACKAGE.rglob("*.py"):
        if _PACKAGE / "demo" / "project" in file.parents:
            continue
        parts = file.relative_to(_PACKAGE.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = file
    return found


def _imports(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the imports of a module, except those below a check of the platform."""
    for statement in body:
        match statement:
            case ast.Import(names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{each.name}" for each in names)
            case ast.If(test=test) if "sys.platform" in ast.unparse(test):
                pass
            case ast.If(body=first, orelse=second):
                yield from (*_imports(first), *_imports(second))


def test_modules_of_posix_are_imported_below_a_check_of_the_platform() -> None:
    imports = {
        name: set(_imports(ast.parse(file.read_text("utf-8")).body))
        for name, file in _modules().items()
    }
    assert "asyncio" in imports["cdd_agent.process.run"]
    unguarded = {
        name
        for name, imported in imports.items()
        if imported & (_POSIX | _ONLY_POSIX) and name not in _ONLY_POSIX
    }
    assert unguarded == set()


@pytest.mark.fork
def test_every_module_is_imported_without_the_modules_of_posix() -> None:
    modules = sorted(_modules().keys() - _ONLY_POSIX - {"cdd_agent.__main__"})
    code = _WITHOUT_POSIX.format(modules=modules, posix=sorted(_POSIX))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{len(modules)} modules\n"
