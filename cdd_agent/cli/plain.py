"""The shell without a screen, for screen readers, editors, serial lines and pipes."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

from cdd_agent.agents.line_guesses import is_letter
from cdd_agent.agents.meaning import Meaning
from cdd_agent.changes.review import Review
from cdd_agent.cli.working import Output
from cdd_agent.commands.registry import carry_out, read_command, read_line
from cdd_agent.errors import CddError, ExitCode, NotApproved
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.question_events import (
    Choice,
    Proposal,
    TestLossProposed,
    UndoProposed,
)
from cdd_agent.events.shell_events import ExitRequested
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event, beside_the_turn
from cdd_agent.faces.faults import FaultLog
from cdd_agent.faces.printer import PlainPrinter
from cdd_agent.faces.reviewing import approve_in_words, review_in_words
from cdd_agent.faces.terminal import (
    add_to_paste,
    forget_what_was_typed,
    is_paste,
    paste_notice,
    read_available,
    read_burst,
)
from cdd_agent.frontend import REST, Decision, Nobody
from cdd_agent.process.signals import handle_signals
from cdd_agent.session.session import Session
from cdd_agent.threads import in_thread
from cdd_agent.wording.question_words import question

_TWICE = 3.0
"""Seconds in which a second Ctrl+C leaves the shell."""


class PlainShell:
    """A session and its `Frontend`. One turn runs at a time; Ctrl+C stops it.

    From a terminal, a line during a turn is queued, and sent only if its meaning has
    not changed. It never answers a later question. Several lines at once are a paste,
    which is sent with the next line. The session survives internal errors.

    From a pipe, a line is read after the previous one was carried out, or for a
    question. The session ends at the first line that fails, and after an internal
    error.
    """

    def __init__(
        self,
        printer: PlainPrinter,
        keyboard: int,
        first: str = "",
        *,
        is_terminal: bool,
        now: Callable[[], float] = monotonic,
    ) -> None:
        """`keyboard` is the input's descriptor; `first` is a line to enter at once;
        `now` may be called in any thread.
        """
        self._first = first
        self._now = now
        self.output = Output(printer)
        self._printer = printer
        self._keyboard, self._is_terminal = keyboard, is_terminal
        self._session: Session | None = None
        self._rest = b""
        self._is_over = False
        """True at the end of the input."""
        self._queue: deque[Meaning] = deque()
        self._pasted = ""
        """A paste that waits for Enter."""
        self._has_come = asyncio.Event()
        self._asked: asyncio.Future[str] | None = None
        self._asked_at = inf
        """The time when the question was shown."""
        self._offered = ""
        """The prompt of the open question."""
        self._faults = FaultLog(Path())
        self._holds = False
        """True if nothing is read after an answer until `_may_read` is set."""
        self._may_read = threading.Event()
        self._turn: asyncio.Task[None] | None = None
        self._looks = set[asyncio.Task[None]]()
        """Commands that run during the turn."""
        self._is_prompting = False
        """True while the prompt for the next line is shown."""
        self._leaves = self._step_failed = False
        self._interrupted_at = -_TWICE

    def emit(self, event: Event) -> None:
        if isinstance(event, ExitRequested):
            self._leaves = True
            return
        if isinstance(event, StepFinished) and not event.status.is_over:
            self._step_failed = True
        # An error in printing must not reach the emitter.
        with self._outliving_faults():
            self.output.emit(event)

    async def approve(self, proposal: Proposal) -> Choice:
        """Lines from before the question do not answer it."""
        if isinstance(proposal, TestLossProposed) and not self._is_terminal:
            # The next line of a script is not meant as the answer.
            return await Nobody().approve(proposal)
        if isinstance(proposal, UndoProposed) and not self._is_terminal:
            # A script with `/undo` has decided.
            return Choice.YES
        self._printer.say(question(proposal))
        return await approve_in_words(proposal, self._printer.say, self._answer)

    async def review(self, review: Review) -> Decision:
        """While an editor is open, nothing else reads keys."""

        async def answer(prompt: str) -> str:
            self._may_read.set()
            return await self._answer(prompt, hold=True)

        try:
            return await review_in_words(
                review, self._printer.say, answer, may_edit=self._is_terminal
            )
        finally:
            self._may_read.set()

    async def ask(self, prompt: str) -> str:
        self._printer.say(prompt)
        return await self._answer("answer > ")

    async def run(self, session: Session, notices: tuple[Notice, ...]) -> ExitCode:
        """Take turns until `/exit`, the end of the input, or Ctrl+C twice."""
        self._session, self._faults = session, FaultLog(session.project.root)
        session.scope.is_whole_project = not self._is_terminal
        loop = asyncio.get_running_loop()
        # On Windows, Ctrl+C ends the program.
        handle_signals(("SIGINT",), self._interrupt)
        for notice in notices:
            self.emit(notice)
        if self._is_terminal:
            loop.set_exception_handler(self._tell_fault_of_loop)
            self._read_along(loop)
        if self._is_terminal or not self._first:
            with self._outliving_faults():
                await session.first_look(first_line=self._first)
        try:
            return await self._take_turns(session)
        finally:
            session.leave()

    async def _take_turns(self, session: Session) -> ExitCode:
        while not self._leaves:
            meaning = await self._next_meaning()
            if meaning is None:
                break
            self._step_failed = False
            failure: ExitCode | None = ExitCode.FAILED
            with self._outliving_faults():
                self._turn = asyncio.create_task(carry_out(session, meaning))
                failure = await self._await_turn(self._turn)
            self._turn = None
            if failure is None:
                continue
            if not self._is_terminal:
                return failure
            for unsent in self._queue:
                self._printer.say(f"Not sent: {unsent.line}")
            self._queue.clear()
        return ExitCode.DONE

    async def _look(self, meaning: Meaning) -> None:
        assert self._session is not None
        with beside_the_turn(), self._outliving_faults():
            try:
                await carry_out(self._session, meaning)
            except CddError as error:
                self._complain(error)

    @contextmanager
    def _outliving_faults(self) -> Iterator[None]:
        """At a terminal, report unexpected errors and continue."""
        try:
            yield
        except CddError:
            raise
        except Exception as error:
            if not self._is_terminal:
                raise
            self._tell_fault(error)

    def _tell_fault(self, error: BaseException) -> None:
        file = self._faults.write(error)
        try:
            self._printer.show(Notice(file, Tone.ERROR))
        # The printer itself may fail.
        except Exception as second:  # noqa: BLE001
            self._faults.write(second)
            sys.stderr.write(f"{file}\n")

    def _tell_fault_of_loop(
        self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]
    ) -> None:
        del loop
        self._tell_fault(context.get("exception") or RuntimeError(context["message"]))

    def _complain(self, error: CddError) -> None:
        self.emit(Notice(error.message, Tone.ERROR))
        if error.remedy:
            self.emit(Notice(error.remedy))

    async def _await_turn(self, turn: asyncio.Task[None]) -> ExitCode | None:
        try:
            await turn
        except CddError as error:
            self._complain(error)
            return error.exit_code
        except asyncio.CancelledError:
            if not turn.cancelled():  # the shell ends, not the turn
                raise
            self.emit(Notice("Stopped.", Tone.WARNING))
            return ExitCode.INTERRUPTED
        return ExitCode.FAILED if self._step_failed else None

    def _read_line(self, line: str) -> Meaning:
        assert self._session is not None
        return read_line(self._session, line)

    async def _next_meaning(self) -> Meaning | None:
        """Return the meaning of the next line; None after the last."""
        first, self._first = self._first, ""
        if first:
            return self._read_line(first)
        if not self._is_terminal:
            line = await self._read()
            return None if line is None else self._read_line(line)
        if not self._queue and not self._is_over:
            await self._prompt_for_line()
        return self._queue.popleft() if self._queue and not self._leaves else None

    async def _prompt_for_line(self) -> None:
        self._is_prompting = True
        self._show_prompt()
        try:
            while not self._queue and not self._is_over and not self._leaves:
                self._has_come.clear()
                await self._has_come.wait()
        finally:
            self._is_prompting = False

    def _show_prompt(self) -> None:
        """Show the prompt, again after a message. Otherwise it follows by itself."""
        if not self._is_prompting:
            return
        assert self._session is not None
        agent = self._session.agent
        with self._outliving_faults():
            if agent is not None:
                self._printer.say(f"({agent.meaning('').hint})")
        self._printer.prompt(
            f"{agent.name} {agent.ticket_slug} > " if agent is not None else "chat > "
        )

    async def _answer(self, prompt: str, *, hold: bool = False) -> str:
        """Return the next line as an answer. Raises `NotApproved` if none will come.
        `hold`: then read nothing from a terminal until `_may_read` is set.
        """
        if not self._is_terminal:
            line = await self._read()
        elif self._is_over:
            line = None
        else:
            forget_what_was_typed(self._keyboard)
            self._offered = prompt
            self._printer.prompt(prompt)
            self._asked, self._asked_at = (
                asyncio.get_running_loop().create_future(),
                self._now(),
            )
            self._holds = hold
            # A paste from before the question is not part of its answer.
            pasted, self._pasted = self._pasted, ""
            try:
                return await self._asked
            finally:
                self._asked, self._holds = None, False
                self._pasted = pasted
        if line is None:
            raise NotApproved("No answer came")
        return line

    async def _read(self) -> str | None:
        """Return the next line of a pipe, and leave later lines in it."""
        while b"\n" not in self._rest and not self._is_over:
            piece = await in_thread(
                lambda: read_available(self._keyboard), name="lines"
            )
            self._rest += piece
            self._is_over = not piece
        if not self._rest:
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        return _decoded(line)

    def _read_along(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read typed lines in a daemon thread, because a read may never end."""

        def read() -> None:
            while typed := read_burst(self._keyboard):
                self._may_read.clear()
                try:
                    loop.call_soon_threadsafe(self._take_typed, typed, self._now())
                except RuntimeError:  # the loop is closed
                    return
                self._may_read.wait()
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._end)

        threading.Thread(target=read, name="lines", daemon=True).start()

    def _take_typed(self, typed: str, at: float) -> None:
        """Handle a line together with an earlier paste. A paste alone waits for
        Enter.
        """
        text = add_to_paste(self._pasted, typed)
        if not is_paste(typed):
            self._pasted = ""
            self._take(text, at)
            return
        self._may_read.set()
        self._pasted = text
        self._printer.say(paste_notice(text))
        if self._asked is not None:
            self._printer.prompt(self._offered)
        else:
            self._show_prompt()

    def _take(self, line: str, at: float) -> None:
        question, is_in_time = self._asked, at - self._asked_at >= REST
        if question is None or not is_in_time or not self._holds:
            self._may_read.set()
        if self._turn is not None and self._leaves_by(line):
            self._leaves = True
            self._turn.cancel()
            return
        if question is not None and not question.done():
            if is_in_time:
                question.set_result(line)
            elif line.strip():
                self._printer.say(
                    "Ignored as an answer, because you typed it before the question"
                    f" was shown: {line}"
                )
                self._printer.prompt(self._offered)
            return
        if self._turn is not None:
            self._take_during_turn(line)
            return
        self._enqueue(self._read_line(line))

    def _take_during_turn(self, line: str) -> None:
        """Run a read-only command at once, or queue the line."""
        if not line.strip():  # an extra Enter
            return
        command = read_command(line, self._session)
        if command is not None and command.runs_beside:
            look = asyncio.create_task(self._look(command))
            self._looks.add(look)
            look.add_done_callback(self._looks.discard)
            return
        assert self._session is not None
        meaning = self._read_line(line)
        self._enqueue(meaning)
        if self._session.steer(meaning, partial(self._take_held, meaning)):
            self._printer.say(
                "(Queued. The model of the step gets it with its next call, or it"
                " waits for the end.)"
            )
        else:
            self._printer.say("(Queued until this ends.)")

    def _enqueue(self, meaning: Meaning) -> None:
        self._queue.append(meaning)
        self._has_come.set()

    def _leaves_by(self, line: str) -> bool:
        """True if a line leaves the shell. During a question, a letter does not, and
        `quit` may be an answer.
        """
        is_answer = self._asked is not None and (
            is_letter(line)
            or ("quit" in self._offered and line.strip().lower() == "quit")
        )
        command = read_command(line, self._session)
        return command is not None and command.leaves and not is_answer

    def _take_held(self, meaning: Meaning) -> bool:
        """Pass a queued line to the running step. False if it is no longer queued."""
        for place, queued in enumerate(self._queue):
            if queued is meaning:
                del self._queue[place]
                return True
        return False

    def _end(self) -> None:
        self._is_over = True
        if self._pasted:
            self._printer.say(f"Not sent: {self._pasted}")
        if self._asked is not None and not self._asked.done():
            self._asked.set_exception(NotApproved("No answer came"))
        self._has_come.set()

    def _interrupt(self) -> None:
        """Stop the turn, or discard a paste. Otherwise two Ctrl+C leave the session."""
        if self._turn is not None and not self._turn.done():
            self._turn.cancel()
            return
        if self._pasted:
            self._pasted = ""
            self._printer.say("\n(Paste discarded.)")
            self._show_prompt()
            return
        pressed_at = self._now()
        if pressed_at - self._interrupted_at < _TWICE:
            self._leaves = True
            self._has_come.set()
        else:
            self._interrupted_at = pressed_at
            self._printer.say("\nPress Ctrl+C again to quit.")
            self._show_prompt()


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").removesuffix("\r")


def run_plain(
    open_session: Callable[
        [PlainShell, Callable[[Event], None]], tuple[Session, tuple[Notice, ...]]
    ],
    first: str = "",
) -> int:
    """Run the shell on standard input and output. `first` is entered at once. Raises
    `CddError` if the session cannot be opened.
    """
    is_terminal = sys.stdin.isatty()
    code = ExitCode.DONE

    async def run() -> None:
        nonlocal code
        code = await shell.run(*opened)

    shell = PlainShell(
        PlainPrinter(), sys.stdin.fileno(), first, is_terminal=is_terminal
    )
    opened = open_session(shell, shell.emit)
    shell.output.carry_out(run())
    return code
