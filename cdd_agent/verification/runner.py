"""The port to a program that runs tests and can report each of them. Implementations
are in `runners/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct, field

from cdd_agent.process.run import LARGEST_COPY, CommandResult
from cdd_agent.verification.outcomes import Selection, SuiteRun

Matters = Callable[[str], object]
"""Returns the part of a file's text that decides how tests run. If the parts of two
versions are equal, tests run the same way.
"""
LARGEST_REPORT = LARGEST_COPY
"""Largest report to read, in bytes."""

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Errors from JSON of an unexpected shape."""


class ReportUnreadable(ValueError):
    """The report is missing, incomplete or malformed. The message is a clause."""


class Reporting(Struct, frozen=True):
    """A command that also reports every test."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


class Reported(Struct, frozen=True):
    """The files and output of a run. The folder was empty before."""

    folder: Path
    result: CommandResult

    @property
    def file(self) -> Path:
        """The path for the report."""
        return self.folder / "report"

    def data(self, name: str = "report") -> bytes:
        """Return the report, or the captured `stdout` or `stderr`. Raises
        `ReportUnreadable`.
        """
        return read_report_file(self.folder / name)

    def all_data(self, runs: int = 1) -> list[bytes]:
        """Return the reports of all processes, which add to the file's name. Raises
        `ReportUnreadable` if there are fewer than `runs`.
        """
        files = sorted(self.folder.glob(f"{self.file.name}*"))
        if runs and not files:
            raise ReportUnreadable("there is none")
        if len(files) < runs:
            raise ReportUnreadable(f"only {len(files)} of {runs} runs left one")
        return [read_report_file(file) for file in files]


def read_report_file(file: Path) -> bytes:
    """Raises `ReportUnreadable`."""
    try:
        if file.stat().st_size > LARGEST_REPORT:
            raise ReportUnreadable(f"it is larger than {LARGEST_REPORT} bytes")
        return file.read_bytes()
    except FileNotFoundError as error:
        raise ReportUnreadable("there is none") from error
    except OSError as error:
        raise ReportUnreadable(error.strerror or str(error)) from error


class TestRunner(ABC):
    """Makes a test program report, and reads its report.

    Project code runs at the same time and could write the report itself, so a report
    can contain anything.
    """

    name: str
    ends_with: frozenset[int]
    """Exit codes of a completed run; 0 if all tests passed."""
    nothing_ran: int | None = None
    """Exit code for "no test to run", if there is one."""
    always_reports: bool = False
    """True if a run without a report was cut short, so its exit code cannot pass."""
    captures: bool = False
    """True if the output is the report."""
    about_report: tuple[str, ...] = ()
    """Beginnings of output lines that may be about the report."""
    forbids_snapshots: bool = False
    """True if it writes no new snapshots while `CI` is set. It must end without
    `CI`.
    """
    starts_anything: bool = False
    """True if it may start any other runner, so that all their settings matter."""
    reports_per_process: bool = False
    """True if each process writes its own report, so that a command may start
    several.
    """

    @abstractmethod
    def place(self, argv: Sequence[str]) -> int | None:
        """Return the index of the last word that starts this runner, perhaps after a
        launcher such as `npx`. None for other programs.
        """

    @abstractmethod
    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        """Return the command with a report to that file, running all tests. None if it
        asks for another report or runs no tests.
        """

    @abstractmethod
    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        """Return the tests that the words ask for."""

    @abstractmethod
    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        """Return the results. Ids are relative to `root` and stable. Raises
        `ReportUnreadable`.
        """

    def recognises(self, argv: Sequence[str]) -> bool:
        return self.place(argv) is not None

    def words(self, argv: Sequence[str]) -> Sequence[str]:
        place = self.place(argv)
        return argv[place + 1 :] if place is not None else ()

    def shown(self, line: str, report: Path) -> str:
        """Return the line as the user sees it; empty if it is only about the report."""
        del report
        return line

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        """Return what to compare of a file with this name; None if it does not decide
        how tests run.
        """
        del path
        return None


def whole(text: str) -> object:
    """The whole text counts, even if empty."""
    return text
