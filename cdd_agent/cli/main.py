"""`cdd`: exit codes, and the one place where a `CddError` becomes words.

What a command needs is imported when it runs: `cdd --version` and `cdd --help` start at
once.
"""

from __future__ import annotations

import gc
import sys

from cdd_agent.version import VERSION

# the name that type checkers know; `typing` itself takes a tenth of the time of
# `--version`
TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns the exit code; as the program itself, without `argv`, it
    ends the process then.
    """
    # what starting makes stays: to look through it time and again is a tenth of it
    gc.set_threshold(200_000)
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"cdd-shell {VERSION}\n")
        return 0
    try:
        _open_streams()
        from cdd_agent.cli.parser import parsed

        code = _carried_out(parsed(arguments))
    except KeyboardInterrupt:
        if "--debug" in arguments:
            raise
        code = 130  # nothing was begun yet
    if argv is None:
        _end(code)
    return code


def _end(code: int) -> None:
    """End the process at once, where nothing is left to be done: Python would take all
    modules apart first, which takes a third of the time of importing them. Where a
    thread is at work, or output cannot be written, Python ends it.
    """
    import atexit
    import os

    threading = sys.modules.get("threading")  # whoever began a thread has imported it
    if threading and any(
        not thread.daemon
        for thread in threading.enumerate()
        if thread is not threading.main_thread()
    ):
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BrokenPipeError:
        # whoever read it has left; Python would end with a code of its own
        pass
    except (OSError, ValueError):
        return
    atexit._run_exitfuncs()
    os._exit(code)


def _carried_out(options: argparse.Namespace) -> int:
    from cdd_agent.errors import CddError, ExitCode

    try:
        code: int = options.carry_out(options)
        return code
    except CddError as error:
        if options.debug:
            raise
        from cdd_agent.sanitize import sanitize_for_display

        for line in filter(
            None, [*f"cdd: {error.message}".split("\n"), *error.hint.split("\n")]
        ):
            sys.stderr.write(sanitize_for_display(line) + "\n")
        return error.exit_code
    except KeyboardInterrupt:
        if options.debug:
            raise
        sys.stderr.write(f"\nInterrupted. {options.interrupted}\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # whoever read our output has left
        sys.stderr.close()
        return ExitCode.FAILED
    except OSError as error:
        # files are answered for where they are used
        if options.debug or error.filename is not None:
            raise
        sys.stderr.write(
            f"cdd: the output could not be written: {error.strerror or error}\n"
        )
        return ExitCode.FAILED


def _open_streams() -> None:
    """Replace streams that the caller closed (`>&-`) by ones that lead nowhere; let a
    terminal that knows only ASCII still get the words; and let whoever reads from a
    pipe see each line when it is written, not when there are 8 kB.
    """
    import io
    import os
    from pathlib import Path

    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            # for as long as we run
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace", line_buffering=True)
