"""Statuses, outcomes and costs of steps and runs, importable without the state."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import force_setattr


class StepStatus(StrEnum):
    """The progress of one step."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def is_over(self) -> bool:
        """True if dependent steps may run."""
        return self in (StepStatus.COMPLETED, StepStatus.SKIPPED)


class RunStatus(StrEnum):
    """Always computed from the steps."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


class Verification(StrEnum):
    """The evidence for a completed step."""

    PASSED = "passed"
    """All checks passed, and at least one test is known to have run."""
    EXIT_CODE = "exit_code"
    """All checks exited with 0. No test is known to have run."""
    NONE = "none"
    """Nothing shows that the step is done. Shown as "unverified"."""
    BASELINE = "baseline"
    """The only failures existed before the step, or its plan allows them."""


class Evidence(Struct, frozen=True):
    """Why a step was completed or failed, with numbers of tests."""

    reason: str
    passed: int | None = None
    """None if the check does not report tests."""
    fixed: int = 0
    """Passed tests that failed before the step."""
    new: int = 0
    """Passed tests that did not exist before the step."""
    failed: int = 0
    old_failures: int = 0
    """Failed tests that failed before the step, without `excused`."""
    excused: int = 0
    """Failed tests that the plan's `May fail` allows."""
    excused_until: str = ""
    """The label of the step until which these may fail; empty if only in this step, or
    until different steps.
    """

    @property
    def stayed(self) -> int:
        """Number of tests that passed before and still pass."""
        return (self.passed or 0) - self.fixed - self.new

    @property
    def new_failures(self) -> int:
        """Number of failed tests that count against the step."""
        return self.failed - self.old_failures - self.excused

    @property
    def only_excused_failed(self) -> bool:
        """True if tests failed and the plan allows each failure."""
        return 0 < self.failed == self.excused


class StepOutcome(StrEnum):
    """A step's progress, and the evidence that it is done. Completed steps have values
    of `Verification`.
    """

    PASSED = "passed"
    EXIT_CODE = "exit_code"
    OLD_FAILURES = "baseline"
    MAY_FAIL = "may_fail"
    """Like `OLD_FAILURES`, but the plan's `May fail` allows all of them."""
    UNVERIFIED = "none"
    SKIPPED = "skipped"
    FAILED = "failed"
    OPEN = "open"
    """Pending or in progress."""

    @classmethod
    def from_status(
        cls,
        status: StepStatus,
        verification: Verification | None,
        evidence: Evidence | None = None,
    ) -> "StepOutcome":
        """A completed step without a known verification is unverified."""
        if status is StepStatus.SKIPPED:
            return StepOutcome.SKIPPED
        if status is StepStatus.FAILED:
            return StepOutcome.FAILED
        if status is not StepStatus.COMPLETED:
            return StepOutcome.OPEN
        return StepOutcome.from_verification(verification, evidence)

    @classmethod
    def from_verification(
        cls, verification: Verification | None, evidence: Evidence | None = None
    ) -> "StepOutcome":
        if verification is None:
            return StepOutcome.UNVERIFIED
        only_excused = evidence is not None and evidence.only_excused_failed
        if verification is Verification.BASELINE and only_excused:
            return StepOutcome.MAY_FAIL
        return StepOutcome(verification)


def fill_label(value: Struct, number: int) -> None:
    """Label a step by its number if it has no label: its plan has plain numbers, or is
    older.
    """
    if not getattr(value, "label", ""):
        force_setattr(value, "label", str(number))


class CriterionEdit(StrEnum):
    """Why a run is no evidence for a criterion, in words for users."""

    NEW = "new"
    CHANGED = "changed since the run began"
    CHANGED_SINCE_VERIFIED = "changed since it was verified"


class EditedCriterion(Struct, frozen=True):
    """A criterion that the run does not know and no step serves."""

    place: int
    """In the spec, from 1."""
    text: str
    edit: CriterionEdit


class Unproven(Struct, frozen=True):
    """A finished or failed step without passing tests."""

    step: int
    title: str
    why: StepOutcome
    label: str = ""
    """The user's name for the step."""

    def __post_init__(self) -> None:
        fill_label(self, self.step)


class MissingWork(Struct, frozen=True):
    """A finished step's work that the project's tree lacks. Paths are relative to the
    project.
    """

    step: int
    title: str
    missing: tuple[str, ...] = ()
    """Files that the step created or changed."""
    reverted: tuple[str, ...] = ()
    """Files whose content is what it was before the step."""
    restored: tuple[str, ...] = ()
    """Files that the step deleted and that exist again."""
    tests: tuple[str, ...] = ()
    """Tests that passed in the step's check."""
    label: str = ""
    """The user's name for the step."""

    def __post_init__(self) -> None:
        fill_label(self, self.step)


class ChangedFiles(Struct, frozen=True):
    """Files changed since their step was over. Paths are relative to the project."""

    step: int
    title: str
    files: tuple[str, ...]
    label: str = ""
    """The user's name for the step."""

    def __post_init__(self) -> None:
        fill_label(self, self.step)
