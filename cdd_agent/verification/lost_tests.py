"""Compares the tests in changed files before and after a step.

Only the files' text counts, whatever runs them. A test that was renamed, moved or
merged into another test is not lost.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Self

from msgspec import Struct, field

from cdd_agent.files.charsets import NOTHING_DECLARED, Charsets
from cdd_agent.files.text import decode_versions
from cdd_agent.verification.test_id import TestId
from cdd_agent.verification.testcode.declared import Declared, Skipped
from cdd_agent.verification.testcode.reader import read_tests, read_whole
from cdd_agent.verification.testcode.test_files import (
    LikelihoodOfTests,
    is_for_tests,
    place_of,
)

_MAX_COMPARED = 200_000
"""Most pairs of tests to search for one test inside the other."""


class Versions(Struct, frozen=True):
    """A file before and after a step; None if absent."""

    path: str
    before: bytes | None
    after: bytes | None


class _Texts(Struct, frozen=True):
    path: str
    before: str | None
    after: str | None

    @classmethod
    def decode(cls, file: Versions, charsets: Charsets) -> Self:
        path = PurePosixPath(file.path)
        before, after = decode_versions(path, file.before, file.after, charsets)
        return cls(
            file.path,
            None if before is None else before.shown,
            None if after is None else after.shown,
        )


class Weakening(StrEnum):
    """Ways in which a test proves less than before, as ends of sentences."""

    EMPTIED = "does nothing"
    UNCHECKED = "checks nothing"
    FEWER_ROWS = "runs for fewer values"
    FEWER_CHECKS = "has fewer assertions"
    SKIPPED = "is skipped or expected to fail"
    MAYBE_SKIPPED = "may be skipped"


class Comparison(Struct, frozen=True):
    """Changes of existing tests, by their ids from before the step."""

    removed: tuple[TestId, ...] = ()
    weakened: Mapping[TestId, Weakening] = field(default_factory=dict)
    changed: tuple[TestId, ...] = ()
    """Other tests that differ in more than layout."""
    tables: tuple[TestId, ...] = ()
    """Unchanged names that contain values of rows."""
    moved: Mapping[TestId, TestId] = field(default_factory=dict)
    """Renamed or moved tests → their current ids."""
    contents: Mapping[str, str] = field(default_factory=dict)
    """Previous content of files that lost tests, except files that may hold secrets."""


class _Test(Struct, frozen=True):
    id: TestId
    code: Declared
    place: LikelihoodOfTests

    def can_become(self, other: "_Test") -> bool:
        is_found = self.id.file == other.id.file or other.place >= self.place
        return is_found and self.code.is_test == other.code.is_test


_Pair = tuple[_Test, _Test]
"""A test before and after the step."""
_Key = Callable[[_Test], object]
_Rule = Callable[[_Test, _Test], bool]


class _Pairing(Struct):
    lost: list[_Test]
    added: list[_Test]
    pairs: list[_Pair] = field(default_factory=list)

    def match(self, key: _Key, is_same: _Rule) -> None:
        candidates: dict[object, list[_Test]] = {}
        for test in self.added:
            candidates.setdefault(key(test), []).append(test)
        lost = []
        for old in self.lost:
            same = candidates.get(key(old), [])
            new = next((test for test in same if is_same(old, test)), None)
            if new is None:
                lost.append(old)
                continue
            same.remove(new)
            self.pairs.append((old, new))
        self.lost = lost
        paired = {id(new) for _, new in self.pairs}
        self.added = [test for test in self.added if id(test) not in paired]


def compare_tests(
    files: Iterable[Versions], charsets: Charsets = NOTHING_DECLARED
) -> Comparison:
    test_files = [
        _Texts.decode(file, charsets) for file in files if place_of(file.path)
    ]
    pairing = _pair(test_files)
    absorber = _Absorber(pairing)
    moved = {old.id: new.id for old, new in pairing.pairs}
    removed = []
    for old in pairing.lost:
        if not old.code.is_test:
            continue
        absorbing = absorber.absorb(old)
        if absorbing is not None:
            moved[old.id] = absorbing.id
        elif not absorber.is_split(old):
            removed.append(old.id)
    weakened = _find_weakened(pairing.pairs, absorber)
    changed = []
    tables = []
    for old, new in pairing.pairs:
        if not old.code.is_test:
            continue
        if old.id not in weakened and old.code.body != new.code.body:
            changed.append(old.id)
        if old.id == new.id and old.id.is_table:
            tables.append(old.id)
    return Comparison(
        removed=tuple(dict.fromkeys(removed)),
        weakened=weakened,
        changed=tuple(dict.fromkeys(changed)),
        tables=tuple(dict.fromkeys(tables)),
        moved={old: new for old, new in moved.items() if old != new},
        contents=_previous_contents(test_files, (*removed, *weakened)),
    )


def _find_weakened(
    pairs: Iterable[_Pair], absorber: "_Absorber"
) -> dict[TestId, Weakening]:
    weakened = {}
    for old, new in pairs:
        weakening = _find_weakening(old.code, new.code)
        if weakening is None:
            continue
        if weakening in _COVERED_BY_PARTS and absorber.is_split(old, new):
            continue
        weakened[old.id] = weakening
    return weakened


def _pair(files: Sequence[_Texts]) -> _Pairing:
    pairing = _Pairing([], [])
    for file in files:
        before, after = _read_versions(file)
        pairing.lost += before
        pairing.added += after
    pairing.match(lambda test: test.id, _Test.can_become)
    # moved into or out of a class or group
    pairing.match(lambda test: (test.id.file, test.code.leaf), _Test.can_become)
    pairing.match(lambda test: test.code.body, _Test.can_become)
    pairing.match(lambda test: test.code.shape, _is_renamed)
    return pairing


def _is_renamed(old: _Test, new: _Test) -> bool:
    is_near = old.id.file == new.id.file or old.code.leaf == new.code.leaf
    has_values = any(not word.isidentifier() for word in old.code.words)
    return is_near and has_values and bool(old.code.checks) and old.can_become(new)


class _Absorber:
    def __init__(self, pairing: _Pairing) -> None:
        self._added = pairing.added
        self._capacity: dict[TestId, int | None] = {}
        """Number of assertions that a test can have absorbed; None: any."""
        for new in pairing.added:
            self._capacity[new.id] = new.code.weight
            if new.code.rows is None:
                self._capacity[new.id] = None
        for old, new in pairing.pairs:
            self._capacity[new.id] = max(0, new.code.weight - old.code.weight)
            if new.code.rows is None or old.code.rows is None:
                self._capacity[new.id] = None
        tests = (*pairing.added, *(new for _, new in pairing.pairs))
        self._hosts = [test for test in tests if self._capacity[test.id] != 0]
        lost = sum(old.code.is_test for old in pairing.lost)
        if lost * len(self._hosts) > _MAX_COMPARED:
            self._hosts = []
            self._added = []

    def absorb(self, old: _Test) -> _Test | None:
        words = old.code.words
        if not words:
            return None
        for new in self._hosts:
            capacity = self._capacity[new.id]
            has_room = capacity is None or capacity >= old.code.weight
            has_all = new.code.checks > 0 and words <= new.code.words
            if has_room and has_all and old.can_become(new):
                if capacity is not None:
                    self._capacity[new.id] = capacity - old.code.weight
                return new
        return None

    def is_split(self, old: _Test, *rest: _Test) -> bool:
        added = [new for new in self._added if new.code.checks and old.can_become(new)]
        if not old.code.name:  # a file that was one test may now have several
            weights = [new.code.weight for new in added if new.id.file == old.id.file]
            return sum(weights) >= old.code.checks > 0
        parts = [new for new in rest if new.code.checks]
        parts += [new for new in added if new.code.words <= old.code.words]
        words = frozenset[str]().union(*(part.code.words for part in parts))
        weight = sum(part.code.weight for part in parts)
        return bool(words) and weight >= old.code.weight and words >= old.code.words


_COVERED_BY_PARTS = (
    Weakening.UNCHECKED,
    Weakening.FEWER_ROWS,
    Weakening.FEWER_CHECKS,
)


def _find_weakening(old: Declared, new: Declared) -> Weakening | None:
    if new.is_empty and not old.is_empty:
        return Weakening.EMPTIED
    helpers = new.calls - old.calls
    if old.checks and not new.checks and not helpers:
        return Weakening.UNCHECKED
    if _has_fewer_rows(old, new):
        return Weakening.FEWER_ROWS
    if _has_fewer_checks(old, new, len(helpers)):
        return Weakening.FEWER_CHECKS
    if not old.is_test or new.skipped <= old.skipped:
        return None
    if new.skipped is Skipped.YES:
        return Weakening.SKIPPED
    return Weakening.MAYBE_SKIPPED


def _has_fewer_rows(old: Declared, new: Declared) -> bool:
    if old.rows is None or new.rows is None:
        return False
    return max(1, new.rows) < old.rows


def _has_fewer_checks(old: Declared, new: Declared, helpers: int) -> bool:
    """True if assertions are gone. A new call may be a helper with an assertion, if the
    test still has all its words.
    """
    if new.checks >= old.checks:
        return False
    if not old.name:  # in a script, it is unclear which lines check
        return Counter(new.lines) < Counter(old.lines)
    is_in_helpers = new.checks + helpers >= old.checks and old.words <= new.words
    return old.is_test and not is_in_helpers


def _read_versions(file: _Texts) -> list[list[_Test]]:
    suffix = PurePosixPath(file.path).suffix.lower().removeprefix(".")
    texts = [file.before, file.after]
    versions = [() if text is None else read_tests(suffix, text) for text in texts]
    if None in versions:
        versions = [
            () if text is None else (read_whole(suffix, text),) for text in texts
        ]
    return [_as_tests(file.path, version or ()) for version in versions]


def _as_tests(path: str, codes: Iterable[Declared]) -> list[_Test]:
    place = place_of(path)
    is_whole_test = is_for_tests(path)
    return [
        _Test(TestId(path, code.name), code, place)
        for code in codes
        if code.name or is_whole_test
    ]


def _previous_contents(
    files: Sequence[_Texts], lost: Sequence[TestId]
) -> dict[str, str]:
    paths = {test.file for test in lost}
    contents = {}
    for file in files:
        if file.path in paths:
            contents[file.path] = file.before or ""
    return contents
