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
    """Failed tests that failed before the step."""
    excused: int = 0
    """Failed tests that the plan's `May fail` allows."""

    @property
    def stayed(self) -> int:
        """The number of tests that passed before and still pass."""
        return (self.passed or 0) - self.fixed - self.new


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


class Shortfall(StrEnum):
    """The reason why no tests show that a step is done. The values are those of
    `Verification` and `StepStatus`, in one type that a log can be read with.
    """

    UNVERIFIED = "none"
    EXIT_CODE = "exit_code"
    OLD_FAILURES = "baseline"
    SKIPPED = "skipped"


class Unproven(Struct, frozen=True):
    """A step that is over, or failed, without tests that show that it is done."""

    step: int
    title: str
    why: Shortfall
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
    """The last step that changed them."""
    title: str
    files: tuple[str, ...]
    label: str = ""
    """What the user calls the step."""

    def __post_init__(self) -> None:
        fill_label(self, self.step)
