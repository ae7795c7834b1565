"""Read reports in lines of JSON. The reporters in `injected/` write them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdd_agent.verification.outcomes import Result, Results, Selection, SuiteRun
from cdd_agent.verification.paths import from_root
from cdd_agent.verification.runner import ReportUnreadable
from cdd_agent.verification.test_id import TestId

INJECTED = Path(__file__).parent / "injected"
"""The folder of the reporters, which other programs load."""
REPORT_VARIABLE = "CDD_TEST_REPORT"
"""The variable with the path of a reporter's file."""


def read_lines(
    reports: Sequence[bytes], selection: Selection, root: Path, between: str
) -> SuiteRun:
    """Read reports whose last line says that they are whole. `between` separates the
    names of a test. Raises `ReportUnreadable`.
    """
    found, are_finished = Results(), list[bool]()
    for data in reports:
        if not data:
            raise ReportUnreadable("there is nothing in it")
        is_finished = False
        for line in data.splitlines():
            is_finished = _read_line(line, found, root, between)
        are_finished.append(is_finished)
    return found.run(selection, is_finished=all(are_finished))


def _read_line(line: bytes, found: Results, root: Path, between: str) -> bool:
    """Add the test of a line. True if the line is the end of the report instead."""
    try:
        test: Any = json.loads(line)
        if test.get("end") is True:
            return True
        path = from_root(test["file"], root)
        names = [str(name) for name in test["names"]]
        if names == [test["file"]]:
            names = []
        result, text = Result(test["result"]), str(test.get("text", ""))
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise ReportUnreadable(
            f"a line of it is not about a test: {type(error).__name__}"
        ) from error
    found.add(str(TestId(path, between.join(names))), result, text)
    return False
