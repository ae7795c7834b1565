"""The `pytest` of the projects in tests: the real one, but each run is a fork of a
process that has imported it. That saves most of its start, a fifth of a second of
processor time. Run as a program, this module is that process.

The project calls a small program on the PATH. It passes its words, folder, environment
and streams to the fork, and ends with it. If it is killed, the fork is killed, too.
"""

import contextlib
import gc
import importlib
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.config import default_plugins

_CALLED = """\
#!{python} -IS
import _socket, marshal, posix, sys

wish = marshal.dumps((sys.argv, posix.getcwd(), posix.environ))
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({address!r})
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
files = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)
server.sendmsg([len(wish).to_bytes(8, 'big')], [files])
server.sendall(wish)
code = int(server.recv(8) or b"-9")
if code < 0:
    posix.kill(posix.getpid(), -code)
posix._exit(code)
"""


@contextmanager
def quick_pytest() -> Iterator[str]:
    """Yield a folder for the PATH with a `pytest` that works while the context is
    open.
    """
    with tempfile.TemporaryDirectory(prefix="cdd-") as folder:
        address, program = f"{folder}/server", Path(folder, "bin", "pytest")
        program.parent.mkdir()
        program.write_text(_CALLED.format(python=sys.executable, address=address))
        program.chmod(0o755)
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PYTHON")
        }
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(address)
            listening.listen()
            server = subprocess.Popen(
                [sys.executable, __file__, str(listening.fileno())],
                stdin=subprocess.PIPE,
                env=environment,
                cwd="/",
                pass_fds=[listening.fileno()],
                start_new_session=True,
            )
        with server:  # the server ends when its input ends
            yield str(program.parent)


def _serve(listening: socket.socket) -> None:
    """Serve until the starting process has ended."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    callers = dict[int, socket.socket]()
    gone = set[int]()
    while True:
        waiting = {caller: pid for pid, caller in callers.items() if pid not in gone}
        readable, _, _ = select.select([sys.stdin, listening, woken, *waiting], [], [])
        if sys.stdin in readable:
            return
        # a readable connection means that the caller was killed
        for caller in waiting.keys() & set(readable):
            gone.add(waiting[caller])
            _end_group(waiting[caller])
        if woken in readable:
            os.read(woken, 4096)
        for pid in list(callers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                _end_group(pid)  # as with everything else that a command started
                with callers.pop(pid) as caller, contextlib.suppress(OSError):
                    caller.send(b"%d" % os.waitstatus_to_exitcode(status))
        if listening in readable:
            caller, _ = listening.accept()
            size, streams, _, _ = socket.recv_fds(caller, 8, 3)
            with caller.makefile("rb") as said:
                wish = said.read(int.from_bytes(size, "big"))
            if (pid := os.fork()) == 0:
                _be_pytest(streams, *marshal.loads(wish))
            os.setpgid(pid, pid)  # the fork does so, too: either may be first
            callers[pid] = caller
            for stream in streams:
                os.close(stream)


def _end_group(pid: int) -> None:
    # the group may be empty
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _be_pytest(
    streams: list[int], words: list[str], folder: str, environment: dict[bytes, bytes]
) -> None:
    """In the fork: become the started program."""
    os.setpgid(0, 0)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environb.update(environment)
    sys.argv = words
    sys.path[:0] = [
        str(Path(words[0]).parent),
        *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)),
    ]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.modules["__main__"] = ModuleType("__main__")
    sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.exit(pytest.console_main())


if __name__ == "__main__":
    del sys.path[0]
    for late in (
        *(f"_pytest.{plugin}" for plugin in default_plugins),
        "faulthandler",
        "pdb",
    ):
        importlib.import_module(late)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as waiting_there:
        _serve(waiting_there)
