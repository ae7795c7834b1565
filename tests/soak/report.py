"""The figures of a soak, and their limits."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tests.soak.inspection import RecordSize
from tests.soak.shell import Sample

MEMORY_LIMIT = 64 * 1024
"""Bytes of resident memory by which the shell may grow with each ticket."""
COUNT_LIMIT = 0.02
"""Threads or file descriptors by which the shell may grow with each ticket: one in 50
tickets. A leak of one in each ticket is 50 times as fast.
"""
RECORD_LIMIT = 1.3
"""The factor by which the records of the last quarter may exceed those of the first."""
_WARM_UP = 0.25
"""The share of samples before the fit: caches and imports fill then."""
_FEWEST = 8
"""Samples, or records, below which nothing is fitted."""


@dataclass(frozen=True)
class Trend:
    """A figure at rest over the tickets of the shell."""

    name: str
    first: float
    last: float
    per_ticket: float
    """The slope of a linear fit."""
    limit: float
    unit: str = ""
    divisor: int = 1

    @property
    def is_flat(self) -> bool:
        return self.per_ticket <= self.limit

    def __str__(self) -> str:
        verdict = "flat" if self.is_flat else "GROWS"
        return (
            f"  {self.name:<18} {self.first / self.divisor:8.1f} ->"
            f" {self.last / self.divisor:8.1f} {self.unit:<4}"
            f" {self.per_ticket / self.divisor:+.4f} a ticket"
            f" (limit {self.limit / self.divisor:.4f}): {verdict}"
        )


def fit_trends(samples: Sequence[Sample]) -> list[Trend]:
    """Return the trends of a shell; none for too few samples."""
    steady = samples[int(len(samples) * _WARM_UP) :]
    if len(steady) < _FEWEST:
        return []
    tickets = [sample.tickets for sample in steady]
    memory = [sample.memory for sample in steady]
    threads = [sample.threads for sample in steady]
    files = [sample.files for sample in steady]
    children = [sample.children for sample in steady]
    return [
        _fit("memory", tickets, memory, MEMORY_LIMIT, "MiB", 1024 * 1024),
        _fit("threads", tickets, threads, COUNT_LIMIT),
        _fit("file descriptors", tickets, files, COUNT_LIMIT),
        _fit("child processes", tickets, children, COUNT_LIMIT),
    ]


def _fit(
    name: str,
    tickets: Sequence[int],
    values: Sequence[int],
    limit: float,
    unit: str = "",
    divisor: int = 1,
) -> Trend:
    slope = statistics.linear_regression(tickets, values).slope
    return Trend(name, values[0], values[-1], slope, limit, unit, divisor)


@dataclass(frozen=True)
class RecordGrowth:
    """The median size of a ticket's record, by attempt, in two quarters of a soak."""

    first: float
    last: float

    @property
    def is_flat(self) -> bool:
        return self.last <= self.first * RECORD_LIMIT

    def __str__(self) -> str:
        verdict = "flat" if self.is_flat else "GROWS"
        return (
            f"  a ticket's record, by attempt: {self.first / 1024:.1f} ->"
            f" {self.last / 1024:.1f} KiB, first and last quarter (limit x"
            f" {RECORD_LIMIT}): {verdict}"
        )


def compare_quarters(records: Sequence[RecordSize]) -> RecordGrowth | None:
    """Return the growth of records; None for too few."""
    quarter = len(records) // 4
    if quarter < _FEWEST // 4:
        return None
    first = [record.bytes_per_attempt for record in records[:quarter]]
    last = [record.bytes_per_attempt for record in records[-quarter:]]
    return RecordGrowth(statistics.median(first), statistics.median(last))
