"""The words for where a step and a run are. Apart from the state itself, because faces need only the words."""

from enum import StrEnum


class StepStatus(StrEnum):
    """Where one step is."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def over(self) -> bool:
        """Nothing more is to be done for the step, and those that depend on it may run."""
        return self in (StepStatus.COMPLETED, StepStatus.SKIPPED)


class RunStatus(StrEnum):
    """Where the whole run is; always computed from its steps."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


class Verification(StrEnum):
    """How a completed step was verified."""

    PASSED = "passed"
    NONE = "none"
    """There was nothing to run: shown as "unverified", never as passed."""
    BASELINE = "baseline"
    """Only failures that were there before step 1 remain."""
