"""Other `cdd`s as processes: their lines are read, and lines are written to them.

A child stops in good order when its standard input is closed. The system closes it when
this process ends, however it ends. A child has this process's whole environment, with
its keys. Other programs are started in `run.py`.
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
"""Seconds without a line, after which a child no longer works. A driven run prints
one more often, see `cli/driven.py`.
"""
_SECOND_CHANCE = 5.0
GRACE = 60.0
"""Seconds for a child that was asked to stop: it restores a step, and waits for its
commands to end.
"""
_KEPT = 4_000
"""Bytes kept of standard error, from its end."""


class BadChild(CddError):
    """A child broke the protocol of lines, and was stopped."""

    refusal = Refusal.PROCESS_FAILED


class ChildEnd(Struct, frozen=True):
    """The end of a child process."""

    exit_code: int
    """Below 0 after a signal."""
    stderr: str
    """The end of standard error."""


class Child:
    """One `cdd` process. `receive` gets each line of its standard output. If it raises
    an error, the child is stopped, and `run` raises that error.
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
        """Run `cdd` with these arguments to its end. Without an `environment`, it has
        that of this process. Raises `CddError` if it cannot be started or breaks the
        protocol.

        A caller that is cancelled stops the child, and waits for its end.
        """
        # -P: without the modules in `cwd`
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
                # Ctrl+C at the terminal is for this process alone
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
                # cancelled once more: the child is stopping already
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([working])
            raise
        if self._fault is None and self._has_half_line and exit_code >= 0:
            # the end of one that was killed says more
            self._fault = BadChild("The run's process ended in the middle of a line")
        if self._fault is not None:
            raise self._fault
        return ChildEnd(exit_code, self._stderr.decode(errors="replace"))

    def send(self, line: bytes) -> None:
        """Write a line to the child's standard input. Does nothing once it is
        stopping.
        """
        if self._process is None or self._process.stdin is None:
            return
        if not self._process.stdin.is_closing():
            self._process.stdin.write(line)

    def stop(self) -> None:
        """Ask the child to stop, and kill it if it does not."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        process.stdin.close()
        asyncio.get_running_loop().call_later(GRACE, _kill, process)

    async def _work(self, process: asyncio.subprocess.Process) -> int:
        await asyncio.gather(self._read_lines(process), self._read_stderr(process))
        return await process.wait()

    async def _read_lines(self, process: asyncio.subprocess.Process) -> None:
        """Hand over each line. After a fault, lines are read and dropped, so that the
        child is not held up while it stops.
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
    """Raises `TimeoutError` after a silence, and `ValueError` for a line that is too
    long.
    """
    with suppress(TimeoutError):
        return await asyncio.wait_for(stdout.readline(), SILENCE)
    # if this process was suspended (Ctrl+Z), the line has been there for long
    return await asyncio.wait_for(stdout.readline(), _SECOND_CHANCE)


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
