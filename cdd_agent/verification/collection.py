"""Asks pytest how many tests a check would run. pytest imports the project's code for
that, but runs no test.
"""

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.pattern import Pattern
from cdd_agent.process.policy import CommandRunner
from cdd_agent.verification.check import Check
from cdd_agent.verification.runners.pytest import Pytest

_SECONDS = 30.0
_SUMMARY = Pattern(
    r"=*\s*(?:(\d+)(?:/\d+)? tests? collected|no tests (?:collected|ran))\b.*"
)
_ERRORS = Pattern(r"(\d+) errors?\b")


class Collection(Struct, frozen=True):
    tests: int = 0
    seconds: float = 0.0
    problem: str = ""
    """Why the number is unknown or incomplete, as a clause."""


async def collect_tests(check: Check, commands: CommandRunner) -> Collection | None:
    """Count a check's tests within `_SECONDS`. None if it does not start pytest."""
    if not Pytest().recognises(check.argv):
        return None
    words = (*check.argv, "--collect-only", "--verbosity=-1", "--color=no")
    result = await commands.start(
        replace(check.command, argv=words),
        env={"CI": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        limit=_SECONDS,
    )
    if not result.started:
        return Collection(problem=result.stderr.removeprefix("Error: "))
    if result.timed_out:
        return Collection(
            problem=f"pytest was still collecting tests after {_SECONDS:g} s"
        )
    return _read(result.stdout, result.stderr, result.seconds, result.return_code)


def _read(stdout: str, stderr: str, seconds: float, code: int) -> Collection:
    lines = [line.strip() for line in stdout.splitlines() if line.strip()]
    summary = _SUMMARY.fullmatch(lines[-1]) if lines else None
    if summary:
        errors = _ERRORS.search(lines[-1])
        problem = f"{errors[0]} while collecting tests" if errors else ""
        return Collection(int(summary[1] or 0), seconds, problem)
    output = [line.strip() for line in (stderr or stdout).splitlines() if line.strip()]
    last = f": {output[-1]}" if output else ""
    return Collection(
        problem=f"pytest could not collect tests (exit code {code}){last}"
    )
