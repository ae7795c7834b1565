"""pytest. Options at the end of the command make it write a JUnit report."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from cdd_agent.pattern import Pattern
from cdd_agent.verification.outcomes import Selection, SuiteRun, is_in
from cdd_agent.verification.paths import exists, from_root
from cdd_agent.verification.runner import Matters, Reported, Reporting, TestRunner
from cdd_agent.verification.runners import pytest_settings
from cdd_agent.verification.runners.junit import read_report
from cdd_agent.verification.runners.launchers import (
    PYTHON_LAUNCHERS,
    find_word,
    first_programs,
)
from cdd_agent.verification.test_id import TestId

_PLAIN = Pattern(
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
"""Options about output, measurement or stopping, which select no tests."""
_PLAIN_WITH_VALUE = (
    *("-n", "-r", "--tb", "--color", "--durations", "--maxfail", "--capture"),
    *("--junitxml", "--junit-xml"),
)
_WITH_VALUE = (
    *("-k", "-m", "-o", "-p", "-c", "-W", "--deselect", "--ignore", "--ignore-glob"),
    *("--rootdir", "--confcutdir"),
)
REPORT_OPTIONS = (
    # includes each test's file
    *("-o", "junit_family=xunit1"),
    *("-o", "junit_logging=no"),
    "--continue-on-collection-errors",
    "--maxfail=0",
)


class Pytest(TestRunner):
    """Started directly or through `python -m`, poetry, uv and others."""

    name = "pytest"
    # https://docs.pytest.org/en/stable/reference/exit-codes.html
    ends_with = frozenset((0, 1, 5))
    nothing_ran = 5
    always_reports = True
    about_report = ("-",)

    def place(self, argv: Sequence[str]) -> int | None:
        names = first_programs(argv)
        place = find_word(names, ("pytest", "py.test"))
        if place is None or place == 0:
            return place
        if names[0] not in PYTHON_LAUNCHERS:
            return None
        # `python run.py pytest` starts another program
        is_module = argv[place - 1] == "-m"
        is_path = argv[place] != names[place]
        if names[0] in ("python", "coverage") and not (is_module or is_path):
            return None
        return place

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting:
        """The added options come last, to override settings and other options."""
        added = (*REPORT_OPTIONS, f"--junitxml={report}")
        end = argv.index("--") if "--" in argv else len(argv)
        return Reporting((*argv[:end], *added, *argv[end:]))

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        """A word that is not an existing path counts as an option."""
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
        run = read_report(reported.data())
        return name_from_root(root, replace(run, selection=selection))

    def shown(self, line: str, report: Path) -> str:
        return without_report_line(line, report)

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        return pytest_settings.what_matters(path)


def without_report_line(line: str, report: Path) -> str:
    """Return the line; empty if it names the report."""
    path = re.escape(str(report))
    names_report = re.fullmatch(rf"-+ generated xml file: {path}\S* -+\s*", line)
    return "" if names_report else line


def name_from_root(root: Path, run: SuiteRun) -> SuiteRun:
    """Make ids relative to the project's root. pytest's own root may be inside or
    around it.
    """
    asked = [TestId.parse(path).file for path in run.selection.paths]
    bases = [root]
    for path in asked:
        bases += [root / path, *(root / path).parents]
    bases += root.parents
    for base in dict.fromkeys(bases):
        names = {test: _from_root(test, base, root) for test in run.results}
        files = {TestId.parse(name).file for name in names.values()}
        if all(exists(root / file) and is_in(file, asked or ["."]) for file in files):
            return replace(
                run,
                results={names[test]: result for test, result in run.results.items()},
                texts={names[test]: text for test, text in run.texts.items()},
            )
    return run


def _from_root(test: str, base: Path, root: Path) -> str:
    """Translate an id from the folder `base` to `root`."""
    if base == root:
        return test
    if base.is_relative_to(root):
        return f"{base.relative_to(root).as_posix()}/{test}"
    return test.removeprefix(f"{root.relative_to(base).as_posix()}/")
