"""Writes to the terminal in a thread, so that a slow connection does not block the
shell.
"""

import os
import select
from queue import Queue
from threading import Thread

_LONGEST_QUEUE = 30
"""Maximum waiting texts; further callers wait."""


class TerminalWriter:
    """Writes in the background. Text for a closed terminal is dropped."""

    def __init__(self, terminal: int, encoding: str) -> None:
        self._terminal = terminal
        self._encoding = encoding
        self._queue: Queue[str | None] = Queue(_LONGEST_QUEUE)
        self._thread = Thread(target=self._run, name="terminal-output", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        self._queue.put(text)

    def stop(self) -> None:
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
                # The terminal is closed.
                continue


def write_all(file: int, data: bytes) -> None:
    """Write all data, even if another program made the file non-blocking."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(file, rest) :]
        except BlockingIOError:
            select.select([], [file], [])
