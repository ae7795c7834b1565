"""An end to what commands started: they are known by a mark in their environment,
wherever they went.

A command that would outlive this program, if it is killed, is noted in a file while it
runs. Whoever takes up the work ends it by that note (`end_noted`), so that never two
are at work in one place.
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

GRACE = 2.0
"""Seconds between asking a process to end and ending it."""
MARK = "CDD_COMMAND"
"""The variable that has the mark. A command that is started by another one has both
marks.
"""
_ROUNDS = 5
"""How often what a command started is looked for: what is being ended may start more.
"""
_NOTE = "running-"
_STARTED_BEFORE = 60.0
"""Seconds for which a process can have been there when it was noted. The system may
give its number to another one, but only after its end.
"""
_CLOCK = 2.0
"""Seconds by which the system's time of a process' start may differ from ours."""


@contextmanager
def noted(folder: Path | None, mark: str) -> Iterator[Callable[[int], None]]:
    """Keep a note of a command with this mark in the folder, if there is one. What
    comes back is to be given the number of its process, once it is started. Raises
    `OSError` where the note cannot be made.
    """
    if folder is None:
        yield lambda pid: None
        return
    note = folder / f"{_NOTE}{mark}"
    note.touch()

    def started(pid: int) -> None:
        # a disk that is full: it is known by its mark
        with contextlib.suppress(OSError):
            note.write_text(f"{pid} {time.time()} {platform.node()}")

    try:
        yield started
    finally:
        note.unlink(missing_ok=True)


def end_noted(folder: Path) -> int:
    """End the commands that are noted in the folder, with all that they started, and
    return how many still ran. To be called when whoever has noted them is gone. Raises
    `BadInput` where one cannot be ended.
    """
    ended = 0
    for note in folder.glob(f"{_NOTE}*"):
        mark = note.name.removeprefix(_NOTE)
        family = [*_noted_process(note), *marked(mark)]
        ended += bool(alive(family))
        if left := end_marked(mark, family):
            numbers = ", ".join(str(one.pid) for one in left)
            raise BadInput(
                "A command of the run that was killed is still at work and cannot be"
                f" ended: process {numbers}",
                hint="End it, then go on: two at once would get into each other's way.",
            )
        remove(note)
    return ended


def _noted_process(note: Path) -> "list[psutil.Process]":
    """The noted process and its children, if it is still that one. Its environment may
    be hidden, or overwritten.
    """
    try:
        pid, when, host = note.read_text().split(maxsplit=2)
        leader = psutil.Process(int(pid))
        if (
            host == platform.node()
            and -_STARTED_BEFORE < leader.create_time() - float(when) < _CLOCK
        ):
            return _others([leader, *leader.children(recursive=True)])
    except (OSError, ValueError, psutil.Error):
        # who ran it was killed before that was written; it has ended
        pass
    return []


def end_marked(
    mark: str, family: "Iterable[psutil.Process]" = ()
) -> "list[psutil.Process]":
    """End these processes, and whatever carries the mark. Returns those that cannot be
    ended.
    """
    left: list[psutil.Process] = []
    for _ in range(_ROUNDS):
        left = alive({*family, *marked(mark)})
        if not left:
            break
        for one in left:
            with contextlib.suppress(psutil.Error):
                one.terminate()
        # they are nobody's children here: there is nothing to wait for but their end
        until = time.monotonic() + GRACE
        while (left := alive(left)) and time.monotonic() < until:
            time.sleep(0.02)
        for one in left:
            with contextlib.suppress(psutil.Error):
                one.kill()
    return left


def marked(mark: str) -> "list[psutil.Process]":
    """The others whose environment carries the mark, as far as the system lets one
    look.
    """
    # a number that it has seen may be another process's by now
    psutil.process_iter.cache_clear()
    every = psutil.process_iter(["environ"])
    return _others(
        one
        for one in every
        if mark in (one.info["environ"] or {}).get(MARK, "").split()
    )


def _others(processes: "Iterable[psutil.Process]") -> "list[psutil.Process]":
    """Without this process and those that it runs in, such as a terminal that a command
    has opened.
    """
    own = {os.getpid(), *(one.pid for one in psutil.Process().parents())}
    return [one for one in processes if one.pid not in own]


def alive(processes: "Iterable[psutil.Process]") -> "list[psutil.Process]":
    """Without those that ended and only wait for somebody to notice."""

    def is_alive(one: psutil.Process) -> bool:
        try:
            return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    return [one for one in processes if is_alive(one)]
