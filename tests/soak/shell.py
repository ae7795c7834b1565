"""The lane of the shell: one process carries out tickets for the whole time."""

import os
import pty
import random
import re
import select
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.soak.lanes import MOST_STARTS, compare_files, is_done
from tests.soak.processes import CDD, PATIENCE
from tests.soak.tickets import Ticket
from tests.soak.world import World

_PROMPT = re.compile(rb"(chat|executor [\w-]+) > $")
_QUESTION = re.compile(rb"\] no > $")
_REST = 1.0
"""Seconds after which the shell accepts the answer to a question."""
_QUIET = 0.3
"""Seconds of silence after which a prompt counts as shown."""
_INTERRUPT_RATE = 0.25
_LOOK_RATE = 0.3
_UNDO_RATE = 0.2
_INTERNAL_ERROR = re.compile(rb"Internal error in cdd")
RETURN_FREED_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "131072"}
"""The environment in which glibc returns each freed block of 128 KiB or more to the
system, so that resident memory shows a leak and nothing else.

By default glibc raises this threshold to the size of the largest freed block. The
table of interned strings has 1.8 MiB. `pathlib` interns the parts of each path, and
Python now and then builds the table anew, in the thread that runs at that time. Each
thread's heap then keeps the 1.8 MiB of a freed table: the shell grew by that much up
to ten times, while its live memory was constant.
"""


@dataclass(frozen=True)
class Sample:
    """The resources of the shell while it waits at its prompt."""

    seconds: float
    tickets: int
    memory: int
    """Resident bytes."""
    threads: int
    files: int
    """Open file descriptors."""
    children: int


@dataclass
class Shell:
    """`cdd --plain` on a terminal."""

    world: World
    output: Path
    shown: bytes = b""
    """The output since the last line was typed."""
    _master: int = -1
    _process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def code(self) -> int | None:
        assert self._process is not None
        return self._process.poll()

    def start(self) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [*CDD, "--plain", *self.world.model_arguments],
            cwd=self.world.root,
            env={**self.world.environment, **RETURN_FREED_MEMORY, "TERM": "dumb"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.wait()

    def type(self, line: str) -> None:
        self.shown = b""
        os.write(self._master, line.encode() + b"\n")

    def interrupt(self) -> None:
        os.kill(self.pid, signal.SIGINT)

    def wait(self, seconds: float = PATIENCE) -> bool:
        """Wait until a prompt or a question is shown. False if the time is over or
        the shell has ended.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._read():
                continue
            if self.code is not None:
                return False
            if _PROMPT.search(self.shown) or _QUESTION.search(self.shown):
                return True
        return False

    def _read(self) -> bool:
        """Read for a moment. False if nothing came."""
        if not select.select([self._master], [], [], _QUIET)[0]:
            return False
        try:
            piece = os.read(self._master, 65536)
        except OSError:  # the shell has ended
            return False
        self.shown = (self.shown + piece.replace(b"\r\n", b"\n"))[-200_000:]
        with self.output.open("ab") as file:
            file.write(piece)
        return bool(piece)

    @property
    def asks(self) -> bool:
        return _QUESTION.search(self.shown) is not None

    @property
    def has_agent(self) -> bool:
        """True if the executor of a ticket waits for a line."""
        prompt = _PROMPT.search(self.shown)
        return prompt is not None and prompt[1] != b"chat"

    def close(self) -> int:
        """Leave the shell and return its exit code."""
        assert self._process is not None
        if self.code is None:
            self.type("/exit")
            end = time.monotonic() + 30
            while self.code is None and time.monotonic() < end:
                self._read()
        if self.code is None:
            self.world.find("shell", "does not end")
            self._process.kill()
        code = self._process.wait()
        os.close(self._master)
        return code


@dataclass
class ShellLane:
    """Types the lines of a user who carries out one ticket after the other."""

    world: World
    samples: list[Sample] = field(default_factory=list)
    shell: Shell = field(init=False)
    rng: random.Random = field(init=False)
    done: int = 0

    def __post_init__(self) -> None:
        self.rng = self.world.rng("shell")
        self.shell = Shell(self.world, self.world.outputs / "shell.txt")

    def run(self) -> None:
        self.shell.start()
        self._sample()
        while ticket := self.world.take_ticket():
            starts = self._run_until_done(ticket)
            if starts == 0:
                continue
            self.done += 1
            if self.rng.random() < _UNDO_RATE:
                self._check_undo(ticket)
            if self.rng.random() < _LOOK_RATE:
                for line in ("/status", f"/diff {ticket.slug}", "/cost"):
                    self._type(line)
            self.world.finish(ticket, starts, "shell")
            self._sample()
        code = self.shell.close()
        if code != 0:
            self.world.find("shell", f"exit code {code} after /exit")

    def _run_until_done(self, ticket: Ticket) -> int:
        """Return the number of runs; 0 if the ticket is not done."""
        for start in range(1, MOST_STARTS + 1):
            self._type(f"/exec {ticket.slug}")
            if self.shell.has_agent:
                has_failed = b"Type `retry`" in self.shell.shown
                line = "retry" if has_failed else "all"
                self._type(line, interrupt=self.rng.random() < _INTERRUPT_RATE)
            if is_done(self.world, ticket):
                return start
            time.sleep(1)
        self.world.find(ticket.slug, f"not done after {MOST_STARTS} runs in the shell")
        return 0

    def _type(self, line: str, *, interrupt: bool = False) -> None:
        """Type a line and wait for the next prompt. Questions are answered with yes."""
        self.shell.type(line)
        if interrupt and not self.shell.wait(self.rng.uniform(0.1, 6)):
            self.world.count("Ctrl+C in the shell")
            self.shell.interrupt()
        is_ready = self.shell.wait()
        while is_ready and self.shell.asks:
            time.sleep(_REST)
            self.shell.type("y")
            is_ready = self.shell.wait()
        if _INTERNAL_ERROR.search(self.shell.shown):
            last = self.shell.shown[-300:].decode(errors="replace")
            self.world.find(f"shell: {line}", last)
        if not is_ready:
            self._restart(line)

    def _restart(self, line: str) -> None:
        """Report that the shell ended or hangs, and start another one."""
        what = "hangs" if self.shell.code is None else f"ended ({self.shell.code})"
        last = self.shell.shown[-300:].decode(errors="replace")
        self.world.find(f"shell: {line}", f"{what}: {last}")
        if self.shell.code is None:
            os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.close()
        self.shell.start()

    def _check_undo(self, ticket: Ticket) -> None:
        """Undo the last step and redo it: the files must be the same again."""
        after = ticket.files(self.world.root)
        self._type(f"/undo {ticket.slug}")
        if is_done(self.world, ticket):
            # refused, as while the disk is full
            self.world.count("refused undo in the shell")
            return
        for _ in range(5):
            self._type(f"/redo {ticket.slug}")
            if is_done(self.world, ticket):
                break
            time.sleep(2)
        compare_files(self.world, ticket, "/redo", after)
        self.world.count("undo and redo in the shell")

    def _sample(self) -> None:
        process = psutil.Process(self.shell.pid)
        with process.oneshot():
            sample = Sample(
                seconds=time.monotonic() - self.world.begun,
                tickets=self.done,
                memory=process.memory_info().rss,
                threads=process.num_threads(),
                files=process.num_fds(),
                children=len(process.children(recursive=True)),
            )
        self.samples.append(sample)
