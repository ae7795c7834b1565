"""Commands: no shell, a limit, and an end to what overstays it."""

import asyncio
import errno
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.process import run as process
from cdd_agent.process.run import (
    SHOWN_CHARACTERS,
    SHOWN_EVERY,
    SHOWN_LINES,
    WHOLE,
    CommandResult,
    HeadTailBuffer,
    OutputChunk,
    child_environment,
    run_command,
    shell_argv,
)
from tests.support.promised import NOT_FOUND
from tests.support.tables import each_row
from tests.support.time_of_loops import leap

PATIENCE = 180.0


async def run(
    *argv: str, cwd: Path, limit: float = 30
) -> tuple[CommandResult, list[OutputChunk]]:
    shown: list[OutputChunk] = []
    result = await run_command(argv, cwd=cwd, limit=limit, on_output=shown.append)
    return result, shown


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


async def is_gone(pid: int) -> bool:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        await asyncio.sleep(0.05)
    return False


async def test_a_command_reads_the_file_that_it_is_given_or_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "words").write_text("some words")
    argv = python("import sys; print(repr(sys.stdin.read()))")
    for stdin, read in (({"stdin": tmp_path / "words"}, "'some words'"), ({}, "''")):
        result = await run_command(argv, cwd=tmp_path, limit=30, **stdin)
        assert result.stdout.strip() == read


async def test_both_streams_and_the_code_come_back(tmp_path: Path) -> None:
    result, _ = await run(
        *python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"),
        cwd=tmp_path,
    )
    assert (result.stdout, result.stderr, result.return_code) == ("out\n", "err\n", 3)
    assert not result.timed_out


async def test_output_comes_while_the_command_runs(tmp_path: Path) -> None:
    code = (
        "import time, pathlib\n"
        "print('first', flush=True)\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.01)"
    )

    result = await run_command(
        python(code),
        cwd=tmp_path,
        limit=30,
        on_output=lambda chunk: (tmp_path / "go").touch(),
    )
    assert (result.return_code, result.stdout) == (0, "first\n")


async def test_there_is_no_shell_and_no_standard_input(tmp_path: Path) -> None:
    result, _ = await run(
        *python("import sys; print(sys.argv[1:], repr(sys.stdin.read()))"),
        "$HOME; rm *",
        cwd=tmp_path,
    )
    assert result.stdout == "['$HOME; rm *'] ''\n"


async def test_a_program_that_is_not_there_is_127_and_a_wrong_folder_126(
    tmp_path: Path,
) -> None:
    missing, _ = await run("no-such-program-here", cwd=tmp_path)
    assert (missing.return_code, missing.stderr) == (
        127,
        NOT_FOUND.format("no-such-program-here"),
    )
    nowhere, _ = await run("ls", cwd=tmp_path / "nowhere")
    assert nowhere.return_code == 126
    assert str(tmp_path / "nowhere") in nowhere.stderr


@each_row("kind", [PermissionError, FileNotFoundError])
@each_row("where", ["is_dir", "chdir"])
async def test_a_folder_that_cannot_be_entered_is_told_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[OSError], where: str
) -> None:
    code = errno.EACCES if kind is PermissionError else errno.ENOENT

    def refuse(*_: object, cwd: object = tmp_path, **__: object) -> bool:
        raise OSError(code, os.strerror(code), cwd)

    monkeypatch.setattr(
        *((Path, "is_dir") if where == "is_dir" else (subprocess, "Popen")), refuse
    )
    result, _ = await run("ls", cwd=tmp_path)
    assert result.stderr.endswith(f" {tmp_path}: {os.strerror(code)}")
    assert (result.return_code, result.started) == (126, False)


async def test_a_program_that_may_not_be_run_is_told_plainly(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("x")
    result, _ = await run(str(tmp_path / "tool"), cwd=tmp_path)
    assert result.stderr.startswith(f"{tmp_path}/tool ")
    assert result.stderr.endswith(f" {os.strerror(errno.EACCES)}")


@pytest.mark.fork
async def test_many_commands_at_once_all_end_at_their_limit(tmp_path: Path) -> None:
    """However few threads asyncio's own pool has, and even when they are all taken."""
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        done = threading.Event()
        pool.submit(done.wait)
        try:
            async with asyncio.timeout(PATIENCE):
                ended = await asyncio.gather(
                    *(run("sleep", "600", cwd=tmp_path, limit=1) for _ in range(8))
                )
        finally:
            done.set()
    assert all(result.timed_out for result, _ in ended)


@pytest.mark.fork
async def test_at_the_limit_the_whole_group_is_ended_and_what_it_said_is_kept(
    tmp_path: Path,
) -> None:
    code = (
        "import subprocess, sys, time, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time;"
        " time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)"
    )
    result = await run_command(
        python(code), cwd=tmp_path, limit=600, on_output=lambda chunk: leap(600)
    )
    assert result.timed_out
    assert result.return_code != 0
    assert await is_gone(int(result.stdout))


@pytest.mark.fork
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


@pytest.mark.fork
async def test_a_child_that_keeps_the_pipe_open_is_not_waited_for(
    tmp_path: Path,
) -> None:
    child = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    code = f"import subprocess, sys\nsubprocess.Popen({child})\nprint('done')"
    async with asyncio.timeout(PATIENCE):
        result, _ = await run(*python(code), cwd=tmp_path, limit=600)
    assert (result.stdout, result.return_code, result.timed_out) == ("done\n", 0, False)


async def test_what_a_program_said_before_its_end_is_shown_and_kept(
    tmp_path: Path,
) -> None:
    code = (
        "import sys; sys.stdout.write('x' * 5_000_000); sys.stdout.write('the verdict')"
    )
    result, pieces = await run(*python(code), cwd=tmp_path)
    text = "".join(piece.text for piece in pieces)
    assert result.stdout.endswith("verdict")
    assert text.endswith("verdict")
    assert all_of(text) == 5_000_000 + len("the verdict")


@each_row(
    ("most", "cut"),
    [(WHOLE, False), (5_000_000, False), (4_999_999, True), (10, True), (0, True)],
)
async def test_of_a_program_whose_answer_is_wanted_all_is_kept_up_to_a_bound(
    tmp_path: Path, most: int, cut: bool
) -> None:
    wait = f"time.sleep({600 * cut})"
    code = (
        "import sys, time; sys.stdout.write('äx' * 2_500_000); sys.stdout.flush();"
        f" {wait}"
    )
    async with asyncio.timeout(PATIENCE):
        result = await run_command(python(code), cwd=tmp_path, limit=600, most=most)
    assert result.stdout == ("äx" * 2_500_000)[:most]
    assert (result.cut, result.timed_out) == (cut, False)


def all_of(shown: str) -> int:
    """How many characters there were, with those that were left out."""
    marks = re.findall(r"… \(([\d,]+) characters are not shown\) …\n", shown)
    left_out = sum(int(number.replace(",", "")) for number in marks)
    return (
        len(re.sub(r"… \([\d,]+ characters are not shown\) …\n", "", shown)) + left_out
    )


@each_row(
    ("line", "times"),
    [("{:09d}\\n", 100_000), ("x" * 999 + "\\n", 10_000), ("{:09d}", 100_000)],
)
async def test_what_is_shown_is_bounded_and_what_is_kept_is_not_less(
    line: str, times: int, tmp_path: Path
) -> None:
    code = (
        "import sys\n"
        f"for i in range({times}): sys.stdout.write('{line}'.format(i))\n"
        "print('THE END')"
    )
    kept, pieces = await run(*python(code), cwd=tmp_path)
    everything = await run_command(python(code), cwd=tmp_path, limit=30, most=WHOLE)
    assert kept.stdout[:50_000] == everything.stdout[:50_000]
    assert kept.stdout[-150_000:] == everything.stdout[-150_000:]
    assert len(pieces) <= kept.seconds / SHOWN_EVERY + 4
    assert max(len(piece.text) for piece in pieces) <= SHOWN_CHARACTERS + 100
    assert max(piece.text.count("\n") for piece in pieces) <= SHOWN_LINES + 1
    assert (
        all_of("".join(piece.text for piece in pieces))
        == times * len(line.format(0).replace("\\n", "\n")) + 8
    )
    assert pieces[-1].text.endswith("END\n")


@given(st.lists(st.text("ab\n", max_size=400), min_size=1, max_size=60))
def test_of_much_at_once_whole_lines_of_both_ends_are_shown(pieces: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "SHOWN_CHARACTERS", 200)
        patch.setattr(process, "SHOWN_LINES", 8)
        shown = process._PendingOutput()
        for piece in pieces:
            shown.add(OutputChunk(piece, "stdout"))
        taken = shown.take_pending()
    text = "".join(pieces)
    assert taken is not None
    begin, _, end = taken.text.partition("… (")
    if not end:
        assert taken.text == text
        assert len(text) <= 200
        assert text.count("\n") <= 8
        return
    end = end.partition(") …\n")[2]
    assert text.startswith(begin)
    assert text.endswith(end)
    assert all_of(taken.text) == len(text)
    assert begin.count("\n") <= 2
    assert end.count("\n") <= 6
    assert len(end) <= 150
    assert begin.endswith("\n") or "\n" not in begin
    assert len(begin) + len(end) < len(text)


async def test_huge_output_is_kept_at_both_ends_and_odd_bytes_are_shown(
    tmp_path: Path,
) -> None:
    code = (
        "import sys\nsys.stdout.buffer.write(b'START\\xff' + b'x' * 5_000_000 + b'END')"
    )
    result, chunks = await run(*python(code), cwd=tmp_path)
    assert result.cut
    assert result.stdout.startswith("START\ufffd")
    assert result.stdout.endswith("END")
    assert len(result.stdout) < 600_000
    assert all_of("".join(chunk.text for chunk in chunks)) == 5_000_009


@given(st.lists(st.integers(0, 60), max_size=12))
def test_what_is_kept_is_the_beginning_and_the_end_however_large_the_pieces_are(
    sizes: list[int],
) -> None:
    kept, whole = HeadTailBuffer(most=40), ""
    for number, size in enumerate(sizes):
        # no character comes twice
        piece = "".join(chr(0x100 + 100 * number + place) for place in range(size))
        whole += piece
        kept.add(piece)

    head, gap, end = kept.text().partition("\n… (output omitted) …\n")
    assert len(head) + len(end) <= 40 + 30
    assert bool(gap) == kept.cut
    assert whole == head if not gap else whole.startswith(head) and whole.endswith(end)


async def test_secrets_do_not_reach_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    monkeypatch.setenv("OUR_SEAL", "s3cret")
    monkeypatch.setenv("CACHE_KEY", "shown")
    code = (
        "import os; print('s3cret' in str(dict(os.environ)), os.environ['CACHE_KEY'],"
        " os.environ['MODE'])"
    )
    result = await run_command(
        python(code),
        cwd=tmp_path,
        limit=30,
        env={"MODE": "x"},
        hide=["OUR_SEAL"],
        passed=["CACHE_KEY"],
    )
    assert result.stdout == "False shown x\n"


SECRETS = """
    OPENAI_API_KEY ANTHROPIC_APIKEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY SSH_KEY
    DEPLOY_KEYS KEY API_KEY_2 API_KEY2 GITHUB_TOKEN TOKENS HF_TOKEN GHTOKEN
    npm_config__authToken SLACK_BOT_TOKEN_1 CLIENT_SECRET SECRETS APP_SECRETS
    DB_PASSWORD PGPASSWORD MYSQL_PWD SMTP_PASSWD GPG_PASSPHRASE SUDO_PASS SSHPASS DBPASS
    AZURE_DEVOPS_EXT_PAT PAT GOOGLE_APPLICATION_CREDENTIALS CREDENTIAL openai_api_key
    OPENAIKEY_TOKEN PRIVATEKEY SIGNINGKEY REGISTRY_AUTHKEY
"""
NO_SECRETS = """
    KEYBOARD_LAYOUT TOKENIZERS_PARALLELISM MONKEY_PATCH SSH_AUTH_SOCK PWD OLDPWD PATH
    HOME MONKEY HOTKEYS COMPASS BYPASS_CACHE PASSENGER_ENV PATTERN SPAT XDG_SESSION_ID
    LANG LC_ALL SECRETARY COMPASS_X PYTHONPATH EDITOR KEYMAP
"""


@each_row("name", SECRETS.split())
def test_what_looks_like_a_secret_is_hidden(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "x")
    assert name not in child_environment()
    assert name in child_environment(passed=[name])
    assert child_environment({name: "given"})[name] == "given"


@each_row("name", NO_SECRETS.split())
def test_what_only_resembles_one_is_not(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "x")
    assert child_environment()[name] == "x"
    assert name not in child_environment(hide=[name])


def test_names_are_hidden_and_passed_by_pattern_and_hiding_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_REGION", "AWS_TOKEN", "GCP_TOKEN", "GCP_KEY", "OTHER"):
        monkeypatch.setenv(name, "x")
    seen = child_environment(hide=["AWS_*", "oth?r"], passed=["*_TOKEN"])
    assert [
        name
        for name in ("AWS_REGION", "AWS_TOKEN", "GCP_TOKEN", "GCP_KEY", "OTHER")
        if name in seen
    ] == ["GCP_TOKEN"]


async def test_a_program_is_looked_up_without_the_commands_own_path(
    tmp_path: Path,
) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    for name in ("ls", "no-such-program-here"):
        (trap / name).write_text("#!/bin/sh\necho trapped\n")
        (trap / name).chmod(0o755)
    for name, code in (("ls", 0), ("no-such-program-here", 127)):
        result = await run_command(
            [name], cwd=tmp_path, limit=30, env={"PATH": str(trap)}
        )
        assert (result.return_code, "trapped" in result.stdout) == (code, False)


@each_row(
    ("result", "failure"),
    [
        (CommandResult("out", "warning", 0), ""),
        (CommandResult("out", "wrong\n", 2), "Exit code 2\nwrong"),
        (
            CommandResult("", "", -9, 3.1, timed_out=True, limit=3),
            "Command timed out after 3 seconds",
        ),
        (
            CommandResult("", "Error: Command not found: x", 127, started=False),
            "Error: Command not found: x",
        ),
    ],
)
def test_a_failure_is_told_in_words(result: CommandResult, failure: str) -> None:
    assert result.failure == failure


@pytest.mark.skipif(os.name != "posix", reason="a POSIX shell")
async def test_a_shell_runs_what_it_is_told_to(tmp_path: Path) -> None:
    result, _ = await run(*shell_argv("echo a | tr a b > c; cat c"), cwd=tmp_path)
    assert result.stdout == "b\n"


DETACHED = """
import os, signal, subprocess, sys, time
kind, me = sys.argv[1], [sys.executable, "-c"]
stay = (
    "import os, signal, time; {}; open(f'pid-{{os.getpid()}}', 'w').close();"
    " time.sleep(600)"
)
devnull = subprocess.DEVNULL
quiet = {"stdout": devnull, "stderr": devnull, "start_new_session": True}
if kind == "setsid":
    subprocess.Popen([*me, stay.format("0")], **quiet)
elif kind == "stubborn":
    ignores = stay.format("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    subprocess.Popen([*me, ignores], **quiet)
elif kind == "double fork":
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            subprocess.run([*me, stay.format("0")], **quiet)
        os._exit(0)
elif kind == "without its environment":
    subprocess.Popen([*me, stay.format("0")], env={}, **quiet)
print("begun", flush=True)
time.sleep(600)
"""


async def detached(folder: Path) -> int:
    """The process that left, once it is there."""
    while not (found := list(folder.glob("pid-*"))):
        await asyncio.sleep(0.01)
    return int(found[0].name.removeprefix("pid-"))


@pytest.mark.fork
@pytest.mark.skipif(os.name != "posix", reason="sessions and forks")
@pytest.mark.parametrize(
    "kind", ["setsid", "stubborn", "double fork", "without its environment"]
)
async def test_at_the_limit_what_left_the_group_is_ended_too(
    tmp_path: Path, kind: str
) -> None:
    running = asyncio.create_task(
        run_command((*python(DETACHED), kind), cwd=tmp_path, limit=600)
    )
    pid = await detached(tmp_path)
    leap(600)
    assert (await running).timed_out
    assert await is_gone(pid)


@pytest.mark.fork
@pytest.mark.skipif(os.name != "posix", reason="sessions and forks")
async def test_cancelling_ends_what_left_the_group(tmp_path: Path) -> None:
    task = asyncio.create_task(
        run(*python(DETACHED), "double fork", cwd=tmp_path, limit=600)
    )
    pid = await detached(tmp_path)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await is_gone(pid)


@pytest.mark.fork
@pytest.mark.skipif(os.name != "posix", reason="sessions and forks")
async def test_at_its_own_end_a_command_may_leave_a_server_behind(
    tmp_path: Path,
) -> None:
    code = DETACHED.replace("time.sleep(600)\n", "").replace(
        "time.sleep(600)", "time.sleep(60)"
    )
    result = await run_command((*python(code), "setsid"), cwd=tmp_path, limit=60)
    pid = await detached(tmp_path)
    os.kill(pid, 9)  # raises if it is gone
    assert not result.timed_out


@pytest.mark.fork
@pytest.mark.skipif(os.name != "posix", reason="a shell and `yes`")
@pytest.mark.parametrize(
    ("command", "limit", "timed_out"),
    [
        ("setsid yes & sleep 600", 1.0, True),
        ("yes & exit 0", 600.0, False),
        ("yes", 1.0, True),
    ],
)
async def test_a_command_that_keeps_printing_does_not_outlast_its_limit(
    tmp_path: Path, command: str, limit: float, timed_out: bool
) -> None:
    async with asyncio.timeout(PATIENCE):
        result, _ = await run("sh", "-c", command, cwd=tmp_path, limit=limit)
    assert result.timed_out is timed_out


@pytest.mark.fork
async def test_who_stops_when_it_has_just_ended_is_not_overheard() -> None:
    went_on = False

    def on_output(chunk: OutputChunk) -> None:
        time.sleep(0.5)  # meanwhile it ends
        task.cancel()

    async def run_it() -> None:
        nonlocal went_on
        await run_command(
            [sys.executable, "-c", "print('last')"],
            cwd=Path.cwd(),
            limit=60,
            on_output=on_output,
        )
        went_on = True

    task = asyncio.create_task(run_it())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not went_on
