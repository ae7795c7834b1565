"""The tests that a step is about: of those that failed before it, the ones that it has
to turn green.

A test is due in the last step that is about it, or at once where a step's own words or
check name it. So tests may be written before what they test, and the tests of one file
may belong to several steps.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Self

from msgspec import Struct, field

from cdd_agent.edits.changes import ChangeSet
from cdd_agent.project.subjects import TestFile, is_test_file
from cdd_agent.tickets.declared_files import DeclaredFiles, declare_files
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.before import Agenda
from cdd_agent.verification.mandate import StepMandate
from cdd_agent.verification.test_id import TestId


class Targets(Struct, frozen=True):
    """Of the tests that failed before, those that matter to a step."""

    due: Mapping[str, str] = field(default_factory=dict)
    """They have to pass now, each for a reason, as a clause."""
    later: Mapping[str, int] = field(default_factory=dict)
    """They are left to a later step, of this number."""


class _Scope(Struct, frozen=True):
    """All that one step is about."""

    step: PlanStep
    asked: StepMandate
    check: StepMandate
    declared: DeclaredFiles
    files: frozenset[PurePosixPath]
    """The declared ones, and those that it changed."""

    @classmethod
    def of(
        cls, root: Path, step: PlanStep, guidance: str = "", changed: Sequence[str] = ()
    ) -> Self:
        declared = declare_files(root, step)
        files = frozenset(map(PurePosixPath, (*declared.paths, *changed)))
        asked, check = (
            StepMandate.by(step, guidance),
            StepMandate.in_text(step.check_lines or ""),
        )
        return cls(step, asked, check, declared, files)

    @property
    def only_writes_tests(self) -> bool:
        files = list(map(PurePosixPath, self.declared.places)) or self.files
        return bool(files) and all(map(is_test_file, files))

    def names(self, test: TestId, file: TestFile) -> bool:
        return any(
            words.names_test(test, file.defined) for words in (self.asked, self.check)
        )

    def tie(self, root: Path, file: TestFile) -> str:
        """The tie of a test in this file to the step's files, as a clause."""
        if self.declared.covers(str(file.path)):
            return "it is among the step's files"
        # a folder or pattern also declares files that are not there yet
        declared = [path for path in file.imported if self.declared.covers(str(path))]
        for path in sorted(self.files.union(declared)):
            if tie := file.tie(root, path):
                return tie
        return ""


class Assignment(Struct, frozen=True, dict=True):
    """A step's task, in view of the steps that are left after it."""

    root: Path
    step: PlanStep
    agenda: Agenda = Agenda()
    guidance: str = ""
    changes: ChangeSet = field(default_factory=lambda: ChangeSet(()))

    def targets(self, failures: Sequence[str]) -> Targets:
        """The step's own among tests that failed before, and still do. Reads their
        files.
        """
        due: dict[str, str] = {}
        later: dict[str, int] = {}
        before = {str(change.path): change.before for change in self.changes.changes}
        files: dict[str, TestFile] = {}
        for test in failures:
            found = TestId.parse(test)
            if found.file not in files:
                files[found.file] = TestFile.read(
                    self.root, found.file, before.get(found.file)
                )
            file = files[found.file]
            why, waits = self._reason(found, file)
            taker = self._last_of_those_left(found, file) if why and waits else None
            if taker is not None:
                later[test] = taker
            elif why and not self._may_fail(found, file):
                due[test] = why
        return Targets(due, later)

    def _reason(self, test: TestId, file: TestFile) -> tuple[str, bool]:
        """Why the step is about this test, if it is; and whether the test can wait for
        a later step that is, too.
        """
        own = self._own
        if own.names(test, file):
            return "the step names it", own.only_writes_tests
        if why := own.tie(self.root, file):
            return why, True
        criteria = self._criteria_naming(test, file)
        # no step that is left after it could take care of it
        is_last_resort = criteria and not self._left
        return (
            "an acceptance criterion names it"
            if is_last_resort or criteria & {*own.step.serves}
            else ""
        ), True

    def _last_of_those_left(self, test: TestId, file: TestFile) -> int | None:
        criteria = self._criteria_naming(test, file)
        for scope in reversed(self._left):
            could_fix = not scope.only_writes_tests and scope.tie(self.root, file)
            if could_fix or scope.names(test, file) or criteria & {*scope.step.serves}:
                return scope.step.number
        return None

    def _may_fail(self, test: TestId, file: TestFile) -> bool:
        """Whether the step says so: of this test, or where it only writes tests of
        those that it writes.
        """
        own, numbers = self._own, [scope.step.number for scope in self._left]
        if own.asked.lets_fail(test, file.defined, numbers):
            return True
        return (
            own.only_writes_tests
            and file.path in own.files
            and own.asked.lets_tests_fail(numbers)
        )

    def _criteria_naming(self, test: TestId, file: TestFile) -> set[int]:
        """The acceptance criteria that name this test, by their place."""
        criteria = enumerate(self._criteria, 1)
        return {
            number
            for number, criterion in criteria
            if criterion.names_test(test, file.defined)
        }

    @cached_property
    def _own(self) -> _Scope:
        return _Scope.of(self.root, self.step, self.guidance, self.changes.touched)

    @cached_property
    def _left(self) -> tuple[_Scope, ...]:
        return tuple(_Scope.of(self.root, step) for step in self.agenda.later)

    @cached_property
    def _criteria(self) -> tuple[StepMandate, ...]:
        return tuple(map(StepMandate.in_text, self.agenda.criteria))
