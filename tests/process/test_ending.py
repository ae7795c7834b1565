"""Commands that outlived who ran them: ended by their notes, and nobody else is."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from cdd_agent.errors import BadInput
from cdd_agent.process.ending import MARK, end_noted
from cdd_agent.process.run import run_command

SLEEPS = (sys.executable, "-S", "-c", "import time; time.sleep(600)")


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
    look = "import os, pathlib; (note,) = pathlib.Path().glob('running-*'); print(note.name, os.environ['CDD_COMMAND'])"
    result = await run_command((sys.executable, "-c", look), cwd=tmp_path, limit=60, noted_in=tmp_path)

    assert result.stdout.split()[0].removeprefix("running-") in result.stdout.split()[1:]
    missing = await run_command(("no-such-program-here",), cwd=tmp_path, limit=60, noted_in=tmp_path)
    assert not missing.started
    assert not [*tmp_path.iterdir()]


async def test_a_command_that_cannot_be_noted_is_not_run(tmp_path: Path) -> None:
    result = await run_command(SLEEPS, cwd=tmp_path, limit=60, noted_in=tmp_path / "nowhere")
    assert (result.started, result.return_code) == (False, 126)


def test_one_that_was_killed_before_it_was_written_down_is_known_by_its_mark(tmp_path: Path) -> None:
    (tmp_path / "running-abc").touch()
    with sleeping("outer abc") as command, sleeping("outer") as other:
        assert end_noted(tmp_path) == 1
        assert command.wait() != 0
        assert other.poll() is None
    assert not [*tmp_path.iterdir()]
    assert end_noted(tmp_path) == 0


@pytest.mark.parametrize(("shift", "is_it"), [(0.0, True), (600.0, False), (-600.0, False)])
def test_a_process_that_only_has_the_number_is_somebody_elses(tmp_path: Path, shift: float, is_it: bool) -> None:
    """It began long before the note, or long after."""
    with sleeping() as process:
        began = psutil.Process(process.pid).create_time()
        (tmp_path / "running-abc").write_text(f"{process.pid} {began + shift}")
        assert end_noted(tmp_path) == is_it
        assert (process.poll() is None) is not is_it


def test_a_note_of_a_process_that_is_gone_is_removed(tmp_path: Path) -> None:
    with sleeping() as process:
        pass
    (tmp_path / "running-abc").write_text(f"{process.pid} {time.time()}")
    assert end_noted(tmp_path) == 0
    assert not [*tmp_path.iterdir()]


def test_one_that_cannot_be_ended_is_named_and_stays_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(one: psutil.Process) -> None:
        raise psutil.AccessDenied(one.pid)

    (tmp_path / "running-abc").touch()
    monkeypatch.setattr("cdd_agent.process.ending.GRACE", 0.01)
    monkeypatch.setattr(psutil.Process, "terminate", refuse)
    monkeypatch.setattr(psutil.Process, "kill", refuse)
    with sleeping("abc") as process, pytest.raises(BadInput, match=f"process {process.pid}"):
        end_noted(tmp_path)
    assert [*tmp_path.iterdir()] == [tmp_path / "running-abc"]
