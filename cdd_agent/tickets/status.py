"""The words for where a step and a run are. Apart from the state itself, because faces need only the words."""

from enum import StrEnum

from msgspec import Struct


class StepStatus(StrEnum):
    """Where one step is."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"

    over: bool
    """Nothing more is to be done for the step, and those that depend on it may run."""

    def __init__(self, word: str) -> None:
        self.over = word in ("completed", "skipped")


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


class Evidence(Struct, frozen=True):
    """The grounds on which a step was decided: the reason in a line, and how many tests there were of each kind.

    `passed` is None where the check tells nothing of single tests.
    """

    reason: str
    passed: int | None = None
    fixed: int = 0
    """Those among the passed that failed before the step."""
    new: int = 0
    """Those among the passed that were not there before it."""
    failed: int = 0
    old_failures: int = 0
    """Those among the failed that failed before it."""

    @property
    def stayed(self) -> int:
        """How many passed before and still do."""
        return (self.passed or 0) - self.fixed - self.new


class Cost(Struct, frozen=True):
    """The price of model calls: of all attempts, those that came to nothing included."""

    tokens: int = 0
    usd: float | None = None
    """Of the calls whose price is known; None: that of no call is."""
    estimated: bool = False
    """The provider of some call did not count its tokens."""

    def __add__(self, other: "Cost") -> "Cost":
        usd = [cost.usd for cost in (self, other) if cost.usd is not None]
        return Cost(self.tokens + other.tokens, sum(usd) if usd else None, self.estimated or other.estimated)


NO_COST = Cost()


class Unproven(Struct, frozen=True):
    """A step that is over, and of which no tests have shown that it is done; or that has failed for just that."""

    step: int
    title: str
    why: Verification | StepStatus
    """How it was verified, or that it was skipped."""
