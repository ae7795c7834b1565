"""Reading pytest's report on each test, in JUnit's form. A project's own code may have written it: nothing is taken for
granted."""

from collections.abc import Mapping
from xml.parsers import expat

from cdd_agent.verification.outcomes import Result, SuiteRun

_LONGEST_TEXT = 4000
"""Characters kept of what a failure says."""
_ORDER = tuple(Result)


class ReportUnreadable(ValueError):
    """Not a whole report of a run of tests."""


def read_report(data: bytes) -> SuiteRun:
    """Read pytest's report in JUnit's form. What is no plain XML (entities, a document type) is refused.

    Raises `ReportUnreadable`.
    """
    reader = _ReportReader()
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ReportUnreadable(str(error)) from error
    return SuiteRun(results=reader.results, texts=reader.texts, is_finished=reader.finished)


class _ReportReader:
    """Reads as the parser goes: a large report is never in memory as a tree."""

    def __init__(self) -> None:
        self.results: dict[str, Result] = {}
        self.texts: dict[str, str] = {}
        self.finished = True
        self._root = ""
        self._test = ""
        self._text: list[str] | None = None
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters

    def _refuse(self, *_: object) -> None:
        raise ReportUnreadable("it declares a document type")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._root:
            self._root = tag
            if tag not in ("testsuites", "testsuite"):
                raise ReportUnreadable(f"it is not a report of tests but {tag[:80]!r}")
        match tag:
            case "testcase" if not attributes.get("name"):
                self._test, self.finished = "", False  # what pytest writes for a test that it never saw the end of
            case "testcase":
                self._test = _test_id(attributes)
                self._add(Result.PASSED)
            case "failure" | "error":
                self._add(Result.FAILED)
                self._text = []
            case "skipped":
                self._add(Result.SKIPPED)

    def _end(self, tag: str) -> None:
        if tag in ("failure", "error") and self._text is not None:
            self.texts.setdefault(self._test, "".join(self._text)[:_LONGEST_TEXT])
            self._text = None

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _add(self, result: Result) -> None:
        before = self.results.get(self._test, result)
        self.results[self._test] = min(before, result, key=_ORDER.index)


def _test_id(attributes: Mapping[str, str]) -> str:
    """The id that people write, from the module and classes as a dotted name, and the file where the code is.

    That is another file for an inherited test; then the first name with a capital is taken for the class.
    """
    name, dotted = attributes["name"], attributes.get("classname", "")
    file = attributes.get("file", "").replace("\\", "/")
    module = file.removesuffix(".py").replace("/", ".")
    if not dotted:  # it could not be collected, or was skipped as a whole
        return file or name
    if file and f"{dotted}.".startswith(f"{module}."):
        classes = dotted[len(module) + 1 :].split(".")
    else:
        words = dotted.split(".")
        length = next((index for index, word in enumerate(words) if word[:1].isupper()), len(words))
        file, classes = f"{'/'.join(words[:length])}.py", words[length:]
    return "::".join(word for word in (file, *classes, name) if word)
