"""Asks questions without the shell, by printed text and lines from the terminal or a
pipe.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
from contextlib import suppress
from functools import cached_property

from msgspec import Struct
from rich.console import Console

from cdd_agent.changes.review import Review
from cdd_agent.errors import NotApproved
from cdd_agent.events.question_events import ActionProposed, Choice, Proposal
from cdd_agent.faces.reviewing import approve_in_words, review_in_words
from cdd_agent.frontend import Decision, Frontend
from cdd_agent.text.sanitize import sanitize_for_display, text_of_paste
from cdd_agent.threads import in_thread
from cdd_agent.wording.question_words import question

if sys.platform != "win32":
    import termios

_LONGEST_ANSWER = 1_000_000
"""Maximum bytes of a line from a pipe."""
_BURST_GAP = 0.01
"""Lines within this many seconds are a paste: no user types that fast."""


class Terminal:
    """The `Frontend` of `cdd run`. It prints on standard error and reads from the
    terminal, so that standard input can be the plan and standard output the report.
    """

    def __init__(self, keyboard: int, *, follows: bool) -> None:
        """`keyboard`: see `find_keyboard`. `follows`: the user sees the run's
        output.
        """
        self._keyboard = keyboard
        self._follows = follows

    @cached_property
    def _console(self) -> Console:
        return Console(
            stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True
        )

    async def approve(self, proposal: Proposal) -> Choice:
        if isinstance(proposal, ActionProposed) and self._follows:
            self._show(proposal.details, "  ")
        else:
            self._show(question(proposal))
        return await approve_in_words(proposal, self._show, self._line_from_now)

    async def review(self, review: Review) -> Decision:
        return await review_in_words(
            review, self._show, self._line_from_now, may_edit=sys.stdin.isatty()
        )

    async def ask(self, prompt: str) -> str:
        self._show(prompt)
        return (await self._line("> ")).rstrip("\r\n")

    def _show(self, text: str, margin: str = "") -> None:
        """Print a text. `margin` marks text that is not from cdd."""
        lines = [margin + sanitize_for_display(line) for line in text.splitlines()]
        for line in lines:
            self._console.print(line)

    async def _line_from_now(self, prompt: str) -> str:
        forget_what_was_typed(self._keyboard)
        return await self._line(prompt)

    async def _line(self, prompt: str) -> str:
        """Raise `NotApproved` if the terminal is closed or Ctrl+D ends the input."""
        pasted = ""
        while True:
            self._console.print(prompt, style="bold", end="")
            typed = await self._burst()
            if not typed:
                raise NotApproved("No answer received")
            if not is_paste(typed):
                return add_to_paste(pasted, typed)
            pasted = add_to_paste(pasted, typed)
            self._show(paste_notice(pasted))

    async def _burst(self) -> str:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            # A daemon thread without a buffered reader lets Ctrl+C end the program
            # without another key.
            typed = read_burst(self._keyboard)
            # A closed loop needs no answer.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, answer, typed)

        threading.Thread(target=read, daemon=True).start()
        return await answer


def read_burst(keyboard: int) -> str:
    """Return the input that arrives together, usually a line with its line end; empty
    at the end.
    """
    parts = [read_available(keyboard)]
    while parts[-1] and _has_more(keyboard):
        parts.append(read_available(keyboard))
    return b"".join(parts).decode("utf-8", errors="replace")


def read_available(file: int) -> bytes:
    """Wait for input; return nothing at the end. Closed terminals and unreadable input,
    as under `nohup`, count as the end.
    """
    try:
        return os.read(file, 65536)
    except OSError:
        return b""


def _has_more(keyboard: int) -> bool:
    # Windows can only wait for sockets.
    if sys.platform == "win32":
        return False
    return bool(select.select([keyboard], [], [], _BURST_GAP)[0])


def is_paste(typed: str) -> bool:
    """True if several lines arrived together. Repeated Enter is not a paste."""
    return typed.count("\n") > 1 and bool(typed.strip())


def add_to_paste(pasted: str, typed: str) -> str:
    """Append input to a paste, without the last line ends."""
    line = typed.rstrip("\r\n")
    if is_paste(typed):
        line = text_of_paste(line)
    if not pasted:
        return line
    return f"{pasted}\n{line}" if line.strip() else pasted


def paste_notice(pasted: str) -> str:
    count = pasted.count("\n") + 1
    return f"(Pasted {count} lines. Press Enter to send them.)"


def forget_what_was_typed(keyboard: int) -> None:
    """Discard earlier input: it is not an answer to the question."""
    if sys.platform != "win32":
        with suppress(termios.error):
            termios.tcflush(keyboard, termios.TCIFLUSH)


def _settle(answer: asyncio.Future[str], typed: str) -> None:
    if not answer.done():
        answer.set_result(typed)


class AnswersFromPipe(Struct):
    """Reads answers from a pipe, one a line. `others` approves changes, and answers
    after the last line.
    """

    pipe: int
    others: Frontend
    _rest: bytes = b""
    _is_over: bool = False

    async def approve(self, proposal: Proposal) -> Choice:
        return await self.others.approve(proposal)

    async def review(self, review: Review) -> Decision:
        return await self.others.review(review)

    async def ask(self, prompt: str) -> str:
        line = await in_thread(self._line, name="answer")  # Ctrl+C abandons the thread
        return await self.others.ask(prompt) if line is None else line

    def _line(self) -> str | None:
        while b"\n" not in self._rest and not self._is_over:
            piece = read_available(self.pipe)
            self._rest += piece
            self._is_over = not piece or len(self._rest) > _LONGEST_ANSWER
        if not self._rest:
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", errors="replace").removesuffix("\r")


def find_pipe() -> int | None:
    """Return standard input if it is readable and not a terminal."""
    try:
        return None if sys.stdin.isatty() else sys.stdin.fileno()
    except (OSError, ValueError):
        return None


def find_keyboard() -> int | None:
    """Return the user's terminal, even if standard input is redirected; None without
    one.
    """
    if not sys.stderr.isatty():
        return None
    if sys.stdin.isatty():
        return sys.stdin.fileno()
    with suppress(OSError):
        return os.open("CONIN$" if os.name == "nt" else "/dev/tty", os.O_RDONLY)
    return None
