"""Knowledge from before a step: results of tests, and the other steps of the plan."""

from collections.abc import Mapping

from msgspec import Struct, field

from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.baseline import Baseline
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.outcomes import Reference


class Agenda(Struct, frozen=True):
    """The criteria and the other steps of the ticket whose step runs."""

    criteria: tuple[str, ...] = ()
    later: tuple[PlanStep, ...] = ()
    """The other steps that are not over, in their order."""
    earlier: tuple[PlanStep, ...] = ()
    served: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The criteria that each open step serves: by the step's number, their places from
    1.
    """


class Before(Struct, frozen=True):
    """The knowledge from before a step."""

    baseline: Baseline | None = None
    reference: Reference = field(default_factory=Reference)
    runs: Mapping[str, CheckRun] = field(default_factory=dict)
    """The last result of each check that ran, by its command."""
    agenda: Agenda = field(default_factory=Agenda)
    baseline_label: str = "1"

    @property
    def is_without_tests(self) -> bool:
        """True if no test is known, and no check could have run unknown ones."""
        return not self.reference.tests and (
            self.baseline is None or self.baseline.is_empty
        )
