"""Signals arrive in the event loop, whatever else wakes it."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from cdd_agent.process.signals import handle_signals

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGHUP")


@pytest.fixture(autouse=True)
def _default_action() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


def test_a_signal_arrives_while_a_thread_wakes_the_loop() -> None:
    async def run() -> None:
        arrived = asyncio.Event()
        handle_signals(("SIGHUP",), arrived.set)
        loop = asyncio.get_running_loop()

        def wake() -> None:
            for _ in range(5_000):
                loop.call_soon_threadsafe(int)

        thread = threading.Thread(target=wake)
        thread.start()
        # the loop is busy and reads nothing of its socket
        thread.join()
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.wait_for(arrived.wait(), 10)

    asyncio.run(run())


def test_after_the_loop_the_signal_has_its_former_action() -> None:
    received: list[int] = []
    signal.signal(signal.SIGHUP, lambda number, _: received.append(number))

    async def run() -> None:
        handle_signals(("SIGHUP",), received.clear)

    asyncio.run(run())
    os.kill(os.getpid(), signal.SIGHUP)
    assert received == [signal.SIGHUP]
