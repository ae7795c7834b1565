"""The figures of a soak, and their limits."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tests.soak.inspection import RecordSize
from tests.soak.shell import Sample

MEMORY_LIMIT = 64 * 1024
"""Bytes of resident memory by which the shell may grow with each ticket. Freed memory
does not count: see `RETURN_FREED_MEMORY`.
"""
COUNT_LIMIT = 3
"""Threads or file descriptors by which the shell may grow in the whole soak. The pool
of threads that looks up addresses grows until it has as many as it may. A leak of one
in each ticket is ten times as fast in a soak of 30 tickets.
"""
RECORD_LIMIT = 1.3
"""The factor by which the records of the last quarter may exceed those of the first."""
_WARM_UP = 0.25
"""The share of samples before the fit: caches and imports fill then."""
_FEWEST = 8
"""Samples, or records, below which nothing is fitted."""


@dataclass(frozen=True)
class Trend:
    """A figure of the shell at rest, over its tickets."""

    name: str
    first: float
    last: float
    growth: float
    """The growth from the first ticket to the last by a linear fit."""
    limit: float
    unit: str = ""
    divisor: int = 1

    @property
    def is_flat(self) -> bool:
        return self.growth <= self.limit

    def __str__(self) -> str:
        verdict = "flat" if self.is_flat else "GROWS"
        return (
            f"  {self.name:<16} {self.first / self.divisor:6.1f} ->"
            f" {self.last / self.divisor:6.1f} {self.unit:<3}"
            f" fit {self.growth / self.divisor:+.2f}"
            f" (limit {self.limit / self.divisor:.2f}): {verdict}"
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
    memory_limit = MEMORY_LIMIT * (tickets[-1] - tickets[0])
    return [
        _fit("memory", tickets, memory, memory_limit, "MiB", 1024 * 1024),
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
    growth = slope * (tickets[-1] - tickets[0])
    return Trend(name, values[0], values[-1], growth, limit, unit, divisor)


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
