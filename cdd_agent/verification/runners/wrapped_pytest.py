"""pytest behind programs that may start it: make, tox, nox, hatch and others.
Environment variables carry the options.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from cdd_agent.pattern import Pattern
from cdd_agent.text.sanitize import remove_escapes
from cdd_agent.verification.outcomes import Selection, SuiteRun, merge_runs
from cdd_agent.verification.runner import (
    Reported,
    Reporting,
    ReportUnreadable,
    TestRunner,
)
from cdd_agent.verification.runners.junit import read_report
from cdd_agent.verification.runners.launchers import program_name
from cdd_agent.verification.runners.pytest import (
    REPORT_OPTIONS,
    name_from_root,
    without_report_line,
)

_WRAPPERS = (
    *("make", "gmake", "just", "task", "tox", "nox", "hatch", "pdm", "poetry", "poe"),
    *("uv", "pixi", "rye", "invoke", "inv", "pipenv"),
)
_RUN_NAMES = ("TOX_ENV_NAME", "NOX_CURRENT_SESSION", "HATCH_ENV_ACTIVE")
"""Variables that name one of several runs. pytest expands them in a path."""
_SUMMARY = Pattern(
    r"^=*\s*(?:no tests ran|\d+ \w+(?:, \d+ \w+)*) in [\d.]+s.*$", re.MULTILINE
)


class WrappedPytest(TestRunner):
    name = "pytest"
    ends_with = frozenset(range(256))
    about_report = ("-",)
    starts_anything = True

    def place(self, argv: Sequence[str]) -> int | None:
        is_wrapper = bool(argv) and program_name(argv[0]) in _WRAPPERS
        return 0 if is_wrapper else None

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        names = "".join(f"-${name}" for name in _RUN_NAMES)
        options = (*REPORT_OPTIONS, f"--junitxml={report}{names}")
        own = os.environ.get("PYTEST_ADDOPTS", "")
        own_override = os.environ.get("TOX_OVERRIDE", "")
        override = "testenv.pass_env+=PYTEST_ADDOPTS"
        return Reporting(
            tuple(argv),
            {
                "PYTEST_ADDOPTS": " ".join(filter(None, (own, *options))),
                "TOX_OVERRIDE": ";".join(filter(None, (own_override, override))),
            },
        )

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        del root
        return Selection((), tuple(argv[1:]))

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        output = remove_escapes(f"{reported.result.stdout}\n{reported.result.stderr}")
        reports = reported.all_data(runs=0)
        if not reports:
            raise ReportUnreadable("it does not report on single tests")
        # runs of the same name overwrite each other's report
        if len(_SUMMARY.findall(output)) != len(reports):
            raise ReportUnreadable("pytest may have run more often than it reported")
        if "stopping after" in output:
            raise ReportUnreadable("pytest stopped at a failure")
        runs = [name_from_root(root, read_report(data)) for data in reports]
        return replace(merge_runs(runs), selection=selection)

    def shown(self, line: str, report: Path) -> str:
        return without_report_line(line, report)
