"""End commands with everything they started, found by a mark in the environment.

A running command is also noted in a file. If this program is killed, the next process
ends the command by its note (`end_noted`), so that two never work in one place.
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
"""Seconds between asking a process to end and killing it."""
MARK = "CDD_COMMAND"
"""The variable with the mark. A nested command carries all marks around it."""
_ROUNDS = 5
"""Number of searches for processes: one that is ending may start another."""
_NOTE = "running-"
_STARTED_BEFORE = 60.0
"""Maximum seconds between a process's start and its note. Beyond that, the system may
have reused the process number.
"""
_CLOCK = 2.0
"""Maximum difference in seconds between the system's start times and our clock."""


@contextmanager
def noted(folder: Path | None, mark: str) -> Iterator[Callable[[int], None]]:
    """Note a command in the folder, if any, while the block runs. Yields a function
    that receives the process number. Raises `OSError` if the note cannot be written.
    """
    if folder is None:
        yield lambda pid: None
        return
    note = folder / f"{_NOTE}{mark}"
    note.touch()

    def started(pid: int) -> None:
        # on a full disk, the mark alone still identifies the command
        with contextlib.suppress(OSError):
            note.write_text(f"{pid} {time.time()} {platform.node()}")

    try:
        yield started
    finally:
        note.unlink(missing_ok=True)


def end_noted(folder: Path) -> int:
    """End the commands noted in the folder by a process that has ended. Returns how
    many were still running. Raises `BadInput` if one cannot be ended.
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
    """Return the noted process and its children, unless the number was reused. Needed
    because their environment may be hidden or overwritten.
    """
    try:
        pid, noted_at, host = note.read_text().split(maxsplit=2)
        if host != platform.node():
            return []
        leader = psutil.Process(int(pid))
        difference = leader.create_time() - float(noted_at)
        if not -_STARTED_BEFORE < difference < _CLOCK:
            return []
        return _exclude_this_process([leader, *leader.children(recursive=True)])
    except (OSError, ValueError, psutil.Error):
        # the process has ended, or its parent was killed before it wrote the number
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
        # not children of this process, so polling is the only way to wait
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
    """Return the other processes whose readable environment carries the mark."""
    # a cached process number may have been reused
    psutil.process_iter.cache_clear()
    every = psutil.process_iter(["environ"])
    return _exclude_this_process(
        one
        for one in every
        if mark in (one.info["environ"] or {}).get(MARK, "").split()
    )


def _exclude_this_process(
    processes: "Iterable[psutil.Process]",
) -> "list[psutil.Process]":
    """Drop this process and its parents, such as a terminal that a command opened."""
    own_pids = {os.getpid(), *(one.pid for one in psutil.Process().parents())}
    return [one for one in processes if one.pid not in own_pids]


def alive(processes: "Iterable[psutil.Process]") -> "list[psutil.Process]":
    """Return the processes that still run. Zombies do not count."""

    def is_alive(one: psutil.Process) -> bool:
        try:
            return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    return [one for one in processes if is_alive(one)]
