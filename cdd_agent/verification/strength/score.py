"""Results of faults, judged by runs of checks, and their score."""

import re
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.strength.fault import Fault

_TIMES_CLEAN, _MORE_SECONDS = 3, 5.0
"""The limit for a check with a fault: times its run without, and seconds."""
_NOT_COMPILED = re.compile(
    r"""
      \[build\ failed\]                                 # go
    | ^error:\ could\ not\ compile                      # cargo
    | \bCOMPILATION\ ERROR\b | Compilation\ failed      # Maven, Gradle
    | Execution\ failed\ for\ task\ '[^']*:compile
    | \berror\ (?:CS|TS)\d+:                            # dotnet, tsc
    | ^[^\s:]+\.java:\d+:\ error:
    | ^[^\s:]+:\d+:\d+:\ (?:fatal\ )?error:             # gcc, clang
    | ^e:\ \S+\.kts?\b                                  # kotlinc
    | ^(?:PHP\ )?Parse\ error:
    """,
    re.VERBOSE | re.MULTILINE,
)
"""Messages of tools about code that they cannot compile."""


class FaultResult(StrEnum):
    """The result of a fault, by the checks of its step."""

    NOTICED = "noticed"
    NOT_NOTICED = "not_noticed"
    NO_RESULT = "no_result"
    """The code with the fault does not compile, or the check could not run."""


class TriedFault(Struct, frozen=True):
    """A fault with its result."""

    fault: Fault
    result: FaultResult
    timed_out: bool = False
    seconds: float = 0.0


class Score(Struct, frozen=True):
    """The number of faults that the checks noticed, and the others."""

    noticed: int = 0
    not_noticed: tuple[Fault, ...] = ()
    no_result: int = 0

    @classmethod
    def count(cls, tried: Iterable[TriedFault]) -> "Score":
        noticed, no_result = 0, 0
        missed: list[Fault] = []
        for one in tried:
            match one.result:
                case FaultResult.NOTICED:
                    noticed += 1
                case FaultResult.NOT_NOTICED:
                    missed.append(one.fault)
                case FaultResult.NO_RESULT:
                    no_result += 1
        missed.sort(key=lambda fault: (fault.path, fault.line, fault.start))
        return cls(noticed, tuple(missed), no_result)

    @property
    def measured(self) -> int:
        return self.noticed + len(self.not_noticed)

    @property
    def percent(self) -> int | None:
        """The noticed share, rounded down; None if no fault has a result. 100 only if
        all were noticed.
        """
        if not self.measured:
            return None
        return 100 * self.noticed // self.measured


def has_passed(run: CheckRun) -> bool:
    """True if the run of a check passed: faults can be measured against it."""
    return run.return_code == 0 and not run.problem and not run.unusable


def limit_with_fault(clean: CheckRun) -> float:
    """Return the seconds for a check that takes so long without a fault."""
    return _TIMES_CLEAN * clean.seconds + _MORE_SECONDS


def judge_fault(run: CheckRun) -> FaultResult:
    if run.unusable:
        return FaultResult.NO_RESULT
    if run.timed_out:
        return FaultResult.NOTICED
    if run.return_code == 0:
        return FaultResult.NOT_NOTICED
    if _NOT_COMPILED.search(run.output):
        return FaultResult.NO_RESULT
    return FaultResult.NOTICED
