"""The one module that starts other programs: without a shell, with a time limit.

A command runs in a separate process group, and its environment carries a mark. On a
timeout or a cancellation, the whole group is ended, and every process with the mark. If
a command ends by itself, only the rest of its group is ended; a process that left the
group, such as a server, stays. `policy.py` decides which commands may run.
"""

import asyncio
import codecs
import contextlib
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Literal

import psutil
from msgspec import Struct, field

from cdd_agent.process.ending import GRACE, MARK, end_marked, noted
from cdd_agent.process.programs import find_program
from cdd_agent.text.redaction import is_typed_key
from cdd_agent.text.secret_names import is_secret_name
from cdd_agent.threads import in_thread, to_its_end
from cdd_agent.values.typed_values import Checked

if sys.platform == "linux":
    import fcntl

LARGEST_COPY = 64_000_000  # bytes
_KEPT = 256 * 1024
"""Characters kept of each stream: a quarter from its beginning, the rest from its
end.
"""
_SLICE = 0.01
"""Seconds. Waiting for `GRACE` in slices excludes time in which this process was
suspended.
"""
WHOLE = sys.maxsize
"""Keep all of stdout."""
_PIPE = 1024 * 1024
"""Maximum bytes per read, and the pipe size to request."""
SHOWN_EVERY = 0.1
"""Seconds between two updates of the output on screen."""
SHOWN_CHARACTERS, SHOWN_LINES = 64 * 1024, 500
"""Maximum size of one update: a quarter from the beginning, the rest from the end."""

StreamName = Literal["stdout", "stderr"]


class OutputChunk(Struct, frozen=True):
    """A decoded piece of a running command's output. Bytes that are not UTF-8 become
    replacement characters.
    """

    text: str
    stream: StreamName
    """The stream of the text, or of its end if it mixes both."""


class CommandResult(Checked, frozen=True):
    """The end of a command. `return_code` is 127 for an unknown program, 126 for one
    that could not start or was refused, and negative for a signal.
    """

    stdout: str
    stderr: str
    return_code: int
    seconds: float = 0.0
    timed_out: bool = False
    cut: bool = False
    """True if the middle of the output was dropped because it was too long."""
    started: bool = True
    refused: bool = False
    limit: float = 0.0
    """The time limit in seconds."""

    @property
    def failure(self) -> str:
        """The reason for a failure, or an empty text."""
        if not self.started:
            return self.stderr
        if self.timed_out:
            text = f"Command timed out after {self.limit:g} seconds\n{self.stderr}"
            return text.strip()
        if self.return_code == 0:
            return ""
        return f"Exit code {self.return_code}\n{self.stderr}".strip()


OnOutput = Callable[[OutputChunk], None]
"""Receives a command's output as it arrives. Returns at once and never raises."""


def ignore_output(chunk: OutputChunk) -> None:
    """Ignore the output: for callers that need only the result."""


def child_environment(
    extra: Mapping[str, str] | None = None,
    *,
    hide: Iterable[str] = (),
    passed: Iterable[str] = (),
) -> dict[str, str]:
    """Return the user's environment without secrets, plus `extra`.

    A variable is secret if `hide` names it (patterns such as `AWS_*` work), if its name
    looks secret and `passed` does not name it, or if the user typed its value as a key
    in this session.
    """
    hide, passed = tuple(hide), tuple(passed)
    environment = {
        name: value
        for name, value in _own_environment().items()
        if not is_secret_name(name, hide=hide, passed=passed)
    }
    for name, value in (extra or {}).items():
        environment[name.upper() if os.name == "nt" else name] = value
    return environment


def _own_environment() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if not is_typed_key(value)
    }


def shell_argv(text: str) -> tuple[str, ...]:
    """Return the argv that runs a text in the system's shell."""
    if os.name == "nt":
        return ("cmd", "/d", "/c", text)
    return ("/bin/sh", "-c", text)


async def run_command(
    argv: Sequence[str],
    *,
    cwd: Path,
    limit: float,
    env: Mapping[str, str] | None = None,
    hide: Iterable[str] = (),
    passed: Iterable[str] = (),
    stdin: Path | None = None,
    stdout: Path | None = None,
    most: int | None = None,
    copies: Path | None = None,
    noted_in: Path | None = None,
    on_output: OnOutput = ignore_output,
) -> CommandResult:
    """Run `argv` in `cwd` for at most `limit` seconds.

    - `on_output` receives the output for display, a few pieces a second, without the
      middle of large ones. The program never waits for the display.
    - The result has the beginning and the end of each stream. With `most`, it has
      stdout from its beginning, up to that many characters (`WHOLE`: all). If stdout is
      longer, the program is ended and the result is `cut`.
    - `stdin` is a file or closed. `stdout` is a file that receives that stream
      unchanged. `copies` is a folder for the files `stdout` and `stderr`, each up to a
      little over `LARGEST_COPY`.
    - `noted_in` is a folder in which the command is noted while it runs, so that
      `end_noted` can end it after a kill of this process.
    - `env`, `hide` and `passed` make the `child_environment`. A program without a path
      is looked up in the PATH of this process, whatever `env` contains.

    Raises nothing for a command that fails, is missing or times out: the result has the
    reason. Cancelling ends the command and everything it started.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    mark = uuid.uuid4().hex
    environment = child_environment(env, hide=hide, passed=passed)
    environment[MARK] = f"{os.environ.get(MARK, '')} {mark}".strip()
    with contextlib.ExitStack() as note:
        try:
            note_process = note.enter_context(noted(noted_in, mark))
            process = _start(argv, cwd, environment, stdin, stdout)
        except _NoSuchProgram:
            return CommandResult(
                "", f"Error: Command not found: {argv[0]}", 127, started=False
            )
        except (OSError, ValueError) as error:
            # not executable, no such folder, a NUL in an argument
            why = getattr(error, "strerror", None) or str(error)
            place = str(getattr(error, "filename", None))
            if place == str(cwd) or (noted_in and place.startswith(str(noted_in))):
                why = f"{place}: {why}"
            return CommandResult(
                "", f"{argv[0]} could not be started: {why}", 126, started=False
            )
        note_process(process.pid)
        output = _Output(process, on_output, most, copies)
        ended_by_itself = False
        try:
            await output.end(limit=limit)
            is_running = process.poll() is None
            timed_out = is_running and not output.is_full
            if is_running:
                await to_its_end(partial(_end_all, process, mark), name="end")
            await output.end()
            ended_by_itself = True
            return output.result(
                process.wait(), loop.time() - started, limit, timed_out=timed_out
            )
        finally:
            output.close()
            if ended_by_itself:
                _end_group(process)
            else:
                await to_its_end(partial(_end_all, process, mark), name="end")


def run_in_foreground(argv: Sequence[str], cwd: Path | None = None) -> int:
    """Run a program in the terminal with the user's whole environment. Returns its exit
    code. Raises `OSError` if it cannot be started.
    """
    environment = _own_environment()
    return subprocess.run(argv, cwd=cwd, env=environment, check=False).returncode


class _NoSuchProgram(Exception):
    pass


def _start(
    argv: Sequence[str],
    cwd: Path,
    env: dict[str, str],
    stdin: Path | None,
    stdout: Path | None,
) -> subprocess.Popen[bytes]:
    if not cwd.is_dir():
        raise NotADirectoryError(f"{cwd} is not a folder")
    program: Path | str | None = argv[0]
    if Path(argv[0]).name == argv[0]:
        program = find_program(argv[0])
    if program is None:
        raise _NoSuchProgram
    # separate process group on Windows
    flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    with contextlib.ExitStack() as files:
        try:
            source: int | IO[bytes] = subprocess.DEVNULL
            if stdin is not None:
                source = files.enter_context(stdin.open("rb"))
            target: int | IO[bytes] = subprocess.PIPE
            if stdout is not None:
                target = files.enter_context(stdout.open("wb"))
            return subprocess.Popen(
                [str(program), *argv[1:]],
                cwd=cwd,
                env=env,
                stdin=source,
                stdout=target,
                stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
                creationflags=flags,
            )
        except FileNotFoundError as error:
            # the folder was removed just now
            if str(error.filename) in (str(cwd), str(stdin), str(stdout)):
                raise
            raise _NoSuchProgram from error


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the whole process group: TERM, then KILL after a grace period. Includes
    children of a leader that has ended.
    """
    if sys.platform == "win32":
        if process.poll() is None:
            taskkill = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
            subprocess.run(taskkill, capture_output=True, check=False)
        return
    # the group may be empty
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_all(process: subprocess.Popen[bytes], mark: str) -> None:
    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
    _end_group(process)
    end_marked(mark, family)


class _Output:
    """Both pipes of a process. A thread reads each, so that neither can block the other
    or the program.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        on_output: OnOutput,
        most: int | None,
        copies: Path | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_output = on_output
        self._shown, self._shown_at = _PendingOutput(), -SHOWN_EVERY
        self._closed = threading.Event()
        stdout = HeadTailBuffer() if most is None else _Head(most)
        self._kept: dict[StreamName, HeadTailBuffer | _Head] = {
            "stdout": stdout,
            "stderr": HeadTailBuffer(),
        }
        self._full: asyncio.Future[None] = self._loop.create_future()
        """Done when stdout exceeds `most`."""
        streams: tuple[tuple[StreamName, IO[bytes] | None], ...] = (
            ("stdout", process.stdout),
            ("stderr", process.stderr),
        )
        readers = list[threading.Thread]()
        for name, pipe in streams:
            if pipe is not None:
                ends_early = most is not None and name == "stdout"
                copy = _StreamFile(copies / name if copies else None)
                readers.append(
                    threading.Thread(
                        target=self._read,
                        args=(name, pipe, ends_early, copy),
                        daemon=True,
                    )
                )
                readers[-1].start()
        self._ended = asyncio.ensure_future(
            in_thread(partial(_ended, process, readers), name="wait")
        )

    @property
    def is_full(self) -> bool:
        return self._full.done()

    async def end(self, *, limit: float | None = None) -> None:
        """Wait until the program and its pipes end, stdout is full, or `limit` seconds
        pass.
        """
        # `wait_for` can lose a cancellation that arrives at its end
        await asyncio.wait(
            {self._ended, self._full},
            timeout=limit,
            return_when=asyncio.FIRST_COMPLETED,
        )

    def result(
        self, return_code: int, seconds: float, limit: float, *, timed_out: bool
    ) -> CommandResult:
        """Show the last output and return the result. Later output is ignored."""
        self._closed.set()
        self._show()
        out, err = self._kept["stdout"], self._kept["stderr"]
        cut = out.cut or (err.cut and not isinstance(out, _Head))
        return CommandResult(
            out.text(), err.text(), return_code, seconds, timed_out, cut, limit=limit
        )

    def close(self) -> None:
        """Stop the readers and close the pipes. A process that still writes gets an
        error.
        """
        self._closed.set()

    def _read(
        self, name: StreamName, pipe: IO[bytes], ends_early: bool, copy: "_StreamFile"
    ) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        # a larger pipe blocks the program less; the system limits its size
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
        with pipe, copy:
            # Popen's pipes are BufferedReaders
            while not self._closed.is_set() and (data := pipe.read1(_PIPE)):  # type: ignore[attr-defined]
                copy.add(data)
                self._add(decoder.decode(data), name)
                if ends_early and self._kept[name].cut:
                    self._call_in_loop(self._full.set_result, None)
                    break
        self._add(decoder.decode(b"", final=True), name)

    def _add(self, text: str, name: StreamName) -> None:
        if text and not self._closed.is_set():
            self._kept[name].add(text)
            if self._on_output is not ignore_output and self._shown.add(
                OutputChunk(text, name)
            ):
                self._call_in_loop(self._show_soon)

    def _call_in_loop(self, what: Callable[..., None], *arguments: object) -> None:
        """Call a function in the event loop, from a reader's thread."""
        if not self._closed.is_set():
            # the loop may close between the check and the call
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(what, *arguments)

    def _show_soon(self) -> None:
        wait = self._shown_at + SHOWN_EVERY - self._loop.time()
        if wait > 0:
            self._loop.call_later(wait, self._show_soon)
        elif not self._closed.is_set():
            self._show()

    def _show(self) -> None:
        chunk = self._shown.take_pending()
        if chunk is not None:
            self._shown_at = self._loop.time()
            self._on_output(chunk)


def _ended(
    process: subprocess.Popen[bytes], readers: Iterable[threading.Thread]
) -> None:
    """Wait until the program ends and its pipes are read. A background child may hold
    the pipes open, so this takes at most `GRACE`.
    """
    process.wait()
    for _ in range(round(GRACE / _SLICE)):
        running = [reader for reader in readers if reader.is_alive()]
        if not running:
            return
        running[0].join(_SLICE)


class _StreamFile:
    """A copy of a stream in an optional file. An incomplete file is deleted."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._length = path, 0
        self._file = path.open("xb", buffering=0) if path else None

    def __enter__(self) -> "_StreamFile":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file:
            self._file.close()

    def add(self, data: bytes) -> None:
        if self._file is None or self._path is None or self._length > LARGEST_COPY:
            return
        self._length += len(data)
        try:
            self._file.write(data)
        except OSError:
            self._file.close()
            self._file = None
            with contextlib.suppress(OSError):
                self._path.unlink()


class _PendingOutput:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._kept, self._length = HeadTailBuffer(SHOWN_CHARACTERS), 0
        self._stream: StreamName | None = None

    def add(self, chunk: OutputChunk) -> bool:
        """Add output. True if it is the first since the last call of `take_pending`."""
        with self._lock:
            is_first = self._stream is None
            self._stream = chunk.stream
            self._kept.add(chunk.text)
            self._length += len(chunk.text)
            return is_first

    def take_pending(self) -> OutputChunk | None:
        """Return the waiting output, or None."""
        with self._lock:
            pieces, length, stream = self._kept, self._length, self._stream
            self._begin()
        if stream is None:
            return None
        return OutputChunk(_for_display(pieces, length), stream)


def _for_display(buffer: "HeadTailBuffer", length: int) -> str:
    """Return whole lines from the beginning and the end, with the number of characters
    between them. A line that is too long is split at a blank, because half of a secret
    would not be redacted.
    """
    begin, end = buffer.head, "".join(buffer.tail)
    if not buffer.cut:
        text = begin + end
        if len(text) <= SHOWN_CHARACTERS and text.count("\n") <= SHOWN_LINES:
            return text
        begin, end = text[: SHOWN_CHARACTERS // 4], text
    begin = begin[: begin.rfind("\n") + 1] or begin[: begin.rfind(" ") + 1]
    begin = "".join(begin.splitlines(keepends=True)[: SHOWN_LINES // 4])
    end = end[-SHOWN_CHARACTERS * 3 // 4 :]
    end = end.partition("\n")[2] or end.partition(" ")[2]
    end = "".join(end.splitlines(keepends=True)[-SHOWN_LINES * 3 // 4 :])
    return (
        f"{begin}… ({length - len(begin) - len(end):,} characters are not shown)"
        f" …\n{end}"
    )


class HeadTailBuffer(Struct):
    """The beginning and the end of a stream, up to a number of characters."""

    most: int = _KEPT
    head: str = ""
    tail: list[str] = field(default_factory=list)
    tail_length: int = 0
    cut: bool = False

    def add(self, text: str) -> None:
        room, longest = self.most // 4 - len(self.head), self.most * 3 // 4
        self.head, text = self.head + text[:room], text[room:]
        if len(text) > longest:
            self.tail, self.tail_length, self.cut = [text[-longest:]], longest, True
        elif text:
            self.tail.append(text)
            self.tail_length += len(text)
        while self.tail_length - len(self.tail[0] if self.tail else "") > longest:
            self.tail_length -= len(self.tail.pop(0))
            self.cut = True

    def text(self) -> str:
        gap = "\n… (output omitted) …\n" if self.cut else ""
        return self.head + gap + "".join(self.tail)


class _Head:
    def __init__(self, most: int) -> None:
        self._left, self._pieces, self.cut = most, list[str](), False

    def add(self, text: str) -> None:
        self.cut = self.cut or len(text) > self._left
        self._pieces.append(text[: self._left])
        self._left -= len(self._pieces[-1])

    def text(self) -> str:
        return "".join(self._pieces)
