"""Other `cdd`s as processes: their lines are read, and one that breaks the protocol is
stopped with the reason.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from cdd_agent.errors import CddError
from cdd_agent.process import child as child_module
from cdd_agent.process.child import BadChild, Child, ChildEnd
from tests.support.tables import each_row

pytestmark = pytest.mark.fork
WAITS_FOR_INPUT = ["--plain"]


@pytest.fixture
def fake_cdd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program that is started as `cdd`, to be written by the test."""
    package = tmp_path / "programs" / "cdd_agent"
    package.mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    (package / "__init__.py").touch()
    return package / "__main__.py"


@pytest.fixture
def real_cdd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.mark.usefixtures("real_cdd")
async def test_a_child_runs_to_its_end(tmp_path: Path) -> None:
    lines = list[bytes]()
    assert await Child(lines.append).run(["--version"], tmp_path) == ChildEnd(0, "")
    assert lines[0].startswith(b"cdd-shell ")
    end = await Child(lines.append).run(["list", "--nonsense"], tmp_path)
    assert end.exit_code == 2
    assert "--nonsense" in end.stderr


async def test_a_child_answers_lines_and_stops_at_the_end_of_its_input(
    tmp_path: Path, fake_cdd: Path
) -> None:
    fake_cdd.write_text(
        "import sys\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin: print('read', line.strip(), flush=True)\n"
        "print('stopped', flush=True)\n"
    )
    lines = list[bytes]()

    def receive(line: bytes) -> None:
        lines.append(line)
        if line == b"ready\n":
            child.send(b"hello\n")
        elif line == b"read hello\n":
            running.cancel()

    child = Child(receive)
    running = asyncio.ensure_future(child.run([], tmp_path))
    with pytest.raises(asyncio.CancelledError):
        await running
    assert lines[-1] == b"stopped\n"
    child.send(b"too late\n")  # and nothing happens


BAD = {
    "a long line": "print('x' * 3_000_000)",
    "half a line": "print('half', end='')",
    "silence": "import sys; sys.stdin.read()",
    "a line that the receiver refuses": "print('refuse')",
}


@each_row("program", list(BAD.values()))
async def test_a_child_that_breaks_the_protocol_is_stopped(
    program: str, tmp_path: Path, fake_cdd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "LONGEST_LINE", 1_000_000)
    if "stdin" in program:
        monkeypatch.setattr(child_module, "SILENCE", 0.2)
    fake_cdd.write_text(f"{program}\nimport sys; sys.stdin.read()")
    if "half" in program:
        fake_cdd.write_text(program)

    def receive(line: bytes) -> None:
        if line == b"refuse\n":
            raise CddError("refused")

    with pytest.raises(CddError):
        await Child(receive).run([], tmp_path)


async def test_a_line_that_waited_while_this_process_was_suspended_is_read(
    tmp_path: Path, fake_cdd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "SILENCE", 0.0)
    fake_cdd.write_text("print('here')")
    lines = list[bytes]()
    assert (await Child(lines.append).run([], tmp_path)).exit_code == 0
    assert lines == [b"here\n"]


async def test_a_child_that_does_not_stop_is_killed(
    tmp_path: Path, fake_cdd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "GRACE", 0.1)
    fake_cdd.write_text(
        "import os, time\nprint(os.getpid(), flush=True)\nwhile True: time.sleep(600)"
    )
    pids = list[int]()

    def receive(line: bytes) -> None:
        pids.append(int(line))
        raise CddError("stop")

    with pytest.raises(CddError):
        await Child(receive).run([], tmp_path)
    assert not psutil.pid_exists(pids[0])


async def test_the_end_of_a_killed_child_is_no_fault_of_the_protocol(
    tmp_path: Path, fake_cdd: Path
) -> None:
    fake_cdd.write_text(
        "import os, signal\n"
        "print('half', end='', flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    end = await Child(lambda line: None).run([], tmp_path)
    assert end.exit_code == -signal.SIGKILL


async def test_an_error_of_the_receiver_stops_the_child_too(
    tmp_path: Path, fake_cdd: Path
) -> None:
    fake_cdd.write_text(
        "import os, sys\nprint(os.getpid(), flush=True)\nsys.stdin.read()"
    )
    pids = list[int]()

    def receive(line: bytes) -> None:
        pids.append(int(line))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Child(receive).run([], tmp_path)
    assert not psutil.pid_exists(pids[0])


async def test_a_process_that_cannot_be_started_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    with pytest.raises(BadChild):
        await Child(lambda line: None).run([], tmp_path)


async def test_a_child_ends_when_its_parent_is_killed(
    tmp_path: Path, fake_cdd: Path
) -> None:
    fake_cdd.write_text(
        "import os, sys\nprint(os.getpid(), flush=True)\nsys.stdin.read()"
    )
    # without the PYTHONPATH of the fake
    parent = (
        "import asyncio, os, signal, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from pathlib import Path\n"
        "from cdd_agent.process.child import Child\n"
        "def receive(line):\n"
        "    print(line.decode(), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(Child(receive).run([], Path.cwd()))\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-c", parent, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    assert await process.wait() == -signal.SIGKILL
    while _is_running(pid):
        await asyncio.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False
