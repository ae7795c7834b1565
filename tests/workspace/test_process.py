"""Commands: no shell, a limit, nothing left running."""

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from cdd_agent.workspace.process import CommandResult, OutputChunk, run_command


async def run(*argv: str, cwd: Path, limit: float = 30) -> tuple[CommandResult, list[OutputChunk]]:
    items = [item async for item in run_command(argv, cwd=cwd, limit=limit)]
    assert isinstance(items[-1], CommandResult)
    return items[-1], [item for item in items if isinstance(item, OutputChunk)]


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


async def is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        await asyncio.sleep(0.05)
    return False


async def test_both_streams_and_the_code_come_back(tmp_path: Path) -> None:
    result, _ = await run(*python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"), cwd=tmp_path)
    assert (result.stdout, result.stderr, result.return_code) == ("out\n", "err\n", 3)
    assert not result.timed_out


async def test_output_comes_while_the_command_runs(tmp_path: Path) -> None:
    code = "import time, pathlib\nprint('first', flush=True)\nwhile not pathlib.Path('go').exists(): time.sleep(0.01)"
    async with aclosing(run_command(python(code), cwd=tmp_path, limit=30)) as output:
        first = await anext(output)
        assert isinstance(first, OutputChunk)
        assert first.text.startswith("first")
        (tmp_path / "go").touch()
        assert [item async for item in output][-1].return_code == 0  # type: ignore[union-attr]


async def test_there_is_no_shell_and_no_standard_input(tmp_path: Path) -> None:
    result, _ = await run(
        *python("import sys; print(sys.argv[1:], repr(sys.stdin.read()))"), "$HOME; rm *", cwd=tmp_path
    )
    assert result.stdout == "['$HOME; rm *'] ''\n"


async def test_a_program_that_is_not_there_is_127_and_a_wrong_folder_126(tmp_path: Path) -> None:
    missing, _ = await run("no-such-program-here", cwd=tmp_path)
    assert (missing.return_code, missing.stderr) == (127, "Command not found: no-such-program-here")
    nowhere, _ = await run("ls", cwd=tmp_path / "nowhere")
    assert nowhere.return_code == 126


async def test_at_the_limit_the_whole_group_is_ended_and_what_it_said_is_kept(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\ntime.sleep(600)"
    )
    result, _ = await run(*python(code), cwd=tmp_path, limit=1)
    assert result.timed_out
    assert result.return_code != 0
    assert await is_gone(int(result.stdout))


async def test_a_reader_that_leaves_ends_the_command(tmp_path: Path) -> None:
    code = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    async with aclosing(run_command(python(code), cwd=tmp_path, limit=600)) as output:
        first = await anext(output)
    assert isinstance(first, OutputChunk)
    assert await is_gone(int(first.text))


async def test_cancelling_ends_the_command(tmp_path: Path) -> None:
    code = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)"
    task = asyncio.create_task(run(*python(code), cwd=tmp_path, limit=600))
    pid = tmp_path / "pid"
    while not (pid.exists() and pid.read_text()):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await is_gone(int(pid.read_text()))


async def test_a_child_that_keeps_the_pipe_open_is_not_waited_for(tmp_path: Path) -> None:
    child = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    code = f"import subprocess, sys\nsubprocess.Popen({child})\nprint('done')"
    async with asyncio.timeout(20):
        result, _ = await run(*python(code), cwd=tmp_path, limit=600)
    assert (result.stdout, result.return_code, result.timed_out) == ("done\n", 0, False)


async def test_huge_output_is_kept_at_both_ends_and_odd_bytes_are_shown(tmp_path: Path) -> None:
    code = "import sys\nsys.stdout.buffer.write(b'START\\xff' + b'x' * 5_000_000 + b'END')"
    result, chunks = await run(*python(code), cwd=tmp_path)
    assert result.cut
    assert result.stdout.startswith("START\ufffd")
    assert result.stdout.endswith("END")
    assert len(result.stdout) < 600_000
    assert sum(len(chunk.text) for chunk in chunks) == 5_000_009


async def test_secrets_do_not_reach_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("KEYBOARD_LAYOUT", "de")
    code = "import os; print('s3cret' in str(dict(os.environ)), os.environ['KEYBOARD_LAYOUT'], os.environ['MODE'])"
    items = [item async for item in run_command(python(code), cwd=tmp_path, limit=30, env={"MODE": "x"})]
    assert items[-1].stdout == "False de x\n"  # type: ignore[union-attr]


@pytest.mark.skipif(os.name != "posix", reason="a shell and `yes`")
@pytest.mark.parametrize(
    ("command", "limit", "timed_out"),
    [("setsid yes & sleep 100", 1.0, True), ("yes & exit 0", 60.0, False), ("yes", 1.0, True)],
)
async def test_a_command_that_keeps_printing_does_not_outlast_its_limit(
    tmp_path: Path, command: str, limit: float, timed_out: bool
) -> None:
    async with asyncio.timeout(20):
        items = []
        async for item in run_command(["sh", "-c", command], cwd=tmp_path, limit=limit):
            items.append(item)
            await asyncio.sleep(0.005)  # somebody who shows it takes a while
    assert isinstance(items[-1], CommandResult)
    assert items[-1].timed_out is timed_out
