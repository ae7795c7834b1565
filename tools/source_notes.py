"""The notes under attributes of classes and members of enums. Python does not keep
them, so they are read from the source.
"""

import ast
from collections.abc import Mapping
from functools import cache
from inspect import getmodule, getsource
from itertools import pairwise
from types import ModuleType


def class_notes(documented: type) -> dict[str, str]:
    """Return the note of each attribute that has one, by its name. A class has the
    notes of its bases, too.
    """
    notes: dict[str, str] = {}
    for each in reversed(documented.__mro__):
        module = getmodule(each)
        if module is not None and module.__name__.startswith("cdd_agent."):
            notes |= _module_notes(module).get(each.__qualname__, {})
    return notes


@cache
def _module_notes(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    tree = ast.parse(getsource(module))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {node.name: _body_notes(node.body) for node in classes}


def _body_notes(body: list[ast.stmt]) -> dict[str, str]:
    notes = {}
    for statement, note in pairwise(body):
        match statement, note:
            case (
                (
                    ast.AnnAssign(target=ast.Name(id=name))
                    | ast.Assign(targets=[ast.Name(id=name)])
                ),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                notes[name] = " ".join(text.split())
    return notes
