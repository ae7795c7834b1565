"""The fate of the tests in files that a step changed: by their text alone, whatever a
runner says.

Only what the text shows counts against a step: a test that is gone, does nothing or
checks nothing any more, or is skipped. One that is there under another name, in another
file, or as a part of another test, is not gone. That a test does something else than
before is only told.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct, field

from cdd_agent.files.read import holds_secrets
from cdd_agent.verification.mandate import StepMandate
from cdd_agent.verification.test_id import TestId
from cdd_agent.verification.testcode import (
    Declared,
    Place,
    Skipped,
    is_for_tests,
    place_of,
)
from cdd_agent.verification.testcode_plain import read_plainly
from cdd_agent.verification.testcode_python import HARMLESS, Unparsable, read_python


class Versions(Struct, frozen=True):
    """One file before a step and after it; None where it is not there."""

    path: str
    before: bytes | None
    after: bytes | None


class TestChanges(Struct, frozen=True):
    """A step's changes of the tests that were there."""

    gone: tuple[TestId, ...] = ()
    less: tuple[TestId, ...] = ()
    """Still there, with nothing done or checked in it any more, or for fewer sets of
    values.
    """
    skipped: tuple[TestId, ...] = ()
    weaker: tuple[TestId, ...] = ()
    """It has fewer assertions than before, is about less, or may be skipped."""
    changed: tuple[TestId, ...] = ()
    """In any way, but for the layout; without those above."""
    tables: tuple[TestId, ...] = ()
    """Those that are there as before, and whose names tell of the values that they are
    run for.
    """
    moved: Mapping[TestId, TestId] = field(default_factory=dict)
    """Tests that are called otherwise now, or are a part of another."""
    contents: Mapping[str, str] = field(default_factory=dict)
    """The files of those above, as they were before; not where that may be secrets."""

    __test__ = False

    def objectionable(
        self, asked: StepMandate
    ) -> tuple[list[TestId], list[TestId], list[TestId]]:
        """The tests that are gone, less, and skipped, without the step's asking for
        it.
        """
        gone, less = (
            [test for test in tests if not asked.to_remove(test)]
            for tests in (self.gone, self.less)
        )
        return gone, less, [test for test in self.skipped if not asked.to_skip(test)]


def compare(files: Iterable[Versions]) -> TestChanges:
    """Find out what became of the tests in these files: all that a step changed."""
    return _Comparison(list(files)).result()


class _Found(Struct, frozen=True):
    """A test in one of two versions of a file."""

    test: TestId
    code: Declared
    place: Place

    def can_be(self, other: "_Found") -> bool:
        """Whether this one, before, can have become another one that runners find just
        as well.
        """
        is_found = self.test.file == other.test.file or other.place >= self.place
        return is_found and self.code.is_test == other.code.is_test


_Key = Callable[[_Found], object]
_Rule = Callable[[_Found, _Found], bool]
_MOST_COMPARED = 200_000
"""Pairs of tests that are looked at for what one has of the other; among more, none is
found.
"""


class _Comparison:
    def __init__(self, files: Sequence[Versions]) -> None:
        self._files = [file for file in files if place_of(file.path)]
        self._left: list[_Found] = []
        """Of before, without a counterpart yet."""
        self._new: list[_Found] = []
        """Of after."""
        self._pairs: list[tuple[_Found, _Found]] = []
        self._room: dict[TestId, int | None] = {}
        """How many assertions of others a test has taken in, at the most; None: nobody
        can say.
        """
        self._roomy: list[_Found] = []
        """Of after, those that can have taken in others."""
        self._moved: dict[TestId, TestId] = {}

    def result(self) -> TestChanges:
        for file in self._files:
            left, new = _read(file)
            self._left += left
            self._new += new
        self._match(lambda found: found.test, _Found.can_be)
        # in or out of a class or a group
        self._match(lambda found: (found.test.file, found.code.leaf), _Found.can_be)
        self._match(lambda found: found.code.body, _Found.can_be)
        self._match(lambda found: found.code.shape, _is_renamed)
        for now in self._new:
            self._room[now.test] = (
                now.code.weight if now.code.cases is not None else None
            )
        for before, now in self._pairs:
            is_counted = now.code.cases is not None and before.code.cases is not None
            self._room[now.test] = (
                max(0, now.code.weight - before.code.weight) if is_counted else None
            )
        self._roomy = [
            now
            for now in (*self._new, *(now for _, now in self._pairs))
            if self._room[now.test] != 0
        ]
        left = [before for before in self._left if before.code.is_test]
        if len(left) * len(self._roomy) > _MOST_COMPARED:
            self._roomy, self._new = [], []
        gone = [
            before
            for before in left
            if not (self._is_taken_in(before) or self._is_split(before))
        ]
        less = [(before, now) for before, now in self._pairs if _is_less(before, now)]
        less = [
            (before, now)
            for before, now in less
            if now.code.is_empty or not self._is_split(before, now)
        ]
        tests = [(before, now) for before, now in self._pairs if before.code.is_test]
        skipped = [
            now
            for before, now in tests
            if now.code.skipped is Skipped.YES > before.code.skipped
        ]
        told = {now.test for _, now in less} | {now.test for now in skipped}
        others = [(before, now) for before, now in tests if now.test not in told]
        weaker = [
            now
            for before, now in others
            if now.code.checks < before.code.checks
            or now.code.skipped > before.code.skipped
            or (
                now.code.words < before.code.words
                and len(now.code.body) < len(before.code.body)
            )
        ]
        told |= {now.test for now in weaker}
        changed = [
            now
            for before, now in others
            if before.code.body != now.code.body and now.test not in told
        ]
        lost = (*(found.test for found in gone), *(before.test for before, _ in less))
        return TestChanges(
            gone=_once(found.test for found in gone),
            less=_once(before.test for before, _ in less),
            skipped=_once(now.test for now in skipped),
            weaker=_once(now.test for now in weaker),
            changed=_once(now.test for now in changed),
            tables=_once(
                now.test
                for before, now in tests
                if now.test == before.test and now.test.is_table
            ),
            moved={before: now for before, now in self._moved.items() if before != now},
            contents={
                file.path: (file.before or b"").decode("utf-8", errors="replace")
                for file in self._files
                if any(test.file == file.path for test in lost)
                and not holds_secrets(PurePosixPath(file.path).name)
            },
        )

    def _match(self, key: _Key, is_same: _Rule) -> None:
        """Pair what is left with what is new where both have the same key, each
        once.
        """
        by_key: dict[object, list[_Found]] = {}
        for now in reversed(self._new):
            by_key.setdefault(key(now), []).append(now)
        left, taken = [], set[int]()
        for before in self._left:
            same = by_key.get(key(before), [])
            place = next(
                (
                    place
                    for place in range(len(same) - 1, -1, -1)
                    if is_same(before, same[place])
                ),
                None,
            )
            if place is None:
                left.append(before)
                continue
            now = same.pop(place)
            taken.add(id(now))
            self._pairs.append((before, now))
            self._moved[before.test] = now.test
        self._left, self._new = left, [now for now in self._new if id(now) not in taken]

    def _is_taken_in(self, before: _Found) -> bool:
        """Whether another test that is new, or grew, has all that this one was
        about.
        """
        weight, words = before.code.weight, before.code.words
        for now in self._roomy:
            room = self._room[now.test]
            has_all = bool(words and now.code.checks) and words <= now.code.words
            if has_all and (room is None or room >= weight) and before.can_be(now):
                self._room[now.test] = None if room is None else room - weight
                self._moved[before.test] = now.test
                return True
        return False

    def _is_split(self, before: _Found, *rest: _Found) -> bool:
        """Whether new tests, with the rest of this one, have together all that it was
        about.
        """
        new = [now for now in self._new if before.can_be(now) and now.code.checks]
        if not before.code.name:  # a whole file that has become several tests
            return (
                sum(now.code.weight for now in new if now.test.file == before.test.file)
                >= before.code.checks
                > 0
            )
        parts = [
            *(now for now in rest if now.code.checks),
            *(
                now
                for now in new
                if now.code.words and now.code.words <= before.code.words
            ),
        ]
        words = frozenset[str]().union(*(part.code.words for part in parts))
        is_enough = sum(part.code.weight for part in parts) >= before.code.weight
        return bool(parts and words) and is_enough and words >= before.code.words


def _is_renamed(before: _Found, now: _Found) -> bool:
    """With what it is about: nothing but names differs, and there are values by which
    it is known.
    """
    is_near = before.test.file == now.test.file or before.code.leaf == now.code.leaf
    has_values = any(not word.isidentifier() for word in before.code.words)
    return is_near and has_values and bool(before.code.checks) and before.can_be(now)


def _is_less(before: _Found, now: _Found) -> bool:
    """Whether the text shows that less is left than was there."""
    was, is_now = before.code, now.code
    if not was.is_empty and is_now.is_empty:
        return True
    if was.checks and not is_now.checks and is_now.calls <= was.calls | HARMLESS:
        return True
    if (
        was.cases is not None
        and is_now.cases is not None
        and len(is_now.cases) < len(was.cases)
    ):
        return max(1, len(is_now.cases)) < len(was.cases)
    lines, left = Counter(was.lines), Counter(is_now.lines)
    return is_now.checks < was.checks and left < lines


def _read(file: Versions) -> tuple[list[_Found], list[_Found]]:
    """The tests of both versions, read alike."""
    suffix, place = PurePosixPath(file.path).suffix.lower(), place_of(file.path)
    texts = [
        None if data is None else data.decode("utf-8-sig", errors="replace")
        for data in (file.before, file.after)
    ]
    try:
        if suffix != ".py":
            raise Unparsable
        versions = [() if text is None else read_python(text) for text in texts]
    except Unparsable:
        versions = [
            () if text is None else read_plainly(suffix, text) for text in texts
        ]
    if not is_for_tests(file.path):
        versions = [tuple(code for code in codes if code.name) for codes in versions]
    before, after = (
        [_Found(TestId(file.path, code.name), code, place) for code in codes]
        for codes in versions
    )
    return before, after


def _once(tests: Iterable[TestId]) -> tuple[TestId, ...]:
    return tuple(dict.fromkeys(tests))
