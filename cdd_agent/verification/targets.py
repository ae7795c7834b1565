"""The failed tests that a step must fix, and those that its plan allows.

A test is due in the last step about it, or in a step whose text or check names it. So
tests may be written before the code, and tests of one file may belong to several steps.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Self

from msgspec import Struct, field

from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.project.subjects import TestFile, is_test_file
from cdd_agent.tickets.declared_files import DeclaredFiles, declare_files
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.before import Agenda
from cdd_agent.verification.mentions import Mentions
from cdd_agent.verification.outcomes import Reference, Result, is_in
from cdd_agent.verification.permissions import FailureLeaves
from cdd_agent.verification.test_id import TestId


class Targets(Struct, frozen=True):
    due: Mapping[str, str] = field(default_factory=dict)
    """Test → why it must pass now, as a clause. It failed before."""
    later: Mapping[str, PlanStep] = field(default_factory=dict)
    excused: Mapping[str, str] = field(default_factory=dict)
    """Tests that `May fail` allows → the label of the step that ends this; "" if only
    the current step.
    """


class _Scope(Struct, frozen=True):
    step: PlanStep
    mentions: Mentions
    declared: DeclaredFiles
    files: frozenset[PurePosixPath]
    """The declared files, and the changed ones."""

    @classmethod
    def of_step(
        cls, root: Path, step: PlanStep, guidance: str = "", changed: Sequence[str] = ()
    ) -> Self:
        mentions = Mentions.in_text(
            step.title, step.description, guidance, code=step.check_lines or ""
        )
        declared = declare_files(root, step)
        files = frozenset(map(PurePosixPath, (*declared.paths, *changed)))
        return cls(step, mentions, declared, files)

    @property
    def only_writes_tests(self) -> bool:
        files = list(map(PurePosixPath, self.declared.places)) or self.files
        return bool(files) and all(map(is_test_file, files))

    def names(self, test: TestId, file: TestFile) -> bool:
        return self.mentions.names_test(test, file.defined)

    def tie(self, root: Path, file: TestFile) -> str:
        if self.declared.covers(str(file.path)):
            return "it is among the step's files"
        # a folder or pattern also declares future files
        declared = [path for path in file.imported if self.declared.covers(str(path))]
        for path in sorted(self.files.union(declared)):
            tie = file.tie(root, path)
            if tie:
                return tie
        return ""


class Assignment(Struct, frozen=True, dict=True):
    """A step's task, given the steps around it."""

    root: Path
    step: PlanStep
    agenda: Agenda = Agenda()
    guidance: str = ""
    changes: ChangeSet = field(default_factory=lambda: ChangeSet(()))

    @property
    def planned_files(self) -> frozenset[str]:
        """Paths that the plan's steps declare."""
        steps = (self.step, *self.agenda.earlier, *self.agenda.later)
        return frozenset(file.path for step in steps for file in step.files_affected)

    def find_targets(
        self,
        old_failures: Sequence[str],
        new_failures: Sequence[str] = (),
        reference: Reference | None = None,
    ) -> Targets:
        """Sort the failed tests that matter to the step. Reads their files."""
        due: dict[str, str] = {}
        later: dict[str, PlanStep] = {}
        excused: dict[str, str] = {}
        for name in (*old_failures, *new_failures):
            test = TestId.parse(name)
            file = self._read_file(test.file)
            passed = _passed_inside(test, reference or Reference())
            leave = self._leaves.find_excuse(test, file.defined, passed)
            if leave is not None:
                excused[name] = leave.until
                continue
            if name in new_failures:
                continue
            ended = self._leaves.find_ended(test, file.defined)
            if ended is not None:
                label = self.step.label
                due[name] = f"step {ended.step} lets it fail only until step {label}"
                continue
            reason, can_wait = self._reason(test, file)
            taker = self._last_taker(test, file) if reason and can_wait else None
            if taker is not None:
                later[name] = taker
            elif reason:
                due[name] = reason
        return Targets(due, later, excused)

    def is_about(self, name: str) -> bool:
        """True if the step's text, files or criteria name the test. Reads its file."""
        test = TestId.parse(name)
        reason, _ = self._reason(test, self._read_file(test.file))
        return bool(reason)

    def _read_file(self, path: str) -> TestFile:
        if path not in self._test_files:
            before = None
            for change in self.changes.changes:
                if str(change.path) == path:
                    before = change.before
            self._test_files[path] = TestFile.read(self.root, path, before)
        return self._test_files[path]

    @cached_property
    def _test_files(self) -> dict[str, TestFile]:
        return {}

    def _reason(self, test: TestId, file: TestFile) -> tuple[str, bool]:
        """Return why the step is about a test, or "", and true if the test can wait for
        a later step.
        """
        scope = self._scope
        if scope.names(test, file):
            return "the step names it", scope.only_writes_tests
        tie = scope.tie(self.root, file)
        if tie:
            return tie, True
        criteria = self._criteria_naming(test, file)
        # no later step could fix it
        is_last_resort = criteria and not self._later_scopes
        if is_last_resort or criteria & self._places_served_by(self.step):
            return "an acceptance criterion names it", True
        return "", True

    def _last_taker(self, test: TestId, file: TestFile) -> PlanStep | None:
        criteria = self._criteria_naming(test, file)
        for scope in reversed(self._later_scopes):
            could_fix = not scope.only_writes_tests and scope.tie(self.root, file)
            if (
                could_fix
                or scope.names(test, file)
                or criteria & self._places_served_by(scope.step)
            ):
                return scope.step
        return None

    def _criteria_naming(self, test: TestId, file: TestFile) -> set[int]:
        numbers = set()
        for number, criterion in enumerate(self._criteria, 1):
            if criterion.names_test(test, file.defined):
                numbers.add(number)
        return numbers

    def _places_served_by(self, step: PlanStep) -> frozenset[int]:
        return self.agenda.served.get(step.number, frozenset())

    @cached_property
    def _leaves(self) -> FailureLeaves:
        return FailureLeaves.of_step(self.step, self.agenda.earlier, self.agenda.later)

    @cached_property
    def _scope(self) -> _Scope:
        return _Scope.of_step(self.root, self.step, self.guidance, self.changes.touched)

    @cached_property
    def _later_scopes(self) -> tuple[_Scope, ...]:
        return tuple(_Scope.of_step(self.root, step) for step in self.agenda.later)

    @cached_property
    def _criteria(self) -> tuple[Mentions, ...]:
        return tuple(map(Mentions.in_text, self.agenda.criteria))


def _passed_inside(test: TestId, reference: Reference) -> Iterable[TestId]:
    if test.name:
        return ()
    return [
        TestId.parse(name)
        for name, results in reference.tests.items()
        if results.result is Result.PASSED and is_in(name, [test.file])
    ]
