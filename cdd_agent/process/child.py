"""Other `cdd`s as processes of their own: their lines are heard, and they stop when
whoever began them does.

They have all of this process's environment, its keys, too. Commands of others are
started in `run.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from msgspec import Struct

from cdd_agent.errors import BadInput

_GRACE = 60.0
"""Seconds for a process that was told to stop: it puts a step back, and waits for its
own commands to end.
"""
_LONGEST = 256 * 1024 * 1024
"""Bytes of a line."""
_WORDS = 4_000
"""Bytes of standard error that are kept: its end."""
_KILLED = -9


class _Begun(Struct):
    """A process, by the pipes to it."""

    stdin: int
    """0 when it was closed."""
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    status: asyncio.StreamReader
    """Its process id, and at its end its exit code, a line each."""
    ends: Sequence[asyncio.BaseTransport]
    """Of the three that are read."""

    def stop(self) -> None:
        """Tell it to stop, if it goes on."""
        if self.stdin:
            os.close(self.stdin)
            self.stdin = 0

    def close(self) -> None:
        """The same, and nothing more is read."""
        self.stop()
        for end in self.ends:
            end.close()


class Children:
    """Begins `cdd`s: forks of one that has imported what they need (`cli/child.py`),
    made when the first is begun.
    """

    def __init__(self) -> None:
        self._asks: socket.socket | None = None
        self._forking: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def run(
        self, arguments: Sequence[str], cwd: Path, hear: Callable[[bytes], None]
    ) -> tuple[int, str]:
        """Run `cdd` with these arguments; `hear` is given each line of its standard
        output, and returns at once.

        Returns the exit code, or less than 0 for one that was killed, and the end of
        standard error. Whoever is cancelled tells it to stop, and waits until it has.
        It is told by the end of its standard input, which comes also when this process
        is killed: it has to watch for that (`stop_with_stdin`).
        """
        beginning, stopped = (
            asyncio.ensure_future(self._begin_in_turn(arguments, cwd)),
            False,
        )
        try:
            await asyncio.shield(beginning)
        except asyncio.CancelledError:
            stopped = True
        begun, pid = await beginning
        words = bytearray()

        async def read_words() -> None:
            while data := await begun.stderr.read(_WORDS):
                words.extend(data)
                del words[:-_WORDS]

        async def read_lines() -> None:
            while line := await begun.stdout.readline():
                hear(line)

        async def read_status() -> int:
            code = await begun.status.readline()
            return int(code) if code else _KILLED

        reading = asyncio.gather(read_status(), read_lines(), read_words())
        try:
            if stopped:
                raise asyncio.CancelledError
            code, _, _ = await asyncio.shield(reading)
        except BaseException:
            begun.stop()
            deadline = asyncio.get_running_loop().time() + _GRACE
            while not reading.done():
                left = max(deadline - asyncio.get_running_loop().time(), 0)
                # cancelled once more: it is stopping already
                with suppress(asyncio.CancelledError):
                    if not (await asyncio.wait([reading], timeout=left))[0]:
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                        await asyncio.wait([reading])
            raise
        finally:
            begun.close()
        return code, words.decode(errors="replace")

    async def _begin_in_turn(
        self, arguments: Sequence[str], cwd: Path
    ) -> tuple[_Begun, int]:
        """With its process id. Requests that came together could not be told apart."""
        async with self._turn:
            begun = await self._begin(arguments, cwd)
            pid = await begun.status.readline()
        if not pid:
            begun.close()
            raise BadInput(
                "No process could be begun: it has ended before it was there"
            )
        return begun, int(pid)

    async def _begin(self, arguments: Sequence[str], cwd: Path) -> _Begun:
        if not hasattr(os, "fork"):
            raise BadInput(
                "Several tickets at once take a system that can fork: Linux, macOS, WSL"
            )
        if self._asks is None:
            self._asks, theirs = socket.socketpair()
            with theirs:
                self._forking = await asyncio.create_subprocess_exec(
                    # -P: not the project's
                    *(
                        sys.executable,
                        "-P",
                        "-m",
                        "cdd_agent.cli.child",
                        str(theirs.fileno()),
                    ),
                    pass_fds=(theirs.fileno(),),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    # Ctrl+C at the terminal is for this process to pass on
                    start_new_session=True,
                )
        with ExitStack() as theirs_too:
            pipes = [os.pipe() for _ in range(4)]
            ends = [pipes[0][0], *(write for _, write in pipes[1:])]
            for end in ends:
                theirs_too.callback(os.close, end)
            request = json.dumps({"arguments": [*arguments], "cwd": str(cwd)}).encode()
            try:
                socket.send_fds(self._asks, [request], ends)
            except OSError as error:
                raise BadInput(
                    f"No process could be begun: {error.strerror or error}"
                ) from error
        readers = [await _reader(read) for read, _ in pipes[1:]]
        stdout, stderr, status = (reader for reader, _ in readers)
        return _Begun(pipes[0][1], stdout, stderr, status, [end for _, end in readers])

    async def close(self) -> None:
        """No more are begun; those that go on are not touched."""
        if self._asks is not None and self._forking is not None:
            self._asks.close()
            await self._forking.wait()


async def _reader(pipe: int) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST, loop=loop)
    file = os.fdopen(pipe, "rb", 0)
    end, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), file
    )
    return reader, end


def stop_with_stdin() -> None:
    """From now on the end of standard input is a Ctrl+C: whoever began this process is
    gone, or wants it to stop.
    """
    if threading.current_thread() is threading.main_thread():
        # also where it was begun in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def watch() -> None:
        with suppress(OSError, ValueError):
            while os.read(0, 4096):
                pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, name="stdin", daemon=True).start()
