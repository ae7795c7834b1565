"""Commands that outlived who ran them: ended by their notes, and nobody else is."""

import os
import platform
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

import cdd_agent
from cdd_agent.errors import BadInput
from cdd_agent.process.ending import MARK, end_noted
from cdd_agent.process.run import run_command

SLEEPS = (sys.executable, "-S", "-c", "import time; time.sleep(600)")


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """That of a command with a mark of its own: others run these tests at the same
    time.
    """
    return tmp_path / f"running-{uuid.uuid4().hex}"


def mark_of(note: Path) -> str:
    return note.name.removeprefix("running-")


@contextmanager
def sleeping(mark: str = "") -> Iterator[subprocess.Popen[bytes]]:
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    process = subprocess.Popen(SLEEPS, env=environment | ({MARK: mark} if mark else {}))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def test_a_command_is_noted_while_it_runs(tmp_path: Path) -> None:
    look = (
        "import os, pathlib; (note,) = pathlib.Path().glob('running-*');"
        " print(note.name, os.environ['CDD_COMMAND'])"
    )
    result = await run_command(
        (sys.executable, "-c", look), cwd=tmp_path, limit=60, noted_in=tmp_path
    )

    assert (
        result.stdout.split()[0].removeprefix("running-") in result.stdout.split()[1:]
    )
    missing = await run_command(
        ("no-such-program-here",), cwd=tmp_path, limit=60, noted_in=tmp_path
    )
    assert not missing.started
    assert not [*tmp_path.iterdir()]


async def test_a_command_that_cannot_be_noted_is_not_run(tmp_path: Path) -> None:
    result = await run_command(
        SLEEPS, cwd=tmp_path, limit=60, noted_in=tmp_path / "nowhere"
    )
    assert (result.started, result.return_code) == (False, 126)
    assert str(tmp_path / "nowhere" / "running-") in result.stderr


@pytest.mark.fork
def test_one_that_was_killed_before_it_was_written_down_is_known_by_its_mark(
    tmp_path: Path, note: Path
) -> None:
    note.touch()
    with sleeping(f"outer {mark_of(note)}") as command, sleeping("outer") as other:
        assert end_noted(tmp_path) == 1
        assert command.wait() != 0
        assert other.poll() is None
    assert not [*tmp_path.iterdir()]
    assert end_noted(tmp_path) == 0


@pytest.mark.fork
@pytest.mark.parametrize(
    ("shift", "is_it"), [(0.0, True), (600.0, False), (-600.0, False)]
)
def test_a_process_that_only_has_the_number_is_somebody_elses(
    note: Path, shift: float, is_it: bool
) -> None:
    """It began long before the note, or long after."""
    with sleeping() as process:
        began = psutil.Process(process.pid).create_time()
        note.write_text(f"{process.pid} {began + shift} {platform.node()}")
        assert end_noted(note.parent) == is_it
        assert (process.poll() is None) is not is_it


@pytest.mark.fork
def test_so_is_one_of_that_number_on_another_machine(
    tmp_path: Path, note: Path
) -> None:
    """Two containers that were started together have processes of the same numbers, and
    may share a folder.
    """
    with sleeping() as process:
        note.write_text(f"{process.pid} {time.time()} another-{platform.node()}")
        assert end_noted(tmp_path) == 0
        assert process.poll() is None
    assert not [*tmp_path.iterdir()]


TAKES_UP = (
    "import pathlib, sys; from cdd_agent.process.ending import end_noted;"
    " print(end_noted(pathlib.Path()))"
)
RUNS_IT = (
    "import subprocess, sys; input(); subprocess.run([sys.executable, '-c',"
    f" {TAKES_UP!r}]); print('on')"
)


@pytest.mark.fork
@pytest.mark.parametrize("known", ["by its mark", "by its number"])
def test_a_terminal_that_a_command_has_opened_and_that_the_work_is_taken_up_in_goes_on(
    tmp_path: Path, note: Path, known: str
) -> None:
    environment = {**os.environ, MARK: mark_of(note) if known == "by its mark" else ""}
    environment["PYTHONPATH"] = str(Path(cdd_agent.__file__).parents[1])
    pipe = subprocess.PIPE
    argv = (sys.executable, "-c", RUNS_IT)
    with subprocess.Popen(
        argv, env=environment, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True
    ) as terminal:
        note.write_text(f"{terminal.pid} {time.time()} {platform.node()}")
        assert terminal.communicate("\n")[0].split() == ["0", "on"]


def test_a_note_that_says_nothing_is_removed(tmp_path: Path, note: Path) -> None:
    texts = (b"", b"\xff 1 x", b"1 nan x", b"9" * 5000 + b" 1 x", b"-1 1 x", b"1")
    for text in (*texts, b"x y z"):
        note.write_bytes(text)
        assert end_noted(tmp_path) == 0, text
        assert not [*tmp_path.iterdir()], text


def test_a_note_that_cannot_be_removed_is_named(tmp_path: Path, note: Path) -> None:
    note.mkdir()
    with pytest.raises(BadInput, match=f"{note.name} could not be removed"):
        end_noted(tmp_path)


@pytest.mark.fork
def test_a_note_of_a_process_that_is_gone_is_removed(
    tmp_path: Path, note: Path
) -> None:
    with sleeping() as process:
        pass
    note.write_text(f"{process.pid} {time.time()} {platform.node()}")
    assert end_noted(tmp_path) == 0
    assert not [*tmp_path.iterdir()]


@pytest.mark.fork
def test_one_that_cannot_be_ended_is_named_and_stays_noted(
    tmp_path: Path, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(one: psutil.Process) -> None:
        raise psutil.AccessDenied(one.pid)

    note.touch()
    monkeypatch.setattr("cdd_agent.process.ending.GRACE", 0.01)
    monkeypatch.setattr(psutil.Process, "terminate", refuse)
    monkeypatch.setattr(psutil.Process, "kill", refuse)
    with (
        sleeping(mark_of(note)) as process,
        pytest.raises(BadInput, match=f"process {process.pid}"),
    ):
        end_noted(tmp_path)
    assert [*tmp_path.iterdir()] == [note]
