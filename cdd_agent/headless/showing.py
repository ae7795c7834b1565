"""What every run without a screen begins and ends with: who may be there, and a way to be stopped."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial

from cdd_agent.frontend import Frontend, Nobody
from cdd_agent.printer import JsonPrinter, Printer, TextPrinter
from cdd_agent.terminal import Terminal, find_keyboard


def printer_for(as_json: bool) -> Printer:
    return JsonPrinter() if as_json else TextPrinter()


def whoever_is_there(printer: Printer) -> Frontend:
    keyboard = find_keyboard()
    return Nobody() if keyboard is None else Terminal(keyboard, follows=printer.is_seen)


def carry_out(work: Coroutine[object, object, None], printer: Printer) -> None:
    """Do it to its end; a request to terminate, or a closed terminal, is an interrupt like Ctrl+C."""
    try:
        asyncio.run(_interruptible(work, printer))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _interruptible(work: Coroutine[object, object, None], printer: Printer) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for name in ("SIGTERM", "SIGHUP"):
        with suppress(AttributeError, NotImplementedError):  # Windows has no SIGHUP, and no such handlers
            loop.add_signal_handler(getattr(signal, name), partial(task.cancel, name))
    try:
        await work
    finally:
        printer.close()
