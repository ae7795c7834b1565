"""A user who is asked about undos."""

from cdd_agent.events.question_events import Choice, Proposal, UndoProposed
from cdd_agent.frontend import Nobody


class UndoUser(Nobody):
    """Answers each question about an undo, and records it."""

    def __init__(self, choice: Choice = Choice.YES) -> None:
        self.choice = choice
        self.asked: list[UndoProposed] = []

    async def approve(self, proposal: Proposal) -> Choice:
        assert isinstance(proposal, UndoProposed)
        self.asked.append(proposal)
        return self.choice
