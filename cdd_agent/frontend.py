"""The person, as the engine sees them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cdd_agent.errors import NotApproved
from cdd_agent.events import ActionProposed, ChangesProposed, Choice, CommandProposed, Proposal

REST = 0.7
"""Seconds without a key after which somebody is not typing; the slow type two keys a second. An answer begins after
such a rest: what is typed earlier was begun before its question could be seen."""


class Frontend(Protocol):
    """Whoever answers the engine's questions: the shell, a terminal, or a policy where nobody is there."""

    async def approve(self, proposal: Proposal) -> Choice:
        """May this be done? The answer is one of `proposal.choices`.

        Raises `NotApproved` where there is nobody to ask.
        """
        ...

    async def ask(self, prompt: str) -> str:
        """A question to be answered in words. Raises `NotApproved` where there is nobody to ask."""
        ...


@dataclass(frozen=True)
class ChangesApproved:
    """Says yes to changes of files, and hands everything else on: `approval: edits` and `auto`, and `--yes`."""

    others: Frontend

    async def approve(self, proposal: Proposal) -> Choice:
        return Choice.YES if isinstance(proposal, ChangesProposed) else await self.others.approve(proposal)

    async def ask(self, prompt: str) -> str:
        return await self.others.ask(prompt)


@dataclass(frozen=True)
class AnswersTold:
    """Hands every question on, and tells of the answer before anything is done about it."""

    person: Frontend
    tell: Callable[[Proposal | str, str], None]

    async def approve(self, proposal: Proposal) -> Choice:
        choice = await self.person.approve(proposal)
        self.tell(proposal, choice.value)
        return choice

    async def ask(self, prompt: str) -> str:
        answer = await self.person.ask(prompt)
        self.tell(prompt, answer)
        return answer


class Nobody:
    """Where there is nobody to ask: every question is a reason to stop."""

    async def approve(self, proposal: Proposal) -> Choice:
        match proposal:
            case ChangesProposed(step=step):
                paths = ", ".join((*proposal.created, *proposal.modified, *proposal.deleted))
                who = "The model" if step is None else f"Step {step}"
                what = f"{who} would write {paths}, and `approval: ask` wants a person's yes"
                hint = "Run it in the shell, or with --yes."
            case CommandProposed(command=command, reason=reason):
                what = f"{reason}: `{command}`"
                hint = "Run it at a terminal, without --json, or change what `commands` in .cdd/config.yaml allows."
            case ActionProposed(title=title):
                what, hint = f"Nobody is here to approve: {title}", "Run it at a terminal, or with --yes."
        raise NotApproved(what, hint=hint)

    async def ask(self, prompt: str) -> str:
        hint = "Run it at a terminal, or give the answers on standard input, a line each."
        raise NotApproved(f"Nobody is here to answer: {prompt}", hint=hint)
