"""A model server on loopback, for tests: it plays a script, and misbehaves on order.

It speaks chat completions, OpenAI's Responses, Anthropic's Messages and Ollama's own
API, each at its own path.

By hand: `python -m tests.llm.server --script FILE.yaml --port 0` (the file form of
`ScriptedModel`).
"""

import argparse
import json
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from msgspec import structs

from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Model,
    ModelError,
    ModelNotFound,
    RateLimited,
    Request,
    RequestRejected,
    StopReason,
    ToolCall,
)
from cdd_agent.llm.providers import Speaks, endpoint_of
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply, pieces
from tests.llm.wires import (
    chat_end,
    chat_piece,
    message_end,
    message_piece,
    request_of,
    response_end,
    response_piece,
)

STATUS_OF: dict[type[ModelError], int] = {
    AuthenticationFailed: 401,
    ModelNotFound: 404,
    RequestRejected: 400,
    RateLimited: 429,
    BadAnswer: 500,
}
_CODE_OF: dict[type[ModelError], str] = {ContextTooLong: "context_length_exceeded"}
FINISH_REASON_OF = {
    StopReason.STOP: "stop",
    StopReason.LENGTH: "length",
    StopReason.REFUSED: "content_filter",
    StopReason.UNKNOWN: "unheard_of",
}


@dataclass(frozen=True)
class Answer:
    """The server's answer to one request. The defaults are a well-behaved, empty
    reply.
    """

    text: str = ""
    cut_at: tuple[str, ...] = ()
    """The pieces in which the text is sent; none: as a model would write it."""
    finish_reason: str | None = "stop"
    """A word of chat completions; the other protocols say the same in theirs."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Streamed after the text, their pieces interleaved."""
    counts: tuple[Any, Any] | None = None
    """The tokens of prompt and completion that the server reports; None: the words."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: str | None = None
    """Sent as the body instead of a reply."""
    content_type: str = "application/json"
    wait: float = 0.0
    """Seconds before the first byte."""
    pause: float = 0.0
    """Seconds between two pieces of the reply."""
    garbage: bool = False
    """A line that is not JSON comes after the first piece."""
    cut_after: int | None = None
    """The connection drops after this many pieces."""
    chunked: bool = True
    """Whether the body says where it ends. If not, a cut looks like an end."""


def failure(
    status: int,
    message: str = "No.",
    code: str | None = None,
    *,
    headers: dict[str, str] | None = None,
) -> Answer:
    """An error in the form of OpenAI's."""
    error = {"message": message, "type": "error", "param": None, "code": code}
    return Answer(
        status=status, raw=json.dumps({"error": error}), headers=headers or {}
    )


def failure_like(error: ModelError) -> Answer:
    """The answer of a real server where `ScriptedModel` raises `error`."""
    if isinstance(error, ConnectionFailed):
        return Answer("cut", cut_after=0)
    if isinstance(error, ContextTooLong):
        return failure(400, error.message, "context_length_exceeded")
    wait = getattr(error, "retry_after", None)
    headers = {} if wait is None else {"Retry-After": str(wait)}
    status = next(STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF)
    return failure(status, error.message, headers=headers)


def playing(model: ScriptedModel) -> Callable[[Request], Answer]:
    """Answer with what `model` would say."""

    def answer(request: Request) -> Answer:
        try:
            reply = model.next_reply(request)
        except BadAnswer as error:
            return failure_like(error)
        assert isinstance(reply, ScriptedReply)
        if reply.error is not None:
            return replace(failure_like(reply.error), wait=reply.slow)
        pause = 6 / model.pace if model.pace else 0.0
        cut_after = None if reply.cut is None else len(pieces(reply.text[: reply.cut]))
        reason = (
            "tool_calls"
            if reply.tool_calls and reply.stop is StopReason.STOP
            else FINISH_REASON_OF[reply.stop]
        )
        return Answer(
            reply.text,
            finish_reason=reason,
            tool_calls=reply.tool_calls,
            pause=pause,
            cut_after=cut_after,
            wait=reply.slow,
        )

    return answer


def in_order(
    script: Iterable[str | Answer | ModelError],
) -> Callable[[Request], Answer]:
    """Answer the first request with the first entry, and so on."""
    entries = iter(script)

    def answer(request: Request) -> Answer:
        match next(entries, None):
            case None:
                return failure(500, "The script has no reply left.")
            case str(text):
                return Answer(text)
            case ModelError() as error:
                return failure_like(error)
            case Answer() as entry:
                return entry

    return answer


@dataclass
class Recorded:
    """One request as it arrived, and what became of it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    client_left: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def request(self) -> Request:
        return request_of(self.path, self.body)


class LoopbackServer:
    """Serves a script from a thread: `with LoopbackServer(["Hello"]) as server:
    server.url`.
    """

    def __init__(
        self,
        script: (
            Callable[[Request], Answer]
            | ScriptedModel
            | Iterable[str | Answer | ModelError]
        ),
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if isinstance(script, ScriptedModel):
            self.answer = playing(script)
        elif callable(script):
            self.answer = script
        else:
            self.answer = in_order(script)
        self.requests: list[Recorded] = []
        self._http = _HttpServer(("127.0.0.1", port), self)
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.002,), daemon=True
        )

    @property
    def url(self) -> str:
        """The API base, as in `OPENAI_API_BASE`."""
        return f"{self._scheme}://127.0.0.1:{self.port}/v1"

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def join(self) -> None:
        """Wait until somebody else ends the server."""
        self._thread.join()


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    # a client may keep its connection open for longer than the test
    block_on_close = False

    def __init__(self, address: tuple[str, int], owner: LoopbackServer) -> None:
        super().__init__(address, _Handler)
        self.owner = owner

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no error, anything else ends on stderr."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(cast("Any", request), client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # otherwise a reply waits 40 ms for the acknowledgement of its head
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        owner = cast("_HttpServer", self.server).owner
        if self.path == "/api/show":
            self.send_error(404)
            return
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        recorded = Recorded(self.path, dict(self.headers), body)
        owner.requests.append(recorded)
        answer = owner.answer(recorded.request)
        try:
            time.sleep(answer.wait)
            self._send(answer, recorded)
        except (BrokenPipeError, ConnectionResetError):
            recorded.client_left = True
            self.close_connection = True
        finally:
            recorded.ended.set()

    def _send(self, answer: Answer, recorded: Recorded) -> None:
        if answer.raw is not None:
            self._send_whole(answer, answer.raw)
        elif recorded.body.get("stream"):
            self._send_stream(answer, recorded)
        else:
            self._send_whole(answer, json.dumps(_completion(answer, recorded.body)))

    def _send_whole(self, answer: Answer, text: str) -> None:
        content = text.encode()
        self._send_head(
            answer,
            {"Content-Type": answer.content_type, "Content-Length": str(len(content))},
        )
        self.wfile.write(content)

    def _send_stream(self, answer: Answer, recorded: Recorded) -> None:
        framing = (
            {"Transfer-Encoding": "chunked"}
            if answer.chunked
            else {"Connection": "close"}
        )
        self._send_head(answer, {"Content-Type": "text/event-stream", **framing})
        by_lines = recorded.path == "/api/chat"
        for number, line in enumerate(_lines(answer, recorded)):
            if number == answer.cut_after:
                self.close_connection = True
                return
            self._send_piece(
                (f"{line}\n" if by_lines else f"data: {line}\n\n").encode(), answer
            )
            time.sleep(answer.pause)
        if answer.chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _send_head(self, answer: Answer, headers: dict[str, str]) -> None:
        self.send_response(answer.status)
        for name, value in {**headers, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_piece(self, content: bytes, answer: Answer) -> None:
        self.wfile.write(
            b"%x\r\n%s\r\n" % (len(content), content) if answer.chunked else content
        )
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """The base class writes an access log to stderr; `requests` is ours."""


def _lines(answer: Answer, recorded: Recorded) -> Iterator[str]:
    """The `data:` lines of a streamed reply."""
    body, words = recorded.body, _words(answer, recorded.request)
    match recorded.path.rpartition("/")[2]:
        case "responses":
            piece, end = (
                response_piece,
                response_end(answer.tool_calls, answer.finish_reason, *words),
            )
        case "messages":
            piece, end = (
                message_piece,
                message_end(answer.tool_calls, answer.finish_reason, *words),
            )
        case "chat":
            piece, end = (
                chat_piece,
                chat_end(answer.tool_calls, answer.finish_reason, *words),
            )
        case _:
            piece, end = (
                partial(_chunk_of_text, body),
                _end_of_chunks(answer, body, *words),
            )
    for number, text in enumerate(answer.cut_at or pieces(answer.text)):
        yield json.dumps(piece(text))
        if answer.garbage and number == 0:
            yield '{"choices": [{"delta": <b>oops'
    yield from map(json.dumps, end)
    if recorded.path.endswith("/completions"):
        yield "[DONE]"


def _chunk_of_text(body: dict[str, Any], text: str) -> dict[str, Any]:
    return _chunk(body, {"content": text})


def _end_of_chunks(
    answer: Answer, body: dict[str, Any], prompt: Any, completion: Any
) -> Iterator[dict[str, Any]]:
    for piece in _pieces_of_calls(answer.tool_calls):
        yield _chunk(body, {"tool_calls": [piece]})
    if answer.finish_reason is not None:
        yield _chunk(body, {}, answer.finish_reason)
    if body.get("stream_options", {}).get("include_usage"):
        yield {
            **_head(body, "chat.completion.chunk"),
            "choices": [],
            "usage": _usage(prompt, completion),
        }


def _pieces_of_calls(calls: tuple[ToolCall, ...]) -> Iterator[dict[str, Any]]:
    for index, call in enumerate(calls):
        function = {"name": call.name, "arguments": ""}
        yield {"index": index, "id": call.id, "type": "function", "function": function}
    half = {call.id: len(call.arguments) // 2 for call in calls}
    for index, call in enumerate(calls):
        yield {
            "index": index,
            "function": {"arguments": call.arguments[: half[call.id]]},
        }
    for index, call in enumerate(calls):
        yield {
            "index": index,
            "function": {"arguments": call.arguments[half[call.id] :]},
        }


def _chunk(
    body: dict[str, Any], delta: dict[str, Any], finish_reason: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {**_head(body, "chat.completion.chunk"), "choices": [choice]}


def _completion(answer: Answer, body: dict[str, Any]) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text},
        "finish_reason": answer.finish_reason,
    }
    words = _words(answer, request_of("/completions", body))
    return {
        **_head(body, "chat.completion"),
        "choices": [choice],
        "usage": _usage(*words),
    }


def _head(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": kind,
        "created": 1,
        "model": body.get("model", ""),
    }


def _words(answer: Answer, request: Request) -> tuple[Any, Any]:
    """A word is a token here, as in `ScriptedModel`: those of the request, and of the
    answer.
    """
    if answer.counts is not None:
        return answer.counts
    return sum(len(message.content.split()) for message in request.messages), len(
        answer.text.split()
    )


def _usage(prompt: Any, completion: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    if isinstance(prompt, int) and isinstance(completion, int):
        usage["total_tokens"] = prompt + completion
    return usage


def directly(base: str, speaks: Speaks = Speaks.CHAT_COMPLETIONS) -> Model:
    """A model that is asked at an API base over httpx; by default as `openai/…` is."""
    endpoint = endpoint_of("openai/test-model", base)
    assert endpoint is not None
    if speaks is Speaks.OLLAMA_CHAT:
        endpoint = structs.replace(endpoint, base=endpoint.base.removesuffix("/v1"))
    return DirectModel("openai/test-model", structs.replace(endpoint, speaks=speaks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    with LoopbackServer(
        ScriptedModel.from_file(options.script), options.port
    ) as server:
        print(server.url, flush=True)  # noqa: T201
        server.join()


if __name__ == "__main__":
    main()
