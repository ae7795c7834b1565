"""The failed tests of a check, for the user: message, place and text."""

import re
from collections.abc import Collection

from cdd_agent.events.step_events import FailedTest
from cdd_agent.pattern import Pattern
from cdd_agent.verification.outcomes import Result, SuiteRun
from cdd_agent.verification.test_id import TestId

_MOST_SHOWN = 20
_LONGEST_MESSAGE = 300
_RAISED = Pattern(r"^E {1,8}(\S.*)$", re.MULTILINE)
"""pytest's line with the raised error."""
_ERROR = Pattern(
    r"^\s*((?:[\w.]*(?:Error|Exception|Failure)\b|panicked|assert|Expected|expected"
    r"|want\b|got\b).*)$",
    re.MULTILINE,
)
"""Another runner's line with the error."""


def failed_tests(tests: SuiteRun, counted: Collection[str]) -> tuple[FailedTest, ...]:
    """Return at most 20 failed tests, the `counted` ones first."""
    failed = sorted(tests.having(Result.FAILED), key=lambda test: test not in counted)
    shown = []
    for test in failed[:_MOST_SHOWN]:
        text = tests.texts.get(test, "")
        place = _find_place(TestId.parse(test).file, text)
        shown.append(
            FailedTest(test, _find_message(text), place, text, test not in counted)
        )
    return tuple(shown)


def _find_message(text: str) -> str:
    raised = _RAISED.search(text)
    errors = _ERROR.findall(text)
    if raised is not None:
        line = raised[1]
    elif not errors:
        line = text.strip().partition("\n")[0]
    elif "Traceback" in text:
        # a traceback ends with the error
        line = errors[-1]
    else:
        line = errors[0]
    return line.strip()[:_LONGEST_MESSAGE]


def _find_place(file: str, text: str) -> str:
    name = re.escape(file.rpartition("/")[2])
    pattern = rf"(?:^|[\s/\"(]){name}(?:\", line |:)(\d{{1,7}})"
    numbers = re.findall(pattern, text, re.MULTILINE)
    return f"{file}:{numbers[-1]}" if numbers else ""
