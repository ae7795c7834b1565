"""The port to what runs a project's tests and can tell of each of them. The
implementations are in `runners/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar

from msgspec import Struct, field

from cdd_agent.process.run import LARGEST_COPY, CommandResult
from cdd_agent.verification.outcomes import Selection, SuiteRun

Matters = Callable[[str], object]
"""Of a file's text, what decides how tests are run: two versions of which this is equal
run them alike.
"""
LARGEST_REPORT = LARGEST_COPY
"""Bytes of a report that is read."""


class ReportUnreadable(ValueError):
    """Not a whole report of a run of tests: why, as a clause."""


class Reporting(Struct, frozen=True):
    """A command with a report on every test."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


class Reported(Struct, frozen=True):
    """The files and output that a run left, in a folder that was new."""

    folder: Path
    result: CommandResult

    @property
    def file(self) -> Path:
        """Where a runner writes that has a report of its own."""
        return self.folder / "report"

    def data(self, name: str = "report") -> bytes:
        """The report, or what was captured of `stdout` or `stderr`. Raises
        `ReportUnreadable`.
        """
        try:
            if (self.folder / name).stat().st_size > LARGEST_REPORT:
                raise ReportUnreadable(f"it is larger than {LARGEST_REPORT} bytes")
            return (self.folder / name).read_bytes()
        except FileNotFoundError as error:
            raise ReportUnreadable("there is none") from error
        except OSError as error:
            raise ReportUnreadable(error.strerror or str(error)) from error


class TestRunner(ABC):
    """A program that runs tests: how it is told to report on each of them, and how its
    report is read.

    The project's own code runs while a report is made, and may have written it: nothing
    in it is taken for granted.
    """

    name: ClassVar[str]
    """As people know it."""
    ends_with: ClassVar[frozenset[int]]
    """The exit codes of a run that came to its end; 0: all is well."""
    nothing_ran: ClassVar[int | None] = None
    """The one among them that says that there was no test to run, where there is one.
    """
    always_reports: ClassVar[bool] = False
    """Whether a run without a report was cut short, and is no pass by its exit code."""
    captures: ClassVar[bool] = False
    """Whether its output is its report."""
    about_report: ClassVar[tuple[str, ...]] = ()
    """How lines of output begin that may be about the report."""

    @abstractmethod
    def place(self, argv: Sequence[str]) -> int | None:
        """Where in a command the last word is that makes it this runner on this
        machine, perhaps by way of a program that starts it; None in any other command.
        """

    @abstractmethod
    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        """The command, told to report to a file and to run to the end of all tests.
        None where its own words ask for another report, or for something that is no run
        of tests.
        """

    @abstractmethod
    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        """The tests that a command asks for, as far as its words tell."""

    @abstractmethod
    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        """The run's results, with ids that start at `root` and are the same from run to
        run. Raises `ReportUnreadable`.
        """

    def recognises(self, argv: Sequence[str]) -> bool:
        return self.place(argv) is not None

    def words(self, argv: Sequence[str]) -> Sequence[str]:
        """The runner's own words of a command."""
        place = self.place(argv)
        return argv[place + 1 :] if place is not None else ()

    def shown(self, line: str, report: Path) -> str:
        """A line of output as people read it; empty where it is only about the
        report.
        """
        del report
        return line

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        """The part of a file of this name that decides how this runner runs tests; None
        when none does.
        """
        del path
        return None


def whole(text: str) -> object:
    """Where all of a file matters, also an empty one that is new."""
    return text
