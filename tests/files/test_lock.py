"""A lock on a file: one holder at a time, and none is needed to let go of it."""

import subprocess
import sys
from pathlib import Path

import pytest

from cdd_agent.files.lock import FileLock, Locked

HOLDS = """
import sys, time
from pathlib import Path
from cdd_agent.files.lock import FileLock
lock = FileLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_only_one_holds_it(path: Path) -> None:
    lock, other = FileLock(path), FileLock(path, timeout=0)
    with lock:
        assert lock.is_held
        with pytest.raises(Locked):
            other.acquire()
        assert not other.is_held
    assert not lock.is_held
    other.acquire()
    other.release()
    other.release()  # once more is harmless
    assert path.exists()


def test_a_lock_that_nobody_has_any_more_is_free(path: Path) -> None:
    lock = FileLock(path)
    lock.acquire()
    del lock
    with FileLock(path, timeout=0):
        pass


def test_it_is_free_when_its_process_was_killed(path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(Locked):
            FileLock(path, timeout=0).acquire()
        holder.kill()
    with FileLock(path, timeout=0):
        pass


def test_whoever_waits_gets_it_when_it_is_free(path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
        with FileLock(path, timeout=60) as lock:
            assert lock.is_held


def test_a_file_that_was_removed_is_no_lock(path: Path) -> None:
    with FileLock(path):
        path.unlink()
        with FileLock(path, timeout=0) as lock:
            assert lock.is_held
            assert path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="links take rights there")
def test_a_link_in_its_place_is_not_followed(path: Path) -> None:
    path.symlink_to(path.with_name("else"))
    with pytest.raises(OSError, match="symbolic links"):
        FileLock(path, timeout=0).acquire()
    assert not path.with_name("else").exists()


def test_where_no_file_can_be_made_that_is_told(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileLock(path / "deeper", timeout=0).acquire()
