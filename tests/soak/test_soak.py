"""A short soak, and what a soak must notice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

if os.name != "posix":
    pytest.skip("kills processes and needs a terminal", allow_module_level=True)

from tests.soak.inspection import RecordSize
from tests.soak.report import compare_quarters, fit_trends
from tests.soak.shell import Sample

_MIB = 1024 * 1024


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


@pytest.mark.parametrize(("growth", "is_flat"), [(0, True), (100, False)])
def test_records_that_grow_are_reported(growth: int, is_flat: bool) -> None:
    records = [
        RecordSize(float(place), 2 * (8_000 + growth * place), 2) for place in range(80)
    ]

    compared = compare_quarters(records)

    assert compared is not None
    assert compared.is_flat is is_flat
