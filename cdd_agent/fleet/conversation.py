"""The conversation with a run's process, `cdd exec SLUG --driven`, perhaps on another
machine. It answers the questions from the budget of all runs; there is no user to ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
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
from cdd_agent.fleet.order import OnRunEvent
from cdd_agent.llm.budget import Limit
from cdd_agent.llm.port import Usage
from cdd_agent.llm.purse import Purse
from cdd_agent.process.child import BadChild, ChildEnd

_PROGRESS = (" ...", " …")
"""The ends of progress lines on standard error."""


class RunConversation(Struct):
    """The messages between this process and the process of one run."""

    purse: Purse
    """The budget of all runs."""
    accepted: tuple[str, ...]
    """The digests of the settings that the user has accepted for these runs."""
    on_event: OnRunEvent
    send: Callable[[AnswerLine], None]
    is_budget_spent: bool = False
    """The last call was refused because of the budget."""
    _calls: dict[int, asyncio.Task[None]] = field(default_factory=dict)
    """By question id. Each holds a part of the budget until its end."""

    @property
    def has_running_calls(self) -> bool:
        """True if the process has asked for a call that has not ended."""
        return bool(self._calls)

    def receive(self, line: bytes) -> None:
        """Handle a line that the process printed. Raises `BadChild` if it is no
        event.
        """
        event = parse_event(line)
        try:
            is_for_the_user = not self._handle(event)
        except ValidationError as error:
            raise _bad_line(line) from error
        if is_for_the_user:
            self.on_event(event)

    def _handle(self, event: dict[str, Any]) -> bool:
        """Handle an event for this process. False for any other event."""
        match event.get("event"):
            case "answer_needed":
                self._answer_question(convert(event, AnswerNeeded))
            case "call_ended":
                call = self._calls.pop(convert(event, CallEnded).id, None)
                if call is not None:
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
            self.send(AnswerLine(question.id, "some", settings=self.accepted))
        else:
            self.send(AnswerLine(question.id, NOBODY))

    async def _allow_call(self, question: int, worst: Usage) -> None:
        """Answer when there is room for the call, and hold that room until the task is
        cancelled.
        """
        try:
            async with self.purse.reserve(worst) as rest:
                self.is_budget_spent = False
                self._answer_call(question, "yes", rest())
                await asyncio.Event().wait()
        except BudgetExhausted:
            self.is_budget_spent = True
            self._answer_call(question, "no", self.purse.rest)

    def _answer_call(self, question: int, choice: str, rest: Limit) -> None:
        self.send(
            AnswerLine(question, choice, tokens_left=rest.tokens, usd_left=rest.usd)
        )

    async def release_budget(self) -> None:
        calls = list(self._calls.values())
        self._calls.clear()
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def ending(self, exit_code: int, reason: str) -> Ending:
        """Return the end of the run from that of its process."""
        code = ExitCode.FAILED
        if exit_code in set(ExitCode):
            code = ExitCode(exit_code)
        is_budget_spent = self.is_budget_spent and code is ExitCode.NOT_APPROVED
        return Ending(code, reason, is_budget_spent)


def parse_event(line: bytes) -> dict[str, Any]:
    """Parse an event. Raises `BadChild`."""
    try:
        event = json.decode(line)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _bad_line(line) from error
    if not isinstance(event, dict):
        raise _bad_line(line)
    return event


def _bad_line(line: bytes) -> BadChild:
    text = line[:80].decode(errors="replace").strip()
    return BadChild(f"The run's process was stopped: it printed a bad line: {text!r}")


def reason_of_end(end: ChildEnd) -> str:
    """Return why a process ended: the last error on its standard error, without the
    program's name, or the end of a traceback, or an empty text.
    """
    if end.exit_code < 0:
        return "Its process was killed. Run the same command again to resume it."
    lines = [line.strip() for line in end.stderr.splitlines() if line.strip()]
    errors = []
    for number, line in enumerate(lines):
        if line.startswith("cdd: ") and not line.endswith(_PROGRESS):
            errors.append(number)
    if errors:
        return " ".join(lines[errors[-1] :]).removeprefix("cdd: ")
    if lines and lines[0].startswith("Traceback"):
        return lines[-1]
    return ""
