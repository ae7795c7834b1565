"""How long a test waits after each key: until the shell has dealt with it."""

import asyncio
from time import monotonic
from typing import Any

import pytest
from textual._context import active_app
from textual.app import App
from textual.message_pump import MessagePump


async def until_at_rest(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until each widget waits for messages, and the screen is painted. Textual's pilot waits, twice for each key,
    until the processor was idle for 20 ms: most of the time of these tests, and longer where other tests run."""
    app = active_app.get()
    end = monotonic() + max_sleep  # some key begins work that is longer
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    while monotonic() < end:
        await asyncio.sleep(0)
        if ready or not all(map(_waits, [app, *app.screen.walk_children(with_self=True)])):
            await asyncio.sleep(0.001)
        elif not _painted(app):
            return


def _waits(pump: MessagePump) -> bool:
    queue = pump._message_queue
    return not pump._running or (queue.empty() and bool(queue.ready_event._waiters))


def _painted(app: App[Any]) -> bool:
    """Do at once for which Textual waits for the next frame; whether there was something."""
    if app._resize_timer is not None:
        app._check_resize()
    elif app.screen._update_timer._active.is_set():
        app.screen._on_timer_update()
    else:
        return False
    return True


@pytest.fixture(autouse=True)
def keys_take_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual.app.wait_for_idle", until_at_rest)
    monkeypatch.setattr("textual.pilot.wait_for_idle", until_at_rest)
