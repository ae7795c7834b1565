"""Measure the time from a typed key to its echo while a reply streams: the shell
against a minimal Textual app with a Log.

Both run on a pseudo-terminal of 120x40. In one case, 1 MB arrives as fast as it is
read. In the other, 200 characters a second arrive over a simulated line of 30 kB/s with
a round trip of 100 ms: output beyond its capacity waits in the program.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.transcript import SECTION

KEYS = "QXYZVW"
"""Letters that are neither in the reply nor in the terminal's sequences."""
TYPED = 30
BEGUN = 5_000
"""Bytes after which the reply counts as begun."""
PATIENCE = 60.0
_LOG = """
import asyncio, sys
from pathlib import Path
from random import Random
from textual.app import App
from textual.widgets import Input, Log
class Logging(App):
    def compose(self):
        yield Log()
        yield Input(placeholder="READY")
    def on_mount(self):
        self.query_one(Input).focus()
    def on_input_submitted(self):
        self.query_one(Input).clear()
        self.run_worker(self.stream())
    async def stream(self):
        text, pace = Path(sys.argv[1]).read_text(), float(sys.argv[2])
        random = Random(1)
        while text:
            size = 4 if pace else random.randint(20, 200)
            self.query_one(Log).write(text[:size])
            text = text[size:]
            await asyncio.sleep(size / pace if pace else 0)
Logging().run()
"""


@dataclass
class Line:
    """A terminal at the end of a line: the program's output arrives delayed and at a
    limited rate.
    """

    master: int
    bytes_a_second: float
    way: float
    """Seconds in one direction."""
    _free_at: float = 0.0
    _outward: deque[tuple[float, bytes]] = field(default_factory=deque)
    _inward: deque[tuple[float, bytes]] = field(default_factory=deque)

    def type(self, keys: str) -> None:
        self._inward.append((time.perf_counter() + self.way, keys.encode()))

    def come(self) -> bytes:
        """Return new output; waits a moment for it."""
        now = time.perf_counter()
        while self._inward and self._inward[0][0] <= now:
            os.write(self.master, self._inward.popleft()[1])
        if now >= self._free_at and select.select([self.master], [], [], 0.001)[0]:
            data = os.read(self.master, 1024)
            self._free_at = max(now, self._free_at) + len(data) / self.bytes_a_second
            self._outward.append((self._free_at + self.way, data))
        elif now < self._free_at:
            time.sleep(0.0005)
        come = b""
        while self._outward and self._outward[0][0] <= time.perf_counter():
            come += self._outward.popleft()[1]
        return come

    def until(self, text: str) -> None:
        seen, deadline = b"", time.perf_counter() + PATIENCE
        while text.encode() not in seen:
            if time.perf_counter() > deadline:
                sys.exit(f"{text!r} did not appear; seen: {seen[-500:]!r}")
            seen = seen[-100:] + self.come()


def echoes(
    command: Sequence[str], ready: str, bytes_a_second: float, way: float
) -> list[float]:
    """Return the seconds from each of some keys to their echo, while a reply
    streams.
    """
    pid, master = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        os.execvp(command[0], list(command))
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    line, pause = Line(master, bytes_a_second, way), Random(1)
    try:
        line.until(ready)
        line.type("h")
        line.until("h")
        line.type("i\r")
        come = 0
        while come < BEGUN:
            come += len(line.come())
        delays = list[float]()
        for number in range(TYPED):
            until = time.perf_counter() + pause.uniform(0.02, 0.1)
            while time.perf_counter() < until:
                line.come()
            typed = time.perf_counter()
            line.type(KEYS[number % len(KEYS)])
            line.until(KEYS[number % len(KEYS)])
            delays.append(time.perf_counter() - typed)
        return delays
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)


def compare(name: str, size: int, pace: int, bytes_a_second: float, way: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = (SECTION * (size // len(SECTION) + 1))[:size]
        reply, script = Path(folder) / "reply.txt", Path(folder) / "script.yaml"
        reply.write_text("The title is read.\n\n" + text)
        script.write_text(
            json.dumps({"replies": [{"reply": reply.read_text()}], "pace": pace})
        )
        shell = [
            str(Path(sys.executable).with_name("cdd")),
            "-C",
            folder,
            "--model",
            f"script:{script}",
        ]
        log = [sys.executable, "-c", _LOG, str(reply), str(pace)]
        of_log = echoes(log, "EADY", bytes_a_second, way)
        of_shell = echoes(shell, "❯", bytes_a_second, way)
    for part, at in (("median", 0.5), ("p95", 0.95)):
        a, b = (sorted(delays)[int(at * (TYPED - 1))] for delays in (of_log, of_shell))
        print(f"{name:<44}{part:<8}{a * 1000:>8.0f} ms{b * 1000:>8.0f} ms{b / a:>8.2f}")


def main() -> None:
    print(f"{'key to echo':<52}{'Log':>11}{'shell':>11}{'ratio':>8}")
    compare("while 1 MB comes", 1_000_000, 0, 1e9, 0)
    compare("200 characters a second, 30 kB/s, 100 ms", 20_000, 200, 30_000, 0.05)


if __name__ == "__main__":
    main()
