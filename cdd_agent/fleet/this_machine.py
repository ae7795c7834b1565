"""Runs on this machine: each is a process, `cdd exec SLUG --worktree --driven`, so that
the crash of one harms no other. This process answers what they ask.
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import DecodeError, Struct, ValidationError, convert, field, json

from cdd_agent.errors import BudgetExhausted, ExitCode
from cdd_agent.events.driven_events import (
    AnswerNeeded,
    BudgetSpent,
    CallEnded,
    QuestionKind,
)
from cdd_agent.fleet.answers import NOBODY, AnswerLine
from cdd_agent.fleet.job import Ending
from cdd_agent.fleet.order import RunOrder, Tell
from cdd_agent.llm.budget import Limit
from cdd_agent.llm.port import Usage
from cdd_agent.llm.purse import Purse
from cdd_agent.process.child import BadChild, Child, ChildEnd


class ThisMachine(Struct, frozen=True):
    """Carries out runs in separate worktrees of this project."""

    purse: Purse
    """The budget of all runs."""
    accepted: tuple[str, ...] = ()
    """The digests of the settings that the user has accepted for these runs."""

    async def carry_out(self, order: RunOrder, tell: Tell) -> Ending:
        conversation = _Conversation(self.purse, self.accepted, tell)
        try:
            end = await conversation.child.run(order.arguments, order.project)
        finally:
            await conversation.end()
        return conversation.ending(end)


class _Conversation(Struct, dict=True):
    """The messages between this process and a run's process."""

    purse: Purse
    accepted: tuple[str, ...]
    tell: Tell
    budget_used_up: bool = False
    """The last call was refused because of the budget."""
    _calls: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    """By the ids of their questions. They hold a part of the budget until they end."""

    def __post_init__(self) -> None:
        self.child = Child(self.receive)

    def receive(self, line: bytes) -> None:
        """Raises `BadChild` for a line that is no event."""
        event = _parse(line)
        try:
            is_for_the_user = not self._converse(event)
        except ValidationError as error:
            raise _not_understood(line) from error
        if is_for_the_user:
            self.tell(event)

    def _converse(self, event: dict[str, Any]) -> bool:
        """Handle a line that is for this process. False for any other line."""
        match event.get("event"):
            case "answer_needed":
                self._answer_question(convert(event, AnswerNeeded))
            case "call_ended":
                if call := self._calls.pop(convert(event, CallEnded).id, None):
                    call.cancel()
            case "budget_spent":
                spent = convert(event, BudgetSpent)
                usage = Usage(spent.tokens, 0, spent.estimated, spent.usd)
                self.purse.tally.add(usage)
            case "alive" | "answer_taken" | "input_refused":
                pass
            case _:
                return False
        return True

    def _answer_question(self, question: AnswerNeeded) -> None:
        if question.kind is QuestionKind.CALL:
            worst = Usage(question.tokens or 0, 0, usd=question.usd)
            call = asyncio.ensure_future(self._allow_call(question.id, worst))
            self._calls[question.id] = call
        elif question.kind is QuestionKind.TRUST:
            self._answer(AnswerLine(question.id, "some", settings=self.accepted))
        else:
            self._answer(AnswerLine(question.id, NOBODY))

    async def _allow_call(self, question: int, worst: Usage) -> None:
        """Answer when there is room for the call, and hold that room until the task is
        cancelled.
        """
        try:
            async with self.purse.reserve(worst) as left_by_now:
                self.budget_used_up = False
                self._answer_call(question, "yes", left_by_now())
                await asyncio.Event().wait()
        except BudgetExhausted:
            self.budget_used_up = True
            self._answer_call(question, "no", self.purse.rest)

    def _answer_call(self, question: int, choice: str, left: Limit) -> None:
        self._answer(
            AnswerLine(question, choice, tokens_left=left.tokens, usd_left=left.usd)
        )

    def _answer(self, answer: AnswerLine) -> None:
        self.child.send(answer.line)

    async def end(self) -> None:
        """Give back what calls of the run hold of the budget."""
        for call in self._calls.values():
            call.cancel()
        await asyncio.gather(*self._calls.values(), return_exceptions=True)

    def ending(self, end: ChildEnd) -> Ending:
        """Return the end of the run by the end of its process."""
        if end.exit_code < 0:
            words = "Its process was killed. Run the same command again to resume it."
            return Ending(ExitCode.FAILED, words)
        code = ExitCode.FAILED
        if end.exit_code in set(ExitCode):
            code = ExitCode(end.exit_code)
        budget_used_up = self.budget_used_up and code is ExitCode.NOT_APPROVED
        return Ending(code, _reason(end.stderr), budget_used_up)


def _parse(line: bytes) -> dict[str, Any]:
    try:
        event = json.decode(line)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_understood(line) from error
    if not isinstance(event, dict):
        raise _not_understood(line)
    return event


def _not_understood(line: bytes) -> BadChild:
    text = line[:80].decode(errors="replace").strip()
    return BadChild(f"The run's process was stopped: it printed a bad line: {text!r}")


def _reason(stderr: str) -> str:
    """The last error on a process's standard error, without the program's name, or the
    end of a traceback.
    """
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = []
    for number, line in enumerate(lines):
        if line.startswith("cdd: ") and not line.endswith(" ..."):
            errors.append(number)
    if errors:
        return " ".join(lines[errors[-1] :]).removeprefix("cdd: ")
    if lines and lines[0].startswith("Traceback"):
        return lines[-1]
    return ""
