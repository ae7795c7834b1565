"""Jest and vitest: both write the same JSON."""

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from cdd_agent.verification.outcomes import Result, Results, Selection, SuiteRun
from cdd_agent.verification.paths import from_root, paths_and_options
from cdd_agent.verification.runner import Matters, Reported, Reporting, ReportUnreadable, whole
from cdd_agent.verification.runners.javascript import place_of_tool
from cdd_agent.verification.settings import package_json
from cdd_agent.verification.test_id import TestId

_WITH_VALUE = (
    *(
        "-t",
        "--testNamePattern",
        "-c",
        "--config",
        "--project",
        "--selectProjects",
        "--root",
        "-r",
        "--rootDir",
        "--dir",
    ),
    *("--dir", "--exclude", "--testPathIgnorePatterns", "--shard", "--mode", "--environment", "--env"),
)
_RESULTS = {
    "passed": Result.PASSED,
    "failed": Result.FAILED,
    "skipped": Result.SKIPPED,
    "pending": Result.SKIPPED,
    "todo": Result.SKIPPED,
    "disabled": Result.SKIPPED,
}


class _Jestlike:
    """What both have in common."""

    name: str
    ends_with = frozenset((0, 1))
    nothing_ran: int | None = None
    always_reports = False
    captures = False
    about_report: tuple[str, ...]
    plain: tuple[str, ...]
    """Options that choose no tests."""

    def recognises(self, argv: Sequence[str]) -> bool:
        return place_of_tool(argv, self.name) is not None

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        place = place_of_tool(argv, self.name)
        return paths_and_options(argv[place + 1 :] if place is not None else (), root, self.plain, _WITH_VALUE)

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        return read_report(reported.data(), selection, root)

    def shown(self, line: str, report: Path) -> str:
        is_about_report = line.startswith(self.about_report) and report.name in line and report.parent.name in line
        return "" if is_about_report else line

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        if path.name == "package.json":
            return package_json
        return whole if path.stem in (f"{self.name}.config", f"{self.name}.workspace") else None


class Jest(_Jestlike):
    """Jest, also by way of npx and the like."""

    name = "jest"
    about_report: tuple[str, ...] = ("Test results written to:",)
    plain = (
        "--ci",
        "--verbose",
        "--silent",
        "--coverage",
        "--no-coverage",
        "--colors",
        "-i",
        "--runInBand",
        "-b",
        "--bail",
    )

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        if any(map(_conflicts, argv)):
            return None
        return Reporting((*argv, "--json", f"--outputFile={report}", "--bail=0"))


class Vitest(_Jestlike):
    """Vitest, also by way of npx and the like."""

    name = "vitest"
    about_report: tuple[str, ...] = ("JSON report written to",)
    plain: tuple[str, ...] = ("run", "--run", "--coverage", "--no-coverage", "--silent", "--color", "--no-color")

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        if any(map(_conflicts, argv)) or "bench" in argv or "list" in argv:
            return None
        # these replace what its config says; with `--outputFile.json`, one file there for all reporters would win
        added = ("--reporter=default", "--reporter=json", f"--outputFile={report}", "--bail=0")
        return Reporting((*argv, *added))


def _conflicts(word: str) -> bool:
    """Whether it asks for another report, for no end, or ends the options."""
    return (
        word == "--"
        or word.partition("=")[0]
        in (
            *("--json", "--outputFile", "--reporter", "--reporters", "--watch", "--watchAll", "-w", "--listTests"),
            *("--showConfig", "--help", "-h", "--version", "-v"),
        )
        or word.startswith("--outputFile.")
    )


def read_report(data: bytes, selection: Selection, root: Path) -> SuiteRun:
    """Read what jest and vitest write as JSON. Raises `ReportUnreadable`."""
    try:
        content: Any = json.loads(data)
        files: Any = content["testResults"]
        found = Results()
        for file in files:
            _read_file(file, root, found)
        told = content["numTotalTests"]
        is_finished = content.get("wasInterrupted", False) is False
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ReportUnreadable(f"it is not what jest and vitest write: {type(error).__name__}") from error
    if told != sum(len(file["assertionResults"]) for file in files):
        raise ReportUnreadable("it does not hold as many tests as it says")
    return found.run(selection, is_finished=is_finished)


def _read_file(file: Any, root: Path, found: Results) -> None:
    path = from_root(str(file["name"]), root)
    tests = file["assertionResults"]
    for test in tests:
        name = " > ".join(map(str, (*test["ancestorTitles"], test["title"])))
        found.add(
            str(TestId(path, name)), _RESULTS[test["status"]], "\n".join(map(str, test.get("failureMessages") or ()))
        )
    if file["status"] == "failed" and not any(_RESULTS[test["status"]] is Result.FAILED for test in tests):
        found.add(path, Result.FAILED, str(file.get("message") or ""))
