"""`node --test`, given a reporter of ours by way of `NODE_OPTIONS`, so that it may be started by a script."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from cdd_agent.verification.outcomes import Selection, SuiteRun
from cdd_agent.verification.paths import paths_and_options
from cdd_agent.verification.runner import Matters, Reported, Reporting
from cdd_agent.verification.runners.javascript import place_of_tool
from cdd_agent.verification.runners.lines import INJECTED, read_lines
from cdd_agent.verification.settings import package_json

_PLAIN = ("--test", "--enable-source-maps", "--no-warnings", "--experimental-test-coverage")
_WITH_VALUE = ("--import", "-r", "--require", "--loader", "--test-name-pattern", "--test-skip-pattern", "--test-shard")


class Node:
    """Node's own runner of tests."""

    name = "node --test"
    ends_with = frozenset((0, 1))
    nothing_ran: int | None = None
    always_reports = False
    captures = False
    about_report: tuple[str, ...] = ()

    def recognises(self, argv: Sequence[str]) -> bool:
        place = place_of_tool(argv, "node")
        return place is not None and "--test" in argv[place + 1 :]

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        own = os.environ.get("NODE_OPTIONS", "")
        if any(word.startswith(("--test-reporter", "--watch")) for word in (*argv, *own.split())):
            return None
        added = (
            "--test-reporter=spec",
            "--test-reporter-destination=stdout",
            f"--test-reporter={(INJECTED / 'node_reporter.mjs').as_uri()}",
            f"--test-reporter-destination={report}",
        )
        quoted = ('"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"' for option in added)
        return Reporting(tuple(argv), {"NODE_OPTIONS": " ".join(filter(None, (own, *quoted)))})

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        place = place_of_tool(argv, "node")
        return paths_and_options(argv[place + 1 :] if place is not None else (), root, _PLAIN, _WITH_VALUE)

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        return read_lines(reported.data(), selection, root, " > ")

    def shown(self, line: str, report: Path) -> str:
        del report
        return line

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        return package_json if path.name == "package.json" else None
