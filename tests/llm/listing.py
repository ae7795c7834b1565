"""Something that listens on loopback and answers each request with the same bytes:
perhaps a list of models.
"""

import json
import socketserver
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"


def listing(*models: object) -> bytes:
    """A list of models as OpenAI's protocol has it."""
    entries = [
        {"id": model, "object": "model", "created": 1, "owned_by": "me"}
        for model in models
    ]
    return HEAD + json.dumps({"object": "list", "data": entries}).encode()


@contextmanager
def answering(
    pieces: bytes | Iterable[bytes], pause: float = 0.0
) -> Iterator[tuple[int, list[str]]]:
    """The port, and the heads of the requests that came."""
    heads: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b""
            while (line := self.rfile.readline()).strip():
                head += line
            heads.append(head.decode())
            try:
                for piece in [pieces] if isinstance(pieces, bytes) else pieces:
                    self.wfile.write(piece)
                    time.sleep(pause)
            except OSError:
                return  # whoever asked has left

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(
            target=server.serve_forever, args=(0.002,), daemon=True
        )
        thread.start()
        try:
            yield server.server_address[1], heads
        finally:
            server.shutdown()
            thread.join()
