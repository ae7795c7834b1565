"""The one place that starts other programs: argv, a time limit, and an end to what overstays it.

A command is its own process group, and its environment carries a mark. When its time is up, or its reader goes
away, the whole group is ended, and with it whatever left the group. After an end of its own, only what is still in the
group is ended: what left it, such as a server, stays. Which commands may run is not judged here but in `commands.py`.
"""

import asyncio
import codecs
import contextlib
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, TypeVar

from cdd_agent.process.programs import find_program
from cdd_agent.secret_names import is_secret_name
from cdd_agent.threads import in_thread, to_its_end

if TYPE_CHECKING:
    import psutil

_KEPT = 256 * 1024
"""Characters kept of each stream; of more than that, the first quarter and the rest from the end."""
_GRACE = 2.0
"""Seconds between asking a group to end and ending it, and for pipes to drain after an exit."""
_AHEAD = 64
"""Chunks a pipe may be read ahead of whoever takes all of them."""
_PIPE = 1024 * 1024
"""Bytes that are read at once, at most, and that a pipe has room for where that can be chosen."""
SHOWN_EVERY = 0.1
"""Seconds between two pieces of output that is only shown."""
SHOWN_CHARACTERS, SHOWN_LINES = 64 * 1024, 500
"""At most in one such piece, beside the mark of what is left out: a quarter is the beginning, the rest the end."""
_ROUNDS = 5
"""How often what left a command's group is looked for: what is being ended may start more."""
_MARK = "CDD_COMMAND"
"""The variable by which a command's processes are known, wherever they went. A nested one adds to it."""

StreamName = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class OutputChunk:
    """A piece of a running command's output, decoded; bytes that are not UTF-8 become replacement characters."""

    text: str
    stream: StreamName
    """Where it was written to; of a piece that is joined from both, its end."""


@dataclass(frozen=True)
class CommandResult:
    """What became of a command. `return_code` is 127 when there is no such program, 126 when it could not be started or
    was refused, negative for a signal."""

    stdout: str
    stderr: str
    return_code: int
    seconds: float = 0.0
    timed_out: bool = False
    cut: bool = False
    """Output was longer than what is kept: the middle is left out."""
    started: bool = True
    """False when there is no such program, or it could not or must not be run: then nothing happened."""
    refused: bool = False
    """The policy, or a person, said no; the reason is in `stderr`."""
    limit: float = 0.0
    """Seconds that it was given."""

    def __post_init__(self) -> None:
        if not isinstance(self.return_code, int) or isinstance(self.return_code, bool):
            raise TypeError(f"return_code is a whole number, not {self.return_code!r}")

    @property
    def failure(self) -> str:
        """Why it did not succeed, in words; empty when it did."""
        if not self.started:
            return self.stderr
        if self.timed_out:
            return f"Command timed out after {self.limit:g} seconds\n{self.stderr}".strip()
        return f"Exit code {self.return_code}\n{self.stderr}".strip() if self.return_code else ""


Result = TypeVar("Result")


async def result_of(items: AsyncGenerator[OutputChunk | Result, None]) -> Result:
    """What comes at the end of a run, for whoever has no use for the output on the way."""
    async with contextlib.aclosing(items):
        async for item in items:
            if not isinstance(item, OutputChunk):
                return item
    raise AssertionError("a run ends in a result")


def child_environment(
    extra: Mapping[str, str] | None = None, *, hide: Iterable[str] = (), passed: Iterable[str] = ()
) -> dict[str, str]:
    """The user's environment without secrets, with `extra` merged over it.

    A secret is what `hide` names (`AWS_*` and the like, too), and what looks like one unless `passed` names it.
    """
    hide, passed = tuple(hide), tuple(passed)
    kept = {name: value for name, value in os.environ.items() if not is_secret_name(name, hide=hide, passed=passed)}
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
    whole: bool = False,
) -> AsyncGenerator[OutputChunk | CommandResult, None]:
    """Run `argv` in `cwd` for at most `limit` seconds; yield its output as it comes, then one `CommandResult`.

    What is yielded is to be shown: the program never waits for whoever takes it. It is joined to a few pieces a second,
    and of much at once the middle is left out. With `whole`, all of it is yielded, and the program waits.

    What it reads is closed, or a file; with a file for `stdout`, all of that stream goes there, byte for byte.

    A program without a path is looked up as this process would, whatever `env` says about PATH. `env`, `hide` and
    `passed` make the `child_environment`. Nothing is raised for a command that fails, is not there, or takes too long:
    the result says so. Closing the iterator early ends the command and everything it started.
    """
    clock = asyncio.get_running_loop().time
    started = clock()
    mark = uuid.uuid4().hex
    environment = child_environment(env, hide=hide, passed=passed)
    environment[_MARK] = f"{os.environ.get(_MARK, '')} {mark}".strip()
    try:
        process = _start(argv, cwd, environment, stdin, stdout)
    except _NoSuchProgram:
        yield CommandResult("", f"Error: Command not found: {argv[0]}", 127, started=False)
        return
    except (OSError, ValueError) as error:  # not executable, no such folder, a NUL in an argument
        yield CommandResult("", f"{argv[0]} could not be started: {_reason(error, cwd)}", 126, started=False)
        return
    output = _Output(process, whole=whole)
    ended_by_itself = False
    try:
        while (chunk := await output.next(until=started + limit)) is not None:
            yield chunk
        timed_out = process.poll() is None
        if timed_out:
            await to_its_end(partial(_end_all, process, mark), name="end")
            last = clock() + _GRACE
            while (chunk := await output.next(until=last)) is not None:
                yield chunk
        code = await in_thread(process.wait, name="wait")
        ended_by_itself = True
        yield output.result(code, clock() - started, limit, timed_out=timed_out)
    finally:
        output.close()
        if ended_by_itself:
            await to_its_end(partial(_end_group, process), name="end")
        else:
            await to_its_end(partial(_end_all, process, mark), name="end")


class _NoSuchProgram(Exception):
    pass


def _reason(error: OSError | ValueError, cwd: Path) -> str:
    """Why a program could not be started, in the system's words; with the folder if it is because of that."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{cwd}: {error.strerror}" if str(error.filename) == str(cwd) else error.strerror


def _start(
    argv: Sequence[str], cwd: Path, env: dict[str, str], stdin: Path | None, stdout: Path | None
) -> subprocess.Popen[bytes]:
    if not cwd.is_dir():
        raise NotADirectoryError(f"{cwd} is not a folder")
    program = argv[0] if Path(argv[0]).name != argv[0] else find_program(argv[0])
    if program is None:
        raise _NoSuchProgram
    flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)  # Windows' form of a group of its own
    with contextlib.ExitStack() as files:
        try:
            return subprocess.Popen(
                [str(program), *argv[1:]],
                cwd=cwd,
                env=env,
                stdin=files.enter_context(stdin.open("rb")) if stdin else subprocess.DEVNULL,
                stdout=files.enter_context(stdout.open("wb")) if stdout else subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=os.name == "posix",
                creationflags=flags,
            )
        except FileNotFoundError as error:
            if str(error.filename) in (str(cwd), str(stdin), str(stdout)):  # the folder was removed just now
                raise
            raise _NoSuchProgram from error


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """TERM to the whole group, KILL to whatever is left after a grace; children of an exited leader included."""
    if os.name == "nt":
        if process.poll() is None:
            taskkill = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
            subprocess.run(taskkill, capture_output=True, check=False)
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left in the group
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_all(process: subprocess.Popen[bytes], mark: str) -> None:
    """The group, and whoever left it: children of its processes, and what carries the mark in its environment."""
    import psutil  # slow to import, and rarely needed

    family = _descendants(process.pid)
    _end_group(process)
    for _ in range(_ROUNDS):
        left = _alive({*family, *_marked(mark)})
        for one in left:
            with contextlib.suppress(psutil.Error):
                one.terminate()
        for one in _alive_after(_GRACE, left):
            with contextlib.suppress(psutil.Error):
                one.kill()
        if not left:
            return


def _descendants(pid: int) -> "list[psutil.Process]":
    import psutil

    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _marked(mark: str) -> "list[psutil.Process]":
    """Processes whose environment carries the mark, as far as the system lets one look; never this one."""
    import psutil

    return [
        one
        for one in psutil.process_iter(["environ"])
        if mark in (one.info["environ"] or {}).get(_MARK, "").split() and one.pid != os.getpid()
    ]


def _alive_after(seconds: float, processes: "Iterable[psutil.Process]") -> "list[psutil.Process]":
    """Which are still there then. They are nobody's children here, so there is nothing to wait for but their end."""
    until = time.monotonic() + seconds
    while (alive := _alive(processes)) and time.monotonic() < until:
        time.sleep(0.02)
    return alive


def _alive(processes: "Iterable[psutil.Process]") -> "list[psutil.Process]":
    """Without those that ended and only wait for somebody to notice."""
    import psutil

    def is_alive(one: psutil.Process) -> bool:
        try:
            return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    return [one for one in processes if is_alive(one)]


class _Output:
    """Both pipes of a process, read by a thread each so that neither can block the other or the program."""

    def __init__(self, process: subprocess.Popen[bytes], *, whole: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._shown = None if whole else _Shown()
        self._shown_at = -SHOWN_EVERY
        self._queue: asyncio.Queue[OutputChunk | None] = asyncio.Queue()
        self._ahead = threading.Semaphore(_AHEAD)
        self._closed = threading.Event()
        self._kept: dict[StreamName, HeadTailBuffer] = {"stdout": HeadTailBuffer(), "stderr": HeadTailBuffer()}
        streams: tuple[tuple[StreamName, IO[bytes] | None], ...] = (
            ("stdout", process.stdout),
            ("stderr", process.stderr),
        )
        pipes = [(name, pipe) for name, pipe in streams if pipe is not None]
        self._open_pipes = len(pipes)
        for name, pipe in pipes:
            threading.Thread(target=self._read, args=(name, pipe), daemon=True).start()
        self._exited_at: float | None = None
        self._exit = asyncio.ensure_future(in_thread(process.wait, name="wait"))
        self._exit.add_done_callback(self._note_exit)

    async def next(self, *, until: float) -> OutputChunk | None:
        """The next piece; None when both pipes ended and the program is gone, or at `until` (the loop's time).

        What has been read of a program that is gone is handed out to its end, however slowly it is taken. A background
        child may hold a pipe open after that; it is not waited for long.
        """
        while self._open_pipes or not self._queue.empty():
            if self._exited_at is not None:
                until = min(until, self._exited_at + _GRACE)
            if self._loop.time() >= until:
                if self._exited_at is None:
                    return None
                self._closed.set()  # what is read from now on is not the program's own
                self._show()
                if self._queue.empty():
                    return None
            chunk = await self._piece_or_exit(until) if self._queue.empty() else self._taken(self._queue.get_nowait())
            if chunk is not None:
                return chunk
        # The pipes are closed, but the program may go on. `wait_for` can lose a request to stop that comes at its end.
        await asyncio.wait({self._exit}, timeout=max(until - self._loop.time(), 0))
        return None

    async def _piece_or_exit(self, until: float) -> OutputChunk | None:
        getting = asyncio.ensure_future(self._queue.get())
        waiting = {getting} if self._exit.done() else {getting, self._exit}
        try:
            await asyncio.wait(waiting, timeout=until - self._loop.time(), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not getting.done():
                getting.cancel()
        if not getting.done() or getting.cancelled():
            return None
        return self._taken(getting.result())

    def _taken(self, chunk: OutputChunk | None) -> OutputChunk | None:
        if chunk is None:
            self._open_pipes -= 1
            return None
        if self._shown is None:
            self._ahead.release()
            self._kept[chunk.stream].add(chunk.text)
        return chunk

    def _note_exit(self, exit_: "asyncio.Future[int]") -> None:
        del exit_
        self._exited_at = self._loop.time()
        self._ahead.release(_AHEAD)  # what is left in the pipes is read at once, while it is the program's own

    def result(self, return_code: int, seconds: float, limit: float, *, timed_out: bool) -> CommandResult:
        out, err = self._kept["stdout"], self._kept["stderr"]
        cut = out.cut or err.cut
        return CommandResult(out.text(), err.text(), return_code, seconds, timed_out, cut, limit=limit)

    def close(self) -> None:
        """Let the readers stop, and close the pipes: whoever still writes into them is told so by the system."""
        self._closed.set()
        self._ahead.release(_AHEAD + 2)

    def _read(self, name: StreamName, pipe: IO[bytes]) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        _widen(pipe)
        with pipe:
            while not self._closed.is_set() and (data := pipe.read1(_PIPE)):  # type: ignore[attr-defined]  # Popen's pipes are BufferedReaders
                self._hand_over(decoder.decode(data), name)
        self._hand_over(decoder.decode(b"", final=True), name)
        self._tell(self._pipe_ended)

    def _hand_over(self, text: str, name: StreamName) -> None:
        if not text or self._closed.is_set():
            return
        if self._shown is None:
            self._ahead.acquire()
            self._tell(self._queue.put_nowait, OutputChunk(text, name))
            return
        self._kept[name].add(text)
        if self._shown.add(OutputChunk(text, name)):
            self._tell(self._show_soon)

    def _tell(self, what: Callable[..., None], *arguments: object) -> None:
        """From a reader's thread to the loop."""
        if not self._closed.is_set():
            with contextlib.suppress(RuntimeError):  # the loop was closed between the check and the call
                self._loop.call_soon_threadsafe(what, *arguments)

    def _pipe_ended(self) -> None:
        self._show()
        self._queue.put_nowait(None)

    def _show_soon(self) -> None:
        """Hand out what there is to show, when it is time and what was handed out before is taken."""
        wait = self._shown_at + SHOWN_EVERY - self._loop.time()
        if wait > 0 or not self._queue.empty():
            self._loop.call_later(max(wait, SHOWN_EVERY / 10), self._show_soon)
        else:
            self._show()

    def _show(self) -> None:
        if self._shown is not None and (chunk := self._shown.taken()) is not None:
            self._shown_at = self._loop.time()
            self._queue.put_nowait(chunk)


def _widen(pipe: IO[bytes]) -> None:
    """Let a program write more before it has to wait for a thread that gets its turn every few milliseconds."""
    with contextlib.suppress(ImportError, AttributeError, OSError):  # only Linux can, and only within a limit
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


class _Shown:
    """Output that waits to be shown, from both pipes: of more than there is room for, the beginning and the end."""

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
    """Whole lines of its beginning and its end, and how much there was between them. Of a line that is too long, whole
    words: half of a secret would not be known as one."""
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
    return f"{begin}… ({length - len(begin) - len(end):,} characters are not shown) …\n{end}"


@dataclass
class HeadTailBuffer:
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
