"""The mode of a terminal in which each key arrives unchanged and without an echo."""

import fcntl
import select
import sys
import termios
from contextlib import suppress
from typing import Any

# A place in the list that `tcgetattr` returns.
_INPUT, _LOCAL, _CHARACTERS = 0, 3, 6


class TerminalMode:
    """Switches a terminal to single keys, and back."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._previous: list[Any] | None = None

    def enter(self) -> int:
        """Switch to single keys. Return the number of bytes that were typed before, in
        lines: their Enter is a line feed.
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
        """Switch back to the previous mode."""
        if self._previous is None:
            return
        with suppress(termios.error):
            termios.tcsetattr(self._terminal, termios.TCSANOW, self._previous)
        self._previous = None

    def discard_input(self) -> None:
        """Forget what was typed and not read."""
        with suppress(termios.error):
            termios.tcflush(self._terminal, termios.TCIFLUSH)

    def change_nothing(self) -> None:
        """Set the mode that the terminal has: the system stops a program that runs in
        the background. Raises `termios.error`.
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
    """True if the terminal was closed at its other end."""
    poll = select.poll()
    # The system reports a closed terminal without being asked for it.
    poll.register(terminal, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))
