"""The watch itself: what counts as a point, and what a death leaves."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.points import Death, Point, Watch
from tests.support.processes import PROCESSES

pytestmark = pytest.mark.crash

if os.name != "posix":
    pytest.skip("a process ends itself by SIGKILL there", allow_module_level=True)

LINE = b"0123456789"


def watched(
    work: Callable[[Path], None], root: Path, kill_at: int, death: Death
) -> None:
    def reached(point: Point) -> None:
        with (root.parent / "seen").open("a") as file:
            file.write(f"{point.kind} {point.path}\n")
        if point.number == kill_at:
            watch.die(death)

    watch = Watch(root, reached)
    watch.begin()
    work(root)


def seen(
    work: Callable[[Path], None],
    folder: Path,
    kill_at: int = 0,
    death: Death = Death.KILL,
) -> list[str]:
    """Do some work below `folder / "root"` in a process of its own; the points that it
    came to.
    """
    root = folder / "root"
    root.mkdir()
    process = PROCESSES.Process(target=watched, args=(work, root, kill_at, death))
    process.start()
    process.join(30)
    assert process.exitcode == (-signal.SIGKILL if kill_at else 0)
    return (folder / "seen").read_text().splitlines()


def changes_of_files(root: Path) -> None:
    (root / "made").mkdir()
    (root / "made").mkdir(exist_ok=True)
    (root / "made/a").write_bytes(LINE)
    (root / "made/a").read_bytes()
    (root / "made/a").chmod(0o600)
    (root / "made/a").rename(root / "b")
    (root / "b").unlink()
    (root / "b").unlink(missing_ok=True)
    (root.parent / "elsewhere").write_bytes(LINE)
    folder = os.open(root, os.O_RDONLY)
    os.rmdir("made", dir_fd=folder)
    os.fsync(folder)


def a_program(root: Path) -> None:
    subprocess.run([sys.executable, "-c", ""], cwd=root)


def a_log_of_which_a_part_is_synced(root: Path) -> None:
    with (root / "log").open("ab") as log:
        log.write(LINE)
        log.flush()
        os.fsync(log)
        log.write(LINE)
    (root / "log").rename(root / "renamed")
    sync(root)
    (root / "after").mkdir()


def names_of_which_a_part_is_synced(root: Path) -> None:
    (root / "old").write_bytes(b"old")
    for name in ("one", "two", "three"):
        (root / name).write_bytes(LINE)
        with (root / name).open("rb") as file:
            os.fsync(file)
    (root / "one").rename(root / "safe")
    sync(root)
    (root / "two").rename(root / "old")
    os.link(root / "three", root / "linked")
    (root / "after").mkdir()


def sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def test_each_change_below_the_root_is_a_point_and_nothing_else_is(
    tmp_path: Path,
) -> None:
    assert seen(changes_of_files, tmp_path) == [
        "mkdir made",
        "open made/a",
        "chmod made/a",
        "rename b",
        "remove b",
        "rmdir made",
        "fsync-folder .",
    ]


def test_a_program_is_a_point_before_it_starts_and_one_while_it_runs(
    tmp_path: Path,
) -> None:
    command = f"{sys.executable} -c "
    assert seen(a_program, tmp_path) == [
        f"command {command}",
        f"command-runs {command}",
    ]


@pytest.mark.parametrize(("death", "left"), [(Death.KILL, 20), (Death.POWER_CUT, 15)])
def test_a_power_cut_takes_half_of_what_was_not_synced_and_a_kill_is_empty(
    death: Death, left: int, tmp_path: Path
) -> None:
    points = seen(a_log_of_which_a_part_is_synced, tmp_path, kill_at=5, death=death)
    assert points == [
        "open log",
        "fsync log",
        "rename renamed",
        "fsync-folder .",
        "mkdir after",
    ]
    assert (tmp_path / "root/renamed").stat().st_size == left
    assert not (tmp_path / "root/after").exists()


@pytest.mark.parametrize(
    ("death", "left"),
    [
        (Death.KILL, {"linked": LINE, "old": LINE, "safe": LINE, "three": LINE}),
        (Death.POWER_CUT, {"old": b"old", "safe": LINE, "three": LINE, "two": LINE}),
    ],
)
def test_a_power_cut_takes_new_names_in_a_folder_that_was_not_synced(
    death: Death, left: dict[str, bytes], tmp_path: Path
) -> None:
    seen(names_of_which_a_part_is_synced, tmp_path, kill_at=12, death=death)
    assert {
        path.name: path.read_bytes() for path in (tmp_path / "root").iterdir()
    } == left
