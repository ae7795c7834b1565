"""`node --test`, given a reporter of ours by way of `NODE_OPTIONS`, so that it may be
started by a script.
"""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from cdd_agent.verification.outcomes import Selection, SuiteRun
from cdd_agent.verification.paths import paths_and_options
from cdd_agent.verification.runner import Matters, Reported, Reporting, TestRunner
from cdd_agent.verification.runners.javascript import place_of_tool
from cdd_agent.verification.runners.lines import INJECTED, read_lines
from cdd_agent.verification.settings import package_json

_PLAIN = (
    "--test",
    "--enable-source-maps",
    "--no-warnings",
    "--experimental-test-coverage",
)
_WITH_VALUE = (
    "--import",
    "-r",
    "--require",
    "--loader",
    "--test-name-pattern",
    "--test-skip-pattern",
    "--test-shard",
)


class Node(TestRunner):
    """Node's own runner of tests."""

    name = "node --test"
    ends_with = frozenset((0, 1))

    def place(self, argv: Sequence[str]) -> int | None:
        place = place_of_tool(argv, "node")
        return place if place is not None and "--test" in argv[place + 1 :] else None

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        own = os.environ.get("NODE_OPTIONS", "")
        if any(
            word.startswith(("--test-reporter", "--watch"))
            for word in (*argv, *own.split())
        ):
            return None
        added = (
            "--test-reporter=spec",
            "--test-reporter-destination=stdout",
            f"--test-reporter={(INJECTED / 'node_reporter.mjs').as_uri()}",
            f"--test-reporter-destination={report}",
        )
        quoted = (
            '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'
            for option in added
        )
        return Reporting(
            tuple(argv), {"NODE_OPTIONS": " ".join(filter(None, (own, *quoted)))}
        )

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        return paths_and_options(self.words(argv), root, _PLAIN, _WITH_VALUE)

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        return read_lines(reported.data(), selection, root, " > ")

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        return package_json if path.name == "package.json" else None
