"""`cdd` as a process with its own streams, folder and environment, like `python -m
cdd_agent`. It is a fork of a process that has imported cdd, which saves half a second
of processor time per start.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from multiprocessing import reduction
from pathlib import Path
from threading import Thread
from typing import IO, Any

from tests.support.processes import PROCESSES, take_environment

PATIENCE = 180.0


class _Passed(int):
    """A file descriptor, which gets another number in the receiving process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _taken, (reduction.DupFd(int(self)),)


def _taken(file: Any) -> int:
    number: int = file.detach()
    return number


class Forked:
    """A forked `cdd` with the needed part of `subprocess.Popen`: text pipes for its
    output, and `typed` as its whole input. Alternatively, `terminal` (an open file's
    number) is all its streams.
    """

    stdout: IO[str]
    stderr: IO[str]

    def __init__(
        self,
        *words: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        typed: str = "",
        terminal: int | None = None,
    ) -> None:
        streams, ours = [terminal] * 3, list[int]()
        if terminal is None:
            (reads, to_read), (out, to_out), (err, to_err) = (
                os.pipe(),
                os.pipe(),
                os.pipe(),
            )
            with os.fdopen(to_read, "w", encoding="utf-8") as file:
                file.write(typed)  # a pipe has room for 64 kB
            self.stdout, self.stderr = (
                os.fdopen(out, encoding="utf-8"),
                os.fdopen(err, encoding="utf-8"),
            )
            streams = ours = [reads, to_out, to_err]
        given = [_Passed(stream) for stream in streams if stream is not None]
        environment = dict(os.environ if env is None else env)
        arguments = (words, cwd, environment, given, terminal is not None)
        self._process = PROCESSES.Process(target=_be_cdd, args=arguments, daemon=True)
        self._process.start()
        for stream in ours:
            os.close(stream)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float = PATIENCE) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            self.kill()
            raise subprocess.TimeoutExpired("cdd", timeout)
        return self._process.exitcode

    def communicate(self, timeout: float = PATIENCE) -> tuple[str, str]:
        """Return all output from now on, to the end."""
        said = ["", ""]

        def read(place: int, stream: IO[str]) -> None:
            with stream:
                said[place] = stream.read()

        readers = [
            Thread(target=read, args=pair, daemon=True)
            for pair in enumerate((self.stdout, self.stderr))
        ]
        for reader in readers:
            reader.start()
        until = time.monotonic() + timeout
        for reader in readers:
            reader.join(max(until - time.monotonic(), 0))
        self.wait(max(until - time.monotonic(), 1))
        assert not any(reader.is_alive() for reader in readers), (
            "something that it started has its streams"
        )
        return said[0], said[1]

    def send_signal(self, number: int) -> None:
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)
        self._process.join()


def ran(
    *words: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    typed: str = "",
    timeout: float = PATIENCE,
) -> subprocess.CompletedProcess[str]:
    """Run `cdd` to its end, like `subprocess.run`."""
    process = Forked(*words, cwd=cwd, env=env, typed=typed)
    out, err = process.communicate(timeout)
    return subprocess.CompletedProcess(["cdd", *words], process.wait(), out, err)


def _be_cdd(
    words: tuple[str, ...],
    cwd: Path,
    env: dict[str, str],
    files: list[int],
    has_terminal: bool,
) -> None:
    """The target of the fork: turns it into the started program."""
    if has_terminal:
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(files[0], termios.TIOCSCTTY, 0)
    for number, file in enumerate(files):
        os.dup2(file, number)
    for file in set(files):
        os.close(file)
    os.chdir(cwd)
    take_environment(env)
    sys.argv = ["cdd", *words]
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(  # noqa: SIM115
        1, "w", encoding="utf-8", closefd=False, buffering=1 if has_terminal else -1
    )
    sys.stderr = open(  # noqa: SIM115
        2, "w", encoding="utf-8", closefd=False, errors="backslashreplace", buffering=1
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from cdd_agent.cli.main import main
    from tests.support.held_replies import hold_replies
    from tests.support.patience import be_patient

    be_patient()
    hold_replies()
    code = main()
    try:
        sys.stdout.flush()
    except OSError:  # the reader has closed the pipe
        sys.stdout = None  # type: ignore[assignment]
    sys.exit(code)
