"""Programs for tests, simulated in this process.

`FakePrograms` replaces `run_command`. It executes the Python code of a command here,
answers `pytest` with the small runner of `fake_pytest.py`, and knows a few simple
programs. Tests of rules about processes use real ones.
"""

import asyncio
import importlib
import io
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from cdd_agent.process.programs import find_program
from cdd_agent.process.run import (
    CommandResult,
    HeadTailBuffer,
    OnOutput,
    OutputChunk,
    StreamName,
    child_environment,
    ignore_output,
)
from tests.support.fake_pytest import NeedsProcess, run_suite

HANGS = 1.0
"""Seconds of a `time.sleep` from which a program counts as hanging."""
ENDED_BY_TERM = -15


class _Hangs(BaseException):
    """The code would wait for a long time."""


class _Exits(BaseException):
    """The code called `os._exit`."""

    def __init__(self, code: int) -> None:
        self.code = code


class Ended:
    """The end of a simulated program."""

    def __init__(self) -> None:
        self.code = 0
        self.stdout = ""
        self.stderr = ""
        self.hangs = False
        self.seconds = 0.0
        """Total of short sleeps."""


class FakePrograms:
    """A `RunProgram` that starts nothing. `started` has the words of each command."""

    def __init__(self) -> None:
        self.started: list[tuple[str, ...]] = []
        self.at_end: Callable[[Ended], None] = lambda ended: None
        """Changes how a program ended."""

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        limit: float,
        env: Mapping[str, str] | None = None,
        hide: Sequence[str] = (),
        passed: Sequence[str] = (),
        copies: Path | None = None,
        noted_in: Path | None = None,
        on_output: OnOutput = ignore_output,
    ) -> CommandResult:
        del noted_in
        self.started.append(tuple(argv))
        if not cwd.is_dir():
            return _not_started(argv, f"{cwd} is not a folder")
        program = _program(argv)
        if program is None:
            message = f"Error: Command not found: {argv[0]}"
            return CommandResult("", message, 127, started=False)
        environment = child_environment(env, hide=hide, passed=passed)
        ended = program(argv, cwd, environment)
        self.at_end(ended)
        streams: dict[StreamName, str] = {
            "stdout": ended.stdout,
            "stderr": ended.stderr,
        }
        for name, text in streams.items():
            if copies is not None:
                (copies / name).write_text(text)
            if text:
                on_output(OutputChunk(text, name))
        # give callers the chance to stop the run because of this output
        await asyncio.sleep(limit if ended.hangs else min(ended.seconds, limit))
        stdout, stderr = HeadTailBuffer(), HeadTailBuffer()
        stdout.add(ended.stdout)
        stderr.add(ended.stderr)
        return CommandResult(
            stdout.text(),
            stderr.text(),
            ENDED_BY_TERM if ended.hangs else ended.code,
            limit if ended.hangs else ended.seconds,
            timed_out=ended.hangs,
            cut=stdout.cut or stderr.cut,
            limit=limit,
        )


Program = Callable[[Sequence[str], Path, Mapping[str, str]], Ended]


def _program(argv: Sequence[str]) -> Program | None:
    name = Path(argv[0]).name
    if name.startswith("python"):
        return _python
    if name in _SIMPLE:
        return _SIMPLE[name]
    if Path(argv[0]).name == argv[0] and find_program(argv[0]) is None:
        return None
    raise NeedsProcess(f"no such program here: {' '.join(argv)!r}")


def _not_started(argv: Sequence[str], why: str) -> CommandResult:
    message = f"{argv[0]} could not be started: {why}"
    return CommandResult("", message, 126, started=False)


# --- Python ---------------------------------------------------------------------------


def _python(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Ended:
    words = list(argv[1:])
    while words and words[0] in ("-S", "-I", "-B", "-E", "-s"):
        words.pop(0)
    match words:
        case ["--version" | "-V"]:
            ended = Ended()
            ended.stdout = f"Python {sys.version.split()[0]}\n"
            return ended
        case ["-c", code, *_]:
            return _execute(argv, code, "<string>", words[:1] + words[2:], cwd, "", env)
        case ["-m", "pytest", *rest]:
            return _pytest(["pytest", *rest], cwd, env)
        case [file, *_] if not file.startswith("-"):
            path = cwd / file
            if not path.is_file():
                ended = Ended()
                ended.code = 2
                ended.stderr = f"{argv[0]}: can't open file {str(path)!r}\n"
                return ended
            folder = str(path.parent)
            return _execute(argv, path.read_text(), str(path), words, cwd, folder, env)
    raise NeedsProcess(f"not known here: {' '.join(argv)!r}")


def _execute(
    argv: Sequence[str],
    code: str,
    file: str,
    words: list[str],
    cwd: Path,
    imports_from: str,
    env: Mapping[str, str],
) -> Ended:
    if any(word in code for word in ("subprocess", "os.kill", "os.fork", "signal")):
        raise NeedsProcess(f"it starts or ends processes: {' '.join(argv)!r}")
    namespace: dict[str, object] = {"__name__": "__main__"}
    if file != "<string>":
        namespace["__file__"] = file

    def work() -> None:
        exec(compile(code, file, "exec", dont_inherit=True), namespace)

    changed = env if "env" in code else None
    try:
        return as_program(work, cwd, words, imports_from, changed)
    finally:
        namespace.clear()


def as_program(
    work: Callable[[], int | None],
    cwd: Path,
    words: Sequence[str],
    imports_from: str,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run work as if it were a program in `cwd`. Return its exit code and output."""
    ended = Ended()
    out, err = _Stream(), _Stream()
    with (
        warnings.catch_warnings(),
        _in_place_of_a_program(cwd, words, imports_from, env, ended),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        # the code of a test's project does not close its files
        warnings.simplefilter("ignore")
        try:
            ended.code = work() or 0
        except NeedsProcess:
            raise
        except _Hangs:
            ended.hangs = True
        except _Exits as exits:
            ended.code = exits.code
        except SystemExit as leaves:
            ended.code = _exit_code(leaves.code)
        except BaseException as error:  # noqa: BLE001 the code may raise anything
            sys.stderr.write(_shown(error))
            ended.code = 1
            _forget_frames(error.__traceback__)
    ended.stdout, ended.stderr = out.text(), err.text()
    return ended


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code) & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1


def _shown(error: BaseException) -> str:
    """Return the traceback, beginning with the code's first frame."""
    shown = traceback.TracebackException.from_exception(error)
    while shown.stack and shown.stack[0].filename == __file__:
        shown.stack.pop(0)
    return "".join(shown.format())


def _forget_frames(trace: TracebackType | None) -> None:
    """Close files that the frames have opened, while warnings about them are off."""
    if trace is not None:
        traceback.clear_frames(trace)


class _Stream(io.TextIOWrapper):
    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(
            self._bytes, encoding="utf-8", newline="\n", write_through=True
        )

    def text(self) -> str:
        return self._bytes.getvalue().decode("utf-8", errors="replace")


@contextmanager
def _in_place_of_a_program(
    cwd: Path,
    words: Sequence[str],
    imports_from: str,
    env: Mapping[str, str] | None,
    ended: Ended,
) -> Iterator[None]:
    """Give this process the folder, words, modules and variables of the program while
    the block runs. Sleeping and exiting are only recorded.
    """
    thread, real_sleep, real_exit = threading.get_ident(), time.sleep, os._exit
    folder, here = Path.cwd(), dict(os.environ)
    argv, path, stdin = sys.argv, sys.path[:], sys.stdin
    writes_no_bytecode = sys.dont_write_bytecode
    hidden = _modules_of_the_same_names(cwd)
    known = set(sys.modules) - set(hidden)

    def sleep(seconds: float) -> None:
        if threading.get_ident() != thread:
            real_sleep(seconds)
        elif seconds >= HANGS:
            raise _Hangs
        else:
            ended.seconds += seconds

    def leave(code: int) -> NoReturn:
        raise _Exits(code)

    for name in hidden:
        del sys.modules[name]
    try:
        os.chdir(cwd)
        if env is not None:
            os.environ.clear()
            os.environ.update(env)
        sys.argv, sys.stdin = list(words), io.StringIO()
        sys.path.insert(0, imports_from)
        sys.dont_write_bytecode = True
        importlib.invalidate_caches()
        time.sleep, os._exit = sleep, leave  # type: ignore[assignment]
        yield
    finally:
        time.sleep, os._exit = real_sleep, real_exit
        sys.dont_write_bytecode = writes_no_bytecode
        sys.argv, sys.path[:], sys.stdin = argv, path, stdin
        if env is not None:
            os.environ.clear()
            os.environ.update(here)
        os.chdir(folder)
        for name in set(sys.modules) - known:
            if _is_below(sys.modules[name], cwd):
                del sys.modules[name]
        for entry in [entry for entry in sys.path_importer_cache if _is_in(entry, cwd)]:
            del sys.path_importer_cache[entry]
        sys.modules.update(hidden)


def _modules_of_the_same_names(cwd: Path) -> dict[str, object]:
    """Return this process's modules that the program would find in its own folder."""
    names = {entry.name.removesuffix(".py") for entry in cwd.iterdir()}
    if names.isdisjoint(sys.modules):
        return {}
    return {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in names
    }


def _is_below(module: object, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    places = [file] if file else [*getattr(module, "__path__", ())]
    return any(_is_in(str(place), folder) for place in places)


def _is_in(place: str, folder: Path) -> bool:
    return place == str(folder) or place.startswith(f"{folder}{os.sep}")


# --- Others ---------------------------------------------------------------------------


def _pytest(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Ended:
    del env
    return as_program(lambda: run_suite(argv[1:], cwd), cwd, argv, str(cwd))


def _prints(text: Callable[[Sequence[str], Path], str], code: int = 0) -> Program:
    def run(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Ended:
        del env
        ended = Ended()
        ended.code = code
        try:
            ended.stdout = text(argv[1:], cwd)
        except OSError as error:
            ended.code, ended.stderr = 1, f"{argv[0]}: {error.strerror}\n"
        return ended

    return run


def _sh(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Ended:
    del cwd, env
    if list(argv[1:]) != ["-c", "true"]:
        raise NeedsProcess(f"not known here: {' '.join(argv)!r}")
    return Ended()


def _test(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Ended:
    del env
    if argv[1] != "-f":
        raise NeedsProcess(f"not known here: {' '.join(argv)!r}")
    ended = Ended()
    ended.code = 0 if (cwd / argv[2]).is_file() else 1
    return ended


def _ls(words: Sequence[str], cwd: Path) -> str:
    del words
    names = sorted(p.name for p in cwd.iterdir() if not p.name.startswith("."))
    return "".join(f"{name}\n" for name in names)


_SIMPLE: dict[str, Program] = {
    "pytest": _pytest,
    "true": _prints(lambda words, cwd: ""),
    "false": _prints(lambda words, cwd: "", code=1),
    "echo": _prints(lambda words, cwd: " ".join(words) + "\n"),
    "cat": _prints(lambda words, cwd: "".join((cwd / w).read_text() for w in words)),
    "ls": _prints(_ls),
    "sh": _sh,
    "test": _test,
    "pwd": _prints(lambda words, cwd: f"{cwd}\n"),
}
