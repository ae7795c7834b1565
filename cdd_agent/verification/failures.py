"""Failed tests for people, from a check's report: the failed assertion first."""

import re
from collections.abc import Collection

from cdd_agent.events.step_events import FailedTest
from cdd_agent.verification.outcomes import Result, SuiteRun
from cdd_agent.verification.test_id import TestId

_MOST_TOLD = 20
_LONGEST_MESSAGE = 300
_RAISED = re.compile(r"^E {1,8}(\S.*)$", re.MULTILINE)
"""How pytest marks what a test ended with."""
_ERROR = re.compile(
    r"^\s*((?:[\w.]*(?:Error|Exception|Failure)\b|panicked|assert|Expected|expected"
    r"|want\b|got\b).*)$",
    re.MULTILINE,
)
"""How what went wrong begins elsewhere."""


def failed_tests(tests: SuiteRun, counted: Collection[str]) -> tuple[FailedTest, ...]:
    """The first of the tests that failed, those that count before the others."""
    failed = sorted(tests.having(Result.FAILED), key=lambda test: test not in counted)
    return tuple(
        FailedTest(
            test,
            _message(text),
            _place(TestId.parse(test).file, text),
            text,
            test not in counted,
        )
        for test in failed[:_MOST_TOLD]
        for text in (tests.texts.get(test, ""),)
    )


def _message(text: str) -> str:
    """The error that a test ended with, in a line."""
    if raised := _RAISED.search(text):
        line = raised[1]
    elif errors := _ERROR.findall(text):
        # a traceback says it at its end
        line = errors[-1 if "Traceback" in text else 0]
    else:
        line = text.strip().partition("\n")[0]
    return line.strip()[:_LONGEST_MESSAGE]


def _place(file: str, text: str) -> str:
    """The last line of the test's own file that its failure names."""
    name = re.escape(file.rpartition("/")[2])
    found = re.findall(
        rf"(?:^|[\s/\"(]){name}(?:\", line |:)(\d{{1,7}})", text, re.MULTILINE
    )
    return f"{file}:{found[-1]}" if found else ""
