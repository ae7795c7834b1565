"""Read the reports of the reporters in `injected/`: a JSON object on each line."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdd_agent.verification.outcomes import Result, Results, Selection, SuiteRun
from cdd_agent.verification.paths import from_root
from cdd_agent.verification.runner import MALFORMED, ReportUnreadable
from cdd_agent.verification.test_id import TestId

INJECTED = Path(__file__).parent / "injected"
"""The folder of the reporters, which other programs load."""
REPORT_VARIABLE = "CDD_TEST_REPORT"
"""The variable with the path of a reporter's file."""


def read_lines(
    reports: Sequence[bytes], selection: Selection, root: Path, between: str
) -> SuiteRun:
    """Read reports. The last line of a complete report marks its end. `between`
    separates the names of a test. Raises `ReportUnreadable`.
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
    """Add the test of a line. True if the line marks the end of the report."""
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
