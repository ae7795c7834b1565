"""Events of measuring how many small faults the checks of completed steps notice."""

from msgspec import Struct

from cdd_agent.events.base_event import BaseEvent, NamesStep
from cdd_agent.tickets.status import fill_label


class UnnoticedFault(Struct, frozen=True):
    """A fault with which all checks of its step passed."""

    path: str
    line: int
    """From 1, in the current file."""
    words: str
    """The fault as a clause: "`<` became `<=`"."""
    source: str
    """The line without the fault."""


class Strength(Struct, frozen=True):
    """The number of noticed faults, among those with a result."""

    noticed: int
    faults: int
    is_weak: bool = False
    """True if the share is below the setting `strength`."""

    @property
    def percent(self) -> int:
        """The share of noticed faults, rounded down: only if all were noticed, it is
        100.
        """
        return 100 * self.noticed // self.faults


class StepStrength(Struct, frozen=True):
    """The strength of the checks of a completed step."""

    step: int
    title: str
    strength: Strength | None = None
    """None if no fault has a result."""
    unnoticed: tuple[UnnoticedFault, ...] = ()
    no_result: int = 0
    """The number of faults with which the code does not compile, or the check cannot
    run.
    """
    untried: int = 0
    """The number of faults that were not tried, for lack of time or because the user
    stopped.
    """
    problem: str = ""
    """The reason why faults of this step cannot be tried, as a sentence without its
    full stop.
    """
    label: str = ""
    """The step's number in the plan."""

    def __post_init__(self) -> None:
        fill_label(self, self.step)


class CriterionStrength(Struct, frozen=True):
    """The strength of the checks of all steps for an acceptance criterion."""

    number: int
    """The position in the spec, from 1."""
    text: str
    steps: tuple[str, ...]
    strength: Strength | None = None
    unnoticed: tuple[UnnoticedFault, ...] = ()


class StrengthStarted(BaseEvent, frozen=True):
    """Faults will be tried in a copy of the files."""

    ticket_slug: str
    faults: int
    """The number of faults in all completed steps."""
    saved: int = 0
    """The number of faults with a result from an earlier run."""


class FaultTried(NamesStep, frozen=True):
    """The checks of a step ran with a fault."""

    step: int
    path: str
    line: int
    words: str
    result: str
    """`noticed`, `not_noticed` or `no_result`."""
    tried: int
    """The number of the step's faults with a result so far, with earlier runs."""
    faults: int
    noticed: int


class StrengthFinished(BaseEvent, frozen=True):
    """All faults were tried, or as many as possible in time."""

    ticket_slug: str
    steps: tuple[StepStrength, ...]
    """All completed steps, in the plan's order."""
    criteria: tuple[CriterionStrength, ...] = ()
    """The criteria with completed steps."""
    threshold: int | None = None
    """The setting `strength`, in percent."""
    was_stopped: bool = False


StrengthEvent = StrengthStarted | FaultTried | StrengthFinished
