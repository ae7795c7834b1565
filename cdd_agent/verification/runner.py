"""The port to a program that runs a project's tests and can report on each of them.
The implementations are in `runners/`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct, field

from cdd_agent.process.run import LARGEST_COPY, CommandResult
from cdd_agent.verification.outcomes import Selection, SuiteRun

Matters = Callable[[str], object]
"""Returns the part of a file's text that decides how tests run. Two versions of a file
with equal parts run the same tests in the same way.
"""
LARGEST_REPORT = LARGEST_COPY
"""The largest number of bytes of a report that is read."""

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""The errors of reading JSON that has another form than expected."""


class ReportUnreadable(ValueError):
    """A report that is missing, not whole or malformed. The message is a clause."""


class Reporting(Struct, frozen=True):
    """A command that also reports on every test."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


class Reported(Struct, frozen=True):
    """The files and the output that a run left. The folder was empty before."""

    folder: Path
    result: CommandResult

    @property
    def file(self) -> Path:
        """The path that a runner was asked to report to."""
        return self.folder / "report"

    def data(self, name: str = "report") -> bytes:
        """Return the report, or the captured `stdout` or `stderr`. Raises
        `ReportUnreadable`.
        """
        return read_report_file(self.folder / name)

    def all_data(self, runs: int = 1) -> list[bytes]:
        """Return the reports of all processes: each adds something to the name of the
        file. Raises `ReportUnreadable` if there are fewer than `runs`.
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
    """A program that runs tests: how to make it report on each test, and how to read
    the report.

    The project's own code runs at the same time, and may write the report itself. So a
    report can contain anything.
    """

    name: str
    """As users know it."""
    ends_with: frozenset[int]
    """The exit codes of a run that came to its end; 0 if all tests passed."""
    nothing_ran: int | None = None
    """The exit code that says that there was no test to run, if there is one."""
    always_reports: bool = False
    """True if a run without a report was cut short, and so cannot pass by its exit
    code.
    """
    captures: bool = False
    """True if its output is its report."""
    about_report: tuple[str, ...] = ()
    """The beginnings of output lines that may be about the report."""
    forbids_snapshots: bool = False
    """True if it writes no new snapshots while `CI` is set. It ends without `CI`."""
    starts_anything: bool = False
    """True if it may start any runner of tests, so that the settings of all matter."""
    reports_per_process: bool = False
    """True if each of its processes writes a separate report, so that a command may
    start it more than once.
    """

    @abstractmethod
    def place(self, argv: Sequence[str]) -> int | None:
        """Return the index of the last word that makes a command start this runner,
        perhaps through a launcher such as `npx`. None if it starts another program.
        """

    @abstractmethod
    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        """Return the command with a report to that file, running all tests to the end.
        None if its words ask for another report, or do not run tests.
        """

    @abstractmethod
    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        """Return the tests that a command asks for, as far as its words say."""

    @abstractmethod
    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        """Return the results. The ids of tests start at `root`, and are the same in
        each run. Raises `ReportUnreadable`.
        """

    def recognises(self, argv: Sequence[str]) -> bool:
        return self.place(argv) is not None

    def words(self, argv: Sequence[str]) -> Sequence[str]:
        place = self.place(argv)
        return argv[place + 1 :] if place is not None else ()

    def shown(self, line: str, report: Path) -> str:
        """Return a line of output as the user sees it; empty if it is only about the
        report.
        """
        del report
        return line

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        """Return what to compare of a file of this name; None if no file of this name
        decides how this runner runs tests.
        """
        del path
        return None


def whole(text: str) -> object:
    """The `Matters` of a file whose whole text counts, even if it is empty."""
    return text
