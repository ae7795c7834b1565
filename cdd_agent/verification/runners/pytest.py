"""Pytest: it reports in JUnit's form, by words that are added to a command."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from posixpath import normpath

from cdd_agent.verification.outcomes import Selection, SuiteRun, is_in
from cdd_agent.verification.runner import Matters, Reported, Reporting
from cdd_agent.verification.runners import pytest_settings
from cdd_agent.verification.runners.junit import read_report
from cdd_agent.verification.test_id import TestId

_LAUNCHERS = (
    *("python", "coverage", "hatch", "pdm", "pipenv", "pixi", "poetry", "rye", "uv", "uvx"),
    *("env", "nice", "timeout", "xvfb-run"),
)
_NEAR = 8
"""How many words of a command may come before `pytest`."""

# Options that choose no tests: they change what is printed, measured or stopped at.
_PLAIN = re.compile(
    r"""
      -[qvslx]+ | -r\w+ | -n(\d+|auto|logical) | --(quiet|verbose|exitfirst|showlocals|full-trace|no-header|no-summary)
    | --(tb|color|durations|durations-min|maxfail|capture|show-capture|verbosity|code-highlight|numprocesses|dist
      |junitxml|junit-xml|junit-prefix|cov|cov-report|cov-config|cov-fail-under|html|log-level|log-cli-level)=.*
    | --(cov|no-cov|cov-append|cov-branch|no-cov-on-fail|self-contained-html|instafail)
    """,
    re.VERBOSE,
)
_PLAIN_WITH_VALUE = (
    "-n",
    "-r",
    "--tb",
    "--color",
    "--durations",
    "--maxfail",
    "--capture",
    "--junitxml",
    "--junit-xml",
)
_WITH_VALUE = (
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
)


class Pytest:
    """Pytest, also by way of `python -m`, poetry, uv and the like."""

    name = "pytest"
    ends_with = frozenset((0, 1, 5))  # https://docs.pytest.org/en/stable/reference/exit-codes.html
    nothing_ran: int | None = 5
    always_reports = True
    captures = False
    about_report: tuple[str, ...] = ("-",)

    def recognises(self, argv: Sequence[str]) -> bool:
        return _place(argv) is not None

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting:
        """With words that come last, so that they win over the project's settings and the command's own."""
        added = (
            *("-o", "junit_family=xunit1"),  # the form that names each test's file
            *("-o", "junit_logging=no"),
            "--continue-on-collection-errors",
            "--maxfail=0",
            f"--junitxml={report}",
        )
        end = argv.index("--") if "--" in argv else len(argv)
        return Reporting((*argv[:end], *added, *argv[end:]))

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        """A word that is no file or folder is an option."""
        paths: list[str] = []
        options: list[str] = []
        place = _place(argv)
        words = iter(argv[place + 1 :] if place is not None else ())
        for word in words:
            if word == "--":
                continue
            if word in _PLAIN_WITH_VALUE:
                next(words, None)
            elif word in _WITH_VALUE:
                options.append(f"{word} {next(words, '')}")
            elif not word.startswith("-") and _exists(root / TestId.parse(word).file):
                paths.append(_path(word, root))
            elif not _PLAIN.fullmatch(word):
                options.append(word)
        return Selection(tuple(sorted(set(paths))), tuple(sorted(options)))

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        return _named_from(root, replace(read_report(reported.data()), selection=selection))

    def shown(self, line: str, report: Path) -> str:
        """Without the line in which pytest says where its report is, which is nobody's business."""
        return "" if re.fullmatch(rf"-+ generated xml file: {re.escape(str(report))} -+\s*", line) else line

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        return pytest_settings.what_matters(path)


def _place(argv: Sequence[str]) -> int | None:
    """Where in a command the word is that is pytest."""
    names = [PurePath(word).name.removesuffix(".exe") for word in argv[:_NEAR]]
    place = next((index for index, name in enumerate(names) if name in ("pytest", "py.test")), None)
    if place is None or place == 0:
        return place
    starter = "python" if re.fullmatch(r"python[\d.]*", names[0]) else names[0]
    by_module = argv[place - 1] == "-m"
    by_path = argv[place] != names[place]
    return place if starter in _LAUNCHERS and (by_module or by_path or starter not in ("python", "coverage")) else None


def _path(word: str, root: Path) -> str:
    path, separator, inside = word.partition("::")
    place = root / path  # `path` itself if it is absolute
    inner = place.relative_to(root).as_posix() if place.is_relative_to(root) else place.as_posix()
    return normpath(inner) + separator + inside


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _named_from(root: Path, run: SuiteRun) -> SuiteRun:
    """The run with ids that start at the project's root. Pytest's own root may be a folder in it, or one around it."""
    paths = [TestId.parse(path).file for path in run.selection.paths]
    around = (folder for path in paths for folder in (root / path, *(root / path).parents))
    for base in dict.fromkeys((root, *around, *root.parents)):
        names = {test: _seen_from(root, base, test) for test in run.results}
        files = {TestId.parse(name).file for name in names.values()}
        if all(_exists(root / file) for file in files) and all(is_in(file, paths or ["."]) for file in files):
            return replace(
                run,
                results={names[test]: result for test, result in run.results.items()},
                texts={names[test]: text for test, text in run.texts.items()},
            )
    return run


def _seen_from(root: Path, base: Path, test: str) -> str:
    """An id that starts at `base`, as it is from `root`."""
    if base == root:
        return test
    if base.is_relative_to(root):
        return f"{base.relative_to(root).as_posix()}/{test}"
    return test.removeprefix(f"{root.relative_to(base).as_posix()}/")
