"""Measure the start: `cdd --version` against `python -c pass`, the shell against a
minimal Textual app.

Also the processor time of read-only commands, in a project with 300 tickets. Run with
`python -m benchmarks.startup`. Each figure is a ratio of medians from alternating runs
on one machine. The shell and the app run on a pseudo-terminal; "ready" means that the
screen is drawn and a key has been echoed. The shell opens the project after that. Also
their processor time until they are at rest, and from then on their memory and
processor time while idle.
"""

import fcntl
import os
import pty
import resource
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

RUNS = 9
IDLE_SECONDS = 3.0
_LONGEST_START = 30
"""Seconds."""
_PYTHON = sys.executable
_CDD = str(Path(_PYTHON).with_name("cdd"))
_MINIMAL = """
from textual.app import App
from textual.widgets import Input
class Minimal(App):
    def compose(self):
        yield Input(placeholder="READY")
Minimal().run()
"""


@dataclass(frozen=True)
class Started:
    """One start of a full-screen program."""

    seconds: float
    """Until it is ready."""
    processor_seconds: float
    """Until it is at rest."""
    mebibytes: float
    processor: float
    """The share of a processor while idle."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = _project(Path(folder) / "shop", tickets=300)
        _ratio(
            "cdd --version / python -c pass",
            _seconds([_CDD, "--version"]),
            _seconds([_PYTHON, "-c", "pass"]),
            3,
        )
        _ratio(
            "cdd --help / python -c pass",
            _seconds([_CDD, "--help"]),
            _seconds([_PYTHON, "-c", "pass"]),
            6,
        )
        for word in ("list", "status"):
            look = _processor_time([_CDD, word, "-C", str(root)])
            _ratio(
                f"cdd {word}, processor time / python -c pass",
                look,
                _processor_time([_PYTHON, "-c", "pass"]),
                25,
            )
        shell, minimal = [], []
        for _ in range(RUNS):
            shell.append(_start([_CDD, "-C", str(root)], "❯"))
            minimal.append(_start([_PYTHON, "-c", _MINIMAL], "EADY"))
        aims = {
            "seconds": "at most 1.6",
            "processor_seconds": "none",
            "mebibytes": "at most 1.8",
            "processor": "at most 0.5",
        }
        for name, aim in aims.items():
            a = statistics.median(getattr(start, name) for start in shell)
            b = statistics.median(getattr(start, name) for start in minimal)
            ratio = a / max(b, 0.001)
            print(
                f"shell / minimal Textual app, {name}: {a:.3f} / {b:.3f} = {ratio:.2f}"
                f" (aim: {aim})"
            )


def _ratio(
    name: str, a: Callable[[], float], b: Callable[[], float], aim: float
) -> None:
    pairs = [(a(), b()) for _ in range(RUNS + 1)][1:]  # the first warms the disk cache
    first, second = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(
        f"{name}: {first * 1000:.0f} ms / {second * 1000:.0f} ms = {first / second:.2f}"
        f" (aim: at most {aim})"
    )


def _seconds(command: list[str]) -> Callable[[], float]:
    def run() -> float:
        before = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - before

    return run


def _processor_time(command: list[str]) -> Callable[[], float]:
    def run() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return run


def _project(root: Path, tickets: int) -> Path:
    (root / ".cdd").mkdir(parents=True)
    (root / ".cdd" / "config.yaml").write_text("model: openai/some-model\n")
    for number in range(tickets):
        ticket = root / "tickets" / f"feature-{number:03}"
        ticket.mkdir(parents=True)
        (ticket / "spec.yaml").write_text("title: x\n")
    return root


def _start(command: list[str], marker: str) -> Started:
    """Start a program on a pseudo-terminal, wait for `marker`, type a key and wait for
    its echo.
    """
    begun = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm-256color", "CDD_TRUST": "1"}
        os.execvp(command[0], command)  # the child of a fork, on its own terminal
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        _read_until(terminal, marker)
        os.write(terminal, b"Q")
        _read_until(terminal, "Q")
        seconds = time.perf_counter() - begun
        begun_idle = _read_until_rest(terminal, pid)
        _read_for(terminal, IDLE_SECONDS)
        idle = (_processor_seconds(pid) - begun_idle) / IDLE_SECONDS
        return Started(seconds, begun_idle, _mebibytes(pid), idle)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def _read_until(terminal: int, marker: str, patience: float = 30) -> None:
    seen, deadline = b"", time.perf_counter() + patience
    while marker.encode() not in seen:
        if time.perf_counter() > deadline:
            sys.exit(f"{marker!r} did not appear; seen: {seen[-500:]!r}")
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 65536)


def _read_until_rest(terminal: int, pid: int) -> float:
    """Wait until the program takes at most a fiftieth of a processor, and return its
    processor time so far. A blinking cursor takes less.
    """
    spent = _processor_seconds(pid)
    for _ in range(_LONGEST_START):
        before = spent
        _read_for(terminal, 1.0)
        spent = _processor_seconds(pid)
        if spent - before <= 0.02:
            return spent
    sys.exit(f"The program is not at rest after {_LONGEST_START} seconds.")


def _read_for(terminal: int, seconds: float) -> None:
    deadline = time.perf_counter() + seconds
    while (left := deadline - time.perf_counter()) > 0:
        if select.select([terminal], [], [], left)[0]:
            os.read(terminal, 65536)


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _mebibytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("Reads /proc: Linux only.")
    if shutil.which(_CDD) is None:
        sys.exit("Install the package first: make test")
    main()
