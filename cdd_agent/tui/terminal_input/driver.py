"""The shell's driver of a terminal, built on Textual's public `Driver`.

Textual's driver for Linux does not ask for the background colour, reads escape
sequences in a paste as keys, freezes if a paste's end marker is lost, and does not
notice a closed terminal without a signal.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import shutil
import signal
import sys
import termios
from contextlib import contextmanager
from math import inf
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from textual import constants, events
from textual.driver import Driver
from textual.geometry import Size
from textual.messages import InBandWindowResize

from cdd_agent.tui.terminal_input.driver_messages import InputEnded
from cdd_agent.tui.terminal_input.parser import TerminalParser
from cdd_agent.tui.terminal_input.terminal_mode import TerminalMode, is_hung_up
from cdd_agent.tui.terminal_input.writer import TerminalWriter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import App
    from textual.message import Message

BACKGROUND_QUESTION = "\x1b]11;?\x1b\\"
_LARGEST_READ = 65_536

# Disambiguate Escape, report all keys as sequences, report typed text:
# https://sw.kovidgoyal.net/kitty/keyboard-protocol/
_KITTY_KEYS_ON, _KITTY_KEYS_OFF = "\x1b[>25u", "\x1b[<u"
_OTHER_SCREEN_ON, _OTHER_SCREEN_OFF = "\x1b[?1049h", "\x1b[?1049l"
_CURSOR_OFF, _CURSOR_ON = "\x1b[?25l", "\x1b[?25h"
_FOCUS_ON, _FOCUS_OFF = "\x1b[?1004h", "\x1b[?1004l"
_PASTE_MARKERS_ON, _PASTE_MARKERS_OFF = "\x1b[?2004h", "\x1b[?2004l"
_WRAPPING_OFF, _WRAPPING_ON = "\x1b[?7l", "\x1b[?7h"
# Clicks, movements, and decimal coordinates.
_MOUSE_ON = "\x1b[?1000h\x1b[?1003h\x1b[?1006h"
_MOUSE_OFF = "\x1b[?1016l\x1b[?1006l\x1b[?1003l\x1b[?1000l"
_MOUSE_IN_PIXELS = "\x1b[?1016h"
_SIZES_ON, _SIZES_OFF = "\x1b[?2048h", "\x1b[?2048l"
_SYNC_QUESTION, _SIZES_QUESTION = "\x1b[?2026$p", "\x1b[?2048$p"
_PLAIN_STYLE = "\x1b]8;;\x1b\\\x1b[0m"


class TerminalDriver(Driver):
    """Reads keys in one thread, writes in another, and lends the terminal to other
    programs.
    """

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        assert sys.__stdin__ is not None
        assert sys.__stderr__ is not None
        self.app = app
        self.input = sys.__stdin__.fileno()
        self.output = sys.__stderr__.fileno()
        self.encoding = sys.__stderr__.encoding
        self.has_mouse = mouse
        self.event_loop = asyncio.get_running_loop()
        self.mode = TerminalMode(self.input)
        self.parser = TerminalParser()
        self.writer: TerminalWriter | None = None
        self.reader: Thread | None = None
        self.wake_up = -1
        """Closing this descriptor ends the reader."""
        self.is_lent = False
        """True while another program has the terminal, until a call returns it."""
        self.resumes = False
        """True if the app must be notified that it has the terminal again."""
        self.reports_sizes = False
        """True if the terminal reports its size with the keys, so signals are
        ignored.
        """
        signal.signal(signal.SIGTSTP, self._stop_process)
        signal.signal(signal.SIGCONT, self._continue_process)

    @property
    def can_suspend(self) -> bool:
        return True

    def ask_for_background(self) -> None:
        """Ask for the background colour. The app receives a `BackgroundReported` if the
        terminal answers.
        """
        self.parser.expect_answer(monotonic())
        self.write(BACKGROUND_QUESTION)

    def write(self, data: str) -> None:
        """Write data, unless another program has the terminal."""
        if self.writer is not None:
            self.writer.write(data)

    def start_application_mode(self) -> None:
        if os.isatty(self.input) and not self._is_in_foreground():
            return
        self.writer = TerminalWriter(self.output, self.encoding)
        self.reports_sizes = False
        signal.signal(signal.SIGWINCH, self._report_size)
        self._report_size()
        self.write(_OTHER_SCREEN_ON)
        early = self.mode.enter()
        self.write(_CURSOR_OFF + _FOCUS_ON)
        if not constants.DISABLE_KITTY_KEY:
            self.write(_KITTY_KEYS_ON)
        self._start_reader(early)
        # This terminal would print the question.
        if os.environ.get("TERM_PROGRAM") != "Apple_Terminal":
            self.write(_SYNC_QUESTION)
        self.write(_SIZES_QUESTION + _PASTE_MARKERS_ON + _WRAPPING_OFF)
        if self.has_mouse:
            self.write(_MOUSE_ON)
        if self.resumes:
            self.resumes = False
            self.send_message(self.SignalResume())

    def disable_input(self) -> None:
        if self.reader is None:
            return
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        if self.has_mouse:
            self.write(_MOUSE_OFF)
        os.close(self.wake_up)
        self.reader.join()
        self.reader = None
        self.mode.discard_input()

    def stop_application_mode(self) -> None:
        self.write(_PLAIN_STYLE + _PASTE_MARKERS_OFF + _WRAPPING_ON)
        if self.reports_sizes:
            self.write(_SIZES_OFF)
        self.disable_input()
        self.mode.leave()
        # The mode belongs to the alternate screen.
        self.write(_KITTY_KEYS_OFF)
        self.write(_OTHER_SCREEN_OFF + _CURSOR_ON + _FOCUS_OFF)

    def close(self) -> None:
        if self.writer is not None:
            writer, self.writer = self.writer, None
            writer.stop()

    @contextmanager
    def no_automatic_restart(self) -> Iterator[None]:
        was_lent, self.is_lent = self.is_lent, True
        try:
            yield
        finally:
            self.is_lent = was_lent

    def process_message(self, message: Message) -> None:
        if isinstance(message, InBandWindowResize) and message.supported:
            self.reports_sizes = True
            if not message.enabled:
                self.write(_SIZES_ON)
            if self.has_mouse:
                self.write(_MOUSE_IN_PIXELS)
            message = InBandWindowResize(supported=True, enabled=True)
        super().process_message(message)

    def _is_in_foreground(self) -> bool:
        """Stop the process while it is in the background: a shell's `bg` continues it
        without giving it the terminal.
        """

        def stop_again(*_: object) -> None:
            os.kill(os.getpid(), signal.SIGSTOP)

        signal.signal(signal.SIGTTOU, stop_again)
        signal.signal(signal.SIGTTIN, stop_again)
        try:
            self.mode.change_nothing()
        except termios.error:
            return False
        finally:
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            signal.signal(signal.SIGTTIN, signal.SIG_DFL)
        return True

    def _report_size(self, *_: object) -> None:
        if not self.reports_sizes:
            size = Size(*shutil.get_terminal_size((80, 25)))
            self.send_message(events.Resize(size, size))

    def _stop_process(self, *_: object) -> None:
        """Ctrl+Z: release the terminal, and stop."""
        if self.is_lent:
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            # Not in the signal handler: the writer's queue may be locked.
            self.event_loop.call_soon_threadsafe(self._give_back_and_stop)

    def _give_back_and_stop(self) -> None:
        self.suspend_application_mode()
        self.resumes = True
        os.kill(os.getpid(), signal.SIGSTOP)

    def _continue_process(self, *_: object) -> None:
        # Not in the signal handler: one stop may follow another.
        self.event_loop.call_soon_threadsafe(self._come_back)

    def _come_back(self) -> None:
        """Take the terminal back, unless it is lent or closed (closing sends SIGCONT,
        too). Ctrl+Z released it, but SIGSTOP did not, although the parent shell has
        used it since.
        """
        if self.is_lent or is_hung_up(self.input):
            return
        if not self.resumes:
            self.resumes = True
            self.suspend_application_mode()
        self.resume_application_mode()

    def _start_reader(self, early: int) -> None:
        self.parser = TerminalParser()
        woken, self.wake_up = os.pipe()
        self.reader = Thread(
            target=self._read, args=(woken, early), name="terminal-input", daemon=True
        )
        self.reader.start()

    def _read(self, woken: int, early: int) -> None:
        """Read until the input ends or `wake_up` is closed. The first `early` bytes
        were typed in line mode.
        """
        try:
            with selectors.SelectSelector() as selector:
                selector.register(woken, selectors.EVENT_READ)
                selector.register(self.input, selectors.EVENT_READ)
                self._read_from(selector, woken, early)
        except Exception:  # noqa: BLE001  # as Textual does: without keys nothing works
            # late: it imports Pygments
            from rich.traceback import Traceback  # noqa: PLC0415

            self.app.call_later(self.app.panic, Traceback())
        finally:
            os.close(woken)

    def _read_from(
        self, selector: selectors.SelectSelector, woken: int, early: int
    ) -> None:
        while True:
            pause = max(self.parser.deadline - monotonic(), 0.0)
            ready = selector.select(None if pause == inf else pause)
            if any(key.fd == woken for key, _ in ready):
                return
            if not ready:
                self._process(self.parser.tick(monotonic()))
                continue
            data = _read_some(self.input)
            if not data:
                if data is not None:
                    self._end_input()
                    return
                continue
            lines, keys = data[:early], data[early:]
            early -= len(lines)
            lines = lines.replace(b"\n", b"\r")
            self._process(self.parser.feed(lines + keys, monotonic()))

    def _end_input(self) -> None:
        while self.parser.deadline < inf:
            self._process(self.parser.tick(self.parser.deadline))
        self.send_message(InputEnded(is_gone=is_hung_up(self.input)))

    def _process(self, messages: list[Message]) -> None:
        for message in messages:
            self.process_message(message)


def _read_some(file: int) -> bytes | None:
    """Return the available bytes; empty at the end, None if nothing is available."""
    try:
        return os.read(file, _LARGEST_READ)
    except BlockingIOError:
        return None
    except OSError:  # the terminal is closed
        return b""
