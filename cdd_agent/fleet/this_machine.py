"""Runs on this machine: each is a process, `cdd exec SLUG --worktree --driven`, so that
a crash does not affect the others.
"""

from __future__ import annotations

from msgspec import Struct

from cdd_agent.fleet.answers import AnswerLine
from cdd_agent.fleet.conversation import RunConversation, reason_of_end
from cdd_agent.fleet.job import Ending
from cdd_agent.fleet.order import OnRunEvent, RunOrder
from cdd_agent.llm.purse import Purse
from cdd_agent.process.child import Child


class ThisMachine(Struct, frozen=True):
    """Carries out runs in separate worktrees of this project."""

    purse: Purse
    """The budget of all runs."""
    accepted: tuple[str, ...] = ()
    """The digests of the settings that the user has accepted for these runs."""

    async def carry_out(self, order: RunOrder, on_event: OnRunEvent) -> Ending:
        def send(answer: AnswerLine) -> None:
            child.send(answer.line)

        conversation = RunConversation(self.purse, self.accepted, on_event, send)
        child = Child(conversation.receive)
        try:
            end = await child.run(order.arguments, order.project)
        finally:
            await conversation.release_budget()
        return conversation.ending(end.exit_code, reason_of_end(end))
