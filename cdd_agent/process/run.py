"""The one place that starts other programs: argv, a time limit, and an end to what
overstays it.

A command is its own process group, and its environment carries a mark. When its time is
up, or whoever runs it is cancelled, the whole group is ended, and with it whatever left
the group. After an end of its own, only what is still in the group is ended: what left
it, such as a server, stays. Which commands may run is not judged here but in
`policy.py`.
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

from cdd_agent.forms import Captured, Checked
from cdd_agent.process.ending import GRACE, MARK, end_marked, noted
from cdd_agent.process.programs import find_program
from cdd_agent.secret_names import is_secret_name
from cdd_agent.threads import in_thread, to_its_end

if sys.platform == "linux":
    import fcntl

LARGEST_COPY = 64_000_000  # bytes
_KEPT = 256 * 1024
"""Characters kept of each stream; of more than that, the first quarter and the rest
from the end.
"""
_SLICE = 0.01
"""Seconds; of `GRACE`, the time that pipes have to be read after a command's end."""
WHOLE = sys.maxsize
"""All characters of stdout, however many."""
_PIPE = 1024 * 1024
"""Bytes that are read at once, at most, and that a pipe has room for where that can be
chosen.
"""
SHOWN_EVERY = 0.1
"""Seconds between two pieces of output that is only shown."""
SHOWN_CHARACTERS, SHOWN_LINES = 64 * 1024, 500
"""At most in one such piece, beside the mark of what is left out: a quarter is the
beginning, the rest the end.
"""

StreamName = Literal["stdout", "stderr"]


class OutputChunk(Struct, frozen=True):
    """A piece of a running command's output, decoded; bytes that are not UTF-8 become
    replacement characters.
    """

    text: str
    stream: StreamName
    """Where it was written to; of a piece that is joined from both, its end."""


class CommandResult(Checked, frozen=True):
    """The end of a command. `return_code` is 127 when there is no such program, 126
    when it could not be started or was refused, negative for a signal.
    """

    stdout: Captured
    stderr: Captured
    return_code: int
    seconds: float = 0.0
    timed_out: bool = False
    cut: bool = False
    """Output was longer than what is kept: the middle is left out."""
    started: bool = True
    """False when there is no such program, or it could not or must not be run: then
    nothing happened.
    """
    refused: bool = False
    """The policy, or a person, said no; the reason is in `stderr`."""
    limit: float = 0.0
    """Seconds that it was given."""

    @property
    def failure(self) -> str:
        """Why it did not succeed, in words; empty when it did."""
        if not self.started:
            return self.stderr
        if self.timed_out:
            return (
                f"Command timed out after {self.limit:g} seconds\n{self.stderr}".strip()
            )
        return (
            f"Exit code {self.return_code}\n{self.stderr}".strip()
            if self.return_code
            else ""
        )


Hear = Callable[[OutputChunk], None]
"""Is given a command's output as it comes. It returns at once, and never raises."""


def unheard(chunk: OutputChunk) -> None:
    """For whoever only wants the result."""


def child_environment(
    extra: Mapping[str, str] | None = None,
    *,
    hide: Iterable[str] = (),
    passed: Iterable[str] = (),
) -> dict[str, str]:
    """The user's environment without secrets, with `extra` merged over it.

    A secret is what `hide` names (`AWS_*` and the like, too), and what looks like one
    unless `passed` names it.
    """
    hide, passed = tuple(hide), tuple(passed)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not is_secret_name(name, hide=hide, passed=passed)
    }
    for name, value in (extra or {}).items():
        kept[name.upper() if os.name == "nt" else name] = value
    return kept


def shell_argv(text: str) -> tuple[str, ...]:
    """How the system's shell is told to run a text."""
    return ("cmd", "/d", "/c", text) if os.name == "nt" else ("/bin/sh", "-c", text)


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
    hear: Hear = unheard,
) -> CommandResult:
    """Run `argv` in `cwd` for at most `limit` seconds.

    `hear` is given the output to show, joined to a few pieces a second: of much at once
    the middle is left out, and the program never waits for it. The result has the
    beginning and the end of each stream. With `most`, it has all of stdout instead, up
    to so many characters (`WHOLE`: all): then it is `cut`, and the program is ended.

    What it reads is closed, or a file; with a file for `stdout`, all of that stream
    goes there, byte for byte. With a folder for `copies`, both streams are in files
    there too, `stdout` and `stderr`, up to a little over `LARGEST_COPY`. With
    `noted_in`, it is noted there while it runs: `end_noted` ends it, should this
    process be killed.

    A program without a path is looked up as this process would, whatever `env` says
    about PATH. `env`, `hide` and `passed` make the `child_environment`. Nothing is
    raised for a command that fails, is not there, or takes too long: the result says
    so. Whoever is cancelled ends the command and everything it started.
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
        output = _Output(process, hear, most, copies)
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
                _end_group(process)  # of those who are left there, nobody is waited for
            else:
                await to_its_end(partial(_end_all, process, mark), name="end")


def run_in_foreground(argv: Sequence[str], cwd: Path | None = None) -> int:
    """Run a program of the person's own that has the terminal to itself, with all of
    their environment, and return its exit code. Raises `OSError` where it cannot be
    started.
    """
    return subprocess.run(argv, cwd=cwd, check=False).returncode


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
    program = argv[0] if Path(argv[0]).name != argv[0] else find_program(argv[0])
    if program is None:
        raise _NoSuchProgram
    # Windows' form of a group of its own
    flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    with contextlib.ExitStack() as files:
        try:
            return subprocess.Popen(
                [str(program), *argv[1:]],
                cwd=cwd,
                env=env,
                stdin=(
                    files.enter_context(stdin.open("rb"))
                    if stdin
                    else subprocess.DEVNULL
                ),
                stdout=(
                    files.enter_context(stdout.open("wb"))
                    if stdout
                    else subprocess.PIPE
                ),
                stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
                creationflags=flags,
            )
        except FileNotFoundError as error:
            # the folder was removed just now
            if str(error.filename) in (
                str(cwd),
                str(stdin),
                str(stdout),
            ):
                raise
            raise _NoSuchProgram from error


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """TERM to the whole group, KILL to whatever is left after a grace; children of an
    exited leader included.
    """
    if os.name == "nt":
        if process.poll() is None:
            taskkill = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
            subprocess.run(taskkill, capture_output=True, check=False)
        return
    # nobody is left in the group
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_all(process: subprocess.Popen[bytes], mark: str) -> None:
    """The group, and whoever left it: children of its processes, and what carries the
    mark in its environment.
    """
    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
    _end_group(process)
    end_marked(mark, family)


class _Output:
    """Both pipes of a process, read by a thread each so that neither can block the
    other or the program.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        hear: Hear,
        most: int | None,
        copies: Path | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._hear = hear
        self._shown, self._shown_at = _PendingOutput(), -SHOWN_EVERY
        self._closed = threading.Event()
        stdout = HeadTailBuffer() if most is None else _Head(most)
        self._kept: dict[StreamName, HeadTailBuffer | _Head] = {
            "stdout": stdout,
            "stderr": HeadTailBuffer(),
        }
        self._full: asyncio.Future[None] = self._loop.create_future()
        """Done when there is more of stdout than is wanted."""
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
        """Wait for the program's end and that of its pipes, but no longer than so many
        seconds, or until it is full.
        """
        # `wait_for` can lose a request to stop that comes at its end.
        await asyncio.wait(
            {self._ended, self._full},
            timeout=limit,
            return_when=asyncio.FIRST_COMPLETED,
        )

    def result(
        self, return_code: int, seconds: float, limit: float, *, timed_out: bool
    ) -> CommandResult:
        """With what was read so far, all of which was shown by then: what is read from
        now on is not the program's.
        """
        self._closed.set()
        self._show()
        out, err = self._kept["stdout"], self._kept["stderr"]
        cut = out.cut or (err.cut and not isinstance(out, _Head))
        return CommandResult(
            out.text(), err.text(), return_code, seconds, timed_out, cut, limit=limit
        )

    def close(self) -> None:
        """Let the readers stop, and close the pipes: whoever still writes into them is
        told so by the system.
        """
        self._closed.set()

    def _read(
        self, name: StreamName, pipe: IO[bytes], ends_early: bool, copy: "_StreamFile"
    ) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        # A larger pipe holds the program up less. The system limits its size.
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
        with pipe, copy:
            # Popen's pipes are BufferedReaders
            while not self._closed.is_set() and (data := pipe.read1(_PIPE)):  # type: ignore[attr-defined]
                copy.add(data)
                self._add(decoder.decode(data), name)
                if ends_early and self._kept[name].cut:
                    self._tell(self._full.set_result, None)
                    break
        self._add(decoder.decode(b"", final=True), name)

    def _add(self, text: str, name: StreamName) -> None:
        if text and not self._closed.is_set():
            self._kept[name].add(text)
            if self._hear is not unheard and self._shown.add(OutputChunk(text, name)):
                self._tell(self._show_soon)

    def _tell(self, what: Callable[..., None], *arguments: object) -> None:
        """From a reader's thread to the loop."""
        if not self._closed.is_set():
            # the loop was closed between the check and the call
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(what, *arguments)

    def _show_soon(self) -> None:
        """Show what there is, when it is time."""
        wait = self._shown_at + SHOWN_EVERY - self._loop.time()
        if wait > 0:
            self._loop.call_later(wait, self._show_soon)
        elif not self._closed.is_set():
            self._show()

    def _show(self) -> None:
        if (chunk := self._shown.taken()) is not None:
            self._shown_at = self._loop.time()
            self._hear(chunk)


def _ended(
    process: subprocess.Popen[bytes], readers: Iterable[threading.Thread]
) -> None:
    """Wait for a program's end, and until its pipes are read. A background child may
    hold them open after the program is gone; it is not waited for long. In slices, so
    that time in which this process was stopped is not counted.
    """
    process.wait()
    for _ in range(round(GRACE / _SLICE)):
        if (reader := next((one for one in readers if one.is_alive()), None)) is None:
            return
        reader.join(_SLICE)


class _StreamFile:
    """A stream in a file, where one is wanted; what cannot be written whole is not
    there at all.
    """

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
    """Output that waits to be shown, from both pipes: of more than there is room for,
    the beginning and the end.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._kept, self._length = HeadTailBuffer(SHOWN_CHARACTERS), 0
        self._stream: StreamName | None = None

    def add(self, chunk: OutputChunk) -> bool:
        """Whether it is the first since the last was taken."""
        with self._lock:
            is_first, self._stream = self._stream is None, chunk.stream
            self._kept.add(chunk.text)
            self._length += len(chunk.text)
            return is_first

    def taken(self) -> OutputChunk | None:
        with self._lock:
            kept, length, stream = self._kept, self._length, self._stream
            self._begin()
        return OutputChunk(_for_display(kept, length), stream) if stream else None


def _for_display(kept: "HeadTailBuffer", length: int) -> str:
    """Whole lines of its beginning and its end, and how much there was between them. Of
    a line that is too long, whole words: half of a secret would not be known as one.
    """
    begin, end = kept.head, "".join(kept.tail)
    if not kept.cut:
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
    """The head and the tail of a stream, within a bound of characters."""

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
        gap = "\n… (output left out) …\n" if self.cut else ""
        return self.head + gap + "".join(self.tail)


class _Head:
    """The beginning of a stream, up to so many characters."""

    def __init__(self, most: int) -> None:
        self._left, self._pieces, self.cut = most, list[str](), False

    def add(self, text: str) -> None:
        self.cut = self.cut or len(text) > self._left
        self._pieces.append(text[: self._left])
        self._left -= len(self._pieces[-1])

    def text(self) -> str:
        return "".join(self._pieces)
