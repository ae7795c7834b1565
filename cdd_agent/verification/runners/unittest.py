"""Python's unittest, run by a program of ours that reports each test."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePath, PurePosixPath

from cdd_agent.verification.outcomes import Selection, SuiteRun
from cdd_agent.verification.paths import paths_and_options
from cdd_agent.verification.runner import (
    Matters,
    Reported,
    Reporting,
    TestRunner,
    whole,
)
from cdd_agent.verification.runners.lines import INJECTED, read_lines

_LAUNCHERS = (
    "coverage",
    "hatch",
    "pdm",
    "pipenv",
    "pixi",
    "poetry",
    "rye",
    "uv",
    "env",
    "nice",
    "timeout",
)
_NEAR = 8
"""The number of words of a command that may come before `unittest`."""
_PLAIN = (
    "-v",
    "--verbose",
    "-q",
    "--quiet",
    "-f",
    "--failfast",
    "-b",
    "--buffer",
    "-c",
    "--catch",
    "--locals",
)
_WITH_VALUE = (
    "-s",
    "--start-directory",
    "-t",
    "--top-level-directory",
    "-p",
    "--pattern",
    "-k",
)
_FOUND_BEFORE_UNITTEST = ("unittest", "sitecustomize", "usercustomize")
"""Modules that a run may take from the project instead of from Python."""


class Unittest(TestRunner):
    """`python -m unittest`, also by way of coverage, poetry and the like."""

    name = "unittest"
    ends_with = frozenset((0, 1, 5))
    nothing_ran = 5  # since Python 3.12
    always_reports = True

    def place(self, argv: Sequence[str]) -> int | None:
        """Return the index of the word `unittest` after `-m`."""
        near = list(argv[:_NEAR])
        place = next(
            (
                at
                for at in range(1, len(near))
                if near[at] == "unittest" and near[at - 1] == "-m"
            ),
            None,
        )
        starter = PurePath(near[0]).name.removesuffix(".exe") if near else ""
        return (
            place
            if starter in _LAUNCHERS or re.fullmatch(r"python[\d.]*", starter)
            else None
        )

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        """Return the command with our program instead of `-m unittest`."""
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
        return (
            whole
            if path.parts[0].removesuffix(".py") in _FOUND_BEFORE_UNITTEST
            else None
        )
