"""Reading pytest's report on each test, in JUnit's form. A project's own code may have
written it: nothing is taken for granted.
"""

from collections.abc import Mapping
from xml.parsers import expat

from cdd_agent.verification.outcomes import Result, Results, SuiteRun
from cdd_agent.verification.runner import ReportUnreadable


def read_report(data: bytes) -> SuiteRun:
    """Read pytest's report in JUnit's form. What is no plain XML (entities, a document
    type) is refused.

    Raises `ReportUnreadable`.
    """
    reader = _ReportReader()
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ReportUnreadable(str(error)) from error
    return reader.found.run(is_finished=reader.finished)


class _ReportReader:
    """Reads as the parser goes: a large report is never in memory as a tree."""

    def __init__(self) -> None:
        self.found = Results()
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
                # what pytest writes for a test that it never saw the end of
                self._test, self.finished = (
                    "",
                    False,
                )
            case "testcase":
                self._test = _test_id(attributes)
                self.found.add(self._test, Result.PASSED)
            case "failure" | "error":
                self.found.add(self._test, Result.FAILED)
                self._text = []
            case "skipped":
                self.found.add(self._test, Result.SKIPPED)

    def _end(self, tag: str) -> None:
        if tag in ("failure", "error") and self._text is not None:
            self.found.tell(self._test, "".join(self._text))
            self._text = None

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)


def _test_id(attributes: Mapping[str, str]) -> str:
    """The id that people write, from the module and classes as a dotted name, and the
    file where the code is.

    That is another file for an inherited test; then the first name with a capital is
    taken for the class.
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
        length = next(
            (index for index, word in enumerate(words) if word[:1].isupper()),
            len(words),
        )
        file, classes = f"{'/'.join(words[:length])}.py", words[length:]
    return "::".join(word for word in (file, *classes, name) if word)
