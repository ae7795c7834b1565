"""The files that a test file is for: those that it imports, and those that it is named
after.

Only what is plain: an import is looked for from the test's own folder upwards, and in
`src` and `lib` there. What is reached by way of another module, or by a name that is
put together while the test runs, is not seen.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Self

from msgspec import Struct

_TEST_NAME = re.compile(r"tests?[_-](.+)|(.+?)[._-](?:tests?|spec)")
_SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx")
"""Suffixes of one language."""
_TEST_FOLDERS = ("test", "tests", "__tests__", "spec", "specs")
_SOURCES = (".", "src", "lib")
"""Where imports are looked for, in each folder around a test."""
_DEFINED = re.compile(
    r"^\s*(?:async\s+)?(?:def|class)\s+(test\w*)", re.IGNORECASE | re.MULTILINE
)
_LARGEST = 1_000_000
"""Bytes of a test file that is looked into."""


class TestFile(Struct, frozen=True):
    """A test file, by its path in the project and its text."""

    path: PurePosixPath
    defined: frozenset[str] = frozenset()
    """The names of its tests and of their classes, also where it cannot be imported."""
    imported: frozenset[PurePosixPath] = frozenset()
    """The files in which a module that it imports would be; most of them are not there.
    """

    __test__ = False  # not a test class, whatever its name

    @classmethod
    def read(cls, root: Path, path: str, before: bytes | None = None) -> Self:
        """A file as it is now, and as it was `before` if it was changed: taking an
        import away hides nothing.
        """
        texts = [
            data.decode("utf-8", errors="replace")
            for data in (_content(root / path), before)
            if data
        ]
        place = PurePosixPath(path)
        return cls(
            place,
            frozenset(name for text in texts for name in _DEFINED.findall(text)),
            frozenset(file for text in texts for file in _imported(place, text)),
        )

    def tie(self, root: Path, path: PurePosixPath) -> str:
        """The reason why it is one for this file, as a clause; empty where there is
        none.
        """
        if path == self.path:
            return "" if is_test_file(path) else f"it is in {path}"  # a doctest
        if path in self.imported:
            return f"it imports {path}"
        return f"it is named after {path}" if self._is_named_after(root, path) else ""

    def _is_named_after(self, root: Path, path: PurePosixPath) -> bool:
        """Whether its name is that of a file of its language in the part of the project
        that it tests, and it imports no other of that name.
        """
        subject, folders = tested_name(self.path), self.path.parts[:-1]
        outermost = next(
            (at for at, folder in enumerate(folders) if folder in _TEST_FOLDERS),
            len(folders),
        )
        # what is around its outermost folder of tests
        part = PurePosixPath(*folders[:outermost])
        if subject is None or _name(path) != subject or not path.is_relative_to(part):
            return False
        if path.suffix != self.path.suffix and not {path.suffix, self.path.suffix} <= {
            *_SCRIPTS
        }:
            return False
        return not any(
            _name(file) == subject and (root / file).is_file() for file in self.imported
        )


def is_test_file(path: PurePosixPath) -> bool:
    """By its name, or the folder that it is in: tests, and what belongs to them."""
    in_tests = any(folder in _TEST_FOLDERS for folder in path.parts[:-1])
    return (
        in_tests
        or tested_name(path) is not None
        or path.stem in ("conftest", "test", "tests")
    )


def tested_name(path: PurePosixPath) -> str | None:
    """The name of what a test file is for: `parser` of `test_parser.py`,
    `parser_test.py` and `parser.test.js`.
    """
    found = _TEST_NAME.fullmatch(path.stem)
    return (found[1] or found[2]).strip("_") if found else None


def _name(path: PurePosixPath) -> str:
    """The name that a test of this file would have in its own: of a package its
    folder's.
    """
    return (path.parent.name if path.name == "__init__.py" else path.stem).strip("_")


def _imported(test: PurePosixPath, text: str) -> Iterator[PurePosixPath]:
    """The files in which the modules would be that a test's text imports, wherever in
    it it does.
    """
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    around = [folder / source for folder in test.parents for source in _SOURCES]
    for node in nodes:
        match node:
            case ast.Import(names=names):
                folders, modules = around, [alias.name for alias in names]
            case ast.ImportFrom(level=0, module=str(module), names=names):
                folders, modules = (
                    around,
                    [module, *(f"{module}.{alias.name}" for alias in names)],
                )
            case ast.ImportFrom(level=level, module=module, names=names) if (
                level <= len(test.parents)
            ):
                folders = [test.parents[level - 1]]
                modules = [
                    ".".join(filter(None, (module, alias)))
                    for alias in ("", *(name.name for name in names))
                ]
            case _:
                continue
        for folder in folders:
            for module in modules:
                place = folder.joinpath(*module.split("."))
                yield place / "__init__.py"
                if place.name:
                    yield place.with_name(f"{place.name}.py")


def _content(path: Path) -> bytes | None:
    """None where there is no such file, or none that anybody wrote by hand."""
    try:
        return path.read_bytes() if path.stat().st_size <= _LARGEST else None
    except (OSError, ValueError):
        return None
