"""A server on loopback that answers by path, perhaps with a list of models."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LIST = {"object": "list", "data": [{"id": "one"}, {"id": "two"}]}
PAGE = "<!doctype html><title>Sign in</title>"
KEY = "sk-0123456789abcdefghij"
Routes = Mapping[str, tuple[int, object]]


@contextmanager
def server(routes: Routes) -> Iterator[tuple[str, list[tuple[str, Mapping[str, str]]]]]:
    """A server that answers by path. `KEY` in a status of 401 opens the path. Yields
    its host and port, and the paths and headers that were asked for.
    """
    asked: list[tuple[str, Mapping[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, dict(self.headers)))
            status, body = routes.get(self.path, (404, "nothing here"))
            if status == 401 and KEY in str(self.headers):
                status, body = 200, LIST
            text = body if isinstance(body, str) else json.dumps(body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.002,), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{http.server_port}", asked
        finally:
            http.shutdown()
            thread.join()
