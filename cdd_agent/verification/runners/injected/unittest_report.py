"""Runs unittest as `python -m unittest` does, and writes a line of JSON for each test.

The project's Python runs it: `unittest_report.py REPORT [words of unittest]`.
"""

import json
import os
import sys
import traceback
import unittest
from types import TracebackType
from typing import IO, Any, ClassVar

_FAILED_IMPORT = "unittest.loader._FailedTest"
"""The class that unittest uses for a module that cannot be imported."""
_Error = tuple[type[BaseException], BaseException, TracebackType]


class _Result(unittest.TextTestResult):
    report: ClassVar[IO[str]]

    def addSuccess(self, test: Any) -> None:
        super().addSuccess(test)
        self._report(test, "passed")

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._report(test, "failed", err)

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._report(test, "failed", err)

    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        self._report(test, "skipped")

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._report(test, "skipped")

    def addUnexpectedSuccess(self, test: Any) -> None:
        super().addUnexpectedSuccess(test)
        self._report(test, "failed")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._report(test, "failed", err)

    def stopTestRun(self) -> None:
        super().stopTestRun()
        self._write({"end": True})

    def _report(self, test: Any, result: str, err: _Error | None = None) -> None:
        file, names = _place(getattr(test, "test_case", test))
        text = "".join(traceback.format_exception(*err))[-4000:] if err else ""
        self._write({"file": file, "names": names, "result": result, "text": text})

    def _write(self, line: dict[str, object]) -> None:
        self.report.write(json.dumps(line) + "\n")
        self.report.flush()


class _Runner(unittest.TextTestRunner):
    resultclass = _Result  # type: ignore[assignment]

    def __init__(self, **options: Any) -> None:
        # otherwise a failure hides other tests
        super().__init__(**{**options, "failfast": False})


def _place(test: Any) -> tuple[str, list[str]]:
    """Return the file of a test, and its names in it."""
    if isinstance(test, unittest.TestCase):
        return _place_of_case(test)
    # `setUpClass (tests.test_a.TestK)`
    dotted = str(test).partition("(")[2].rstrip(")")
    file, names = _file_and_names(dotted)
    return (file, names) if file else (str(test), [])


def _place_of_case(test: unittest.TestCase) -> tuple[str, list[str]]:
    kind = type(test)
    full = f"{kind.__module__}.{kind.__qualname__}"
    if kind.__module__ == "doctest":
        return _file_of_doctest(test), [test.id()]
    if full == _FAILED_IMPORT:
        return _file_of_failed_import(test.id().removeprefix(f"{full}.")), []
    file = _file_of(kind.__module__) or kind.__module__
    name = unittest.TestCase.id(test).removeprefix(f"{full}.")
    return file, [*kind.__qualname__.split("."), name]


def _file_of_doctest(test: unittest.TestCase) -> str:
    """Return the file of examples in a docstring or text file."""
    file, _ = _file_and_names(test.id())
    return file or os.path.abspath(repr(test))


def _file_and_names(dotted: str) -> tuple[str, list[str]]:
    """Split a dotted name into its module's file, if any, and the rest."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        file = _file_of(".".join(parts[:length]))
        if file:
            return file, parts[length:]
    return "", []


def _file_of(module: str) -> str:
    """Return an imported module's file; empty if it has none."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return os.path.abspath(file) if file else ""


def _file_of_failed_import(name: str) -> str:
    """Return the file of a module that cannot be imported, else its name. unittest
    gives only the last part of a dotted name, so the command's words are tried too.
    """
    asked = [word for word in sys.argv[1:] if word.endswith(f".{name}")]
    for module in (name, *asked):
        path = os.path.join(*module.split("."))
        for folder in sys.path:
            for file in (f"{path}.py", f"{path}/__init__.py"):
                place = os.path.join(folder or ".", file)
                if os.path.isfile(place):
                    return os.path.abspath(place)
    return name


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0]) == here:
        # as `-m` does
        sys.path[0] = os.getcwd()
    with open(sys.argv.pop(1), "w", encoding="utf-8") as _Result.report:
        sys.argv[0] = "python -m unittest"
        unittest.main(module=None, testRunner=_Runner)
