"""cdd reads, calls, assigns and overrides no private name of a library. The package's
own source is the table: each attribute, import and class of it is checked.
"""

import ast
import functools
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from msgspec import Struct
from textual.app import App
from textual.widgets import Static

import cdd_agent

_ROOT = Path(cdd_agent.__file__).parent
_PRIVATE = re.compile(r"_(?!_)\w*[A-Za-z]\w*")
_READERS = ("getattr", "setattr", "hasattr", "delattr")
_NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make"}
"""Python documents these as public."""
_ALLOWED: dict[tuple[str, str], str] = {
    ("os", "_exit"): "documented by Python: end a process without clean-up",
}
"""The reason for each private name that is read nevertheless."""
_ALLOWED_IN: dict[tuple[str, str], str] = {
    ("cdd_agent.llm.litellm_library", "_FINISH_REASON_MAP"): (
        "litellm reports a reply that failed as complete, and has no public way to the"
        " provider's word"
    ),
}
"""The reason for each private name that one module may read."""
_KINDS = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Name, ast.Attribute),
    *(ast.Import, ast.ImportFrom, ast.Call),
)
"""The kinds of nodes that define or use a name."""
_ALLOWED_MODULES = {"_thread"}
"""Python documents these modules."""


class Use(Struct, frozen=True):
    """A place where a private name of a library is used."""

    module: str
    line: int
    name: str


def modules() -> dict[str, Path]:
    """Return the files of the package by their dotted names."""
    found = {}
    for path in sorted(_ROOT.rglob("*.py")):
        parts = ("cdd_agent", *path.relative_to(_ROOT).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def own_names(tree: ast.AST) -> set[str]:
    """Return the private names that a module or a class defines."""
    return defined_names(ast.walk(tree))


def defined_names(nodes: Iterable[ast.AST]) -> set[str]:
    names = set()
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                names.add(name)
    return {name for name in names if _PRIVATE.fullmatch(name)}


def is_library(kind: type) -> bool:
    top = kind.__module__.partition(".")[0]
    return top not in {"cdd_agent", "tests", "builtins", "typing", "abc"}


@functools.cache
def library_names(kind: type) -> frozenset[str]:
    """Return the private names of a library's class, also those of its instances."""
    names = {name for name in vars(kind) if _PRIVATE.fullmatch(name)}
    tree = class_tree(kind)
    # a class of an extension, or one made by a call, has none
    return frozenset(names if tree is None else names | own_names(tree))


def class_tree(kind: type) -> ast.ClassDef | None:
    """Return the source of a class; None if there is none."""
    try:
        file = inspect.getsourcefile(kind)
    except TypeError:
        return None
    return None if file is None else classes_in(file).get(kind.__qualname__)


@functools.cache
def classes_in(file: str) -> dict[str, ast.ClassDef]:
    """Return the classes of a file by their qualified names. `inspect.getsource` reads
    the whole file for each class.
    """
    classes = {}
    pending: list[tuple[str, ast.AST]] = [("", ast.parse(Path(file).read_bytes()))]
    while pending:
        prefix, node = pending.pop()
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.ClassDef(name=name):
                    classes[prefix + name] = child
                    pending.append((f"{prefix}{name}.", child))
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    pending.append((f"{prefix}{name}.<locals>.", child))
                case _:
                    pending.append((prefix, child))
    return classes


def inherited_names(kind: type) -> frozenset[str]:
    bases = (base for base in kind.__mro__[1:] if is_library(base))
    return frozenset().union(*map(library_names, bases))


def inherited_uses(kind: type) -> set[str]:
    """Return the private names of its libraries that a class reads or defines again."""
    inherited = inherited_names(kind) - _NAMED_TUPLES
    if not inherited:
        return set()
    tree = class_tree(kind)
    assert tree is not None, kind
    names = own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_self(node.value):
            names.add(node.attr)
    return names & inherited


def is_self(value: ast.expr) -> bool:
    match value:
        case ast.Name(id="self" | "cls"):
            return True
        case ast.Call(func=ast.Name(id="super")):
            return True
    return False


def uses(module: str, tree: ast.Module) -> Iterator[Use]:
    """Yield the private names that a module reads, and does not define. Those of `self`
    are checked by its class.
    """
    nodes = [node for node in ast.walk(tree) if isinstance(node, _KINDS)]
    own = defined_names(nodes)
    aliases = {
        alias.asname or alias.name: alias.name
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    for node in nodes:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    if is_private_path(alias.name):
                        yield Use(module, node.lineno, alias.name)
            case ast.ImportFrom(module=str(source), names=names, level=0):
                for alias in names:
                    name = f"{source}.{alias.name}"
                    if source != "__future__" and is_private_path(name):
                        yield Use(module, node.lineno, name)
            case ast.Attribute(value=value, attr=name) if _PRIVATE.fullmatch(name):
                if isinstance(value, ast.Name):
                    source = aliases.get(value.id, value.id)
                    if (source, name) in _ALLOWED:
                        continue
                if (module, name) in _ALLOWED_IN:
                    continue
                if name not in own | _NAMED_TUPLES and not is_self(value):
                    yield Use(module, node.lineno, name)
            case ast.Call(
                func=ast.Name(id=reader),
                args=[_, ast.Constant(value=str(name)), *_],
            ) if reader in _READERS and _PRIVATE.fullmatch(name):
                if name not in own:
                    yield Use(module, node.lineno, name)


def is_private_path(name: str) -> bool:
    if name in _ALLOWED_MODULES:
        return False
    parts = name.split(".")
    return parts[0] != "cdd_agent" and any(map(_PRIVATE.fullmatch, parts))


def classes() -> Iterator[type]:
    for info in pkgutil.walk_packages(cdd_agent.__path__, "cdd_agent."):
        if info.name == "cdd_agent.__main__":
            continue
        module = importlib.import_module(info.name)
        for kind in vars(module).values():
            if inspect.isclass(kind) and kind.__module__ == module.__name__:
                yield kind


def test_no_private_name_of_a_library_is_read_called_or_assigned() -> None:
    found = []
    for module, path in modules().items():
        found += uses(module, ast.parse(path.read_text("utf-8")))
    assert found == []


@pytest.mark.skipif(sys.platform == "win32", reason="some modules need a terminal")
def test_no_class_reads_or_overrides_a_private_name_that_it_inherits() -> None:
    found = {}
    for kind in classes():
        names = inherited_uses(kind)
        if names:
            found[f"{kind.__module__}.{kind.__qualname__}"] = sorted(names)
    assert found == {}


USES = {
    "an import of a module": "import textual._compositor",
    "an import from a module": "from textual._compositor import LayoutUpdate",
    "an import of a name": "from textual.app import _x",
    "a read": "def f(app): return app._driver",
    "a call": "def f(app): app._check_bindings('x')",
    "an assignment": "import litellm\nlitellm._turn_on_debug = None",
    "a read by a string": "def f(app): return getattr(app, '_driver')",
}


@pytest.mark.parametrize("source", USES.values(), ids=USES)
def test_a_use_is_noticed(source: str) -> None:
    assert list(uses("example", ast.parse(source)))


class _Override(Static):
    def _on_mount(self) -> None:
        """Do what the library does not document."""


class _Read(App[None]):
    def go(self) -> object:
        return self._driver


class _CallOfABase(Static):
    def go(self) -> None:
        super()._size_updated()  # type: ignore[call-arg]


class _AccidentalMethod(App[None]):
    def _begin_update(self) -> None:
        """Have a name that the library has, too."""


class _AccidentalAttribute(Static):
    def __init__(self) -> None:
        super().__init__()
        self._timers = ()


@pytest.mark.parametrize(
    "kind",
    [_Override, _Read, _CallOfABase, _AccidentalMethod, _AccidentalAttribute],
)
def test_a_use_by_a_class_is_noticed(kind: type) -> None:
    assert inherited_uses(kind)
