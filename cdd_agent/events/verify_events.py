"""Events of verifying a ticket again: its completed steps are checked with the current
files.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from cdd_agent.events.base_event import BaseEvent
from cdd_agent.tickets.status import EditedCriterion, MissingWork, fill_label


class StepResult(StrEnum):
    """The result of verifying a step again."""

    HOLDS = "holds"
    BROKEN = "broken"
    """Something that was verified no longer holds."""
    UNVERIFIED = "unverified"
    """No test ran when it was completed, so there is nothing that could still hold."""
    SKIPPED = "skipped"
    OPEN = "open"
    """The step is not completed."""


class VerifiedCheck(Struct, frozen=True):
    """A check that ran again, for all steps that have it."""

    command: str
    steps: tuple[str, ...]
    has_failed: bool
    reason: str
    """The result in one line."""
    seconds: float = 0.0


class VerifiedStep(Struct, frozen=True):
    """A step of the plan, and the parts of its work that no longer hold."""

    step: int
    title: str
    result: StepResult
    checks: tuple[str, ...] = ()
    """Its checks that fail for a reason other than single tests."""
    failed: tuple[str, ...] = ()
    """Tests that passed in its checks, and now fail."""
    lost: tuple[str, ...] = ()
    """Tests that passed in its checks, and now are missing or skipped."""
    missing: MissingWork | None = None
    """Its files that are not there as the run left them."""
    has_lost_check: bool = False
    """True if a check verified it, but now none can run; or if tests passed in its
    check, but now no check runs tests.
    """
    label: str = ""
    """The step's number in the plan."""

    def __post_init__(self) -> None:
        fill_label(self, self.step)


class VerifyStarted(BaseEvent, frozen=True):
    """The checks start, in a copy of the files."""

    ticket_slug: str
    checks: tuple[str, ...]


class VerifyFinished(BaseEvent, frozen=True):
    """All checks have run again."""

    ticket_slug: str
    steps: tuple[VerifiedStep, ...]
    """All steps of the plan, in its order."""
    checks: tuple[VerifiedCheck, ...]
    other_failures: tuple[str, ...] = ()
    """Tests that fail now, and did not pass in a check of a completed step."""
    edited_criteria: tuple[EditedCriterion, ...] = ()
    """Criteria that were added or changed since the run."""
    missing: tuple[str, ...] = ()
    """If a check failed: ignored files and folders that the copy did not contain."""

    @property
    def broken(self) -> Sequence[VerifiedStep]:
        """The steps of which something no longer holds."""
        return [step for step in self.steps if step.result is StepResult.BROKEN]


VerifyEvent = VerifyStarted | VerifyFinished
