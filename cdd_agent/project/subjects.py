"""Find the files that a test file tests: it imports them or is named after them.
Imports through other modules, and names built at run time, are missed.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Self

from msgspec import Struct

from cdd_agent.files.charsets import Charsets
from cdd_agent.files.text import decode_versions
from cdd_agent.pattern import Pattern

_TEST_NAME = Pattern(r"tests?[_-](.+)|(.+?)[._-](?:tests?|spec)")
_SCRIPTS = {".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx"}
"""Suffixes of one language."""
_TEST_FOLDERS = ("test", "tests", "__tests__", "spec", "specs")
_SOURCES = (".", "src", "lib")
"""Folders with imported modules, in each folder around a test."""
_DEFINED = Pattern(
    r"^\s*(?:async\s+)?(?:def|class)\s+(test\w*)", re.IGNORECASE | re.MULTILINE
)
_LARGEST = 1_000_000
"""Bytes; larger files are not written by hand."""


class TestFile(Struct, frozen=True):
    path: PurePosixPath
    defined: frozenset[str] = frozenset()
    imported: frozenset[PurePosixPath] = frozenset()
    """Files that could hold imported modules. Most do not exist."""

    __test__ = False  # not a test class, whatever its name

    @classmethod
    def read(cls, root: Path, path: str, before: bytes | None = None) -> Self:
        """Read a file and its previous content: a removed import still counts."""
        place = PurePosixPath(path)
        defined: set[str] = set()
        imported: set[PurePosixPath] = set()
        current = _read_small(root / path)
        for text in decode_versions(place, before, current, Charsets(root)):
            if text is not None:
                defined.update(_DEFINED.findall(text.text))
                imported.update(_imported_files(place, text.shown))
        return cls(place, frozenset(defined), frozenset(imported))

    def tie(self, root: Path, path: PurePosixPath) -> str:
        """Return why this is a test of the file, or an empty text."""
        if path == self.path:
            # a doctest
            return "" if is_test_file(path) else f"it is in {path}"
        if path in self.imported:
            return f"it imports {path}"
        if self._is_named_after(root, path):
            return f"it is named after {path}"
        return ""

    def _is_named_after(self, root: Path, path: PurePosixPath) -> bool:
        subject = tested_name(self.path)
        if subject is None or _subject_name(path) != subject:
            return False
        if not path.is_relative_to(self._part_of_project()):
            return False
        suffixes = {path.suffix, self.path.suffix}
        if len(suffixes) > 1 and not suffixes <= _SCRIPTS:
            return False
        for file in self.imported:
            if _subject_name(file) == subject and (root / file).is_file():
                return False
        return True

    def _part_of_project(self) -> PurePosixPath:
        """Return the folder around the outermost test folder."""
        folders = self.path.parts[:-1]
        for depth, folder in enumerate(folders):
            if folder in _TEST_FOLDERS:
                return PurePosixPath(*folders[:depth])
        return PurePosixPath(*folders)


def is_test_file(path: PurePosixPath) -> bool:
    if any(folder in _TEST_FOLDERS for folder in path.parts[:-1]):
        return True
    return tested_name(path) is not None or path.stem in ("conftest", "test", "tests")


def tested_name(path: PurePosixPath) -> str | None:
    """Return `parser` for `test_parser.py`, `parser_test.py` and `parser.test.js`."""
    match = _TEST_NAME.fullmatch(path.stem)
    if match is None:
        return None
    return (match[1] or match[2]).strip("_")


def _subject_name(path: PurePosixPath) -> str:
    if path.name == "__init__.py":
        return path.parent.name.strip("_")
    return path.stem.strip("_")


def _imported_files(test: PurePosixPath, text: str) -> Iterator[PurePosixPath]:
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        folders = _search_folders(test, node)
        for module in _module_names(node):
            for folder in folders:
                place = folder.joinpath(*module.split("."))
                yield place / "__init__.py"
                if place.name:
                    yield place.with_name(f"{place.name}.py")


def _search_folders(
    test: PurePosixPath, node: ast.Import | ast.ImportFrom
) -> list[PurePosixPath]:
    level = node.level if isinstance(node, ast.ImportFrom) else 0
    if level > len(test.parents):
        return []
    if level:
        return [test.parents[level - 1]]
    return [folder / source for folder in test.parents for source in _SOURCES]


def _module_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        return names
    if node.module is None:
        return ["", *names]
    return [node.module, *(f"{node.module}.{name}" for name in names)]


def _read_small(path: Path) -> bytes | None:
    try:
        if path.stat().st_size <= _LARGEST:
            return path.read_bytes()
    except (OSError, ValueError):
        pass
    return None
