import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from cdd_agent.pattern import Pattern

_VALUE = Pattern(r"%[#$%A-Za-z]|\$\{[^{}]*\}|\$(?:#|[A-Za-z_][\w.]*)")
"""A placeholder in a title for each row of a table: `%i`, `${name}`, `$name`."""
_MOST_CACHED = 50_000
"""Ids are compared many times."""


class TestId(Struct, frozen=True):
    """A stable id: `tests/test_user.py::TestLogin::test_it[empty]`,
    `test/user.test.js::login > works`, `user_test.go::TestLogin/works`.

    Without a name, it is the id of a file or folder that could not be collected, and
    stands for every test in it.
    """

    file: str
    name: str = ""
    """Classes or groups and the test, separated as its runner does."""
    case: str = ""
    """The parameters of a Python test, with brackets."""

    __test__ = False  # not a test class, despite its name

    @staticmethod
    @lru_cache(_MOST_CACHED)
    def parse(text: str) -> "TestId":
        file, _, name = text.partition("::")
        # elsewhere, brackets are part of the name
        if not file.endswith(".py"):
            return TestId(file, name)
        name, bracket, values = name.partition("[")
        return TestId(file, name, bracket + values)

    def __str__(self) -> str:
        return f"{self.file}::{self.name}{self.case}" if self.name else self.file

    @property
    def function(self) -> "TestId":
        """The test without parameters."""
        return TestId(self.file, self.name) if self.case else self

    @property
    def parts(self) -> list[str]:
        """The names of classes or groups, and of the test."""
        if not self.name:
            return []
        separator = r"::| > |/" if self.file.endswith(".go") else r"::| > "
        return re.split(separator, self.name)

    @property
    def is_table(self) -> bool:
        """True if the name is a title for rows, such as `adds %i`."""
        return not self.file.endswith(".py") and _VALUE.search(self.name) is not None

    def has_row(self, test: "TestId") -> bool:
        titles, names = self.parts, test.parts
        if self.file != test.file or len(titles) != len(names):
            return False
        return all(map(_is_row, titles, names))

    def ends_with(self, declared: "TestId") -> bool:
        """True if a file declares this test under that name. Runners may prepend module
        names.
        """
        length = len(declared.parts)
        if self.file != declared.file or length == 0:
            return False
        return self.parts[-length:] == declared.parts

    def places(self) -> Iterator[str]:
        """Yield what contains the test, innermost first: classes, file, folders."""
        inner = str(self.function)
        while "::" in inner:
            inner = inner.rpartition("::")[0]
            yield inner
        while "/" in inner:
            inner = inner.rpartition("/")[0]
            yield inner
        yield "."


def _is_row(title: str, name: str) -> bool:
    """True if the name is the title with text for each placeholder. Each literal part
    is searched once, so that titles cannot cause long searches.
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
