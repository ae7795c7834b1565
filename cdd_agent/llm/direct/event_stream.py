"""Server-sent events, read from bytes as they come: however they are cut, the events
are the same.
"""

from collections.abc import Iterator

LONGEST_EVENT = 8 * 2**20
"""Bytes of one event. A reply's piece has some hundred; what is longer is no reply."""
_BOM = b"\xef\xbb\xbf"


class EventTooLong(Exception):
    """An event, or a line, passed the limit."""


class EventStream:
    """Takes bytes, gives the data of whole events.

    Lines end in LF, CRLF or CR; comments, other fields and a byte order mark are left
    out; the lines of an event's data are joined. What is not UTF-8 is replaced.
    (httpx-sse would do most of it, but its lines have no limit, and it drops an event
    that is not followed by an empty line.)
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0
        """Bytes since the last empty line."""
        self._after_cr = False
        self._first = True

    def feed(self, piece: bytes) -> Iterator[str]:
        """Give what becomes whole with `piece`. Raises `EventTooLong`."""
        if self._after_cr and piece:
            self._after_cr = False
            piece = piece.removeprefix(b"\n")
        if not piece:
            return
        self._after_cr = piece.endswith(b"\r")
        lines = piece.splitlines()
        rest = b"" if piece.endswith((b"\r", b"\n")) else lines.pop()
        for line in lines:
            if (data := self._end_line(line)) is not None:
                yield data
        self._begin_line(rest)

    def end(self) -> Iterator[str]:
        """Give the last event, if no empty line came after it."""
        self._end_line(b"")
        if (data := self._end_event()) is not None:
            yield data

    def _begin_line(self, beginning: bytes) -> None:
        self._size += len(beginning)
        if self._size > LONGEST_EVENT:
            raise EventTooLong
        self._line.append(beginning)

    def _end_line(self, end: bytes) -> str | None:
        """The data of the event that ends with this line, if one does."""
        self._begin_line(end)
        self._size += 1
        line = b"".join(self._line)
        self._line = []
        if self._first:
            self._first, line = False, line.removeprefix(_BOM)
        if not line:
            return self._end_event()
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return None

    def _end_event(self) -> str | None:
        data, self._data, self._size = self._data, [], 0
        return b"\n".join(data).decode(errors="replace") if data else None
