"""Providers on loopback, as strict as the real ones: they refuse what those refuse, and
bill as they do.

Each simulator plays a list of `Said`, one a request, and keeps what it was sent. A
token is a character of JSON here.
"""

import json
import re
import threading
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """The simulated model's answer to one request; `calls` are names of tools and their
    arguments.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, Json], ...] = ()
    stop: str | None = None
    """The provider's own word; None: the one that fits."""


@dataclass(frozen=True)
class Bill:
    """The provider's bill for one call, in tokens."""

    plain: int = 0
    cached: int = 0
    written: int = 0
    completion: int = 0
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        return self.plain + self.cached + self.written


class Refused(Exception):
    """The request is not as the provider wants it."""

    def __init__(self, message: str, status: int = 400, **body: object) -> None:
        super().__init__(message)
        self.message, self.status, self.body = message, status, body


def expect(holds: object, message: str, status: int = 400) -> None:
    if not holds:
        raise Refused(message, status)


@dataclass(frozen=True)
class Sent:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: Json


@dataclass
class Simulator:
    """The part that all have in common: it listens, plays the script, and writes
    events.
    """

    script: list[Said]
    sent: list[Sent] = field(default_factory=list)
    bills: list[Bill] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    number: int = field(default_factory=count(1).__next__)
    """No two give the same ids and signatures."""
    opaque: list[str] = field(default_factory=list)
    """Things that were given and that only the model which made them can read:
    signatures, encrypted thoughts.
    """

    def check(self, sent: Sent) -> None:
        """Raises `Refused`."""
        raise NotImplementedError

    def answer(self, sent: Sent, said: Said) -> Iterator[str]:
        """The lines of the stream of events."""
        raise NotImplementedError

    def get(self, path: str) -> Json | None:
        """Its answer about itself; None: there is nothing at that address."""
        del path

    def refusal(self, refused: Refused) -> Json:
        return {
            "error": {
                "message": refused.message,
                "type": "invalid_request_error",
                **refused.body,
            }
        }

    def __enter__(self) -> Self:
        simulator = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # otherwise a reply waits 40 ms for the acknowledgement of its head
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                sent = Sent(self.path, headers, json.loads(self.rfile.read(length)))
                status, kind, data = simulator.handle(sent)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                said = simulator.get(self.path)
                data = json.dumps(said).encode()
                self.send_response(404 if said is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Tests say what they saw."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.002}
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def handle(self, sent: Sent) -> tuple[int, str, bytes]:
        """Status, content type and body of the answer."""
        self.sent.append(sent)
        try:
            self.check(sent)
        except Refused as refused:
            self.refusals.append(refused.message)
            return (
                refused.status,
                "application/json",
                json.dumps(self.refusal(refused)).encode(),
            )
        said = self.script[len(self.bills)]
        return 200, "text/event-stream", "".join(self.answer(sent, said)).encode()


def event(data: Json, name: str = "") -> str:
    """One server-sent event."""
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"


def pieces(text: str, size: int = 7) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def expect_picture(media_type: str, data: str, *, largest: int = 20 * 2**20) -> None:
    """Raises `Refused` for what is no picture of a kind that providers take, or is
    called another kind than it is.
    """
    expect(media_type in _MARKS, f"Invalid image media type: {media_type}")
    expect(
        len(data) <= largest,
        f"image exceeds {largest // 2**20} MB maximum: {len(data)} bytes > {largest}"
        " bytes",
    )
    try:
        content = b64decode(data, validate=True)
    except ValueError:
        raise Refused("image.source.base64: invalid base64 data") from None
    expect(
        re.match(_MARKS[media_type], content, re.DOTALL),
        f"The image does not match the media type {media_type}",
    )


_MARKS = {
    "image/png": rb"\x89PNG\r\n\x1a\n",
    "image/jpeg": rb"\xff\xd8\xff",
    "image/gif": rb"GIF8[79]a",
    "image/webp": rb"RIFF....WEBP",
}


def expect_data_url(url: str) -> None:
    match = re.fullmatch(r"data:([\w/]+);base64,(.*)", url, re.DOTALL)
    if match is None:
        raise Refused("Invalid image_url: expected a valid URL")
    expect_picture(match[1], match[2])


def size(value: object) -> int:
    """Tokens of a value."""
    return len(json.dumps(value))


class PrefixCache:
    """A provider's cache of prompts: prefixes that end at a block."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def longest(self, blocks: list[str], ends: Iterable[int]) -> int:
        """How many of the blocks, up to one of `ends`, are known as a prefix."""
        return max(
            (end for end in ends if _key(blocks[:end]) in self._known), default=0
        )

    def remember(self, blocks: list[str], ends: Iterable[int]) -> None:
        self._known |= {_key(blocks[:end]) for end in ends}


def _key(blocks: list[str]) -> str:
    return "\n".join(blocks)
