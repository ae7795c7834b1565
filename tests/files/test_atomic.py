"""Files are written whole or not at all."""

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from cdd_agent.errors import BadInput
from cdd_agent.files.atomic import (
    NotRead,
    NotWritten,
    _temporary,
    create_exclusive,
    digest,
    put_file,
    read_bytes,
    remove_folder,
    remove_leftovers,
    write_atomic,
)
from tests.support.tables import each_row


def _put(place: Path, data: bytes) -> None:
    put_file(place, (data,), 0o644)


def test_a_new_file_gets_its_folders_and_an_ordinary_mode(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a" / "b" / "c.txt", b"hello")

    assert (tmp_path / "a/b/c.txt").read_bytes() == b"hello"
    assert (tmp_path / "a/b/c.txt").stat().st_mode & 0o600 == 0o600
    assert (tmp_path / "a/b/c.txt").stat().st_mode & 0o111 == 0


def test_a_replaced_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    script, link = tmp_path / "run.sh", tmp_path / "link.sh"
    script.write_text("old")
    script.chmod(0o755)
    link.symlink_to(script)

    write_atomic(link, b"new")

    assert link.is_symlink()
    assert script.read_text() == "new"
    assert script.stat().st_mode & 0o777 == 0o755


def test_a_write_that_fails_leaves_the_old_content_and_no_other_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").touch()

    with pytest.raises(NotWritten):
        write_atomic(tmp_path / "folder", b"x")

    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@each_row(
    "write", [write_atomic, create_exclusive, _put], ids=["replaced", "created", "put"]
)
def test_a_file_is_synced_before_it_gets_its_name_and_its_folder_afterwards(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[Path, bytes], None],
) -> None:
    """Else a cut of power leaves an empty file, or takes the new name back."""
    place, synced, fsync = tmp_path / "new/a.txt", list[tuple[str, bool]](), os.fsync

    def noted(descriptor: int) -> None:
        is_folder = os.path.samestat(os.fstat(descriptor), place.parent.stat())
        synced.append(("folder" if is_folder else "file", place.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    write(place, b"text")
    assert synced == [("file", False), ("folder", True)]


def test_reading_tells_missing_from_unreadable(tmp_path: Path) -> None:
    assert read_bytes(tmp_path / "nothing") is None
    assert digest(None) is None
    with pytest.raises(NotRead):
        read_bytes(tmp_path)


# Several at once


WRITER = """
import sys
from pathlib import Path
from cdd_agent.files.atomic import write_atomic
print("ready", flush=True)
while not Path(sys.argv[3]).exists():
    write_atomic(Path(sys.argv[1]), sys.argv[2].encode() * 300_000)
"""
CREATOR = """
import sys
from pathlib import Path
from cdd_agent.files.atomic import _temporary, create_exclusive
print("ready", flush=True)
content = sys.argv[2].encode() * 300_000
for number, _ in enumerate(sys.stdin):
    try:
        create_exclusive(Path(sys.argv[1]) / str(number), content)
    except FileExistsError:
        print("taken", flush=True)
    else:
        print("made", flush=True)
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Another process that has imported what it needs."""
    argv = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert hear(process) == "ready"
    return process


def tell(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_two_processes_that_write_one_file_never_mix(tmp_path: Path) -> None:
    file, stop = tmp_path / "file", tmp_path / "stop"
    seen, rounds = set[bytes](), 0
    with start(WRITER, file, "a", stop) as one, start(WRITER, file, "b", stop) as other:
        while (len(seen) < 2 or rounds < 1000) and one.poll() is other.poll() is None:
            seen |= {data} if (data := read_bytes(file)) is not None else set()
            rounds += 1
        stop.touch()
    assert seen == {b"a" * 300_000, b"b" * 300_000}
    assert (one.returncode, other.returncode) == (0, 0)
    assert names(tmp_path) == ["file", "stop"]


def test_of_two_processes_that_create_one_file_exactly_one_does(tmp_path: Path) -> None:
    with start(CREATOR, tmp_path, "a") as one, start(CREATOR, tmp_path, "b") as other:
        for number in range(50):
            tell(one, other)
            answers = [hear(one), hear(other)]
            assert sorted(answers) == ["made", "taken"]
            assert (
                read_bytes(tmp_path / str(number))
                == (b"a" if answers[0] == "made" else b"b") * 300_000
            )
    assert len(names(tmp_path)) == 50


def test_threads_that_write_one_file_never_mix(tmp_path: Path) -> None:
    file, failed = tmp_path / "file", list[Exception]()

    def write(letter: bytes) -> None:
        try:
            for _ in range(50):
                write_atomic(file, letter * 100_000)
                remove_leftovers(tmp_path)  # of what another thread is writing, nothing
        except (BadInput, OSError) as error:
            failed.append(error)

    threads = [
        threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c")
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        data = read_bytes(file)
        assert data is None or (len(data) == 100_000 and len(set(data)) == 1)
    assert failed == []
    assert names(tmp_path) == ["file"]


@pytest.fixture(params=["link", "no link"])
def links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that has hard links, and one that has none."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if request.param == "no link":
        monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("links")
def test_a_file_that_must_not_exist_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "a" / "file"
    create_exclusive(file, b"first")
    with pytest.raises(FileExistsError) as caught:
        create_exclusive(file, b"second")
    assert caught.value.filename == str(file)
    assert file.read_bytes() == b"first"
    assert names(file.parent) == ["file"]
    (tmp_path / "ordinary").touch()
    assert file.stat().st_mode == (tmp_path / "ordinary").stat().st_mode


@pytest.mark.usefixtures("links")
def test_what_leads_nowhere_exists_too(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    for name in ("link", "folder"):
        with pytest.raises(FileExistsError):
            create_exclusive(tmp_path / name, b"x")
    assert names(tmp_path) == ["folder", "link"]


@pytest.mark.usefixtures("links")
def test_a_file_that_cannot_be_made_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotWritten):
        create_exclusive(tmp_path / "file" / "inner", b"x")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match="No space left on device"):
        create_exclusive(tmp_path / "new", b"x")
    assert names(tmp_path) == ["file"]


def test_without_links_a_half_written_file_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(BadInput, match="No space left on device"):
        create_exclusive(tmp_path / "new", b"x")
    assert names(tmp_path) == []


STUCK = """
import os, sys, time
from pathlib import Path
from cdd_agent.files.atomic import write_atomic
def stick(_):
    print("ready", flush=True)
    time.sleep(600)
os.fsync = stick
write_atomic(Path(sys.argv[1]), b"x")
"""


def test_what_a_killed_write_left_is_removed_and_what_is_being_written_is_not(
    tmp_path: Path,
) -> None:
    file = tmp_path / "file"
    with (
        start(STUCK, file) as killed,
        start(STUCK, file) as other,
        start(STUCK, tmp_path / "file2") as third,
    ):
        killed.kill()
        assert len(names(tmp_path)) == 3
        # ended, though nobody has noticed
        while psutil.Process(killed.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        remove_leftovers(tmp_path)
        assert len(names(tmp_path)) == 2
        other.kill()
        other.wait()
        remove_leftovers(tmp_path)
        assert len(names(tmp_path)) == 1
        third.kill()


def test_what_an_earlier_process_of_the_same_number_left_is_removed(
    tmp_path: Path,
) -> None:
    _temporary(tmp_path / "file").touch()
    (tmp_path / ".cdd-mine.tmp").touch()
    remove_leftovers(tmp_path)
    assert names(tmp_path) == [".cdd-mine.tmp"]


def test_where_there_is_no_folder_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    for name in ("missing", "link"):
        remove_leftovers(tmp_path / name)


def test_a_name_of_any_length_is_written(tmp_path: Path) -> None:
    file = tmp_path / ("ü" * 127)
    write_atomic(file, b"x")
    create_exclusive(tmp_path / ("n" * 255), b"x")
    assert file.read_bytes() == b"x"


def test_a_folder_is_removed_although_a_file_in_it_vanishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    remove_tree = shutil.rmtree

    def remove_part(path: Path) -> None:
        monkeypatch.setattr(shutil, "rmtree", remove_tree)
        remove_tree(path / "inner")
        raise FileNotFoundError

    monkeypatch.setattr(shutil, "rmtree", remove_part)
    remove_folder(folder)
    assert not folder.exists()
    remove_folder(folder)
