"""A server's answer over HTTP as JSON texts, whatever it looks like: bounded, and
without trust in its headers.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import suppress

import httpx
from msgspec.structs import replace

from cdd_agent.llm.direct.event_stream import EventStream, EventTooLong
from cdd_agent.llm.direct.json_values import read_json
from cdd_agent.llm.direct.protocol import NoReply
from cdd_agent.llm.direct.reported_failures import failure_of
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.retry_after import seconds_to_wait

LONGEST_DOCUMENT = 32 * 2**20
"""Bytes of an answer that is one document."""
LONGEST_COMPLAINT = 64 * 2**10
"""Bytes of a refusal that are read."""
_BLANK = b" \t\r\n\xef\xbb\xbf"
_DONE = "[DONE]"


async def documents(pieces: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    """Give the JSON texts of an answer: one an event, one a line, or a single one
    though a stream was asked for.

    Which of them it is shows how it begins: what headers say is often wrong. Raises
    `NoReply` for what is none of them, or has no end.
    """
    start = b""
    texts: EventStream | _Lines | None = None
    try:
        async for piece in pieces:
            if texts is None:
                start += piece
                if not start.strip(_BLANK):
                    continue
                piece = start  # noqa: PLW2901
                match start.lstrip(_BLANK)[:1]:
                    case b"<":
                        raise NoReply("markup")
                    case b"{" | b"[":
                        texts = _Lines()
                    case _:
                        texts = EventStream()
            for text in texts.feed(piece):
                if text.strip() == _DONE and isinstance(texts, EventStream):
                    return
                yield text
        for text in texts.end() if texts is not None else ():
            # otherwise it was cut, as the connection was
            if read_json(text) is not None:
                yield text
    except EventTooLong as error:
        raise NoReply("no end") from error


async def read_complaint(
    response: "httpx.Response", pieces: AsyncIterator[bytes]
) -> Failure:
    """The failure that an answer with another status than 200 stands for; `pieces` are
    those of its body.
    """
    body = b""
    with suppress(httpx.HTTPError):  # the status says enough
        async for piece in pieces:
            body += piece
            if len(body) > LONGEST_COMPLAINT:
                break
    text = body[:LONGEST_COMPLAINT].decode(errors="replace")
    if response.has_redirect_location:
        text = f"it names {response.headers['location']}"
    return replace(
        failure_of(text, response.status_code),
        retry_after=seconds_to_wait(response.headers),
    )


class _Lines:
    """Takes bytes, gives each line of JSON, where the first line is one; else all of it
    as one text, at its end.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._by_lines: bool | None = None
        """Not known before there is a line."""

    def feed(self, piece: bytes) -> Iterator[str]:
        """Give the lines that become whole with `piece`. Raises `NoReply` for what has
        no end.
        """
        self._add(piece if self._parts else piece.lstrip(_BLANK))
        if b"\n" not in self._parts[-1]:
            return
        if self._by_lines is None:
            self._by_lines = (
                read_json(_decoded(self._whole().partition(b"\n")[0])) is not None
            )
        if self._by_lines:
            *lines, rest = self._whole().split(b"\n")
            self._parts, self._size = [], 0
            self._add(rest)
            yield from map(_decoded, filter(bytes.strip, lines))

    def end(self) -> Iterator[str]:
        yield _decoded(self._whole())

    def _whole(self) -> bytes:
        return b"".join(self._parts)

    def _add(self, piece: bytes) -> None:
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > LONGEST_DOCUMENT:
            raise NoReply("no end")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8-sig", errors="replace")
