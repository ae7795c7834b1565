"""Facts about a step, for judging it. The rules (`rules.py`) use nothing else."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.verification.before import Before
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.harness import changes_of_harness
from cdd_agent.verification.lost_tests import Comparison
from cdd_agent.verification.outcomes import (
    Difference,
    Result,
    Statement,
    StatementKind,
    SuiteRun,
    merge_runs,
)
from cdd_agent.verification.own_modules import find_own_modules
from cdd_agent.verification.permissions import Permissions
from cdd_agent.verification.targets import Assignment, Targets


class Work(Struct, frozen=True):
    """A step's changes, and what the plan says about them."""

    changes: ChangeSet = field(default_factory=lambda: ChangeSet(()))
    """Made by the reply and by tool calls."""
    changed: frozenset[str] = frozenset()
    """Files that differ after the checks from before the step."""
    created: frozenset[str] = frozenset()
    """Changed files that did not exist before the step."""
    missing: tuple[str, ...] = ()
    """Files that the plan declares as new but that do not exist."""
    permissions: Permissions = field(default_factory=Permissions)
    has_own_check: bool = False
    needs_no_check: bool = False
    """True for `Verify: none`."""
    assignment: Assignment | None = None
    """None if the step is about no particular test."""
    tests: Comparison = field(default_factory=Comparison)
    """Changes in the text of existing tests."""
    refused: tuple[str, ...] = ()
    """Refused or failed calls with their reasons, if nothing changed."""

    @property
    def has_changed_declared(self) -> bool:
        """True if a declared file changed; any file, if none is declared."""
        if not self.permissions.declared:
            return bool(self.changed)
        return any(self.permissions.declares(path) for path in self.changed)

    @property
    def untouched(self) -> tuple[str, ...]:
        """Named files that did not change."""
        named = self.permissions.declared.named
        return tuple(path for path in named if path not in self.changed)


class CheckFacts(Struct, frozen=True, dict=True):
    """One check's run, compared with earlier results and the plan."""

    check: Check
    run: CheckRun
    before: Before
    work: Work

    @property
    def tests(self) -> SuiteRun:
        """Empty if the check does not report tests."""
        return self.run.tests or SuiteRun()

    @property
    def last_run(self) -> CheckRun | None:
        """The same check before the step."""
        return self.before.runs.get(self.run.command)

    @cached_property
    def failed(self) -> tuple[str, ...]:
        return self.tests.having(Result.FAILED)

    @cached_property
    def new_failures(self) -> tuple[str, ...]:
        return self.before.reference.new_failures(self.tests)

    @cached_property
    def old_failures(self) -> tuple[str, ...]:
        return self.before.reference.old_failures(self.tests)

    @cached_property
    def targets(self) -> Targets:
        """The failed tests that matter to the step."""
        if self.work.assignment is None or self.run.tests is None:
            return Targets()
        return self.work.assignment.find_targets(
            self.old_failures, self.new_failures, self.before.reference
        )

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The failed tests that make the step fail."""
        failures: Sequence[str] = (*self.new_failures, *self.targets.due)
        if self.work.has_own_check and not self._compares_all:
            # the check names some tests: the step is about these
            failures = self.failed
        return tuple(
            test
            for test in dict.fromkeys(failures)
            if test not in self.targets.excused and test not in self.of_environment
        )

    @cached_property
    def due(self) -> tuple[str, ...]:
        """The tests in `counted` that the step is about."""
        if self.work.has_own_check and not self._compares_all:
            return self.counted
        about = {*self.targets.due}
        if self.work.assignment is not None:
            about.update(
                test for test in self.counted if self.work.assignment.is_about(test)
            )
        return tuple(test for test in self.counted if test in about)

    @cached_property
    def of_environment(self) -> Mapping[str, str]:
        """Test → the environment's fault, for tests that failed before for the same
        reason. Missing modules that the project or plan makes do not count.
        """
        reasons = {}
        for test, cause in self.tests.causes.items():
            # it may have passed in an earlier step
            if test not in self.old_failures:
                continue
            for run in self.before.runs.values():
                if run.tests is not None and run.tests.causes.get(test) == cause:
                    reasons[test] = cause
        assignment = self.work.assignment
        if assignment is None:
            return reasons
        own_modules = find_own_modules(
            {*reasons.values()}, assignment.root, assignment.planned_files
        )
        return {
            test: cause for test, cause in reasons.items() if cause not in own_modules
        }

    @property
    def missing_program(self) -> Statement | None:
        """The statement that a program is not installed, if no test ran and the check
        ended the same way before the step. Programs of the project or plan do not
        count.
        """
        last, assignment = self.last_run, self.work.assignment
        if last is None or assignment is None or self.run.has_tests:
            return None
        if not self.run.return_code or self.run.return_code != last.return_code:
            return None
        for statement in self.run.statements:
            is_program = statement.kind is StatementKind.PROGRAM_MISSING
            if is_program and statement in last.statements:
                own_modules = find_own_modules(
                    [statement.text], assignment.root, assignment.planned_files
                )
                return None if own_modules else statement
        return None

    @property
    def others(self) -> tuple[str, ...]:
        """The failed tests that do not count."""
        return tuple(test for test in self.failed if test not in self.counted)

    @property
    def known_reason(self) -> Statement | None:
        """The statement that explains a non-zero exit code, if the check ended the same
        way before the step. None if there is a new reason, or if single tests are
        unknown: one may have failed as well.
        """
        last, code = self.last_run, self.run.return_code
        if last is None or not code or code != last.return_code:
            return None
        if last.tests is None or self.run.tests is None:
            return None
        reasons = self.run.exit_reasons
        if not reasons or not set(reasons) <= set(last.statements):
            return None
        return reasons[0]

    @cached_property
    def _compares_all(self) -> bool:
        baseline = self.before.baseline
        if baseline is None or not baseline.tests:
            return False
        selection = self.tests.selection
        return all(selection.is_no_narrower(run) for run in baseline.tests)


class StepFacts(Struct, frozen=True, dict=True):
    """All checks of a step that ran, and its changes."""

    checks: tuple[CheckFacts, ...]
    before: Before
    work: Work
    why_unchecked: str = ""
    """Why no check ran, as a clause."""

    @cached_property
    def runs(self) -> tuple[SuiteRun, ...]:
        """The tests of each check that reports them."""
        return tuple(
            each.run.tests for each in self.checks if each.run.tests is not None
        )

    @cached_property
    def difference(self) -> Difference:
        """Differences from known results. A test is gone or skipped only if every check
        was completed and none ran it.
        """
        runs: Sequence[SuiteRun] = self.runs
        if any(each.run.problem for each in self.checks):
            runs = ()
        return self.before.reference.compare(
            *runs, written=self.work.changes.touched, tables=self.work.tests.tables
        )

    @cached_property
    def harness(self) -> tuple[str, ...]:
        """Changed files that decide how a check runs tests."""
        paths: dict[str, None] = {}
        for each in self.checks:
            changed = changes_of_harness(
                self.work.changes.changes, each.check.invocation, each.check.script
            )
            paths.update(dict.fromkeys(changed))
        return tuple(paths)

    @cached_property
    def turned_green(self) -> tuple[str, ...]:
        """Passed tests that are new or failed before."""
        if not self.runs:
            return ()
        passed = merge_runs(self.runs).having(Result.PASSED)
        return tuple(
            test for test in passed if self.is_new(test) or self.was_failing(test)
        )

    def is_new(self, test: str) -> bool:
        reference = self.before.reference
        if test in reference.tests or reference.failed(test):
            return False
        is_in_new_file = test.partition("::")[0] in self.work.created
        return is_in_new_file or bool(reference.tests) or self.before.is_without_tests

    def was_failing(self, test: str) -> bool:
        return self.before.reference.failed(test)
