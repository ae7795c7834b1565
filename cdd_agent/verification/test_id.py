"""The name of one test: the file that it is in, and what it is called there."""

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

_VALUE = re.compile(r"%[#$%A-Za-z]|\$\{[^{}]*\}|\$(?:#|[A-Za-z_][\w.]*)")
"""Stands in a title for a value that the test is run for: `%i`, `${name}`, `$name`."""
_MOST_KEPT = 50_000
"""Ids that are read once, not again for each comparison."""


class TestId(Struct, frozen=True):
    """One test, known by the same id from run to run:
    `tests/test_user.py::TestLogin::test_it[empty]`, `test/user.test.js::login > works`,
    `user_test.go::TestLogin/works`.

    Without a name it is the file itself, or a folder: of what could not be collected,
    it stands for every test there.
    """

    file: str
    name: str = ""
    """With what it is in, as its own language has it."""
    case: str = ""
    """In Python, the values that it is run for, with their brackets."""

    __test__ = False  # not a test class, whatever its name

    @staticmethod
    @lru_cache(_MOST_KEPT)
    def parse(text: str) -> "TestId":
        file, _, name = text.partition("::")
        # elsewhere brackets are a part of a name, or of a file's
        if not file.endswith(".py"):
            return TestId(file, name)
        name, bracket, values = name.partition("[")
        return TestId(file, name, bracket + values)

    def __str__(self) -> str:
        return f"{self.file}::{self.name}{self.case}" if self.name else self.file

    @property
    def function(self) -> "TestId":
        """The same test, whichever values it is run for."""
        return TestId(self.file, self.name) if self.case else self

    @property
    def parts(self) -> list[str]:
        """Its own name, after the names of what it is in."""
        inner = r"::| > |/" if self.file.endswith(".go") else r"::| > "
        return re.split(inner, self.name) if self.name else []

    @property
    def is_table(self) -> bool:
        """Its name stands for those of its rows: `adds %i` for `adds 1`."""
        return not self.file.endswith(".py") and _VALUE.search(self.name) is not None

    def has_row(self, test: "TestId") -> bool:
        """Whether a test can be a row of this table."""
        titles, names = self.parts, test.parts
        is_near = self.file == test.file and len(titles) == len(names)
        return is_near and all(map(_is_row, titles, names))

    def ends_with(self, declared: "TestId") -> bool:
        """Whether this is the test that its file declares under that name, within a
        module or not.
        """
        length = len(declared.parts)
        return (
            self.file == declared.file
            and length > 0
            and self.parts[-length:] == declared.parts
        )

    def places(self) -> Iterator[str]:
        """The places that it is in, from the innermost: its classes, its file, its
        folders.
        """
        inner = str(self.function)
        while "::" in inner:
            inner = inner.rpartition("::")[0]
            yield inner
        while "/" in inner:
            inner = inner.rpartition("/")[0]
            yield inner
        yield "."


def _is_row(title: str, name: str) -> bool:
    """Whether a name is a title with something in the place of each value. Found in one
    go, whatever the title is.
    """
    first, *others = _VALUE.split(title)
    if not others:
        return title == name
    at = len(first) if name.startswith(first) else len(name)
    for text in others[:-1]:
        at = name.find(text, at + 1)
        if at < 0:
            return False
        at += len(text)
    return name.endswith(others[-1]) and at < len(name) - len(others[-1])
