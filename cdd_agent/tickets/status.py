"""The words for where steps and runs are, and what they cost. Faces import these
without the state itself.
"""

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
        """True if nothing remains to be done, so that dependent steps may run."""
        return self in (StepStatus.COMPLETED, StepStatus.SKIPPED)


class RunStatus(StrEnum):
    """The progress of the whole run. It is always computed from the steps."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


class Verification(StrEnum):
    """The evidence for a completed step."""

    PASSED = "passed"
    """All checks passed, and at least one test is known to have run."""
    EXIT_CODE = "exit_code"
    """All checks ended with exit code 0. No test is known to have run."""
    NONE = "none"
    """Nothing shows that the step is done. Shown as "unverified"."""
    BASELINE = "baseline"
    """Only failures remain that existed before the step, or that its plan allows."""


class Evidence(Struct, frozen=True):
    """Why a step was completed or failed, with the number of tests of each kind."""

    reason: str
    passed: int | None = None
    """None if the check does not report single tests."""
    fixed: int = 0
    """Passed tests that failed before the step."""
    new: int = 0
    """Passed tests that did not exist before the step."""
    failed: int = 0
    old_failures: int = 0
    """Failed tests that failed before the step, without those in `excused`."""
    excused: int = 0
    """Failed tests that the plan's `May fail` allows."""
    excused_until: str = ""
    """The label of the step until which all of these may fail; empty if they may fail
    in this step only, or until different steps.
    """

    @property
    def stayed(self) -> int:
        """The number of tests that passed before and still pass."""
        return (self.passed or 0) - self.fixed - self.new

    @property
    def new_failures(self) -> int:
        """The number of failed tests that count against the step."""
        return self.failed - self.old_failures - self.excused

    @property
    def only_excused_failed(self) -> bool:
        """True if tests failed, and the plan allows each of these failures."""
        return 0 < self.failed == self.excused


class StepOutcome(StrEnum):
    """The progress of a step, and the evidence that it is done. The values of completed
    steps
    are those of `Verification`.
    """

    PASSED = "passed"
    EXIT_CODE = "exit_code"
    OLD_FAILURES = "baseline"
    MAY_FAIL = "may_fail"
    """Like `OLD_FAILURES`, but only tests fail that the plan's `May fail` allows."""
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
        """Return the outcome of a step. A completed step whose verification is not
        known is unverified.
        """
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
    """Give a value that names a step its number as `label` if it has none: it is of a
    plan with plain numbers, or of an older version.
    """
    if not getattr(value, "label", ""):
        force_setattr(value, "label", str(number))


class CriterionEdit(StrEnum):
    """The reason, in words for users, why a run is no evidence for a criterion."""

    NEW = "new"
    CHANGED = "changed since the run began"
    CHANGED_SINCE_VERIFIED = "changed since it was verified"


class EditedCriterion(Struct, frozen=True):
    """An acceptance criterion that the run does not know, and that no step serves."""

    place: int
    """In the spec, from 1."""
    text: str
    edit: CriterionEdit


class Unproven(Struct, frozen=True):
    """A step that is over, or failed, without tests that show that it is done."""

    step: int
    title: str
    why: StepOutcome
    label: str = ""
    """What the user calls the step."""

    def __post_init__(self) -> None:
        fill_label(self, self.step)


class MissingWork(Struct, frozen=True):
    """The work of a step that is over, as far as the project's tree does not have it.
    Paths are relative to the project.
    """

    step: int
    title: str
    missing: tuple[str, ...] = ()
    """Files that the step created or changed."""
    reverted: tuple[str, ...] = ()
    """Files without the step's change: their content is what it was before."""
    restored: tuple[str, ...] = ()
    """Files that the step deleted, and that exist again."""
    tests: tuple[str, ...] = ()
    """Tests that passed in the step's check."""
    label: str = ""
    """What the user calls the step."""

    def __post_init__(self) -> None:
        fill_label(self, self.step)


class ChangedFiles(Struct, frozen=True):
    """Files of a step that is over which have another content since. Paths are relative
    to the project.
    """

    step: int
    title: str
    files: tuple[str, ...]
    label: str = ""
    """What the user calls the step."""

    def __post_init__(self) -> None:
        fill_label(self, self.step)
