"""Split the bytes of a server's answer into JSON texts.

An answer is an event stream, one JSON text per line, or one JSON document. The headers
are often wrong about that. Keep-alives are removed.
"""

from collections.abc import Iterator
from enum import Enum

from cdd_agent.llm.direct.json_values import read_json
from cdd_agent.llm.direct.protocol import NoReply
from cdd_agent.llm.incomplete_answers import Received
from cdd_agent.pattern import Pattern

LONGEST_TEXT = 32 * 2**20
"""Bytes of one JSON text. A piece of a reply has hundreds, a whole reply more."""
LONGEST_KEEP_ALIVE = 100
"""Characters of a keep-alive in plain text."""
_SHOWN_BYTES = 2_000
_BOM = b"\xef\xbb\xbf"
_FIELD = Pattern(rb"(?:data|event|id|retry)(?::|$)")
"""The beginning of a line in an event stream, except comments."""
_COMMENT = ":"
_EMPTY_OR_MARK = Pattern(r"\{\s*\}|\[[\w\s.:+-]*\]")
_END = "[DONE]"


class AnswerForm(Enum):
    EVENTS = "events"
    LINES = "lines"
    DOCUMENT = "document"


class _Lines:
    """Splits bytes into lines that end in LF, CRLF or CR."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._is_after_cr = False
        self._is_first = True

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the lines that end in `piece`. Raises `NoReply` for an endless line."""
        if self._is_after_cr and piece:
            self._is_after_cr = False
            piece = piece.removeprefix(b"\n")
        if not piece:
            return
        self._is_after_cr = piece.endswith(b"\r")
        for line in piece.splitlines(keepends=True):
            content = line.rstrip(b"\r\n")
            self._size += len(content)
            if self._size > LONGEST_TEXT:
                raise NoReply("a text without an end")
            self._parts.append(content)
            if content != line:
                yield self.end()

    def end(self) -> bytes:
        line = b"".join(self._parts)
        self._parts = []
        self._size = 0
        if self._is_first:
            line = line.removeprefix(_BOM)
            self._is_first = False
        return line


class JsonTexts:
    """Splits one answer into JSON texts.

    The first line that is neither blank nor a keep-alive shows the form. (httpx-sse
    also reads events, but limits no line and drops an event without a final empty
    line.)
    """

    def __init__(self) -> None:
        self._beginning = b""
        self._form: AnswerForm | None = None
        self.is_over = False
        """The end mark of a stream has arrived."""
        self.is_cut = False
        """The answer ended within a JSON text."""
        self.unused = ""
        """The last keep-alive, or the incomplete text."""
        self._lines = _Lines()
        self._parts: list[bytes] = []
        """Lines of the incomplete event or document."""
        self._size = 0

    def received(self, *, is_reply: bool) -> Received:
        """Return the part to show in an error message. A comment, too, means an event
        stream.
        """
        beginning = _decode(self._beginning)
        has_comment = beginning.lstrip().startswith(_COMMENT)
        return Received(
            is_reply=is_reply or self.is_cut,
            is_stream=has_comment or self._form is AnswerForm.EVENTS,
            beginning=beginning,
            unused=self.unused,
        )

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yield the texts that end in `piece`. Raises `NoReply` for markup and for an
        endless text.
        """
        if len(self._beginning) < _SHOWN_BYTES:
            self._beginning += piece[:_SHOWN_BYTES]
        for line in self._lines.feed(piece):
            yield from self._read_line(line)
            if self.is_over:
                return

    def end(self) -> Iterator[str]:
        """Yield the last text, unless the connection broke within it."""
        last = [*self._read_line(self._lines.end()), *self._end_text()]
        for text in last:
            if read_json(text) is not None:
                yield text
            else:
                self.is_cut = True
                self.unused = text

    def _read_line(self, line: bytes) -> Iterator[str]:
        if self._form is None:
            self._form = _form_that_begins(line)
        if self._form is AnswerForm.EVENTS:
            yield from self._read_field(line)
        elif self._form is AnswerForm.DOCUMENT:
            self._add(line)
        else:
            yield from self._without_keep_alives(line)

    def _read_field(self, line: bytes) -> Iterator[str]:
        """Read a line of an event. Only data counts; an empty line ends the event."""
        if not line:
            yield from self._end_text()
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._add(value.removeprefix(b" "))

    def _add(self, line: bytes) -> None:
        self._parts.append(line)
        self._size += len(line) + 1
        if self._size > LONGEST_TEXT:
            raise NoReply("a text without an end")

    def _end_text(self) -> Iterator[str]:
        """Yield the text of the lines so far. Some servers omit the empty lines between
        events; then each line is a text.
        """
        parts = self._parts
        self._parts = []
        self._size = 0
        text = b"\n".join(parts)
        is_event = self._form is AnswerForm.EVENTS
        if is_event and len(parts) > 1 and read_json(_decode(text)) is None:
            for part in parts:
                yield from self._without_keep_alives(part)
        else:
            yield from self._without_keep_alives(text)

    def _without_keep_alives(self, data: bytes) -> Iterator[str]:
        text = _decode(data)
        if self.is_over:
            return
        if text.strip() == _END:
            self.is_over = True
        elif is_keep_alive(text):
            self.unused = text.strip() or self.unused
        else:
            yield text


def _form_that_begins(line: bytes) -> AnswerForm | None:
    """Return the form of an answer, or None if this line does not show it."""
    if _FIELD.match(line):
        return AnswerForm.EVENTS
    text = _decode(line)
    start = text.strip()[:1]
    if start == "<":
        raise NoReply(text)
    if start not in ("{", "[") or is_keep_alive(text):
        return None
    return AnswerForm.DOCUMENT if read_json(text) is None else AnswerForm.LINES


def is_keep_alive(text: str) -> bool:
    """True for a text without any part of a reply: blanks, `null`, a word, a number, a
    time, `{}`, `[]`, a mark such as `[PING]`, a comment of an event stream.
    """
    text = text.strip()
    if text.startswith(_COMMENT):
        return True
    if len(text) > LONGEST_KEEP_ALIVE:
        return False
    if _EMPTY_OR_MARK.fullmatch(text):
        return True
    return not any(mark in text for mark in "{}[]<>")


def _decode(data: bytes) -> str:
    return data.decode(errors="replace")
