"""Jest and vitest: both write the same JSON."""

import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from cdd_agent.verification.outcomes import Result, Results, Selection, SuiteRun
from cdd_agent.verification.paths import from_root, paths_and_options
from cdd_agent.verification.runner import (
    Matters,
    Reported,
    Reporting,
    ReportUnreadable,
    TestRunner,
    whole,
)
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
    ),
    *(
        "--dir",
        "--exclude",
        "--testPathIgnorePatterns",
        "--shard",
        "--mode",
        "--environment",
        "--env",
    ),
)
_RESULTS = {
    "passed": Result.PASSED,
    "failed": Result.FAILED,
    **dict.fromkeys(("skipped", "pending", "todo", "disabled"), Result.SKIPPED),
}


class _Jestlike(TestRunner):
    """Either of both, also by way of npx and the like."""

    ends_with = frozenset((0, 1))
    plain: ClassVar[tuple[str, ...]]
    """Options that choose no tests."""

    def place(self, argv: Sequence[str]) -> int | None:
        return place_of_tool(argv, self.name)

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        return paths_and_options(self.words(argv), root, self.plain, _WITH_VALUE)

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        return read_report(reported.data(), selection, root)

    def shown(self, line: str, report: Path) -> str:
        is_about_report = (
            line.startswith(self.about_report)
            and report.name in line
            and report.parent.name in line
        )
        return "" if is_about_report else line

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        if path.name == "package.json":
            return package_json
        return (
            whole
            if path.stem in (f"{self.name}.config", f"{self.name}.workspace")
            else None
        )


class Jest(_Jestlike):
    """Jest."""

    name = "jest"
    about_report = ("Test results written to:",)
    plain = (
        *("--ci", "--verbose", "--silent", "--coverage", "--no-coverage", "--colors"),
        *("-i", "--runInBand", "-b", "--bail"),
    )

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        if any(map(_conflicts, argv)):
            return None
        return Reporting((*argv, "--json", f"--outputFile={report}", "--bail=0"))


class Vitest(_Jestlike):
    """Vitest."""

    name = "vitest"
    about_report = ("JSON report written to",)
    plain = (
        "run",
        "--run",
        "--coverage",
        "--no-coverage",
        "--silent",
        "--color",
        "--no-color",
    )

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        if any(map(_conflicts, argv)) or "bench" in argv or "list" in argv:
            return None
        # these replace what its config says; with `--outputFile.json`, one file there
        # for all reporters would win
        added = (
            "--reporter=default",
            "--reporter=json",
            f"--outputFile={report}",
            "--bail=0",
        )
        return Reporting((*argv, *added))


_CONFLICTS = (
    *(
        "--",
        "--json",
        "--outputFile",
        "--reporter",
        "--reporters",
        "--watch",
        "--watchAll",
        "-w",
        "--listTests",
    ),
    *("--showConfig", "--help", "-h", "--version", "-v"),
)


def _conflicts(word: str) -> bool:
    """Whether it asks for another report, for no end, or ends the options."""
    return word.partition("=")[0] in _CONFLICTS or word.startswith("--outputFile.")


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
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise ReportUnreadable(
            f"it is not what jest and vitest write: {type(error).__name__}"
        ) from error
    if told != sum(len(file["assertionResults"]) for file in files):
        raise ReportUnreadable("it does not hold as many tests as it says")
    return found.run(selection, is_finished=is_finished)


def _read_file(file: Any, root: Path, found: Results) -> None:
    path = from_root(str(file["name"]), root)
    tests = file["assertionResults"]
    for test in tests:
        name = " > ".join(map(str, (*test["ancestorTitles"], test["title"])))
        text = "\n".join(map(str, test.get("failureMessages") or ()))
        found.add(str(TestId(path, name)), _RESULTS[test["status"]], text)
    if file["status"] == "failed" and not any(
        _RESULTS[test["status"]] is Result.FAILED for test in tests
    ):
        found.add(path, Result.FAILED, str(file.get("message") or ""))
