"""Shared by the commands that run without a screen: their project, who may be there to answer, and the output."""

import asyncio
import json
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from cdd_agent.events import Event
from cdd_agent.frontend import Frontend, Nobody
from cdd_agent.printer import JsonPrinter, Printer, TextPrinter
from cdd_agent.sanitize import sanitize_for_display
from cdd_agent.session import Project
from cdd_agent.terminal import Terminal, find_keyboard
from cdd_agent.wiring import open_project

_SLOW = 1.0
"""Seconds after which silence looks like a fault."""


def open_project_of(options: Namespace, *settings: str) -> Project:
    """The project that a command is for; of its flags, the ones named are settings there. Raises `BadInput`."""
    return open_project(options.project, {name: getattr(options, name) for name in settings})


def reference(typed: str) -> str:
    """A ticket as it was typed; a path is one from here, not from the project's root."""
    is_path = "/" in typed or typed in (".", "..")
    return str(Path(typed).resolve()) if is_path and Path(typed).exists() else typed


@contextmanager
def preparing_model() -> Iterator[None]:
    """Around making the model of a run: whether anybody offers a name may be known only to litellm, whose import takes
    seconds. After the first of them standard error says so."""
    text = "cdd: looking for who offers the model; the list of all providers takes some seconds to load ...\n"
    timer = threading.Timer(_SLOW, lambda: sys.stderr.write(text))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def print_text(text: str) -> None:
    """Text from files: as it is into a file or a pipe, but a terminal is not steered by it."""
    sys.stdout.write("\n".join(map(sanitize_for_display, text.split("\n"))) if sys.stdout.isatty() else text)


def print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def printer_for(as_json: bool) -> Printer:
    return JsonPrinter() if as_json else TextPrinter()


def whoever_is_there(printer: Printer) -> Frontend:
    keyboard = find_keyboard()
    return Nobody() if keyboard is None else Terminal(keyboard, follows=printer.is_seen)


class Output:
    """Prints a piece of work. Where that cannot be, as the reader has left or the disk is full, the work is stopped; it
    is not the work that fails."""

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
        except (OSError, SystemExit) as error:  # rich ends the program when its reader has left
            self._refused = error
            if self._work is not None:
                self._work.cancel()

    def carry_out(self, work: Coroutine[object, object, None]) -> None:
        """Do it to its end; a request to terminate, or a closed terminal, is an interrupt like Ctrl+C.

        Raises `KeyboardInterrupt`, the `OSError` of a reader that has left, and what the work raises.
        """
        try:
            asyncio.run(self._interruptible(work))
        except asyncio.CancelledError:
            if self._refused is None:
                raise KeyboardInterrupt from None
        if self._refused is not None:
            raise self._refused

    async def _interruptible(self, work: Coroutine[object, object, None]) -> None:
        loop, self._work = asyncio.get_running_loop(), asyncio.current_task()
        assert self._work is not None
        for name in ("SIGTERM", "SIGHUP"):
            with suppress(AttributeError, NotImplementedError):  # Windows has no SIGHUP, and no such handlers
                loop.add_signal_handler(getattr(signal, name), partial(self._work.cancel, name))
        try:
            await work
        finally:
            self.printer.close()
