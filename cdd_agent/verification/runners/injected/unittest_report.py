"""Runs unittest as `python -m unittest` does, and reports on each test in lines of
JSON.

This is run by the project's own Python:
`unittest_report.py REPORT [the words of unittest]`.
"""

import json
import os
import sys
import traceback
import unittest
from types import TracebackType
from typing import IO, Any, ClassVar
from unittest.loader import _FailedTest  # type: ignore[attr-defined]

_Error = tuple[type[BaseException], BaseException, TracebackType]


class _Result(unittest.TextTestResult):
    report: ClassVar[IO[str]]

    def addSuccess(self, test: Any) -> None:
        super().addSuccess(test)
        self._tell(test, "passed")

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._tell(test, "failed", err)

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._tell(test, "failed", err)

    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        self._tell(test, "skipped")

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._tell(test, "skipped")

    def addUnexpectedSuccess(self, test: Any) -> None:
        super().addUnexpectedSuccess(test)
        self._tell(test, "failed")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._tell(test, "failed", err)

    def stopTestRun(self) -> None:
        super().stopTestRun()
        self._write({"end": True})

    def _tell(self, test: Any, result: str, err: _Error | None = None) -> None:
        file, names = _place(getattr(test, "test_case", test))
        text = "".join(traceback.format_exception(*err))[-4000:] if err else ""
        self._write({"file": file, "names": names, "result": result, "text": text})

    def _write(self, line: dict[str, object]) -> None:
        self.report.write(json.dumps(line) + "\n")
        self.report.flush()


class _Runner(unittest.TextTestRunner):
    resultclass = _Result  # type: ignore[assignment]

    def __init__(self, **options: Any) -> None:
        # the other tests are to be known, too
        super().__init__(**{**options, "failfast": False})


def _place(test: Any) -> tuple[str, list[str]]:
    """The file that a test is in, and its names there."""
    if isinstance(test, _FailedTest):  # a module that cannot be imported
        name: str = test._testMethodName
        # of such a word only its end is told
        asked = (word for word in sys.argv[1:] if word.endswith(f".{name}"))
        return next(filter(None, map(_file_of_module, (name, *asked))), name), []
    if isinstance(test, unittest.TestCase):
        doctest = getattr(test, "_dt_test", None)
        if doctest is not None:
            return os.path.abspath(doctest.filename or doctest.name), [doctest.name]
        kind = type(test)
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return os.path.abspath(file) if file else kind.__module__, [
            *kind.__qualname__.split("."),
            test._testMethodName,
        ]
    # `setUpClass (tests.test_a.TestK)`
    dotted = str(test).partition("(")[2].rstrip(")").split(".")
    for length in range(len(dotted), 0, -1):
        file = getattr(sys.modules.get(".".join(dotted[:length])), "__file__", None)
        if file:
            return os.path.abspath(file), dotted[length:]
    return str(test), []


def _file_of_module(name: str) -> str:
    path = os.path.join(*name.split("."))
    candidates = (
        os.path.join(base or ".", file)
        for base in sys.path
        for file in (f"{path}.py", f"{path}/__init__.py")
    )
    return next(
        (os.path.abspath(file) for file in candidates if os.path.isfile(file)), ""
    )


if __name__ == "__main__":
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(
        os.path.abspath(__file__)
    ):
        sys.path[0] = os.getcwd()  # as with `-m`
    with open(sys.argv.pop(1), "w", encoding="utf-8") as _Result.report:
        sys.argv[0] = "python -m unittest"
        unittest.main(module=None, testRunner=_Runner)
