"""Handle signals of the system in an event loop."""

import asyncio
import signal
import sys
from collections.abc import Callable


def handle_signals(names: tuple[str, ...], handler: Callable[[], object]) -> None:
    """Call `handler` in the running event loop when one of these signals arrives. Does
    nothing on Windows. Raises `ValueError` outside of the main thread.

    `loop.add_signal_handler` loses signals: its socket is full while another thread
    wakes the loop often, for example during a long paste.
    """
    if sys.platform == "win32":
        return
    loop = asyncio.get_running_loop()
    for name in names:
        number = signal.Signals[name]
        _handle(number, signal.getsignal(number), loop, handler)


def _handle(
    number: signal.Signals,
    previous: object,
    loop: asyncio.AbstractEventLoop,
    handler: Callable[[], object],
) -> None:
    def receive(*_: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(handler)
            return
        signal.signal(number, previous)  # type: ignore[arg-type]
        signal.raise_signal(number)

    signal.signal(number, receive)
