"""A short soak, and what a soak must notice."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

if os.name != "posix":
    pytest.skip("kills processes and needs a terminal", allow_module_level=True)

from tests.soak.inspection import RecordSize
from tests.soak.report import compare_quarters, fit_trends
from tests.soak.shell import RETURN_FREED_MEMORY, Sample

_MIB = 1024 * 1024
_MEMORY_IN_THREADS = """
import sys
import threading

import psutil


def use_memory():
    kept.append(b"k" * (100_000 if LEAKS else 0))
    b"x" * 2_000_000
    ready.wait()
    end.wait()


LEAKS = "leak" in sys.argv
kept = []
process = psutil.Process()
ready = threading.Barrier(9)
end = threading.Event()
for place in range(9):
    b"x" * 2_000_000
before = process.memory_info().rss
for place in range(8):
    threading.Thread(target=use_memory).start()
ready.wait()
print(process.memory_info().rss - before)
end.set()
"""
"""Eight threads live at the same time. Each uses 2 MB and frees it. With `leak` each
keeps 100 kB. Prints the growth of resident memory in bytes.
"""


@pytest.mark.crash
def test_a_short_soak_loses_nothing(tmp_path: Path) -> None:
    arguments = ("--minutes", "0.2", "--tickets", "5", "--last", "1", "--seed", "12")
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", *arguments],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing is lost" in done.stdout
    assert [*tmp_path.iterdir()] == []


def samples(
    *, memory: float = 0.0, threads: float = 0.0, files: float = 0.0
) -> list[Sample]:
    """Return samples that grow with each ticket. The first tickets fill caches."""
    series = []
    for ticket in range(40):
        caches = min(ticket, 5) * _MIB
        sample = Sample(
            seconds=ticket * 10.0,
            tickets=ticket,
            memory=int(80 * _MIB + caches + memory * ticket),
            threads=int(4 + threads * ticket),
            files=int(9 + files * ticket),
            children=0,
        )
        series.append(sample)
    return series


@pytest.mark.parametrize(
    ("grows", "names"),
    [
        ({}, []),
        ({"memory": 20_000}, []),
        ({"memory": 200_000}, ["memory"]),
        ({"threads": 0.05}, []),
        ({"threads": 0.5}, ["threads"]),
        ({"files": 1.0}, ["file descriptors"]),
    ],
)
def test_a_figure_that_grows_with_each_ticket_is_reported(
    grows: dict[str, float], names: list[str]
) -> None:
    trends = fit_trends(samples(**grows))

    assert [trend.name for trend in trends if not trend.is_flat] == names


def measure_growth(environment: Mapping[str, str], *arguments: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY_IN_THREADS, *arguments],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_freed_memory_of_threads_does_not_count_as_growth() -> None:
    default = measure_growth({})
    freed = measure_growth(RETURN_FREED_MEMORY)
    leak = measure_growth(RETURN_FREED_MEMORY, "leak")

    assert default > 8 * _MIB
    assert freed < _MIB
    assert leak - freed > 8 * 90_000


@pytest.mark.parametrize(("growth", "is_flat"), [(0, True), (100, False)])
def test_records_that_grow_are_reported(growth: int, is_flat: bool) -> None:
    records = [
        RecordSize(float(place), 2 * (8_000 + growth * place), 2) for place in range(80)
    ]

    compared = compare_quarters(records)

    assert compared is not None
    assert compared.is_flat is is_flat
