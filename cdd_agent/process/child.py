"""Another `cdd` as a process of its own: whose lines are heard, and which stops when whoever began it does.

It has all of this process's environment, its keys, too. Commands of others are started in `run.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

_GRACE = 60.0
"""Seconds for a process that was told to stop: it puts a step back, and waits for its own commands to end."""
_LONGEST = 256 * 1024 * 1024
"""Bytes of a line."""
_WORDS = 4_000
"""Bytes of standard error that are kept: its end."""


async def run_cdd(arguments: Sequence[str], cwd: Path, hear: Callable[[bytes], None]) -> tuple[int, str]:
    """Run `cdd` with these arguments; `hear` is given each line of its standard output, and returns at once.

    Returns the exit code, negative for a signal, and the end of standard error. Whoever is cancelled tells it to stop,
    and waits until it has. It is told by the end of its standard input, which comes also when this process is killed:
    it has to watch for that (`stop_with_stdin`).
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "cdd_agent", *arguments),  # -P: nothing is imported from the project
        cwd=cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_LONGEST,
        start_new_session=os.name == "posix",  # Ctrl+C at the terminal is for this process to pass on
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    words = bytearray()

    async def read_words(stderr: asyncio.StreamReader) -> None:
        while data := await stderr.read(_WORDS):
            words.extend(data)
            del words[:-_WORDS]

    async def read_lines(stdout: asyncio.StreamReader) -> None:
        while line := await stdout.readline():
            hear(line)

    reading = asyncio.gather(read_lines(process.stdout), read_words(process.stderr), process.wait())
    try:
        await asyncio.shield(reading)
    except BaseException:
        process.stdin.close()
        deadline = asyncio.get_running_loop().time() + _GRACE
        while not reading.done():
            with suppress(asyncio.CancelledError):  # cancelled once more: it is stopping already
                left = deadline - asyncio.get_running_loop().time()
                if not (await asyncio.wait([reading], timeout=max(left, 0)))[0]:
                    process.kill()
                    await asyncio.wait([reading])
        raise
    code = process.returncode
    assert code is not None
    return code, words.decode(errors="replace")


def stop_with_stdin() -> None:
    """From now on the end of standard input is a Ctrl+C: whoever began this process is gone, or wants it to stop."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was begun in the background

    def watch() -> None:
        with suppress(OSError, ValueError):
            while os.read(0, 4096):
                pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, name="stdin", daemon=True).start()
