"""Pytest. It reports in JUnit's form, by words that are added to the command."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePath, PurePosixPath

from msgspec.structs import replace

from cdd_agent.verification.outcomes import Selection, SuiteRun, is_in
from cdd_agent.verification.paths import exists, from_root
from cdd_agent.verification.runner import Matters, Reported, Reporting, TestRunner
from cdd_agent.verification.runners import pytest_settings
from cdd_agent.verification.runners.junit import read_report
from cdd_agent.verification.test_id import TestId

_LAUNCHERS = (
    *(
        "python",
        "coverage",
        "hatch",
        "pdm",
        "pipenv",
        "pixi",
        "poetry",
        "rye",
        "uv",
        "uvx",
    ),
    *("env", "nice", "timeout", "xvfb-run"),
)
_NEAR = 8
"""The number of words of a command that may come before `pytest`."""

# Options that select no tests. They change what is printed or measured, or when the run
# stops.
_PLAIN = re.compile(
    r"""
      -[qvslx]+ | -r\w+ | -n(\d+|auto|logical)
    | --(quiet|verbose|exitfirst|showlocals|full-trace|no-header|no-summary)
    | --(tb|color|durations|durations-min|maxfail|capture|show-capture|verbosity
      |code-highlight|numprocesses|dist|junitxml|junit-xml|junit-prefix
      |cov|cov-report|cov-config|cov-fail-under|html|log-level|log-cli-level)=.*
    | --(cov|no-cov|cov-append|cov-branch|no-cov-on-fail|self-contained-html|instafail)
    """,
    re.VERBOSE,
)
_PLAIN_WITH_VALUE = (
    *(
        "-n",
        "-r",
        "--tb",
        "--color",
        "--durations",
        "--maxfail",
        "--capture",
        "--junitxml",
        "--junit-xml",
    ),
)
_WITH_VALUE = (
    *(
        "-k",
        "-m",
        "-o",
        "-p",
        "-c",
        "-W",
        "--deselect",
        "--ignore",
        "--ignore-glob",
        "--rootdir",
        "--confcutdir",
    ),
)


REPORT_OPTIONS = (
    *("-o", "junit_family=xunit1"),  # the form that names each test's file
    *("-o", "junit_logging=no"),
    "--continue-on-collection-errors",
    "--maxfail=0",
)


class Pytest(TestRunner):
    """Pytest, also by way of `python -m`, poetry, uv and the like."""

    name = "pytest"
    # https://docs.pytest.org/en/stable/reference/exit-codes.html
    ends_with = frozenset((0, 1, 5))
    nothing_ran = 5
    always_reports = True
    about_report = ("-",)

    def place(self, argv: Sequence[str]) -> int | None:
        names = [PurePath(word).name.removesuffix(".exe") for word in argv[:_NEAR]]
        place = next(
            (
                index
                for index, name in enumerate(names)
                if name in ("pytest", "py.test")
            ),
            None,
        )
        if place is None or place == 0:
            return place
        starter = "python" if re.fullmatch(r"python[\d.]*", names[0]) else names[0]
        is_meant = (
            argv[place - 1] == "-m"
            or argv[place] != names[place]
            or starter not in ("python", "coverage")
        )
        return place if starter in _LAUNCHERS and is_meant else None

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting:
        """Return the command with words that come last, so that they win over the
        project's settings and the command's own.
        """
        added = (*REPORT_OPTIONS, f"--junitxml={report}")
        end = argv.index("--") if "--" in argv else len(argv)
        return Reporting((*argv[:end], *added, *argv[end:]))

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        """A word that is no file or folder is an option."""
        paths: list[str] = []
        options: list[str] = []
        words = iter(self.words(argv))
        for word in words:
            if word == "--":
                continue
            if word in _PLAIN_WITH_VALUE:
                next(words, None)
            elif word in _WITH_VALUE:
                options.append(f"{word} {next(words, '')}")
            elif not word.startswith("-") and exists(root / TestId.parse(word).file):
                path, separator, inside = word.partition("::")
                paths.append(from_root(path, root) + separator + inside)
            elif not _PLAIN.fullmatch(word):
                options.append(word)
        return Selection(tuple(sorted(set(paths))), tuple(sorted(options)))

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        return name_from_root(
            root, replace(read_report(reported.data()), selection=selection)
        )

    def shown(self, line: str, report: Path) -> str:
        return without_report_line(line, report)

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        return pytest_settings.what_matters(path)


def without_report_line(line: str, report: Path) -> str:
    """Return a line of output, unless it is the one with the place of the report."""
    place = re.escape(str(report))
    is_place = re.fullmatch(rf"-+ generated xml file: {place}\S* -+\s*", line)
    return "" if is_place else line


def name_from_root(root: Path, run: SuiteRun) -> SuiteRun:
    """Return the run with ids that start at the project's root. Pytest's own root may
    be a folder in it, or one around it.
    """
    paths = [TestId.parse(path).file for path in run.selection.paths]
    around = (
        folder for path in paths for folder in (root / path, *(root / path).parents)
    )
    for base in dict.fromkeys((root, *around, *root.parents)):
        if base.is_relative_to(root):
            inner = "" if base == root else f"{base.relative_to(root).as_posix()}/"
            names = {test: f"{inner}{test}" for test in run.results}
        else:
            outer = f"{root.relative_to(base).as_posix()}/"
            names = {test: test.removeprefix(outer) for test in run.results}
        files = {TestId.parse(name).file for name in names.values()}
        if all(exists(root / file) for file in files) and all(
            is_in(file, paths or ["."]) for file in files
        ):
            return replace(
                run,
                results={names[test]: result for test, result in run.results.items()},
                texts={names[test]: text for test, text in run.texts.items()},
            )
    return run
