"""Work without a screen: who answers questions, and the output."""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial

from cdd_agent.events.stream import Event
from cdd_agent.faces.printer import JsonPrinter, Printer
from cdd_agent.faces.terminal import Terminal, find_keyboard
from cdd_agent.frontend import Frontend, Nobody
from cdd_agent.process.signals import handle_signals

NOTICE_DELAY = 1.0
"""Seconds of silence before a notice."""


@contextmanager
def preparing_model() -> Iterator[None]:
    """Warn on standard error if preparing the model takes long: an unknown provider
    needs litellm, whose import takes seconds.
    """
    text = (
        "cdd: looking for the provider of the model. Loading all providers takes a few"
        " seconds …\n"
    )
    timer = threading.Timer(NOTICE_DELAY, lambda: sys.stderr.write(text))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def frontend_for(printer: Printer) -> Frontend:
    """Return who answers: no one for JSON, otherwise the user at the terminal, if
    any.
    """
    if isinstance(printer, JsonPrinter):
        return Nobody()
    return frontend_at_terminal(printer)


def frontend_at_terminal(printer: Printer) -> Frontend:
    """Return the user at the terminal, or no one without a terminal."""
    keyboard = find_keyboard()
    if keyboard is None:
        return Nobody()
    return Terminal(keyboard, follows=printer.is_on_terminal)


class Output:
    """Prints the events of some work. If the output is closed or the disk is full, the
    work is stopped.
    """

    def __init__(self, printer: Printer) -> None:
        self.printer = printer
        self._work: asyncio.Task[object] | None = None
        self._refused: OSError | SystemExit | None = None

    def emit(self, event: Event) -> None:
        self.write(partial(self.printer.show, event))

    def write(self, show: Callable[[], None]) -> None:
        if self._refused is not None:
            return
        try:
            show()
        except (OSError, SystemExit) as error:
            # rich ends the program when its output is closed.
            if self._work is not None and self._work.cancelling():
                # The interrupt matters more than the closed output.
                return
            self._refused = error
            if self._work is not None:
                self._work.cancel()

    def carry_out(self, work: Coroutine[object, object, None]) -> None:
        """Run work to its end. SIGTERM or a closed terminal interrupts it like
        Ctrl+C.
        """
        try:
            asyncio.run(self._interruptible(work))
        except asyncio.CancelledError:
            if self._refused is None:
                raise KeyboardInterrupt from None
        if self._refused is not None:
            raise self._refused

    async def _interruptible(self, work: Coroutine[object, object, None]) -> None:
        self._work = asyncio.current_task()
        assert self._work is not None
        for name in ("SIGTERM", "SIGHUP"):
            handle_signals((name,), partial(self._work.cancel, name))
        try:
            await work
        finally:
            self.printer.close()
