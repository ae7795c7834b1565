"""`python -m cdd_agent.cli.child FD`: forks of a process that has imported already what
a run needs.

To start Python and to import all that takes half a second of the processor, which a
ticket of a few steps takes in all. `process/child.py` asks for forks, by a socket; each
gets its arguments, its three streams, and a pipe on which it tells its process id, and
when it ends, its exit code. A fork that is killed tells none.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module

from cdd_agent.cli.main import main as cdd

_NEEDED = (
    *(
        "cdd_agent.cli.runs",
        "cdd_agent.cli.land",
        "cdd_agent.cli.working",
        "cdd_agent.cli.parser",
    ),
    *(
        "cdd_agent.wiring",
        "cdd_agent.engine.engine",
        "cdd_agent.travel.keeping",
        "cdd_agent.travel.own_tree",
    ),
    *(
        "cdd_agent.fleet.place",
        "cdd_agent.llm.shared",
        "cdd_agent.llm.direct.model",
        "cdd_agent.process.child",
    ),
)
"""Any other module is imported by whoever needs it."""
_LONGEST = 256 * 1024
"""Bytes of arguments."""
_STREAMS = 4


def main() -> None:
    """Fork for each request, until whoever asks is gone."""
    asks = socket.socket(fileno=int(sys.argv[1]))
    for name in _NEEDED:
        import_module(name)
    gc.collect()
    gc.freeze()  # what is shared stays so
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        request, files, _, _ = socket.recv_fds(asks, _LONGEST, _STREAMS)
        if not request:
            return
        if os.fork() == 0:
            asks.close()
            _be_child(json.loads(request), files)
        for file in files:
            os.close(file)


def _reap(*_: object) -> None:
    """Forks that have ended are forgotten, and their time of the processor counts as
    this process's.
    """
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _be_child(request: dict[str, str | list[str]], files: list[int]) -> None:
    """Does not return."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.chdir(str(request["cwd"]))
        for target, file in enumerate(files[:3]):
            os.dup2(file, target)
            os.close(file)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
            for number, mode in enumerate(("r", "w", "w"))
        )
        os.write(files[3], f"{os.getpid()}\n".encode())
        try:
            code = int(cdd([*request["arguments"]]))
        except SystemExit as ending:
            code = (
                ending.code
                if isinstance(ending.code, int)
                else int(ending.code is not None)
            )
    except BaseException:  # noqa: BLE001  # there is nobody above it
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        with suppress(OSError):
            os.write(files[3], f"{code}\n".encode())
        os._exit(code)  # threads that still look at something are left


if __name__ == "__main__":
    main()
