"""The way to the terminal, as Textual goes it, with what it leaves out.

Asking for the colour of its background (OSC 11). Nobody waits for the answer: it comes
among the keys, is taken out from between them, and becomes a message. A terminal that
does not know the question says nothing.

Noticing that it is gone: the system tells that to the first program of a terminal
alone, which may be another, such as `make`. And coming back after a stop that nobody
hears (SIGSTOP), as after Ctrl+Z.
"""

from __future__ import annotations

import os
import re
import select
import signal
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver

from cdd_agent.tui.background_message import BackgroundTold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.message import Message

QUESTION = "\x1b]11;?\x1b\\"
_ANSWER = re.compile(r"\x1b\]11;([^\x07\x1b]{1,64})(?:\x07|\x1b\\)")
_BEGINNING = re.compile(r"\x1b(?:\](?:1(?:1(?:;[^\x07\x1b]{0,64}\x1b?)?)?)?)?\Z")
"""Text that may become an answer with what is read next."""
_PATIENCE = 2.0
"""Seconds in which an Escape may be the beginning of an answer."""
_PAUSE = 0.1
"""Seconds after which what has begun like an answer is none."""


class BackgroundParser(XTermParser):
    """Keys and mouse as ever, and answers to the question."""

    asked_at: ClassVar[float] = 0.0

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._begun = ""
        self._begun_at = 0.0
        self._is_gone = False

    def feed(self, data: str) -> Iterable[Message]:
        data, self._begun = self._begun + data, ""
        for answer in _ANSWER.finditer(data):
            yield BackgroundTold(answer[1])
        rest = _ANSWER.sub("", data)
        if (begins := _BEGINNING.search(rest)) and (
            len(begins[0]) > 1 or monotonic() < self.asked_at + _PATIENCE
        ):
            self._begun, self._begun_at = begins[0], monotonic()
            rest = rest[: begins.start()]
        if rest or not data:
            yield from super().feed(rest)

    def tick(self) -> Iterable[Message]:
        if self._begun and monotonic() > self._begun_at + _PAUSE:
            data, self._begun = self._begun, ""
            yield from super().feed(data)
        if not self._is_gone and _is_hung_up(0):
            self._is_gone = True
            os.kill(os.getpid(), signal.SIGHUP)
        yield from super().tick()


def _is_hung_up(terminal: int) -> bool:
    waiting = select.poll()
    waiting.register(terminal, 0)  # that it is closed is told unasked
    return any(event & select.POLLHUP for _, event in waiting.poll(0))


class _Writer(WriterThread):
    """Takes what is written also when the terminal is gone: Textual's ends then, and
    who writes waits for ever.
    """

    def run(self) -> None:
        while (text := self._queue.get()) is not None:
            with suppress(OSError):
                self._file.write(text)
                if self._queue.empty():
                    self._file.flush()
        with suppress(OSError):
            self._file.flush()


class AskingDriver(LinuxDriver):
    """A terminal that can be asked for its background."""

    def start_application_mode(self) -> None:
        # Textual makes one here
        linux_driver.WriterThread = _Writer  # type: ignore[attr-defined]
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def _sigcont_application(self, *_: object) -> None:
        # not here and now: one stop may follow another
        self._loop.call_soon_threadsafe(self._come_back)

    def _come_back(self) -> None:
        """Take the terminal, unless somebody has it. Before Ctrl+Z it was let go;
        before a SIGSTOP it was not, but the shell that this was started from has used
        it since. The system sends SIGCONT also when a terminal goes.
        """
        if self._auto_restart and not _is_hung_up(self.fileno):
            if not self._must_signal_resume:
                self._must_signal_resume = True
                self.suspend_application_mode()
            self.resume_application_mode()

    def ask_for_background(self) -> None:
        """The answer, if there is one, is a `BackgroundTold` for the app."""
        BackgroundParser.asked_at = monotonic()
        self.write(QUESTION)
        self.flush()

    def run_input_thread(self) -> None:
        # the loop that reads makes its own parser
        linux_driver.XTermParser = BackgroundParser  # type: ignore[attr-defined]
        super().run_input_thread()

    def stop_application_mode(self) -> None:
        # what others write from here on is in no style of ours
        self.write("\x1b]8;;\x1b\\\x1b[0m")
        super().stop_application_mode()
