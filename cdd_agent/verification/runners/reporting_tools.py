"""Runners that can write JUnit XML, JSON or TRX: CTest, Maven, Gradle, dotnet, RSpec,
PHPUnit, Deno and bun.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.verification.outcomes import (
    Result,
    Results,
    Selection,
    SuiteRun,
    merge_runs,
)
from cdd_agent.verification.paths import from_root, paths_and_options
from cdd_agent.verification.runner import (
    MALFORMED,
    Matters,
    Reported,
    Reporting,
    ReportUnreadable,
    TestRunner,
    read_report_file,
    whole,
)
from cdd_agent.verification.runners.junit import Attributes, parse_xml, read_report
from cdd_agent.verification.runners.launchers import (
    WRAPPERS,
    find_word,
    first_programs,
)
from cdd_agent.verification.test_id import TestId

_LAUNCHERS = ("bundle", "php", "ruby", "npx", *WRAPPERS)

ReadOne = Callable[[bytes, Path, Path], SuiteRun]
"""Takes a report, the root, and the folder of the package."""


def _read_junit(data: bytes, root: Path, package: Path) -> SuiteRun:
    def name_test(attributes: Attributes, suite: Attributes) -> str:
        name, place = attributes["name"], attributes.get("classname", "")
        name = name.partition(" with data set ")[0].removesuffix("()")
        file = attributes.get("file") or suite.get("file", "")
        if file:
            class_name = re.split(r"[.\\]", place)[-1]
            return str(TestId(from_root(file, root), _join(class_name, name)))
        if "/" in place:
            return str(TestId(from_root(place, root), name))
        file, inner = _find_class(place, root, package, "src/*/*/{path}.*")
        return str(TestId(file, _join(*inner, name)))

    return read_report(data, name_test)


def _read_ctest(data: bytes, root: Path, package: Path) -> SuiteRun:
    del root, package
    return read_report(data, lambda test, suite: f"CMakeLists.txt::{test['name']}")


def _join(*names: str) -> str:
    return " > ".join(filter(None, names))


def _find_class(
    dotted: str, root: Path, package: Path, pattern: str
) -> tuple[str, list[str]]:
    """Return a class's file and its inner names. If the file is not found, the class
    counts as its own file.
    """
    outer, *inner = re.split(r"[$+]", dotted)
    name = outer.rpartition(".")[2]
    if re.fullmatch(r"\w+(\.\w+)*", outer):
        pattern = pattern.format(path=outer.replace(".", "/"), name=name)
        for file in sorted(package.glob(pattern)):
            if file.is_relative_to(root):
                return file.relative_to(root).as_posix(), [name, *inner]
    return outer, inner


def _read_rspec(data: bytes, root: Path, package: Path) -> SuiteRun:
    del package
    states = {"passed": Result.PASSED, "failed": Result.FAILED}
    results = Results()
    try:
        report: Any = json.loads(data)
        for test in report["examples"]:
            file = from_root(str(test["file_path"]), root)
            error = test.get("exception") or {}
            results.add(
                str(TestId(file, str(test["full_description"]))),
                states.get(test["status"], Result.SKIPPED),
                str(error.get("message", "")),
            )
        outside = report["summary"].get("errors_outside_of_examples_count", 0)
    except MALFORMED as error:
        reason = f"it is not what RSpec writes: {type(error).__name__}"
        raise ReportUnreadable(reason) from error
    if outside:
        raise ReportUnreadable("a file could not be loaded")
    return results.run()


class _TrxReader:
    """Reads .NET results. Test classes follow after all results."""

    def __init__(self) -> None:
        self.results: dict[str, tuple[str, Result, list[str]]] = {}
        self.classes: dict[str, tuple[str, str]] = {}
        self._test = ""
        self._text: list[str] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        match tag:
            case "UnitTestResult":
                outcomes = {"Passed": Result.PASSED, "NotExecuted": Result.SKIPPED}
                result = outcomes.get(attributes.get("outcome", ""), Result.FAILED)
                self._test = attributes.get("executionId", "")
                name = attributes.get("testName", "")
                test = attributes.get("testId", "")
                self.results[f"{test} {self._test}"] = (name, result, [])
                self._text = self.results[f"{test} {self._test}"][2]
            case "UnitTest":
                self._test, self._text = attributes.get("id", ""), None
            case "TestMethod":
                names = attributes.get("className", ""), attributes.get("codeBase", "")
                self.classes[self._test] = names

    def end(self, tag: str) -> None:
        del tag

    def add_text(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)


def _read_trx(data: bytes, root: Path, package: Path) -> SuiteRun:
    del package
    reader, results = _TrxReader(), Results()
    parse_xml(data, reader.start, reader.end, reader.add_text)
    for key, (name, result, text) in reader.results.items():
        class_name, library = reader.classes.get(key.partition(" ")[0], ("", ""))
        project = Path(re.split(r"[/\\]bin[/\\]", library)[0] or root)
        class_name = class_name.partition(",")[0]
        file, inner = _find_class(class_name, root, project, "**/{name}.cs")
        test = TestId(file, _join(*inner, name.removeprefix(f"{class_name}.")))
        results.add(str(test), result, "".join(text).strip())
    if not reader.results:
        raise ReportUnreadable("it has no results")
    return results.run()


class _Tool(Struct, frozen=True):
    name: str
    programs: tuple[str, ...]
    added: tuple[str, ...] = ()
    """Words that make it report. `{report}` and `{folder}` are paths."""
    read: ReadOne = _read_junit
    subcommand: str = ""
    """A word that must follow."""
    goal: str = ""
    """Pattern for a word that must occur."""
    conflicts: tuple[str, ...] = ()
    """Options that ask for another report, stop at a failure, or run no tests."""
    default_format: tuple[str, ...] = ()
    """Added unless the command names a format."""
    plain: tuple[str, ...] = ()
    with_value: tuple[str, ...] = ()
    ends_with: frozenset[int] = frozenset((0, 1))
    in_tree: str = ""
    """Pattern for reports that it always writes, below each package."""
    settings: str = r"\0"
    """Pattern for names of files that decide how it runs tests."""
    forbids_snapshots: bool = False


_TOOLS = (
    _Tool(
        "ctest",
        ("ctest", "ctest3"),
        ("--output-junit", "{report}"),
        _read_ctest,
        conflicts=(
            *("--output-junit", "-N", "--show-only", "-D", "-T", "-S", "--help"),
            *("--build-and-test", "--print-labels", "--stop-on-failure", "--version"),
        ),
        plain=("--output-on-failure", "-V", "--verbose", "-VV", "--progress", "-Q"),
        with_value=("--test-dir", "-C", "-R", "-E", "-L", "-LE", "-j", "--timeout"),
        ends_with=frozenset((0, 8)),
        settings=r"CTest.*\.cmake",
    ),
    _Tool(
        "PHPUnit",
        ("phpunit", "phpunit.phar"),
        ("--log-junit", "{report}"),
        conflicts=(
            *("--log-junit", "--list-tests", "--list-suites", "--help", "-h"),
            *("--version", "--stop-on-failure", "--stop-on-error", "--stop-on-defect"),
        ),
        plain=("--testdox", "--no-progress", "--debug", "-v", "--verbose", "--colors"),
        with_value=("-c", "--configuration", "--filter", "--group", "--testsuite"),
        ends_with=frozenset((0, 1, 2)),
        settings=r"phpunit\.xml(\.dist)?",
    ),
    _Tool(
        "RSpec",
        ("rspec",),
        ("--no-fail-fast", "--format", "json", "--out", "{report}"),
        _read_rspec,
        conflicts=("--out", "-o", "--dry-run", "--help", "-h", "--version", "--init"),
        default_format=("--format", "progress"),
        plain=("--color", "--no-color", "--profile", "-b", "--backtrace", "-w"),
        with_value=("-e", "--example", "-t", "--tag", "-P", "--pattern", "--seed"),
        settings=r"\.rspec",
    ),
    _Tool(
        "deno test",
        ("deno",),
        ("--junit-path={report}",),
        subcommand="test",
        conflicts=(
            *("--junit-path", "--reporter", "--watch", "--no-run", "--fail-fast", "--"),
            "--help",
        ),
        plain=("--quiet", "-q", "--coverage", "--no-check", "--parallel", "-A"),
        with_value=("--filter", "--ignore", "-c", "--config"),
    ),
    _Tool(
        "bun test",
        ("bun",),
        ("--reporter=junit", "--reporter-outfile={report}"),
        subcommand="test",
        conflicts=("--reporter", "--reporter-outfile", "--watch", "--bail", "--hot"),
        plain=("--coverage", "--silent"),
        with_value=("-t", "--test-name-pattern", "--timeout", "--preload"),
        settings=r"bunfig\.toml",
        forbids_snapshots=True,
    ),
    _Tool(
        "Maven",
        ("mvn", "mvnw", "mvnd"),
        ("--fail-at-end",),
        goal=r"test|package|verify|install|integration-test|surefire:test",
        conflicts=(
            *("-fn", "--fail-never", "-DskipTests", "-Dmaven.test.skip", "--help"),
            *("-ff", "--fail-fast"),
        ),
        plain=("-q", "--quiet", "-B", "--batch-mode", "-o", "--offline", "-ntp"),
        with_value=("-pl", "-f", "-P"),
        in_tree="target/*-reports/TEST-*.xml",
    ),
    _Tool(
        "Gradle",
        ("gradle", "gradlew"),
        ("--continue",),
        goal=r"(:?[\w-]+)*:?test",
        conflicts=("--dry-run", "-m", "-t", "--continuous", "-x", "--exclude-task"),
        plain=("--offline", "-q", "--quiet", "--no-daemon", "--info", "--stacktrace"),
        in_tree="build/test-results/*/TEST-*.xml",
    ),
    _Tool(
        "dotnet test",
        ("dotnet",),
        (
            *("--logger", "trx;LogFilePrefix=report"),
            *("--results-directory", "{folder}"),
        ),
        _read_trx,
        subcommand="test",
        conflicts=("--results-directory", "-r", "--list-tests", "-t", "--", "--help"),
        plain=("--no-build", "--no-restore", "--nologo", "-v", "--verbosity"),
        with_value=("--filter", "-c", "--configuration", "-f", "--framework"),
        settings=r".*\.runsettings",
    ),
)


class ReportingTool(TestRunner):
    def __init__(self, tool: _Tool) -> None:
        self._tool = tool
        self.name = tool.name
        self.ends_with = tool.ends_with
        self.forbids_snapshots = tool.forbids_snapshots

    def place(self, argv: Sequence[str]) -> int | None:
        tool = self._tool
        names = first_programs(argv)
        place = find_word(names, tool.programs)
        if place is None or (place > 0 and names[0] not in _LAUNCHERS):
            return None
        words = argv[place + 1 :]
        if tool.subcommand:
            is_named = bool(words) and words[0] == tool.subcommand
            return place + 1 if is_named else None
        if tool.goal and not any(re.fullmatch(tool.goal, word) for word in words):
            return None
        return place

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        tool = self._tool
        if any(word.partition("=")[0] in tool.conflicts for word in argv):
            return None
        added = tool.added
        if not any(re.match(r"--format\b|-f", word) for word in self.words(argv)):
            added = (*tool.default_format, *added)
        words = _without_results(argv) if tool.name == "Gradle" else list(argv)
        for word in added:
            word_with_report = word.replace("{report}", str(report))
            words.append(word_with_report.replace("{folder}", str(report.parent)))
        return Reporting(tuple(words))

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        tool = self._tool
        return paths_and_options(self.words(argv), root, tool.plain, tool.with_value)

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        tool = self._tool
        if tool.in_tree:
            runs = self._read_in_tree(reported, root)
        else:
            runs = [tool.read(data, root, root) for data in reported.all_data()]
        return replace(merge_runs(runs), selection=selection)

    def _read_in_tree(self, reported: Reported, root: Path) -> list[SuiteRun]:
        began = reported.folder.stat().st_mtime_ns
        depth = self._tool.in_tree.count("/") + 1
        runs = []
        for folders in ("", "*/", "*/*/", "*/*/*/"):
            for file in sorted(root.glob(folders + self._tool.in_tree)):
                if file.stat().st_mtime_ns >= began:
                    package = file.parents[depth - 1]
                    runs.append(self._tool.read(read_report_file(file), root, package))
        if not runs:
            raise ReportUnreadable("there is none")
        return runs

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        return whole if re.fullmatch(self._tool.settings, path.name) else None


def _without_results(words: Sequence[str]) -> list[str]:
    """Remove previous results first: Gradle does not rerun tests of unchanged code."""
    result = []
    for word in words:
        if re.fullmatch(r"(:?[\w-]+:)*:?test", word):
            result.append(f"{word.removesuffix('test')}cleanTest")
        result.append(word)
    return result


REPORTING_TOOLS = tuple(map(ReportingTool, _TOOLS))
