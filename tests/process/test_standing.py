"""A program that stays, and is asked again and again."""

import os
import sys
from io import BufferedReader
from pathlib import Path

import pytest

from cdd_agent.process.standing import ProgramEnded, StandingProgram, up_to

pytestmark = pytest.mark.fork
ECHO = """
import sys
for line in sys.stdin.buffer:
    sys.stderr.write("a warning\\n" * {warnings})
    sys.stderr.flush()
    {then}
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
"""


def program(folder: Path, warnings: int, then: str = "pass") -> StandingProgram:
    code = ECHO.format(warnings=warnings, then=then)
    return StandingProgram((sys.executable, "-S", "-c", code), folder, os.environ, 60.0)


def line(output: BufferedReader) -> bytes:
    return up_to(output, b"\n")


def test_warnings_without_end_hold_nobody_up(tmp_path: Path) -> None:
    standing = program(tmp_path, warnings=50_000)
    assert [standing.ask(f"{number}\n".encode(), line) for number in range(3)] == [
        b"0",
        b"1",
        b"2",
    ]
    standing.close()


def test_the_last_words_of_one_that_has_ended_are_told(tmp_path: Path) -> None:
    standing = program(tmp_path, warnings=50_000, then="sys.exit('fatal: bad object')")
    with pytest.raises(ProgramEnded, match=r"warning\n(.*\n)*fatal: bad object"):
        standing.ask(b"x\n", line)
    standing.close()


def test_one_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProgramEnded, match="No such file"):
        StandingProgram(("no-such-program-here",), tmp_path, os.environ, 1.0)
