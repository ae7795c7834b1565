"""Test results of runs, and how they differ from earlier ones.

Keys are texts of `TestId`s. A file or folder that could not be collected has an id too,
which stands for every test in it.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath

from msgspec import Struct, field

from cdd_agent.pattern import Pattern
from cdd_agent.verification.test_id import TestId
from cdd_agent.verification.testcode.test_files import CODE


class Result(StrEnum):
    """If a report has several results for an id, the first member here counts."""

    FAILED = "failed"
    SKIPPED = "skipped"
    """Or failed as expected. Proves nothing."""
    PASSED = "passed"


class StatementKind(StrEnum):
    """Kinds of statements in a check's output about its own run."""

    NO_TESTS = "no_tests"
    WATCHES = "watches"
    """It waits for file changes and does not end."""
    THRESHOLD = "threshold"
    """Coverage or a similar measure is below its limit."""
    WARNINGS = "warnings"
    """Warnings count as errors, or a linter found something."""
    PROGRAM_MISSING = "program_missing"
    """A program or a package of the runner is missing."""
    SCRIPT_MISSING = "script_missing"
    """A script, task or rule of the project is missing, or something unnamed that may
    be the project's.
    """
    ENVIRONMENT = "environment"
    """Something that tests need is missing, such as a server or a module."""

    @property
    def explains_exit(self) -> bool:
        """True if it explains a non-zero exit code without a failed test."""
        return self in (StatementKind.THRESHOLD, StatementKind.WARNINGS)


class Statement(Struct, frozen=True):
    """`text` has no times or measured values, so that equal statements have equal
    texts.
    """

    kind: StatementKind
    text: str
    """A clause."""


class Selection(Struct, frozen=True):
    """The tests that a command asks for: files, folders and tests, and options that may
    select tests.
    """

    paths: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    runner: str = ""
    """Empty in older records."""

    def must_reach(self, test: str, seen_by: "Selection") -> bool:
        """True if this command must run a test that a command with `seen_by` ran. False
        if uncertain: other options may select other tests, and without paths the
        settings decide.
        """
        is_other_runner = self.runner != seen_by.runner
        if is_other_runner and self.runner and seen_by.runner:
            return False
        if self.options != seen_by.options:
            return False
        return self.paths == seen_by.paths or is_in(test, self.paths)

    def is_no_narrower(self, run: "SuiteRun") -> bool:
        """True if this command asks for all tests of a run without naming tests or test
        files.
        """
        if self == run.selection:
            return True
        names_tests = any(
            "::" in path or PurePosixPath(path).suffix in CODE for path in self.paths
        )
        return not names_tests and all(
            self.must_reach(test, run.selection) for test in run.results
        )


NO_SELECTION = Selection()


class SuiteRun(Struct, frozen=True):
    selection: Selection = NO_SELECTION
    results: Mapping[str, Result] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    is_finished: bool = True
    """False if a test started and did not end."""
    causes: Mapping[str, str] = field(default_factory=dict)
    """Failed test → what the environment lacks, according to the failure."""

    def having(self, result: Result) -> tuple[str, ...]:
        return tuple(test for test, each in self.results.items() if each is result)

    def count(self, result: Result) -> int:
        return len(self.having(result))

    @property
    def ran(self) -> tuple[str, ...]:
        """Tests that passed or failed."""
        return tuple(
            test
            for test, result in self.results.items()
            if result is not Result.SKIPPED
        )


_OF_SEVERAL_RUNS = (Result.FAILED, Result.PASSED, Result.SKIPPED)


def merge_runs(runs: Sequence[SuiteRun]) -> SuiteRun:
    """Combine runs. A failure in any run counts; a test is skipped only if no run ran
    it.
    """
    if len(runs) == 1:
        return runs[0]
    results: dict[str, Result] = {}
    texts: dict[str, str] = {}
    for run in runs:
        for test, result in run.results.items():
            other = results.get(test, result)
            results[test] = min(other, result, key=_OF_SEVERAL_RUNS.index)
        for test, text in run.texts.items():
            texts.setdefault(test, text)
    return SuiteRun(
        results=results, texts=texts, is_finished=all(run.is_finished for run in runs)
    )


_LONGEST_TEXT = 4000
"""Characters kept of a failure's text."""
_UNSEEN = Pattern("[\0-\x1f\x7f\ud800-\udfff]")
"""Characters that ids must not contain, even if a report does."""
_NO_TEXT = Pattern("[\0\ud800-\udfff]")
_WORST_FIRST = tuple(Result)


class Results(Struct):
    """Collects results. The worst result of an id counts."""

    results: dict[str, Result] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def add(self, test: str, result: Result, text: str = "") -> None:
        test = _UNSEEN.sub("�", test)
        self.results[test] = min(
            self.results.get(test, result), result, key=_WORST_FIRST.index
        )
        if text:
            self.add_text(test, text)

    def add_text(self, test: str, text: str) -> None:
        """The first text of a test counts."""
        self.texts.setdefault(
            _UNSEEN.sub("�", test), _NO_TEXT.sub("�", text[:_LONGEST_TEXT])
        )

    def run(
        self, selection: Selection = NO_SELECTION, *, is_finished: bool = True
    ) -> SuiteRun:
        return SuiteRun(selection, self.results, self.texts, is_finished)


class Difference(Struct, frozen=True):
    """Tests whose results differ from the known ones."""

    new_failures: tuple[str, ...] = ()
    """Before, they passed, were skipped or did not exist."""
    old_failures: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    """They ran before, and a command that must run them did not find them."""
    skipped: tuple[str, ...] = ()
    """Now skipped or expected to fail; new, or they ran before."""


class Known(Struct, frozen=True):
    """A test's last result, and the selections of commands that ran it."""

    result: Result
    seen_by: frozenset[Selection]


class Reference(Struct, frozen=True):
    """Results known before a step, from the baseline and completed steps."""

    tests: Mapping[str, Known] = field(default_factory=dict)

    def after(self, *runs: SuiteRun) -> "Reference":
        """Return the reference with the results of these runs, on an accepted state."""
        merged = merge_runs(runs)
        failed = set(merged.having(Result.FAILED))
        # removed tests, and files that could not be collected before
        outdated = {*self._missing(runs, merged), *_collected(merged)}
        if failed:
            # tests in a file that cannot be collected any more
            for test in self.tests:
                if not failed.isdisjoint(TestId.parse(test).places()):
                    outdated.add(test)
        tests = dict(self.tests)
        for test in outdated:
            tests.pop(test, None)
        for run in runs:
            for test in run.results:
                seen_by = {run.selection}
                if test in tests:
                    seen_by |= tests[test].seen_by
                tests[test] = Known(merged.results[test], frozenset(seen_by))
        return Reference(tests)

    def compare(
        self,
        *runs: SuiteRun,
        written: Collection[str] = (),
        tables: Collection[TestId] = (),
    ) -> Difference:
        """Compare runs, all on the same state, with the known results. `written` are
        files that the step wrote, `tables` the tests with rows in these.

        A test that any run sees is not gone, and if it ran there, not skipped.
        """
        merged = merge_runs(runs)
        skipped = merged.having(Result.SKIPPED)
        collected = _collected(merged)
        gone = []
        newly_skipped = []
        for test in skipped:
            if self._ran(test) and any(self._expects(test, run) for run in runs):
                newly_skipped.append(test)
        for test in self._missing(runs, merged):
            if not self._ran(test) or test in collected:
                continue
            # its file or class is skipped as a whole
            if not set(skipped).isdisjoint(TestId.parse(test).places()):
                newly_skipped.append(test)
            else:
                gone.append(test)
        for test in skipped:
            if test not in self.tests and is_in(test, written):
                newly_skipped.append(test)
        return Difference(
            new_failures=self.new_failures(merged),
            old_failures=self.old_failures(merged),
            gone=self._without_renamed_cases(gone, merged, tables),
            skipped=tuple(newly_skipped),
        )

    def new_failures(self, run: SuiteRun) -> tuple[str, ...]:
        """Return failed tests that passed, were skipped or did not exist before."""
        failed = run.having(Result.FAILED)
        return tuple(test for test in failed if not self.failed(test))

    def old_failures(self, run: SuiteRun) -> tuple[str, ...]:
        """Return failed tests that could not pass before."""
        return tuple(test for test in run.having(Result.FAILED) if self.failed(test))

    def otherwise(self, run: SuiteRun) -> dict[str, Result | None]:
        """Return the earlier result of each test whose result differs; None if
        unknown.
        """
        earlier = {test: self._result(test) for test in run.results}
        return {
            test: before
            for test, before in earlier.items()
            if before is not run.results[test]
        }

    def _result(self, test: str) -> Result | None:
        if self.failed(test):
            return Result.FAILED
        return self.tests[test].result if test in self.tests else None

    def failed(self, test: str) -> bool:
        """True if the test failed before, or its file could not be collected."""
        places = (test,) if test in self.tests else TestId.parse(test).places()
        return any(
            self.tests[place].result is Result.FAILED
            for place in places
            if place in self.tests
        )

    def _ran(self, test: str) -> bool:
        return test in self.tests and self.tests[test].result is not Result.SKIPPED

    def _expects(self, test: str, run: SuiteRun) -> bool:
        return any(
            run.selection.must_reach(test, other) for other in self.tests[test].seen_by
        )

    def _missing(self, runs: Sequence[SuiteRun], merged: SuiteRun) -> Iterator[str]:
        """Yield tests that a run had to see and none saw, except in files that could
        not be collected.
        """
        failed = set(merged.having(Result.FAILED))
        for test in self.tests:
            if (
                test not in merged.results
                and any(self._expects(test, run) for run in runs)
                and failed.isdisjoint(TestId.parse(test).places())
            ):
                yield test

    def _without_renamed_cases(
        self, gone: Sequence[str], run: SuiteRun, tables: Collection[TestId]
    ) -> tuple[str, ...]:
        """Leave out cases of a function that gained as many passing cases: a case's id
        contains its parameters.
        """
        if not gone:
            return ()
        passed = run.having(Result.PASSED)
        added = [test for test in passed if test not in self.tests]
        new = Counter(_function_of(test, tables) for test in added)
        lost = Counter(_function_of(test, tables) for test in gone)
        remaining = []
        for test in gone:
            function = _function_of(test, tables)
            if new[function] < lost[function]:
                remaining.append(test)
        return tuple(remaining)


def _function_of(test: str, tables: Collection[TestId]) -> TestId:
    case = TestId.parse(test)
    for table in tables:
        if table.has_row(case):
            return table
    return case.function


def is_in(test: str, places: Collection[str]) -> bool:
    """True if the test is one of these folders, files, classes or functions, or inside
    one.
    """
    return any(
        place in (".", test)
        or test.startswith((f"{place}/", f"{place}::", f"{place}["))
        for place in places
    )


def _collected(run: SuiteRun) -> set[str]:
    """Return files, folders and classes with tests."""
    collected: set[str] = set()
    for test in run.results:
        for place in TestId.parse(test).places():
            if place in collected:
                break
            collected.add(place)
    return collected
