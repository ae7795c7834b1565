from __future__ import annotations

from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cdd_agent.events.shell_events import AgentChanged
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.tickets.outcome_words import steps_since
from cdd_agent.tickets.status import StepOutcome
from cdd_agent.tickets.step_tally import StepTally

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdd_agent.cost import Cost


class Recap:
    """Counts the events since its creation."""

    def __init__(self, spent: Callable[[], Cost], ticket: str | None = None) -> None:
        self.spent = spent
        self.questions = 0
        self.turns = 0
        self.problem = ""
        self.ticket = ticket
        """The ticket of the active or last agent."""
        self._outcomes: dict[tuple[str | None, int], StepOutcome] = {}
        self._start = monotonic()
        self._cost_at_start = spent()

    def receive(self, event: Event) -> None:
        match event:
            case AgentChanged(ticket_slug=slug):
                self.ticket = slug or self.ticket
            case StepFinished(step=step, outcome=outcome) if (
                outcome is not StepOutcome.OPEN
            ):
                self._outcomes[self.ticket, step] = outcome
            case _:
                pass

    @property
    def is_empty(self) -> bool:
        return not (self._outcomes or self.questions or self.turns)

    @property
    def name(self) -> str:
        tickets = {ticket for ticket, _ in self._outcomes}
        if len(tickets) > 1:
            return f"{len(tickets)} tickets"
        return self.ticket or "This session"

    @property
    def steps(self) -> str:
        """The ended steps, as "3 steps passed, 1 failed"; empty without any."""
        return steps_since(StepTally.count(self._outcomes.values()))

    @property
    def cost(self) -> str:
        total, start = self.spent(), self._cost_at_start
        cost = replace(
            total,
            tokens=total.tokens - start.tokens,
            usd=(total.usd or 0.0) - (start.usd or 0.0),
            cached_tokens=total.cached_tokens - start.cached_tokens,
        )
        return cost.in_full() if cost.tokens else ""

    @property
    def time(self) -> str:
        return str(timedelta(seconds=round(monotonic() - self._start)))
