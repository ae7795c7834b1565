"""Run other `cdd`s as child processes and exchange lines with them.

A child stops cleanly when its standard input closes. The system closes it when this
process ends, however it ends. A child inherits the whole environment, including keys.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from cdd_agent.errors import CddError
from cdd_agent.refusals.kinds import Refusal

LONGEST_LINE = 32 * 1024 * 1024
"""Bytes."""
SILENCE = 180.0
"""Seconds without a line after which a child counts as hung. A driven run prints more
often, see `cli/driven.py`.
"""
_SECOND_CHANCE = 5.0
GRACE = 60.0
"""Seconds for a child to stop: it restores its step and ends its commands."""
_KEPT = 4_000
"""Bytes of standard error to keep, from its end."""


class BadChild(CddError):
    refusal = Refusal.PROCESS_FAILED


class ChildEnd(Struct, frozen=True):
    exit_code: int
    """Negative after a signal."""
    stderr: str


class Child:
    """One `cdd` process. `receive` gets each line of its standard output. If it raises,
    the child is stopped and `run` raises the same error.
    """

    def __init__(self, receive: Callable[[bytes], None]) -> None:
        self._receive = receive
        self._process: asyncio.subprocess.Process | None = None
        self._fault: Exception | None = None
        self._has_half_line = False
        self._stderr = bytearray()

    async def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str] | None = None,
    ) -> ChildEnd:
        """Run `cdd` with these arguments to its end. `environment` replaces that of
        this process. Cancelling stops the child and waits for its end.

        Raises `CddError` if the child cannot be started or breaks the protocol.
        """
        # With `-P`, do not import modules from `cwd`
        command = (sys.executable, "-P", "-m", "cdd_agent", *arguments)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env=environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LONGEST_LINE,
                # Ctrl+C at the terminal must reach only this process
                start_new_session=True,
            )
        except OSError as error:
            why = error.strerror or error
            raise BadChild(f"Cannot start a process: {why}") from error
        self._process = process
        working = asyncio.ensure_future(self._work(process))
        try:
            exit_code = await asyncio.shield(working)
        except BaseException:
            self.stop()
            while not working.done():
                # cancelled again: the child is already stopping
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([working])
            raise
        if self._fault is None and self._has_half_line and exit_code >= 0:
            # after a kill, the exit code explains more
            self._fault = BadChild("The run's process ended in the middle of a line")
        if self._fault is not None:
            raise self._fault
        return ChildEnd(exit_code, self._stderr.decode(errors="replace"))

    def send(self, line: bytes) -> None:
        """Write a line to the child. Does nothing once it is stopping."""
        if self._process is None or self._process.stdin is None:
            return
        if not self._process.stdin.is_closing():
            self._process.stdin.write(line)

    def stop(self) -> None:
        """Ask the child to stop. Kill it after `GRACE`."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        process.stdin.close()
        asyncio.get_running_loop().call_later(GRACE, _kill, process)

    async def _work(self, process: asyncio.subprocess.Process) -> int:
        await asyncio.gather(self._read_lines(process), self._read_stderr(process))
        return await process.wait()

    async def _read_lines(self, process: asyncio.subprocess.Process) -> None:
        """Receive each line. After a fault, drain and drop lines so that the child can
        stop.
        """
        assert process.stdout is not None
        while True:
            try:
                line = await _next_line(process.stdout)
            except ValueError:
                self._fail(f"a line of more than {LONGEST_LINE:,} bytes")
                continue
            except TimeoutError:
                self._fail(f"no line for {SILENCE:g} seconds")
                continue
            if not line:
                return
            if not line.endswith(b"\n"):
                self._has_half_line = True
            elif self._fault is None:
                try:
                    self._receive(line)
                except Exception as error:  # noqa: BLE001  # `run` raises it
                    self._fault = error
                    self.stop()

    async def _read_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(_KEPT):
            self._stderr.extend(data)
            del self._stderr[:-_KEPT]

    def _fail(self, what: str) -> None:
        if self._fault is None:
            self._fault = BadChild(f"The run's process was stopped: it printed {what}")
            self.stop()


async def _next_line(stdout: asyncio.StreamReader) -> bytes:
    """Raises `TimeoutError` after a silence and `ValueError` for a line that is too
    long.
    """
    with suppress(TimeoutError):
        return await asyncio.wait_for(stdout.readline(), SILENCE)
    # after a suspension (Ctrl+Z) the line may already be waiting
    return await asyncio.wait_for(stdout.readline(), _SECOND_CHANCE)


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
