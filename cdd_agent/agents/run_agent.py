"""The protocol of the Executor, without an import of the engine."""

from abc import abstractmethod

from cdd_agent.agents.base import Agent
from cdd_agent.agents.ticket_agent import TicketAgent
from cdd_agent.events.step_events import UndoPreview


class RunAgent(TicketAgent, Agent):
    @abstractmethod
    async def preview_undo(self, number: int) -> UndoPreview:
        """Return the effect of undoing a step. Raises `CddError`."""

    @abstractmethod
    def take_up_plan(self) -> None:
        """Read an edited plan; no step runs. Raises `BadInput` if the plan cannot
        run.
        """

    @abstractmethod
    async def report_all_done(self) -> None:
        """Report that no step remains, or that work is missing."""
