"""Counts a run's steps by outcome, for everything that shows such numbers."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from cdd_agent.tickets.status import StepOutcome


class StepTally(Struct, frozen=True):
    """Number of steps with each outcome. Every step of the plan counts once."""

    passed: int = 0
    """With passed tests."""
    exit_code: int = 0
    """All checks exited with 0; no test is known to have run."""
    old_failures: int = 0
    """Failures remain that existed before the step."""
    may_fail: int = 0
    """Only tests fail that the plan allows to fail."""
    unverified: int = 0
    skipped: int = 0
    failed: int = 0
    open: int = 0
    """Pending or in progress."""

    @classmethod
    def count(cls, outcomes: Iterable[StepOutcome]) -> "StepTally":
        counts = Counter(outcome.name.lower() for outcome in outcomes)
        return StepTally(**counts)

    def number_of(self, outcome: StepOutcome) -> int:
        number: int = getattr(self, outcome.name.lower())
        return number

    @property
    def completed(self) -> int:
        checked = self.passed + self.exit_code + self.old_failures + self.may_fail
        return checked + self.unverified

    @property
    def over(self) -> int:
        """Number of completed and skipped steps."""
        return self.completed + self.skipped

    @property
    def total(self) -> int:
        return self.over + self.failed + self.open

    @property
    def is_over(self) -> bool:
        return self.over == self.total

    @property
    def has_gaps(self) -> bool:
        """True if a step is unverified or skipped. Such a run is never done."""
        return bool(self.unverified or self.skipped)

    @property
    def is_done(self) -> bool:
        return self.is_over and not self.has_gaps


NO_STEPS = StepTally()
