"""Names of tests and files that occur literally in a text."""

import re
from collections.abc import Collection
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import Self

from msgspec import Struct

from cdd_agent.pattern import Pattern
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.test_id import TestId

_CODE = Pattern(r"`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)|(?<!\w)\"([^\"\n]+)\"(?!\w)")
_WORD = Pattern(r"\w+")
_CACHED_IDS = 20_000


@lru_cache(_CACHED_IDS)
def test_names(test: TestId) -> frozenset[str]:
    """Return the names that users give to a test, its class or file:
    `tests/test_user.py`, `test_user.py::TestLogin`, `TestLogin.test_old`, `test_old`;
    for Python also unittest's dotted form.
    """
    files = (test.file, PurePosixPath(test.file).name)
    parts = test.parts
    names = {*files, *parts}
    for joint in ("::", ".", "/", " > "):
        for end in range(1, len(parts) + 1):
            names |= {f"{file}::{joint.join(parts[:end])}" for file in files}
            names |= {joint.join(parts[start:end]) for start in range(end)}
    if test.file.endswith(".py"):
        path = PurePosixPath(test.file).with_suffix("")
        for module in (".".join(path.parts), path.name):
            for end in range(1, len(parts) + 1):
                names.add(".".join((module, *parts[:end])))
    if test.case:
        names |= {f"{file}::{test.name}{test.case}" for file in files}
        names.add(f"{parts[-1]}{test.case}")
    return frozenset(names - {""})


@lru_cache(_CACHED_IDS)
def _key_words(test: TestId) -> frozenset[str]:
    """Return the longest word of the file name and of each part of the test's name; ""
    for a name without words.
    """
    names = (PurePosixPath(test.file).name, *test.parts)
    return frozenset(max(_WORD.findall(name), key=len, default="") for name in names)


class Mentions(Struct, frozen=True, dict=True):
    text: str = ""
    code: str = ""
    """The part that is code: an ordinary word may be a name there."""

    @classmethod
    def in_text(cls, *texts: str, code: str = "") -> Self:
        """All of `code` is code; elsewhere, only quoted words are."""
        text = "\n".join((*texts, code)).replace("\\", "/")
        quoted = ["".join(groups) for groups in _CODE.findall(text)]
        return cls(text, "\n".join((code.replace("\\", "/"), *quoted)))

    @classmethod
    def in_step(cls, step: PlanStep, guidance: str = "") -> Self:
        return cls.in_text(step.title, step.description, guidance)

    def names_file(self, path: str) -> bool:
        names = {path, PurePosixPath(path).name}
        return any(_is_in_text(name, self.text) for name in names)

    def names_folder_of(self, path: str) -> bool:
        """True if the text names a folder above the file, with a final slash."""
        folders = PurePosixPath(path).parents[:-1]
        return any(_is_in_text(f"{folder}/", self.text) for folder in folders)

    def names_test(self, test: TestId, defined: Collection[str] = ()) -> bool:
        """True if the text names the test, its class or its file. Names that are
        `defined` in a file stand for the file if it could not be collected.
        """
        if not test.name:
            return any(map(self._has_name, test_names(test).union(defined)))
        # fast path: any name contains one of these words
        key_words = _key_words(test)
        if "" not in key_words and key_words.isdisjoint(self._words):
            return False
        return any(map(self._has_name, test_names(test)))

    def _has_name(self, name: str) -> bool:
        if name not in self._answers_by_name:
            text = self.code if _is_ordinary_word(name) else self.text
            self._answers_by_name[name] = _is_in_text(name, text)
        return self._answers_by_name[name]

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self.text))

    @cached_property
    def _answers_by_name(self) -> dict[str, bool]:
        return {}


def _is_ordinary_word(name: str) -> bool:
    """True for `works` or `Calculator`, which also occur in prose."""
    return name.isalpha() and (name.islower() or name.istitle())


def _is_in_text(name: str, text: str) -> bool:
    if name not in text:
        return False
    literal = rf"(?<![\w./-])(?<!::)(?:\./)?{re.escape(name)}(?![\w-]|::|[./]\w)"
    return re.search(literal, text) is not None
