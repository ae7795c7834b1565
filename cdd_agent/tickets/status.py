"""The words for where a step and a run are. Apart from the state itself, because faces need only the words."""

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Unproven:
    """A step that is over, and of which no tests have shown that it is done; or that has failed for just that."""

    step: int
    title: str
    why: Verification | StepStatus
    """How it was verified, or that it was skipped."""
