"""Carry out many tickets for a long time while everything fails.

A loopback model answers with errors, cut streams and garbage; processes are killed and
interrupted at random times; the disk becomes full. At the end nothing may be lost, and
memory, threads, file descriptors and records may not grow.

Exit code: 0, or 1 if a promise is broken or a figure grows.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.soak.disk import Disk, enter_namespace
from tests.soak.inspection import (
    RUN_VARIABLE,
    folder_size,
    inspect_project,
    leftover_processes,
    measure_records,
)
from tests.soak.lanes import run_all_planned, run_fleet_lane, run_single_lane
from tests.soak.report import RecordGrowth, Trend, compare_quarters, fit_trends
from tests.soak.shell import ShellLane
from tests.soak.tickets import Ticket, generate_tickets, write_project
from tests.soak.world import World

_DISK = 2_000_000_000
_FULL_EVERY = (30.0, 60.0)
"""Seconds between two times at which the disk is full."""
_FULL_FOR = (1.0, 4.0)
_FULL_ROOM = 300_000
"""Bytes that are free at most while the disk is full."""
_SINGLE_LANES = 2
_PROGRESS = 15.0


@dataclass(frozen=True)
class Options:
    """The command line."""

    minutes: float
    tickets: int
    seed: int
    last: int
    """Tickets for `cdd exec --all planned` at the end."""
    keep: Path | None
    small_files: bool
    """True for a limit on the size of files instead of a small disk."""


def read_options(arguments: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=60.0,
        help="how long tickets are begun (default: 60); the inspection comes after it",
    )
    parser.add_argument(
        "--tickets", type=int, default=200, help="tickets at most (default: 200)"
    )
    parser.add_argument(
        "--last",
        type=int,
        default=6,
        help="tickets among them for `cdd exec --all planned` at the end (default: 6)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="tickets and faults (default: 1)"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="copy the project and all output here"
    )
    parser.add_argument(
        "--small-files",
        action="store_true",
        help="limit the size of files in some processes; the default where no disk"
        " can be mounted",
    )
    parsed = parser.parse_args(arguments)
    return Options(**vars(parsed))


@contextmanager
def serve_model(seed: int, log: Path) -> Iterator[str]:
    """Serve the loopback model in another process. Yields its address."""
    arguments = ("-m", "tests.soak.model_server", "--seed", str(seed), "--log", log)
    command = [sys.executable, *map(str, arguments)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


def make_world(
    options: Options, folder: Path, disk: Disk, url: str
) -> tuple[World, list[Ticket]]:
    """Write the project. Returns the tickets for the end, too."""
    outputs = folder / "outputs"
    for path in (outputs, disk.folder / "home", disk.folder / "tmp"):
        path.mkdir()
    tickets = generate_tickets(options.tickets, options.seed)
    root = disk.folder / "project"
    write_project(root, tickets)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        "PATH": programs,
        "HOME": str(disk.folder / "home"),
        "TMPDIR": str(disk.folder / "tmp"),
        "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "OPENAI_API_KEY": "none-is-needed",
        "CDD_TRUST": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        RUN_VARIABLE: folder.name,
    }
    begun = time.monotonic()
    split = len(tickets) - options.last
    world = World(
        root=root,
        outputs=outputs,
        environment=environment,
        url=url,
        disk=disk,
        seed=options.seed,
        begun=begun,
        deadline=begun + options.minutes * 60,
        queue=deque(tickets[:split]),
    )
    return world, list(tickets[split:])


def run_lanes(world: World, shell: ShellLane) -> None:
    """Run all lanes until the time is over or all tickets are done."""
    names = [f"single-{number}" for number in range(1, _SINGLE_LANES + 1)]
    works: dict[str, Callable[[], None]] = {
        name: partial(run_single_lane, world, name) for name in names
    }
    works["fleet"] = partial(run_fleet_lane, world, "fleet")
    works["shell"] = shell.run
    lanes = []
    for name, work in works.items():
        lane = threading.Thread(target=run_lane, args=(world, name, work))
        lane.start()
        lanes.append(lane)
    rng = world.rng("disk")
    next_full = time.monotonic() + rng.uniform(*_FULL_EVERY)
    next_line = time.monotonic() + _PROGRESS
    while any(lane.is_alive() for lane in lanes):
        time.sleep(0.5)
        now = time.monotonic()
        if world.disk.is_mounted and now >= next_full:
            world.disk.fill(rng.randrange(_FULL_ROOM))
            time.sleep(rng.uniform(*_FULL_FOR))
            world.disk.free()
            world.count("full disk")
            next_full = time.monotonic() + rng.uniform(*_FULL_EVERY)
        if now >= next_line:
            print_progress(world, shell)
            next_line = now + _PROGRESS


def run_lane(world: World, name: str, work: Callable[[], None]) -> None:
    """Run a lane. An error of the soak itself is a finding."""
    try:
        work()
    except Exception:  # noqa: BLE001
        world.find(name, traceback.format_exc())


def print_progress(world: World, shell: ShellLane) -> None:
    seconds = int(time.monotonic() - world.begun)
    sample = shell.samples[-1] if shell.samples else None
    figures = ""
    if sample is not None:
        megabytes = sample.memory / 1024 / 1024
        figures = (
            f"; shell: {megabytes:.1f} MiB, {sample.threads} threads,"
            f" {sample.files} files"
        )
    print(
        f"{seconds // 60}:{seconds % 60:02}  {len(world.finished)} done,"
        f" {len(world.open)} open, {len(world.queue)} waiting;"
        f" {world.counts['processes']} processes; {len(world.findings)} findings"
        f"{figures}",
        flush=True,
    )


def print_report(
    world: World,
    trends: Sequence[Trend],
    growth: RecordGrowth | None,
    faults: Counter[str],
) -> None:
    steps = sum(len(finished.ticket.steps) for finished in world.finished)
    lanes = Counter(finished.lane for finished in world.finished)
    starts = sum(finished.starts for finished in world.finished)
    print(f"\n{len(world.finished)} tickets with {steps} steps are done: {dict(lanes)}")
    print(f"  {len(world.queue)} were not begun; {starts} runs for those that are done")
    print_counts("What happened:", world.counts)
    print_counts("Answers of the model:", faults)
    print("The shell, at rest:")
    for trend in trends:
        print(trend)
    if not trends:
        print("  too few tickets")
    print("The disk:")
    print(growth if growth is not None else "  too few tickets")
    for name in (".cdd", ".git"):
        size = folder_size(world.root / name) / 1024
        print(f"  {name}: {size:,.0f} KiB, {size / max(1, steps):.1f} a step")
    for finding in world.findings:
        print(f"BROKEN  {finding}")
    if not world.findings:
        print("Nothing is lost, and nothing is left over.")


def print_counts(title: str, counts: Counter[str]) -> None:
    print(title)
    for what, count in sorted(counts.items()):
        print(f"  {count:5} {what}")


def count_faults(log: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in log.read_text().splitlines() if log.exists() else ():
        fault = line.partition('"fault": ')[2].strip('}"')
        counts["right" if fault == "null" else fault] += 1
    return counts


def soak(options: Options) -> int:
    """Run a soak and print its report. Returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="cdd-soak-") as name:
        folder = Path(name).resolve()
        log = folder / "model.jsonl"
        with mounted(folder / "disk") as disk:
            try:
                with serve_model(options.seed, log) as url:
                    return run_soak(options, folder, disk, url, log)
            finally:
                for process in leftover_processes(folder.name):
                    process.kill()


@contextmanager
def mounted(folder: Path) -> Iterator[Disk]:
    disk = Disk.mount(folder, _DISK)
    try:
        yield disk
    finally:
        disk.unmount()


def run_soak(options: Options, folder: Path, disk: Disk, url: str, log: Path) -> int:
    world, last = make_world(options, folder, disk, url)
    kind = "a small disk" if disk.is_mounted else "a limit on file sizes"
    print(f"{options.tickets} tickets on {kind}, seed {options.seed}", flush=True)
    shell = ShellLane(world)
    run_lanes(world, shell)
    run_all_planned(world, last)
    print_progress(world, shell)
    inspect_project(world, folder.name)
    trends = fit_trends(shell.samples)
    growth = compare_quarters(measure_records(world))
    for trend in trends:
        if not trend.is_flat:
            world.find("shell", str(trend).strip())
    if growth is not None and not growth.is_flat:
        world.find("records", str(growth).strip())
    print_report(world, trends, growth, count_faults(log))
    if options.keep is not None:
        shutil.copytree(folder, options.keep, symlinks=True)
    return 1 if world.findings else 0


def main() -> int:
    options = read_options(sys.argv[1:])
    if not options.small_files:
        enter_namespace()
    return soak(options)


if __name__ == "__main__":
    sys.exit(main())
