"""Ending commands with everything they started. Their processes are found by a mark in
the environment.

A running command is noted in a file. If this program is killed, the next process ends
the command by that note (`end_noted`), so that two never work in one place.
"""

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import remove
from cdd_agent.refusals.kinds import Refusal

GRACE = 2.0
"""Seconds between asking a process to end and ending it."""
MARK = "CDD_COMMAND"
"""The variable with the mark. A command that another one starts has both marks."""
_ROUNDS = 5
"""The number of searches for processes: a process that is being ended may start
another.
"""
_NOTE = "running-"
_STARTED_BEFORE = 60.0
"""The largest time in seconds between the start of a process and its note. The system
may give its number to another process later.
"""
_CLOCK = 2.0
"""The largest difference in seconds between the system's start time of a process and
our clock.
"""


@contextmanager
def noted(folder: Path | None, mark: str) -> Iterator[Callable[[int], None]]:
    """Note a command with this mark in the folder, if there is one, while the block
    runs. Yields a function that receives the process number. Raises `OSError` if the
    note cannot be written.
    """
    if folder is None:
        yield lambda pid: None
        return
    note = folder / f"{_NOTE}{mark}"
    note.touch()

    def started(pid: int) -> None:
        # on a full disk the command is found by its mark alone
        with contextlib.suppress(OSError):
            note.write_text(f"{pid} {time.time()} {platform.node()}")

    try:
        yield started
    finally:
        note.unlink(missing_ok=True)


def end_noted(folder: Path) -> int:
    """End the commands that are noted in the folder. Returns how many were still
    running. The process that noted them must have ended. Raises `BadInput` if a command
    cannot be ended.
    """
    ended = 0
    for note in folder.glob(f"{_NOTE}*"):
        mark = note.name.removeprefix(_NOTE)
        family = [*_noted_process(note), *marked(mark)]
        ended += bool(alive(family))
        remaining = end_marked(mark, family)
        if remaining:
            numbers = ", ".join(str(process.pid) for process in remaining)
            raise BadInput(
                "A command of the killed run is still running and cannot be ended:"
                f" process {numbers}",
                hint="End that process, then try again.",
                refusal=Refusal.IN_USE,
            )
        remove(note)
    return ended


def _noted_process(note: Path) -> "list[psutil.Process]":
    """Return the noted process and its children, if the number still belongs to it. Its
    environment may be hidden or overwritten.
    """
    try:
        pid, noted_at, host = note.read_text().split(maxsplit=2)
        if host != platform.node():
            return []
        leader = psutil.Process(int(pid))
        difference = leader.create_time() - float(noted_at)
        if not -_STARTED_BEFORE < difference < _CLOCK:
            return []
        return _others([leader, *leader.children(recursive=True)])
    except (OSError, ValueError, psutil.Error):
        # it has ended, or its parent was killed before the number was noted
        return []


def end_marked(
    mark: str, family: "Iterable[psutil.Process]" = ()
) -> "list[psutil.Process]":
    """End these processes and all with the mark. Returns those that cannot be ended."""
    remaining: list[psutil.Process] = []
    for _ in range(_ROUNDS):
        remaining = alive({*family, *marked(mark)})
        if not remaining:
            break
        for process in remaining:
            with contextlib.suppress(psutil.Error):
                process.terminate()
        # they are no children of this process, so the only way to wait is to poll
        until = time.monotonic() + GRACE
        remaining = alive(remaining)
        while remaining and time.monotonic() < until:
            time.sleep(0.02)
            remaining = alive(remaining)
        for process in remaining:
            with contextlib.suppress(psutil.Error):
                process.kill()
    return remaining


def marked(mark: str) -> "list[psutil.Process]":
    """Return the other processes with the mark in their environment, as far as it can
    be read.
    """
    # a cached number may belong to another process
    psutil.process_iter.cache_clear()
    every = psutil.process_iter(["environ"])
    return _others(
        one
        for one in every
        if mark in (one.info["environ"] or {}).get(MARK, "").split()
    )


def _others(processes: "Iterable[psutil.Process]") -> "list[psutil.Process]":
    """Return the processes without this one and its parents, such as a terminal that a
    command has opened.
    """
    own_pids = {os.getpid(), *(one.pid for one in psutil.Process().parents())}
    return [one for one in processes if one.pid not in own_pids]


def alive(processes: "Iterable[psutil.Process]") -> "list[psutil.Process]":
    """Return the processes that have not ended. One that only waits to be collected has
    ended.
    """

    def is_alive(one: psutil.Process) -> bool:
        try:
            return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    return [one for one in processes if is_alive(one)]
