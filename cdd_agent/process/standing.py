"""A program that stays: it is started once, and asked again and again over its
pipes.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import IO, TypeVar

T = TypeVar("T")
_SECONDS_TO_END = 2.0
_WORDS = 4096
"""Bytes of standard error that are kept."""


class ProgramEnded(Exception):
    """It could not be started, has ended, or took too long for an answer; the text is
    what it said of that.
    """


class StandingProgram:
    """Asked by one thread at a time. It ends when its input does: when it is closed,
    when nobody holds it any more, and also when this process is killed.
    """

    def __init__(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], limit: float
    ) -> None:
        """An answer has to begin within `limit` seconds. Raises `ProgramEnded`."""
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ProgramEnded(str(error)) from error
        assert process.stdin is not None
        assert isinstance(process.stdout, BufferedReader)
        assert process.stderr is not None
        self._input, self._output, self._limit = process.stdin, process.stdout, limit
        self._said = bytearray()
        self._hearing = threading.Thread(
            target=_hear, args=(process.stderr, self._said), name="stderr", daemon=True
        )
        self._hearing.start()
        self.close = weakref.finalize(self, _end, process, self._input, self._output)

    def ask(self, question: bytes, read: Callable[[BufferedReader], T]) -> T:
        """Send a question, and let `read` take its answer from what the program writes;
        it raises `EOFError` where that ends too early. Raises `ProgramEnded`.
        """
        try:
            self._input.write(question)
            self._input.flush()
            if not self._answers():
                raise ProgramEnded(f"no answer within {self._limit:.0f} s")
            return read(self._output)
        except (OSError, EOFError) as error:
            raise ProgramEnded(self._last_words()) from error

    def end_input(self) -> None:
        """It ends by itself from now on; `close` waits for that."""
        with contextlib.suppress(OSError):
            self._input.close()

    def _answers(self) -> bool:
        if not hasattr(select, "poll"):  # Windows cannot wait for a pipe
            return True
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        return bool(poll.poll(self._limit * 1000))

    def _last_words(self) -> str:
        self.end_input()
        self._hearing.join(_SECONDS_TO_END)
        return self._said.decode(errors="replace")


def _hear(errors: IO[bytes], said: bytearray) -> None:
    """Keep the end of what the program says, which would have to wait where nobody
    reads it.
    """
    with errors:
        while data := os.read(errors.fileno(), _WORDS):
            said += data
            del said[:-_WORDS]


def up_to(output: BufferedReader, end: bytes) -> bytes:
    """What comes up to an end of one byte, without it. Raises `EOFError`."""
    found = b""
    while (place := (ahead := output.peek()).find(end)) < 0:
        if not ahead:
            raise EOFError
        found += output.read(len(ahead))
    return found + output.read(place + 1)[:-1]


def exactly(output: BufferedReader, size: int) -> bytes:
    """So many bytes. Raises `EOFError`."""
    found = output.read(size)
    if len(found) < size:
        raise EOFError
    return found


def _end(
    process: subprocess.Popen[bytes], questions: IO[bytes], answers: IO[bytes]
) -> None:
    with contextlib.suppress(OSError):
        questions.close()
    try:
        process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    answers.close()
