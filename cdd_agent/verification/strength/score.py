"""Judges faults by runs of checks, and computes the score."""

import re
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from cdd_agent.pattern import Pattern
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.strength.fault import Fault

_TIMES_CLEAN, _MORE_SECONDS = 3, 5.0
"""Limit for a check with a fault: factor on the clean run, plus seconds."""
_NOT_COMPILED = Pattern(
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
"""Compilers' messages about broken code."""


class FaultResult(StrEnum):
    NOTICED = "noticed"
    NOT_NOTICED = "not_noticed"
    NO_RESULT = "no_result"
    """The faulty code does not compile, or the check could not run."""


class TriedFault(Struct, frozen=True):
    fault: Fault
    result: FaultResult
    timed_out: bool = False
    seconds: float = 0.0


class Score(Struct, frozen=True):
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
        """Rounded down, so 100 only if all were noticed; None if no fault has a
        result.
        """
        if not self.measured:
            return None
        return 100 * self.noticed // self.measured


def has_passed(run: CheckRun) -> bool:
    """True if the check passed, so that faults can be measured against it."""
    return run.return_code == 0 and not run.problem and not run.unusable


def limit_with_fault(clean: CheckRun) -> float:
    """Return a limit in seconds, based on the run without a fault."""
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
