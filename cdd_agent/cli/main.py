"""The entry point of `cdd`: prints errors and returns exit codes."""

import io
import os
import sys
from contextlib import suppress
from pathlib import Path

from cdd_agent.errors import CddError, ExitCode
from cdd_agent.text.sanitize import sanitize_for_display
from cdd_agent.version import VERSION


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    try:
        _open_streams()
        return _end_quietly(arguments)
    except KeyboardInterrupt:
        if "--debug" in arguments:
            raise
        return ExitCode.INTERRUPTED


def _end_quietly(arguments: list[str]) -> int:
    """Run a command. A failure to write output is not an internal error."""
    try:
        code = _parse_and_run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _discard_output()
        return ExitCode.FAILED
    except OSError as error:
        # Files are handled where they are used.
        if "--debug" in arguments or error.filename is not None:
            raise
        sys.stderr.write(
            f"cdd: the output could not be written: {error.strerror or error}\n"
        )
        _discard_output()
        return ExitCode.FAILED


def _parse_and_run(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"cdd-shell {VERSION}\n")
        return ExitCode.DONE
    # late: `--version` takes at most three times the start of Python
    from cdd_agent.cli.parser import parse_arguments  # noqa: PLC0415

    try:
        command = parse_arguments(arguments)
    except SystemExit:
        # `argparse` has printed help. Here a failure to write it is still handled.
        sys.stdout.flush()
        raise
    try:
        return command.run()
    except CddError as error:
        if command.invocation.debug:
            raise
        _print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        if command.invocation.debug:
            raise
        sys.stderr.write(f"\nInterrupted. {command.interrupted}\n")
        return ExitCode.INTERRUPTED


def _print_error(error: CddError) -> None:
    # late: as above
    from cdd_agent.wording.faces import Face  # noqa: PLC0415

    text = Face.TERMINAL.name_commands(f"cdd: {error.message}\n{error.remedy}")
    for line in text.split("\n"):
        if line:
            sys.stderr.write(sanitize_for_display(line) + "\n")


def _discard_output() -> None:
    """Discard all further output, so that Python does not fail to flush it at exit."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _open_streams() -> None:
    """Replace streams that the caller closed (`>&-`) by empty ones. Print to ASCII
    terminals without errors, and flush each line to a pipe.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            # It stays open until the end of the process.
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace", line_buffering=True)
