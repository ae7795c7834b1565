"""The port to the user: the engine asks, a face answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from cdd_agent.changes.review import Review
from cdd_agent.errors import NotApproved
from cdd_agent.events.question_events import (
    ActionProposed,
    Choice,
    CommandProposed,
    Proposal,
    TestLossProposed,
    UndoProposed,
)

_NO_REVIEW = Review(None, ())


class Decision(Struct, frozen=True):
    """The user's decision about a question. About changes, YES writes those that
    `review` accepts, and ALWAYS also all later ones of this run. NO writes nothing; the
    model gets the `reason` and is asked again, and without a reason the work stops.
    """

    choice: Choice
    review: Review = _NO_REVIEW
    """The changes with the user's marks; empty for other questions."""
    reason: str = ""
    """The reason for a no."""


REST = 0.7
"""Seconds without a key after which the user counts as not typing; slow typists press
two keys a second. Only keys after such a rest answer a question: the user typed earlier
ones before seeing it.
"""


class Frontend(Protocol):
    """Answers the engine's questions: the shell, a terminal, or a policy without a
    user. All methods raise `NotApproved` without a user.
    """

    async def approve(self, proposal: Proposal) -> Choice:
        """Ask for approval. The answer is one of `proposal.choices`."""
        ...

    async def review(self, review: Review) -> Decision:
        """Ask which of these changes may be written."""
        ...

    async def ask(self, prompt: str) -> str:
        """Ask a question with a free-text answer."""
        ...


class ReportedAnswers(Struct, frozen=True):
    """Forwards each question, and reports its answer before the engine acts on it."""

    user: Frontend
    report: Callable[[Proposal | Review | str, str], None]

    async def approve(self, proposal: Proposal) -> Choice:
        choice = await self.user.approve(proposal)
        self.report(proposal, choice.value)
        return choice

    async def review(self, review: Review) -> Decision:
        reviewed = await self.user.review(review)
        self.report(review, reviewed.choice.value)
        return reviewed

    async def ask(self, prompt: str) -> str:
        answer = await self.user.ask(prompt)
        self.report(prompt, answer)
        return answer


class OneAtATime(Struct, frozen=True):
    """Asks the user one question at a time, for work in parallel."""

    user: Frontend
    lock: asyncio.Lock

    async def approve(self, proposal: Proposal) -> Choice:
        async with self.lock:
            return await self.user.approve(proposal)

    async def review(self, review: Review) -> Decision:
        async with self.lock:
            return await self.user.review(review)

    async def ask(self, prompt: str) -> str:
        async with self.lock:
            return await self.user.ask(prompt)


class NobodyHere(NotApproved):
    """There is no user to ask."""


class Nobody:
    """A frontend without a user: every question is a reason to stop."""

    async def approve(self, proposal: Proposal) -> Choice:
        match proposal:
            case CommandProposed(command=command, reason=reason):
                what = f"{reason}: `{command}`"
                hint = (
                    "Run it in a terminal, without --json, to answer. `commands` in"
                    " .cdd/config.yaml can allow programs, but never hidden files."
                )
            case ActionProposed(title=title):
                what = f"No one can approve this here: {title}"
                hint = "Run it in a terminal, or with --yes."
            case TestLossProposed(label=label):
                what = f"No one can allow step {label} to remove tests here"
                hint = f"Name them under `Removes tests` of step {label} in plan.md."
            case UndoProposed(title=title):
                what = f"No one can confirm here that {title} is undone"
                hint = "Add `--yes`, or name the change: `/undo --list`."
        raise NobodyHere(what, hint=hint)

    async def review(self, review: Review) -> Decision:
        who = "The model" if review.step is None else f"Step {review.step}"
        paths = ", ".join(file.name for file in review.files)
        what = f"{who} wants to write {paths}, and `approval: ask` needs your approval"
        raise NobodyHere(what, hint="Run it in the shell, or with --yes.")

    async def ask(self, prompt: str) -> str:
        hint = (
            "Run it in a terminal, or write the answers to standard input, one per"
            " line."
        )
        raise NobodyHere(f"No one can answer here: {prompt}", hint=hint)
