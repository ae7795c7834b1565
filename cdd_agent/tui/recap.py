"""A stretch of time in a few words, for who comes back and for who leaves."""

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
    """Counts the events from now on."""

    def __init__(self, spent: Callable[[], Cost], ticket: str | None = None) -> None:
        """`spent` are the tokens and the money of the session so far."""
        self.spent = spent
        self.questions = 0
        """That were asked."""
        self.turns = 0
        """That are over."""
        self.problem = ""
        """The error that ended the last of these."""
        self.ticket = ticket
        """The ticket of the active or last agent."""
        self._steps: dict[tuple[str | None, int], StepOutcome] = {}
        self._began, self._before = monotonic(), spent()

    def receive(self, event: Event) -> None:
        match event:
            case AgentChanged(ticket_slug=slug):
                self.ticket = slug or self.ticket
            case StepFinished(step=step, outcome=outcome) if (
                outcome is not StepOutcome.OPEN
            ):
                self._steps[self.ticket, step] = outcome
            case _:
                pass

    @property
    def is_empty(self) -> bool:
        return not (self._steps or self.questions or self.turns)

    @property
    def name(self) -> str:
        """The ticket that was worked on, or how many."""
        tickets = {ticket for ticket, _ in self._steps} or {self.ticket}
        return (
            f"{len(tickets)} tickets"
            if len(tickets) > 1
            else self.ticket or "This session"
        )

    @property
    def steps(self) -> str:
        """The steps that ended: "3 steps passed, 1 failed"; empty without any."""
        return steps_since(StepTally.count(self._steps.values()))

    @property
    def cost(self) -> str:
        """The tokens and the money that it took since; empty where that is nothing."""
        now, before = self.spent(), self._before
        taken = replace(
            now,
            tokens=now.tokens - before.tokens,
            usd=(now.usd or 0.0) - (before.usd or 0.0),
            cached_tokens=now.cached_tokens - before.cached_tokens,
        )
        return taken.in_full() if taken.tokens else ""

    @property
    def time(self) -> str:
        return str(timedelta(seconds=round(monotonic() - self._began)))
