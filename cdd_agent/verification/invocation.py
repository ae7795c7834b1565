"""The test runner that a command starts, directly or through scripts, and how words
reach it.
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.verification.outcomes import Selection, SuiteRun
from cdd_agent.verification.runner import (
    Matters,
    Reported,
    Reporting,
    TestRunner,
)
from cdd_agent.verification.runners import all_runners
from cdd_agent.verification.runners.launchers import program_name
from cdd_agent.verification.runners.lines import INJECTED
from cdd_agent.verification.scripts import (
    StartedProgram,
    find_started,
    run_all_packages,
)
from cdd_agent.verification.settings import package_json

_ECHO = ("> ", "$ ", "Task ")
"""Beginnings of lines that echo the started script."""
_RUN_TESTS_UNREAD = (
    *("ava", "cypress", "karma", "nx", "playwright", "tap", "tape", "turbo", "uvu"),
    *("jasmine", "lerna", "wireit", "npm-run-all", "run-s", "run-p", "concurrently"),
)
"""Programs that run tests but report to no runner here."""


class RunnerInvocation(Struct, frozen=True):
    runner: TestRunner
    root: Path
    argv: tuple[str, ...]
    parts: tuple[StartedProgram, ...] = ()
    """The programs that run tests, if scripts start them."""
    obstacle: str = ""
    """Why the tests cannot be reported, as a clause."""
    folder: str = ""
    """The working folder, relative to the project's root; empty for the root."""

    def reporting(self, report: Path) -> Reporting | None:
        """Return the command with a report of each test; None if impossible."""
        if not self.parts:
            return self.runner.reporting(self.argv, report)
        if self.obstacle:
            return None
        # words and variables to add must be the same for all programs
        first = self._addition(self.parts[0], report)
        if first is None:
            return None
        for part in self.parts[1:]:
            if self._addition(part, report) != first:
                return None
        argv = run_all_packages(self.argv) if len(self.parts) > 1 else self.argv
        return Reporting((*argv, *first.argv), first.env)

    def _addition(self, part: StartedProgram, report: Path) -> Reporting | None:
        """Return what to add to the command so that a program reports; None if the
        words cannot reach it.
        """
        made = self.runner.reporting(part.words, report)
        # a script accepts words only at its end
        if made is None or made.argv[: len(part.words)] != part.words:
            return None
        added = made.argv[len(part.words) :]
        if not added:
            return Reporting((), made.env)
        if part.separators is None:
            return None
        return Reporting((*["--"] * part.separators, *added), made.env)

    @property
    def why_unread(self) -> str:
        """Why the command does not report single tests, as a clause."""
        return (
            self.obstacle
            or "its words ask for another report, or leave no place to ask for one"
        )

    @property
    def selection(self) -> Selection:
        """The tests that the command asks for, with paths from the project's root."""
        asked = self._selection_in_folder
        paths = tuple(self._from_root(path) for path in asked.paths)
        if self.folder and not paths:
            paths = (self.folder,)
        return replace(asked, paths=paths, runner=self.runner.name)

    @property
    def _selection_in_folder(self) -> Selection:
        if not self.parts:
            return self.runner.selection(self.argv, self.root)
        if len(self.parts) == 1 and self.parts[0].folder == self.root:
            return self.runner.selection(self.parts[0].words, self.root)
        return Selection((), self.argv)

    def read(self, reported: Reported) -> SuiteRun:
        """Return the results of all programs, with ids relative to the project's root.
        Raises `ReportUnreadable`.
        """
        if len(self.parts) > 1:
            reported.all_data(len(self.parts))
        run = self.runner.read(reported, self._selection_in_folder, self.root)
        results = {self._from_root(test): each for test, each in run.results.items()}
        texts = {self._from_root(test): text for test, text in run.texts.items()}
        return replace(run, selection=self.selection, results=results, texts=texts)

    def _from_root(self, path: str) -> str:
        return f"{self.folder}/{path}" if self.folder else path

    def shown(self, line: str, report: Path) -> str:
        """Return the line as the user sees it; empty if it is only about the report."""
        if self.parts and (str(INJECTED) in line or str(report) in line):
            made = self.reporting(report)
            for word in made.argv if made else ():
                if word not in (*self.argv, "--", "--no-bail"):
                    # the added words come last, perhaps quoted by a shell
                    line, is_cut, _ = line.partition(word)
                    line = line.rstrip("'\" -") + "\n" if is_cut else line
                    break
        return self.runner.shown(line, report)

    def may_be_about_report(self, begun: str) -> bool:
        """True if `shown` may change a line with this beginning."""
        # `packages/a test$ jest`
        if self.parts and "$ " in begun:
            return True
        beginnings = (*self.runner.about_report, *(_ECHO if self.parts else ()))
        return any(begun.startswith(one) or one.startswith(begun) for one in beginnings)

    @property
    def may_start_anything(self) -> bool:
        """True if any runner's settings may matter."""
        return bool(self.obstacle) or self.runner.starts_anything

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        """Return what to compare of a file with this name; None if it does not decide
        how this command runs tests.
        """
        if path.is_relative_to(self.folder):
            path = path.relative_to(self.folder)
        if self.parts and path.name == "package.json":
            return package_json
        return self.runner.what_matters(path)


def invocation(
    argv: Sequence[str], root: Path, folder: str = ""
) -> RunnerInvocation | None:
    """Return the runner that a command starts in `root`; None if unknown. `folder`
    leads from the project's root to `root`.
    """
    argv = tuple(argv)
    direct = _find_runner(argv)
    if direct is not None:
        return RunnerInvocation(direct, root, argv, folder=folder)
    started = find_started(argv, root)
    if [part.words for part in started] == [argv]:
        return None
    runners: dict[str, TestRunner] = {}
    parts: list[StartedProgram] = []
    for part in started:
        runner = _find_runner(part.words)
        if runner is not None:
            runners[runner.name] = runner
            parts.append(part)
    if not parts:
        return None
    first = next(iter(runners.values()))
    obstacle = _find_obstacle(started, parts, tuple(runners), first, root)
    return RunnerInvocation(first, root, argv, tuple(parts), obstacle, folder)


def _find_obstacle(
    started: Sequence[StartedProgram],
    parts: Sequence[StartedProgram],
    names: Sequence[str],
    runner: TestRunner,
    root: Path,
) -> str:
    """Return why the tests of several programs cannot be reported together."""
    if len(names) > 1:
        return f"it starts several runners of tests ({', '.join(names)})"
    for each in started:
        program = program_name(each.words[0])
        if program in _RUN_TESTS_UNREAD:
            return f"it also starts `{program}`, which does not report to cdd"
    is_moved = any(part.folder != root for part in parts)
    if not runner.reports_per_process and (len(parts) > 1 or is_moved):
        return f"it starts {runner.name} more than once or in another folder"
    return ""


def _find_runner(argv: Sequence[str]) -> TestRunner | None:
    for runner in all_runners():
        if runner.recognises(argv):
            return runner
    return None
