"""Programs on pseudo-terminals, for tests of the user's input and output."""

import os
import re
import select
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.forked import Forked

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)
import fcntl
import pty
import struct
import termios

PATIENCE = 180.0
CDD = "cdd"
"""The program itself, forked from one that has imported it."""


class Terminal:
    """A program in a folder, on its own terminal. `argv` is its path, or `CDD`, and its
    arguments.
    """

    def __init__(
        self,
        root: Path,
        *argv: str,
        size: tuple[int, int] | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> None:
        """`size` is in columns and rows; without it the terminal reports none. `env` is
        added to the environment of `CDD`; None removes a variable.
        """
        self.seen = b""
        self.code: int | None = None
        self._forked: Forked | None = None
        if argv[0] == CDD:
            self._fork(root, argv[1:], size, env or {})
            return
        assert env is None
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(root)
            os.environ |= {
                "TERM": "xterm-256color",
                "PYTHONPATH": str(Path(__file__).parents[2]),
            }
            if size is not None:
                columns, rows = size
                fcntl.ioctl(
                    0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0)
                )
                # existing variables would override the size
                os.environ |= {"COLUMNS": str(columns), "LINES": str(rows)}
            os.execv(argv[0], argv)

    def _fork(
        self,
        root: Path,
        words: Iterable[str],
        size: tuple[int, int] | None,
        env: Mapping[str, str | None],
    ) -> None:
        self.master, slave = pty.openpty()
        variables: dict[str, str | None] = {**os.environ, "TERM": "xterm-256color"}
        if size is not None:
            resize(self, *size)
            variables |= {"COLUMNS": str(size[0]), "LINES": str(size[1])}
        environment = {
            name: value
            for name, value in {**variables, **env}.items()
            if value is not None
        }
        self._forked = Forked(*words, cwd=root, env=environment, terminal=slave)
        os.close(slave)
        self.pid = self._forked.pid

    def until(self, come: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not come():
            assert time.monotonic() < deadline, self.seen[-2000:]
            self.read()

    def until_ended(self) -> None:
        """Wait for its end, and read its last output, which arrives in pieces and
        perhaps late.
        """
        self.until(self.has_ended)
        with suppress(OSError):  # the other end is closed
            while select.select([self.master], [], [], PATIENCE)[0] and (
                last := os.read(self.master, 65536)
            ):
                self.seen += last

    def read(self) -> None:
        if self.master < 0:
            time.sleep(0.05)
        elif select.select([self.master], [], [], 0.05)[0]:
            with suppress(OSError):  # the program has ended
                self.seen += os.read(self.master, 65536)

    def type(self, line: str) -> None:
        os.write(self.master, line.encode() + b"\r")

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def close(self) -> None:
        os.close(self.master)
        self.master = -1

    def has_ended(self) -> bool:
        if self._forked is not None:
            self.code = self._forked.poll()
        elif self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def end(self) -> None:
        """Kill the program if it still runs."""
        if not self.has_ended():
            if self._forked is not None:
                self._forked.kill()
            else:
                os.kill(self.pid, 9)
                os.waitpid(self.pid, 0)
        if self.master >= 0:
            self.close()

    @property
    def text(self) -> str:
        """The text that it has shown, without colours."""
        return re.sub(
            r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.seen.decode(errors="replace")
        ).replace("\r\n", "\n")


def resize(terminal: Terminal, columns: int, rows: int) -> None:
    """Change the size of the window. The program follows it unless variables override
    it.
    """
    fcntl.ioctl(
        terminal.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0)
    )
