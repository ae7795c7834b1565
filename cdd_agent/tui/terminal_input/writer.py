"""Writes to the terminal in a thread: a slow line does not hold up the shell."""

import os
import select
from queue import Queue
from threading import Thread

_LONGEST_QUEUE = 30
"""Texts that wait at most. After that, who writes waits too."""


class TerminalWriter:
    """Takes what is written also when the terminal is gone: then it is dropped."""

    def __init__(self, terminal: int, encoding: str) -> None:
        self._terminal = terminal
        self._encoding = encoding
        self._queue: Queue[str | None] = Queue(_LONGEST_QUEUE)
        self._thread = Thread(target=self._run, name="terminal-output", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        self._queue.put(text)

    def stop(self) -> None:
        """Write what waits, and return when that is done."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            text = self._queue.get()
            if text is None:
                return
            try:
                write_all(self._terminal, text.encode(self._encoding, "replace"))
            except OSError:
                # The terminal is gone.
                continue


def write_all(file: int, data: bytes) -> None:
    """Write all of it, also where another program has made the file non-blocking."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(file, rest) :]
        except BlockingIOError:
            select.select([], [file], [])
