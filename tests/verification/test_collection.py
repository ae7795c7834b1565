"""How many tests pytest collects, from what it prints."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import CommandResult
from cdd_agent.verification.checks import parse_command
from cdd_agent.verification.collection import Collection, collect_tests
from tests.support.tables import each_row


class _Program:
    """Ends each command in the same way."""

    def __init__(self, result: CommandResult) -> None:
        self.result = result
        self.argv: tuple[str, ...] = ()

    async def __call__(self, argv: Sequence[str], **how: Any) -> CommandResult:
        del how
        self.argv = tuple(argv)
        return self.result


@each_row(
    ("stdout", "code", "expected"),
    [
        ("a.py::test_x\n\n214 tests collected in 1.20s\n", 0, Collection(214, 2.0)),
        ("a.py::test_x\n\n1 test collected in 0.00s\n", 0, Collection(1, 2.0)),
        ("12/14 tests collected (2 deselected) in 0.1s", 0, Collection(12, 2.0)),
        ("=== 3 tests collected in 0.10s ===", 0, Collection(3, 2.0)),
        ("\nno tests collected in 0.01s\n", 5, Collection(0, 2.0)),
        (
            "ERROR a.py\n!! Interrupted !!\n3 tests collected, 2 errors in 0.5s",
            2,
            Collection(3, 2.0, "2 errors while collecting tests"),
        ),
        (
            "no tests collected, 1 error in 0.5s",
            2,
            Collection(0, 2.0, "1 error while collecting tests"),
        ),
        (
            "214 tests collected, says the project\nTraceback\nKeyError: 'X'",
            1,
            Collection(
                0, 0.0, "pytest could not collect tests (exit code 1): KeyError: 'X'"
            ),
        ),
        ("", 4, Collection(0, 0.0, "pytest could not collect tests (exit code 4)")),
    ],
)
async def test_the_last_line_of_pytest_has_the_number(
    tmp_path: Path, stdout: str, code: int, expected: Collection
) -> None:
    program = _Program(CommandResult(stdout, "", code, seconds=2.0))
    check = parse_command(f"{sys.executable} -m pytest -q", tmp_path)
    commands = CommandRunner(tmp_path, run_program=program)
    assert await collect_tests(check, commands) == expected
    assert "--collect-only" in program.argv


async def test_a_collection_that_does_not_end_or_start_has_a_reason(
    tmp_path: Path,
) -> None:
    check = parse_command(f"{sys.executable} -m pytest", tmp_path)
    for result, words in (
        (CommandResult("1 test collected in 1s", "", -15, timed_out=True), "30 s"),
        (CommandResult("", "Error: Command not found: x", 127, started=False), "not"),
    ):
        commands = CommandRunner(tmp_path, run_program=_Program(result))
        collection = await collect_tests(check, commands)
        assert collection is not None
        assert collection.tests == 0
        assert words in collection.problem


async def test_another_runner_is_not_asked(tmp_path: Path) -> None:
    program = _Program(CommandResult("1 test collected in 1s", "", 0))
    commands = CommandRunner(tmp_path, run_program=program)
    for command in ("go test ./...", "make test", "python -m unittest"):
        assert await collect_tests(parse_command(command, tmp_path), commands) is None
    assert program.argv == ()
