"""A git remote over HTTP on this machine that wants a name and a password: git's own
`http-backend`.
"""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAME, PASSWORD = "ann", "a word that is right"


class Handler(BaseHTTPRequestHandler):
    """CGI, as far as git needs it."""

    protocol_version = "HTTP/1.1"

    def __init__(self, folder: Path, *rest: object) -> None:
        self.folder = folder
        super().__init__(*rest)  # type: ignore[arg-type]  # as the server gives them

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(body)

    def answer(self, body: bytes) -> None:
        right = "Basic " + base64.b64encode(f"{NAME}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != right:
            self.reply(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
            return
        path, _, query = self.path.partition("?")
        env = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "REMOTE_USER": NAME,
        }
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            env=env,
            capture_output=True,
            check=True,
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.reply(int(fields.pop("Status", "200").split()[0]), fields, content)

    def reply(self, status: int, fields: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    # all of them
    def log_message(self, *args: object) -> None:  # type: ignore[override]
        """Nobody reads along."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address under which the repositories in a folder are."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, folder))
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
