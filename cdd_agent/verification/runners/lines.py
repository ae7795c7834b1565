"""Reading reports in lines of JSON: what our own reporters write, which some runners
are given.
"""

import json
from pathlib import Path
from typing import Any

from cdd_agent.verification.outcomes import Result, Results, Selection, SuiteRun
from cdd_agent.verification.paths import from_root
from cdd_agent.verification.runner import ReportUnreadable
from cdd_agent.verification.test_id import TestId

INJECTED = Path(__file__).parent / "injected"
"""Where the reporters are, as files for other programs."""


def read_lines(data: bytes, selection: Selection, root: Path, between: str) -> SuiteRun:
    """Read a report whose last line says that it is whole; `between` stands between the
    names of a test.

    Raises `ReportUnreadable`.
    """
    found, is_finished = Results(), False
    if not data:
        raise ReportUnreadable("there is nothing in it")
    for line in data.splitlines():
        try:
            told: Any = json.loads(line)
            if is_finished := told.get("end") is True:
                continue
            path = from_root(told["file"], root)
            names = (
                []
                if told["names"] == [told["file"]]
                else [str(name) for name in told["names"]]
            )
            result, text = Result(told["result"]), str(told.get("text", ""))
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            raise ReportUnreadable(
                f"a line of it is none that tells of a test: {type(error).__name__}"
            ) from error
        found.add(str(TestId(path, between.join(names))), result, text)
    return found.run(selection, is_finished=is_finished)
