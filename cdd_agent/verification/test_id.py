"""The id of a test: its file, and its name there."""

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

_VALUE = re.compile(r"%[#$%A-Za-z]|\$\{[^{}]*\}|\$(?:#|[A-Za-z_][\w.]*)")
"""A place in a title that each row of a table fills: `%i`, `${name}`, `$name`."""
_MOST_CACHED = 50_000
"""Parsed ids. Each is compared many times."""


class TestId(Struct, frozen=True):
    """The id of a test. It is the same in each run:
    `tests/test_user.py::TestLogin::test_it[empty]`, `test/user.test.js::login > works`,
    `user_test.go::TestLogin/works`.

    An id without a name is that of a file or folder. It stands for every test in a
    file or folder that could not be collected.
    """

    file: str
    name: str = ""
    """The test's name after the names of its classes or groups, separated as its runner
    separates them.
    """
    case: str = ""
    """The parameters of a Python test, with their brackets."""

    __test__ = False  # not a test class, whatever its name

    @staticmethod
    @lru_cache(_MOST_CACHED)
    def parse(text: str) -> "TestId":
        file, _, name = text.partition("::")
        # in other languages, brackets are part of the name
        if not file.endswith(".py"):
            return TestId(file, name)
        name, bracket, values = name.partition("[")
        return TestId(file, name, bracket + values)

    def __str__(self) -> str:
        return f"{self.file}::{self.name}{self.case}" if self.name else self.file

    @property
    def function(self) -> "TestId":
        """The test without its parameters."""
        return TestId(self.file, self.name) if self.case else self

    @property
    def parts(self) -> list[str]:
        """The names of its classes or groups, and its own name."""
        if not self.name:
            return []
        separator = r"::| > |/" if self.file.endswith(".go") else r"::| > "
        return re.split(separator, self.name)

    @property
    def is_table(self) -> bool:
        """True if its name is a title for the rows of a table, such as `adds %i`."""
        return not self.file.endswith(".py") and _VALUE.search(self.name) is not None

    def has_row(self, test: "TestId") -> bool:
        titles, names = self.parts, test.parts
        if self.file != test.file or len(titles) != len(names):
            return False
        return all(map(_is_row, titles, names))

    def ends_with(self, declared: "TestId") -> bool:
        """True if this is the test that a file declares under that name. Runners may
        put the names of modules before it.
        """
        length = len(declared.parts)
        if self.file != declared.file or length == 0:
            return False
        return self.parts[-length:] == declared.parts

    def places(self) -> Iterator[str]:
        """Yield everything that contains the test, from the inside: its classes, its
        file, its folders.
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
    """True if a name is the title with some text in place of each value. The texts
    between the values are searched once, so the time does not depend on the title.
    """
    first, *others = _VALUE.split(title)
    if not others:
        return title == name
    if not name.startswith(first):
        return False
    place = len(first)
    for text in others[:-1]:
        # each value is at least one character
        place = name.find(text, place + 1)
        if place < 0:
            return False
        place += len(text)
    last = others[-1]
    return name.endswith(last) and place < len(name) - len(last)
