"""Reads JUnit reports in the dialects of many tools. Project code may have written a
report, so it can contain anything.
"""

from collections.abc import Callable, Mapping
from xml.parsers import expat

from cdd_agent.verification.outcomes import Result, Results, SuiteRun
from cdd_agent.verification.runner import ReportUnreadable

Attributes = Mapping[str, str]
NameTest = Callable[[Attributes, Attributes], str]
"""Makes a test's id from the attributes of its element and suite."""

_NOT_RUN = ("notrun", "disabled")
_WITH_TEXT = ("failure", "error", "skipped", "system-out")


def read_report(data: bytes, name_test: NameTest | None = None) -> SuiteRun:
    """Read a report, by default pytest's. Raises `ReportUnreadable`, also for entities
    or a document type.
    """
    reader = _ReportReader(name_test or _name_python_test)
    parse_xml(data, reader.start, reader.end, reader.add_text)
    return reader.found.run(is_finished=reader.is_finished)


def parse_xml(
    data: bytes,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    add_text: Callable[[str], None],
) -> None:
    """Parse XML as a stream. Raises `ReportUnreadable`."""
    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = add_text
    try:
        parser.Parse(data.removeprefix(b"\xef\xbb\xbf"), True)
    except expat.ExpatError as error:
        raise ReportUnreadable(str(error)) from error


def _refuse(*_: object) -> None:
    raise ReportUnreadable("it declares a document type")


class _ReportReader:
    def __init__(self, name_test: NameTest) -> None:
        self.found = Results()
        self.is_finished = True
        self._name_test = name_test
        self._suites: list[dict[str, str]] = []
        self._test = ""
        self._case: dict[str, str] = {}
        self._message = ""
        self._text: list[str] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in ("testsuites", "testsuite"):
            # inner suites inherit the file
            outer = self._suites[-1] if self._suites else {}
            file = {"file": outer["file"]} if outer.get("file") else {}
            self._suites.append({**file, **attributes})
        elif not self._suites:
            raise ReportUnreadable(f"it is not a report of tests but {tag[:80]!r}")
        match tag:
            case "testcase" if not attributes.get("name"):
                # pytest writes this if it missed the end of a test
                self._test, self.is_finished = "", False
            case "testcase":
                self._case = attributes
                self._test = self._name_test(attributes, self._suites[-1])
                is_out = attributes.get("status") in _NOT_RUN
                self.found.add(self._test, Result.SKIPPED if is_out else Result.PASSED)
            case "failure" | "error":
                self._add_failure(attributes)
            case "skipped" if _could_not_run(self._case, attributes):
                self._add_failure(attributes)
            case "skipped":
                self.found.add(self._test, Result.SKIPPED)
            case "system-out" if self._has_unexplained_failure:
                self._text, self._message = [], ""

    def _add_failure(self, attributes: Attributes) -> None:
        self.found.add(self._test, Result.FAILED)
        self._text, self._message = [], attributes.get("message", "")

    @property
    def _has_unexplained_failure(self) -> bool:
        has_failed = self.found.results.get(self._test) is Result.FAILED
        return has_failed and self._test not in self.found.texts

    def end(self, tag: str) -> None:
        if tag in _WITH_TEXT and self._text is not None:
            text = "".join(self._text).strip() or self._message
            if text:
                self.found.add_text(self._test, text)
            self._text = None
        elif tag in ("testsuites", "testsuite"):
            self._suites.pop()

    def add_text(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)


def _could_not_run(case: Attributes, skipped: Attributes) -> bool:
    """True for a test that CTest counts as failed because its program is missing."""
    message = skipped.get("message", "")
    return case.get("status") == "notrun" and not message.startswith("SKIP_")


def _name_python_test(attributes: Attributes, suite: Attributes) -> str:
    """Return pytest's own id from the file and the dotted name of module and classes.

    An inherited test has its base class's file. Then the first capitalised name is the
    class.
    """
    del suite
    name, dotted = attributes["name"], attributes.get("classname", "")
    file = attributes.get("file", "").replace("\\", "/")
    module = file.removesuffix(".py").replace("/", ".")
    if not dotted:  # not collected, or skipped as a whole
        return file or name
    if file and f"{dotted}.".startswith(f"{module}."):
        classes = dotted[len(module) + 1 :].split(".")
    else:
        words = dotted.split(".")
        capitals = (index for index, word in enumerate(words) if word[:1].isupper())
        length = next(capitals, len(words))
        file, classes = f"{'/'.join(words[:length])}.py", words[length:]
    return "::".join(word for word in (file, *classes, name) if word)
