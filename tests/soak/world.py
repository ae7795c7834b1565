"""Shared by the lanes: the project, the environment of processes, and the findings."""

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.disk import Disk
from tests.soak.tickets import Ticket


@dataclass(frozen=True)
class Finding:
    """A broken promise."""

    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}"


@dataclass(frozen=True)
class Finished:
    """A ticket that is done in the project's tree."""

    ticket: Ticket
    at: float
    """The seconds since the start."""
    starts: int
    """The number of processes that it took."""
    lane: str


@dataclass
class World:
    """The state of a soak. Threads share it."""

    root: Path
    outputs: Path
    """The folder of the processes' outputs. It is not on the small disk."""
    environment: Mapping[str, str]
    url: str
    disk: Disk
    seed: int
    begun: float
    deadline: float
    """The time at which lanes stop taking tickets."""
    queue: deque[Ticket]
    finished: list[Finished] = field(default_factory=list)
    open: list[Ticket] = field(default_factory=list)
    """Tickets that were begun and are not done."""
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.deadline

    @property
    def model_arguments(self) -> tuple[str, ...]:
        return ("--model", "openai/soak", "--api-base", self.url)

    def rng(self, name: str) -> random.Random:
        return random.Random(f"{self.seed} {name}")

    def take_ticket(self) -> Ticket | None:
        """Return the next ticket; None if there is none, or no time."""
        with self.lock:
            if self.is_over or not self.queue:
                return None
            return self._begin(self.queue.popleft())

    def begin(self, ticket: Ticket) -> None:
        with self.lock:
            self._begin(ticket)

    def _begin(self, ticket: Ticket) -> Ticket:
        self.open.append(ticket)
        while True:
            try:
                ticket.write_plan(self.root)
            except OSError:  # the disk is full
                time.sleep(0.2)
            else:
                return ticket

    def finish(self, ticket: Ticket, starts: int, lane: str) -> None:
        at = time.monotonic() - self.begun
        with self.lock:
            self.open.remove(ticket)
            self.finished.append(Finished(ticket, at, starts, lane))

    def find(self, subject: str, text: str) -> None:
        """Record a broken promise."""
        with self.lock:
            self.findings.append(Finding(subject, text))

    def count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1
