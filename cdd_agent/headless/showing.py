"""What every run without a screen begins and ends with: who may be there, and events printed until they end."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from functools import partial

from cdd_agent.events import Event
from cdd_agent.frontend import Frontend, Nobody
from cdd_agent.printer import JsonPrinter, Printer, TextPrinter
from cdd_agent.terminal import Terminal, find_keyboard


def printer_for(as_json: bool) -> Printer:
    return JsonPrinter() if as_json else TextPrinter()


def whoever_is_there(printer: Printer) -> Frontend:
    keyboard = find_keyboard()
    return Nobody() if keyboard is None else Terminal(keyboard, follows=printer.is_seen)


def show_all(events: AsyncGenerator[Event, None], printer: Printer) -> None:
    """Print them to the last one; a request to terminate, or a closed terminal, is an interrupt like Ctrl+C."""
    try:
        asyncio.run(_shown(events, printer))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


async def _shown(events: AsyncGenerator[Event, None], printer: Printer) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for name in ("SIGTERM", "SIGHUP"):
        with suppress(AttributeError, NotImplementedError):  # Windows has no SIGHUP, and no such handlers
            loop.add_signal_handler(getattr(signal, name), partial(task.cancel, name))
    try:
        async with aclosing(events):
            async for event in events:
                printer.show(event)
    finally:
        printer.close()
