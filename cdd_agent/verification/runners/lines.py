"""Reads the reports of `injected/`: a JSON object on each line."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdd_agent.verification.outcomes import Result, Results, Selection, SuiteRun
from cdd_agent.verification.paths import from_root
from cdd_agent.verification.runner import MALFORMED, ReportUnreadable
from cdd_agent.verification.test_id import TestId

INJECTED = Path(__file__).parent / "injected"
"""Reporters that other programs load."""
REPORT_VARIABLE = "CDD_TEST_REPORT"
"""Holds the path of the report."""


def read_lines(
    reports: Sequence[bytes], selection: Selection, root: Path, between: str
) -> SuiteRun:
    """A complete report has an end mark in its last line. `between` joins the names of
    a test. Raises `ReportUnreadable`.
    """
    results = Results()
    are_finished = []
    for data in reports:
        if not data:
            raise ReportUnreadable("there is nothing in it")
        is_end = False
        for line in data.splitlines():
            is_end = _read_line(line, results, root, between)
        are_finished.append(is_end)
    return results.run(selection, is_finished=all(are_finished))


def _read_line(line: bytes, results: Results, root: Path, between: str) -> bool:
    """Add the test of a line. True if the line is the end mark."""
    try:
        test: Any = json.loads(line)
        if test.get("end") is True:
            return True
        path = from_root(test["file"], root)
        names = [str(name) for name in test["names"]]
        if names == [test["file"]]:
            names = []
        result, text = Result(test["result"]), str(test.get("text", ""))
    except MALFORMED as error:
        why = f"a line of it is not about a test: {type(error).__name__}"
        raise ReportUnreadable(why) from error
    results.add(str(TestId(path, between.join(names))), result, text)
    return False
