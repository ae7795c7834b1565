"""`cdd exec --driven`: another program answers the run's questions, as lines on
standard input. See docs/reference/events.md.
"""

from __future__ import annotations

import _thread
import asyncio
import itertools
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from msgspec import Struct

from cdd_agent.changes.review import Review
from cdd_agent.cli.trusting import refuse
from cdd_agent.cli.working import Output
from cdd_agent.commands.trust_words import in_lines
from cdd_agent.cost import Cost
from cdd_agent.errors import BadInput, BudgetExhausted
from cdd_agent.events.driven_events import (
    Alive,
    AnswerNeeded,
    AnswerTaken,
    BudgetSpent,
    CallEnded,
    InputRefused,
    QuestionKind,
)
from cdd_agent.events.question_events import (
    ActionProposed,
    Choice,
    CommandProposed,
    Proposal,
    TestLossProposed,
    UndoProposed,
)
from cdd_agent.events.stream import Event
from cdd_agent.faces.printer import JsonPrinter
from cdd_agent.fleet.answers import NOBODY, AnswerLine, CancelLine, read_input_line
from cdd_agent.frontend import Decision, Nobody
from cdd_agent.llm.budget import Account, Limit
from cdd_agent.llm.port import Usage
from cdd_agent.llm.purse import SharedCalls
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.session.open_project import AcceptThese, TrustAnswer, TrustQuestion
from cdd_agent.text.redaction import Redactor
from cdd_agent.wording.question_words import answers, question

ALIVE_EVERY = 15.0
"""Seconds between two `alive` lines."""
_LONGEST_INPUT = 1024 * 1024
"""Maximum bytes of a line on standard input."""
_PATIENCE = 30.0
"""Seconds to wait for the end of an earlier process of the same run."""
_KINDS = {
    CommandProposed: QuestionKind.COMMAND,
    ActionProposed: QuestionKind.ACTION,
    TestLossProposed: QuestionKind.TEST_LOSS,
}


class DrivenPrinter(JsonPrinter):
    """Prints the lines of a run and its questions, from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()

    def show(self, event: Event) -> None:
        with self._lock:
            super().show(event)


def interrupt_this_process() -> None:
    if os.name == "nt":
        # A signal would end the process at once.
        _thread.interrupt_main()
    else:
        os.kill(os.getpid(), signal.SIGINT)


class _Question(Struct, frozen=True):
    needed: AnswerNeeded
    answer: Future[AnswerLine]


class Driver:
    """The program that answers."""

    def __init__(
        self,
        output: Output,
        stdin: int = 0,
        interrupt: Callable[[], None] = interrupt_this_process,
    ) -> None:
        self.output = output
        self._stdin = stdin
        self._interrupt = interrupt
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Question] = {}
        self._is_stopping = False

    def start(self) -> None:
        """Read standard input and print signs of life until this process ends. The end
        of standard input stops the run like Ctrl+C.
        """
        if threading.current_thread() is threading.main_thread():
            # A process in the background would ignore it.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        for name, work in (("stdin", self._listen), ("alive", self._show_life)):
            threading.Thread(target=work, name=name, daemon=True).start()

    @contextmanager
    def asking(
        self, kind: QuestionKind, text: str, **fields: Any
    ) -> Iterator[_Question]:
        """Print a question. Its answer may arrive within this block."""
        needed = AnswerNeeded(next(self._numbers), kind, text, **fields)
        question = _Question(needed, Future())
        self._waiting[needed.id] = question
        try:
            self.output.emit(needed)
            yield question
        finally:
            self._waiting.pop(needed.id, None)

    async def ask(self, kind: QuestionKind, text: str, *choices: str) -> AnswerLine:
        with self.asking(kind, text, choices=choices) as question:
            return await asyncio.wrap_future(question.answer)

    def decide_about_trust(self, asked: TrustQuestion) -> TrustAnswer | AcceptThese:
        with self.asking(
            QuestionKind.TRUST,
            "\n".join(in_lines(asked)),
            choices=("all", "none", "some"),
            settings=tuple(setting.digest for setting in asked.settings),
        ) as question:
            answer = question.answer.result()
        match answer.choice:
            case "all":
                return TrustAnswer.ONCE
            case "some":
                return AcceptThese(frozenset(answer.settings))
            case "none":
                return TrustAnswer.DEFAULTS
            case _:
                return refuse(asked)

    def _listen(self) -> None:
        for line in _lines(self._stdin):
            try:
                self._receive(line)
            except ValueError as error:
                self._show_from_thread(InputRefused(str(error)))
        self._stop()

    def _receive(self, line: bytes) -> None:
        """Handle a line of input. Raises `ValueError` for an invalid line."""
        received = read_input_line(line)
        if isinstance(received, CancelLine):
            self._stop()
            return
        question = self._waiting.get(received.id)
        if question is None:
            raise ValueError(f"No question {received.id} waits for an answer")
        choices = question.needed.choices
        if choices and received.choice not in (*choices, NOBODY):
            raise ValueError(
                f"Question {received.id} has the choices {', '.join(choices)}"
            )
        self._waiting.pop(received.id, None)
        self._show_from_thread(AnswerTaken(received.id, received.choice))
        # The run may just have withdrawn the question.
        with suppress(InvalidStateError):
            question.answer.set_result(received)

    def _stop(self) -> None:
        """Stop the run like Ctrl+C, once: a second Ctrl+C would interrupt the
        stopping.
        """
        if not self._is_stopping:
            self._is_stopping = True
            self._interrupt()

    def _show_life(self) -> None:
        pause = threading.Event()
        while not pause.wait(ALIVE_EVERY):
            self._show_from_thread(Alive())

    def _show_from_thread(self, event: Event) -> None:
        """Print from a thread. If no one reads the output, the run itself reports
        it.
        """
        with suppress(OSError, ValueError):
            self.output.printer.show(event)


def _lines(file: int) -> Iterator[bytes]:
    """Yield the lines of an open file. The start of an overlong line is cut off."""
    rest = b""
    with suppress(OSError):
        while data := os.read(file, 65536):
            *lines, rest = (rest + data).split(b"\n")
            yield from filter(bytes.strip, lines)
            rest = rest[-_LONGEST_INPUT:]


class DriverAnswers(Struct, frozen=True):
    driver: Driver
    redactor: Redactor

    async def approve(self, proposal: Proposal) -> Choice:
        # Only the shell proposes an undo.
        if isinstance(proposal, UndoProposed):
            return await Nobody().approve(proposal)
        choices = answers(proposal)
        text = self.redactor.redact(question(proposal))
        answer = await self.driver.ask(_KINDS[type(proposal)], text, *choices)
        if answer.choice == NOBODY:
            return await Nobody().approve(proposal)
        return choices[answer.choice]

    async def review(self, review: Review) -> Decision:
        choices = {"yes": Choice.YES, "no": Choice.NO, "always": Choice.ALWAYS}
        text = self.redactor.redact(question(review))
        answer = await self.driver.ask(QuestionKind.CHANGES, text, *choices)
        if answer.choice == NOBODY:
            return await Nobody().review(review)
        return Decision(choices[answer.choice], review, answer.text)

    async def ask(self, prompt: str) -> str:
        text = self.redactor.redact(prompt)
        answer = await self.driver.ask(QuestionKind.TEXT, text)
        if answer.choice == NOBODY:
            return await Nobody().ask(prompt)
        return answer.text


class DriverAccount:
    """The account of a driven run. The driver learns the cost of each call. Under a
    budget it is asked before each call, with `always_asks` also without one.
    """

    def __init__(
        self, driver: Driver, limit: Limit, spent: Cost, *, always_asks: bool = False
    ) -> None:
        self.driver = driver
        self.limit = limit
        self._always_asks = always_asks
        self._spent_here = spent
        self._spent_elsewhere = Cost()
        """The cost of other runs, as reported by the driver."""

    @property
    def spent(self) -> Cost:
        return self._spent_here + self._spent_elsewhere

    def add(self, usage: Usage) -> None:
        self._spent_here += usage.cost
        tokens = usage.prompt_tokens + usage.completion_tokens
        remaining = self.limit.without(self.spent)
        self.driver.output.emit(
            BudgetSpent(
                tokens, usage.usd, usage.estimated, remaining.tokens, remaining.usd
            )
        )

    @asynccontextmanager
    async def reserve(
        self, worst: Usage, expect: Callable[[Cost], None]
    ) -> AsyncIterator[Callable[[], Cost]]:
        if self.limit == Limit() and not self._always_asks:
            yield lambda: self.spent
            return
        tokens = worst.prompt_tokens + worst.completion_tokens
        with self.driver.asking(
            QuestionKind.CALL,
            f"May a model call take up to {tokens:,} tokens?",
            choices=("yes", "no"),
            tokens=tokens,
            usd=worst.usd,
        ) as asked:
            try:
                answer = await asyncio.wrap_future(asked.answer)
                self._note_other_runs(answer)
                expect(self.spent)
                if answer.choice != "yes":
                    raise BudgetExhausted(
                        "The budget has no room for the next call; it was not made"
                    )
                yield lambda: self.spent
            finally:
                self.driver.output.emit(CallEnded(asked.needed.id))

    def _note_other_runs(self, answer: AnswerLine) -> None:
        tokens, usd = 0, 0.0
        if self.limit.tokens is not None and answer.tokens_left is not None:
            tokens = self.limit.tokens - answer.tokens_left - self._spent_here.tokens
        if self.limit.usd is not None and answer.usd_left is not None:
            usd = self.limit.usd - answer.usd_left - (self._spent_here.usd or 0.0)
        self._spent_elsewhere = Cost(max(tokens, 0), max(usd, 0.0))


def calls_of_driven_run(
    driver: Driver, limit: Limit, folder: Path, *, always_asks: bool
) -> SharedCalls:
    """Return the state that the model calls of all driven runs of the project share, in
    `folder`.
    """

    def open_account(spent: Cost) -> Account:
        return DriverAccount(driver, limit, spent, always_asks=always_asks)

    return SharedCalls(limit, open_account, folder / "waits.json")


@contextmanager
def holding_run(folder: Path, name: str) -> Iterator[None]:
    """Prevent other processes from carrying out this run. A process that has just lost
    its driver has a moment to end. Raises `BadInput` if it does not.
    """
    lock = FileLock(folder / f"{name}.run", timeout=_PATIENCE)
    try:
        lock.acquire()
    except Timeout as error:
        raise BadInput(
            f"Another process is carrying out {name} here and does not end",
            refusal=Refusal.IN_USE,
        ) from error
    try:
        yield
    finally:
        lock.release()
