"""The terminal mode in which each key arrives at once, without an echo."""

import fcntl
import select
import sys
import termios
from contextlib import suppress
from typing import Any

# Indexes into the list from `tcgetattr`.
_INPUT, _LOCAL, _CHARACTERS = 0, 3, 6


class TerminalMode:
    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._previous: list[Any] | None = None

    def enter(self) -> int:
        """Switch to single keys. Return the number of bytes that were typed in line
        mode: their Enter is a line feed.
        """
        try:
            self._previous = termios.tcgetattr(self._terminal)
            mode = termios.tcgetattr(self._terminal)
        except termios.error:
            return 0
        had_lines = mode[_LOCAL] & termios.ICANON and mode[_INPUT] & termios.ICRNL
        mode[_INPUT] &= ~(
            termios.IXON
            | termios.IXOFF
            | termios.ICRNL
            | termios.INLCR
            | termios.IGNCR
            | termios.ISTRIP
        )
        mode[_LOCAL] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        mode[_CHARACTERS][termios.VMIN] = 1
        mode[_CHARACTERS][termios.VTIME] = 0
        with suppress(termios.error):
            termios.tcsetattr(self._terminal, termios.TCSANOW, mode)
        return _waiting_bytes(self._terminal) if had_lines else 0

    def leave(self) -> None:
        if self._previous is None:
            return
        with suppress(termios.error):
            termios.tcsetattr(self._terminal, termios.TCSANOW, self._previous)
        self._previous = None

    def discard_input(self) -> None:
        with suppress(termios.error):
            termios.tcflush(self._terminal, termios.TCIFLUSH)

    def change_nothing(self) -> None:
        """Set the current mode again: this stops a program in the background. Raises
        `termios.error`.
        """
        mode = termios.tcgetattr(self._terminal)
        termios.tcsetattr(self._terminal, termios.TCSANOW, mode)


def _waiting_bytes(terminal: int) -> int:
    try:
        counted = fcntl.ioctl(terminal, termios.FIONREAD, b"\0" * 4)
    except OSError:
        return 0
    return int.from_bytes(counted, sys.byteorder)


def is_hung_up(terminal: int) -> bool:
    """True if the other end of the terminal is closed."""
    poll = select.poll()
    # `poll` reports a closed terminal without a request.
    poll.register(terminal, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))
