"""The protocol of the Executor. It needs no import of the engine."""

from abc import abstractmethod

from cdd_agent.agents.base import Agent
from cdd_agent.agents.ticket_agent import TicketAgent
from cdd_agent.events.step_events import UndoPreview


class RunAgent(TicketAgent, Agent):
    """An agent that carries out the run of a ticket."""

    @abstractmethod
    async def preview_undo(self, number: int) -> UndoPreview:
        """Return the effect of undoing a step. Raises `CddError`."""

    @abstractmethod
    def take_up_plan(self) -> None:
        """Read the plan that the user has just edited. No step runs. Raises
        `BadInput` for a plan that cannot run.
        """

    @abstractmethod
    async def report_all_done(self) -> None:
        """Report that no step remains, or the work that is missing."""
