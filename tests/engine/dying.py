"""An engine's work in a process of its own, which ends at one of the points where it
changes the world.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

from tests.crash.driver import SETTINGS
from tests.crash.points import Death, Point, Watch
from tests.support.processes import PROCESSES, take_environment
from tests.support.projects import Sandbox

Do = Literal["run", "skip", "skip keep", "undo", "redo"]
_SECONDS = 120.0
"""Within which the process, and what it started, has to be over."""


@dataclass(frozen=True)
class Orders:
    """One thing to do in a project, and where to die: just before the point of this
    number, if it comes to that.
    """

    root: Path
    flags: Mapping[str, Any]
    do: Do
    at: int
    death: Death
    replies: tuple[str, ...] = ()
    step: int = 0
    """To go back to."""

    def carried_out(self, output: Path) -> int:
        """The exit code: negative for a death."""
        process = PROCESSES.Process(
            target=_carry_out, args=(self, output, dict(os.environ))
        )
        process.start()
        process.join(_SECONDS)
        code = process.exitcode
        if code is None:
            process.kill()
            process.join()
        process.close()
        assert code is not None, f"still running after {_SECONDS:g} s"
        assert code <= 0, f"it ended with {code}:\n{output.read_text()}"
        at_work = [one for one in psutil.process_iter(["cwd"]) if one.info["cwd"]]
        psutil.wait_procs(
            [one for one in at_work if Path(one.info["cwd"]).is_relative_to(self.root)],
            _SECONDS,
        )
        return code


def _carry_out(orders: Orders, output: Path, outside: Mapping[str, str]) -> None:
    with output.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    take_environment(
        {
            name: value
            for name, value in outside.items()
            if not name.startswith(SETTINGS)
        }
    )
    os.environ["HOME"] = str(output.parent)

    def reached(point: Point) -> None:
        if point.number == orders.at:
            watch.die(orders.death)

    watch = Watch(orders.root, reached)
    watch.begin()
    asyncio.run(_work(orders))


async def _work(orders: Orders) -> None:
    engine = (
        Sandbox(orders.root, flags=dict(orders.flags)).replies(*orders.replies).engine()
    )
    step = engine.run.next_step
    match orders.do:
        case "undo":
            await engine.undo(orders.step)
        case "redo":
            await engine.redo()
        case "run":
            assert step is not None
            await engine.run_step(step)
        case _:
            assert step is not None
            await engine.skip(step, "no", keep=orders.do == "skip keep")
    engine.close()
