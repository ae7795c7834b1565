"""Reads bytes as the shell's driver does, with a time of its own."""

from collections.abc import Sequence
from math import inf

from textual import events
from textual.message import Message

from cdd_agent.tui.terminal_input.parser import TerminalParser

Piece = bytes | float
"""Bytes that are read at once, or seconds in which nothing comes."""


def read(pieces: Sequence[Piece]) -> list[Message]:
    """Return the events of all pieces, and of the silence behind them."""
    parser, now = TerminalParser(), 0.0
    found: list[Message] = []
    for piece in (*pieces, inf):
        if isinstance(piece, bytes):
            found += parser.feed(piece, now)
            continue
        end = now + piece
        while parser.deadline < end:
            now = parser.deadline
            found += parser.tick(now)
        now = end
    return found


def described(messages: Sequence[Message]) -> list[str]:
    """Each event in words, by all that makes a difference to the shell."""
    return [_in_words(message) for message in messages]


def _in_words(message: Message) -> str:
    if isinstance(message, events.Key):
        typed = message.character if message.is_printable else None
        return f"{message.key} {typed!r}"
    if isinstance(message, events.Paste):
        return f"paste {message.text!r}"
    if isinstance(message, events.MouseEvent):
        return f"{message!r} {message.shift} {message.meta} {message.ctrl}"
    fields = getattr(message, "__dict__", {})
    shown = {
        name: value
        for name, value in fields.items()
        if not name.startswith("_") and name != "time"
    }
    return f"{type(message).__name__} {shown}"


def keys(*pieces: Piece) -> list[str]:
    """The names of the keys alone."""
    return [message.key for message in read(pieces) if isinstance(message, events.Key)]


def pastes(*pieces: Piece) -> list[str]:
    """The texts of the pastes alone."""
    return [
        message.text for message in read(pieces) if isinstance(message, events.Paste)
    ]
