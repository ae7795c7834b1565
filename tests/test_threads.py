"""Work in threads: who stops waiting for it, and what ends when."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cdd_agent.threads import in_thread, to_its_end, waited_for

LEAVES = """\
import asyncio, time
from cdd_agent.threads import in_thread

async def main():
    with_work = asyncio.create_task(in_thread(lambda: time.sleep(600), name="stuck"))
    await asyncio.sleep(0.1)
    with_work.cancel()

asyncio.run(main())
"""


@pytest.mark.fork
def test_a_program_ends_though_work_that_was_left_is_stuck() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVES], cwd=Path(__file__).parents[1], timeout=60
    )
    assert done.returncode == 0


async def test_much_other_work_holds_nothing_up() -> None:
    go_on = threading.Event()
    waiting = [
        asyncio.create_task(in_thread(go_on.wait, name="waits")) for _ in range(100)
    ]
    assert await in_thread(lambda: "done", name="one more") == "done"
    go_on.set()
    assert await asyncio.gather(*waiting) == [True] * 100


async def test_a_cancelled_task_waits_for_work_that_must_not_go_on_behind_it() -> None:
    began, go_on, ended = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(began.set)
        go_on.wait()
        ended.set()

    waits = asyncio.create_task(to_its_end(work, name="restore"))
    await began.wait()
    for _ in range(3):
        waits.cancel()
        await asyncio.sleep(0.01)
    assert not waits.done()

    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waits
    assert ended.is_set()


@pytest.mark.parametrize("run", [in_thread, to_its_end])
async def test_an_error_belongs_to_whoever_waits(run: object) -> None:
    assert callable(run)
    with pytest.raises(ZeroDivisionError):
        await run(lambda: 1 / 0, name="wrong")


async def test_who_cannot_await_waits_inside_and_outside_of_a_loop() -> None:
    async def two() -> int:
        await asyncio.sleep(0)
        return 2

    assert waited_for(two()) == 2
    assert await in_thread(lambda: waited_for(two()), name="without a loop") == 2
