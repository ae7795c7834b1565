"""What makes the shell's tests quick and steady: how one waits after a key, and style
sheets that are read once.
"""

import asyncio
from typing import Any

import pytest
from textual._context import active_app
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.message_pump import MessagePump
from textual.pilot import Pilot

_TURNS = 1_000
"""Of the event loop, a millisecond or more each: about as many as a long key press
takes.
"""
_PARSED: dict[frozenset[tuple[str, str]], Any] = {}
"""What was parsed of the style sheets, by the variables of the theme."""
_parse, _wait_for_screen = Stylesheet.parse, Pilot._wait_for_screen


async def until_at_rest(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until each widget waits for messages, and the screen is painted. Textual's
    pilot waits, twice for each key, until the processor was idle for 20 ms: most of the
    time of these tests, and longer where other tests run.

    Some key begins work that is longer, which is waited for no more than so many turns
    of the event loop: in seconds, a machine that stalls would take away the time in
    which the screen is laid out.
    """
    app = active_app.get()
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    for _ in range(_TURNS):
        await asyncio.sleep(0)
        if ready or not _all_wait(app):
            await asyncio.sleep(0.001)
        elif not _painted(app):
            return


async def _until_heard(pilot: Pilot[Any], timeout: float = 30) -> bool:
    """Wait until each widget has heard what was sent to it before; where each waits for
    messages, all has been heard, and none is sent to each of them to find that out.
    """
    return _all_wait(pilot.app) or await _wait_for_screen(pilot, timeout)


def _all_wait(app: App[Any]) -> bool:
    return all(map(_waits, [app, *app.screen.walk_children(with_self=True)]))


def _waits(pump: MessagePump) -> bool:
    queue = pump._message_queue
    return not pump._running or (queue.empty() and bool(queue.ready_event._waiters))


def _painted(app: App[Any]) -> bool:
    """Do at once for which Textual waits for the next frame; whether there was
    something.
    """
    if app._resize_timer is not None:
        app._check_resize()
    elif app.screen._update_timer._active.is_set():
        app.screen._on_timer_update()
    else:
        return False
    return True


def _parse_once(sheet: Stylesheet) -> None:
    """Parse what no other shell of this process has parsed yet: rules are only read
    after that.
    """
    own, sheet._parse_cache = (
        sheet._parse_cache,
        _PARSED.setdefault(frozenset(sheet._variables.items()), {}),
    )
    try:
        _parse(sheet)
    finally:
        sheet._parse_cache = own


@pytest.fixture(autouse=True)
def keys_take_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("textual.app.wait_for_idle", until_at_rest)
    monkeypatch.setattr("textual.pilot.wait_for_idle", until_at_rest)
    monkeypatch.setattr(Pilot, "_wait_for_screen", _until_heard)
    monkeypatch.setattr(Stylesheet, "parse", _parse_once)
    # as theirs, by identity, but not in Python
    monkeypatch.setattr(RuleSet, "__hash__", object.__hash__)
