"""unittest, run through `injected/unittest_report.py`, which reports each test."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath

from cdd_agent.verification.outcomes import Selection, SuiteRun
from cdd_agent.verification.paths import paths_and_options
from cdd_agent.verification.runner import (
    Matters,
    Reported,
    Reporting,
    TestRunner,
    whole,
)
from cdd_agent.verification.runners.launchers import (
    NEAR,
    PYTHON_LAUNCHERS,
    program_name,
)
from cdd_agent.verification.runners.lines import INJECTED, read_lines

_PLAIN = (
    *("-v", "--verbose", "-q", "--quiet", "-f", "--failfast", "-b", "--buffer"),
    *("-c", "--catch", "--locals"),
)
"""Options that select no tests."""
_WITH_VALUE = (
    *("-s", "--start-directory", "-t", "--top-level-directory", "-p", "--pattern"),
    "-k",
)
_FOUND_BEFORE_UNITTEST = ("unittest", "sitecustomize", "usercustomize")
"""Modules that may be imported from the project instead of Python."""


class Unittest(TestRunner):
    """`python -m unittest`, also through coverage, poetry and others."""

    name = "unittest"
    ends_with = frozenset((0, 1, 5))
    nothing_ran = 5  # from Python 3.12
    always_reports = True

    def place(self, argv: Sequence[str]) -> int | None:
        if not argv or program_name(argv[0]) not in PYTHON_LAUNCHERS:
            return None
        for index, (option, word) in enumerate(pairwise(argv[:NEAR]), 1):
            if (option, word) == ("-m", "unittest"):
                return index
        return None

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        place = self.place(argv)
        if place is None or {"-h", "--help"} & {*argv[place:]}:
            return None
        program = str(INJECTED / "unittest_report.py")
        return Reporting((*argv[: place - 1], program, str(report), *argv[place + 1 :]))

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        return paths_and_options(self.words(argv), root, _PLAIN, _WITH_VALUE)

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        return read_lines([reported.data()], selection, root, "::")

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        module = path.parts[0].removesuffix(".py")
        return whole if module in _FOUND_BEFORE_UNITTEST else None
