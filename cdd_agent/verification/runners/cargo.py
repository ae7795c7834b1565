"""`cargo test`. Results are read from the output: only nightly toolchains write
reports.

Cargo prints the names of test programs to stderr; the programs print results to stdout.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct, field

from cdd_agent.files.manifests import (
    Manifests,
    ManifestUnreadable,
    parse_manifest,
    section,
)
from cdd_agent.pattern import Pattern
from cdd_agent.verification.outcomes import Result, Results, Selection, SuiteRun
from cdd_agent.verification.paths import paths_and_options
from cdd_agent.verification.runner import (
    Matters,
    Reported,
    Reporting,
    ReportUnreadable,
    TestRunner,
    whole,
)
from cdd_agent.verification.runners.launchers import program_name
from cdd_agent.verification.test_id import TestId

_COLOUR = Pattern(r"\x1b\[[\d;]*m")
_STARTED = Pattern(
    r" *Running (?:unittests )?(\S.*) \((?:.*[/\\])?(.+)-[0-9a-f]{8,}(?:\.exe)?\)"
)
_STARTED_DOC_TESTS = Pattern(r" *Doc-tests (\S+)")
_COUNT = Pattern(r"running (\d{1,9}) tests?")
_TEST = Pattern(
    r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:, .*| \(.*| <.*)?"
)
_END = Pattern(
    r"test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9})"
    r" ignored; "
)
_TEXT = Pattern(r"---- (.+) stdout ----")
_DOC_TEST = Pattern(r"(.+?) - (.*?)\(line (\d{1,9})\)(?: - .*)?")
_RESULTS = {"ok": Result.PASSED, "FAILED": Result.FAILED, "ignored": Result.SKIPPED}
_PLAIN = (
    *("--no-fail-fast", "--release", "-r", "--locked", "--offline", "--frozen"),
    *("--verbose", "-v", "-vv"),
)
"""Options that select no tests."""
_WITH_VALUE = (
    *("-p", "--package", "--exclude", "--test", "--bin", "--example", "--bench"),
    *("--features", "-F", "--target", "--manifest-path", "--profile", "-j", "--jobs"),
    *("--target-dir", "--color", "--config", "-Z"),
)
_CONFLICTS = (
    *("-q", "--quiet", "--no-run", "--message-format", "--help", "-h", "--list"),
    *("--format", "--nocapture"),
)
"""Options that change the output or run no tests."""


class Cargo(TestRunner):
    name = "cargo test"
    ends_with = frozenset((0, 101))
    captures = True

    def place(self, argv: Sequence[str]) -> int | None:
        has_toolchain = len(argv) > 1 and argv[1].startswith("+")
        place = 2 if has_toolchain else 1
        if len(argv) <= place or program_name(argv[0]) != "cargo":
            return None
        return place if argv[place] in ("test", "t") else None

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        del report
        if any(word.partition("=")[0] in _CONFLICTS for word in argv):
            return None
        end = argv.index("--") if "--" in argv else len(argv)
        more = () if "--no-fail-fast" in argv[:end] else ("--no-fail-fast",)
        return Reporting((*argv[:end], *more, *argv[end:]))

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        """The words are parts of test names, so only equal words ask for the same
        tests.
        """
        no_files = root / "\0"
        asked = paths_and_options(self.words(argv), no_files, _PLAIN, _WITH_VALUE)
        return Selection((), asked.options)

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        stdout, stderr = reported.data("stdout"), reported.data("stderr")
        return read_output(stdout, stderr, selection, root)

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        if path.parts[0] == ".cargo":
            return whole
        return _test_keys if path.name == "Cargo.toml" else None


class _Block(Struct):
    expected: int
    """Number of tests, from the first line."""
    tests: list[tuple[str, Result]] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    is_finished: bool = False

    def add_test(self, line: str) -> None:
        """Raises `ReportUnreadable` for other output."""
        test = _TEST.fullmatch(line)
        if test is not None:
            self.tests.append((test[1], _RESULTS[test[2]]))
        elif line and " has been running for over " not in line:
            why = f"a line of it is not about a test: {line[:80]!r}"
            raise ReportUnreadable(why)

    def is_end(self, line: str) -> bool:
        end = _END.match(line)
        if end is None:
            return False
        counts = Counter(result for _, result in self.tests)
        seen = (counts[Result.PASSED], counts[Result.FAILED], counts[Result.SKIPPED])
        return tuple(map(int, end.groups())) == seen

    def text_of(self, test: str) -> str:
        return "".join(self.texts.get(test, ()))


def read_output(
    stdout: bytes, stderr: bytes, selection: Selection, root: Path
) -> SuiteRun:
    """Raises `ReportUnreadable` if stdout and stderr do not match."""
    blocks = _read_blocks(_lines(stdout))
    messages = _lines(stderr)
    programs = []
    for message in messages:
        started = _STARTED.fullmatch(message)
        if started is not None:
            programs.append((started[1].replace("\\", "/"), started[2]))
    has_doc_tests = any(map(_STARTED_DOC_TESTS.fullmatch, messages))
    if not blocks or not (programs or has_doc_tests):
        raise ReportUnreadable("no program of tests was started")
    doc_blocks = blocks[len(programs) :]
    if len(blocks) < len(programs) or (doc_blocks and not has_doc_tests):
        raise ReportUnreadable("it does not show which program ran which tests")
    results, sources = Results(), _Sources(root)
    files = [sources.find_file(source, crate) for source, crate in programs]
    if len({*files}) < len(files):
        raise ReportUnreadable("it names one program of tests twice")
    for file, block in zip(files, blocks, strict=False):
        for test, result in block.tests:
            results.add(str(sources.find_test(file, test)), result, block.text_of(test))
    _add_doc_tests(doc_blocks, results)
    return results.run(
        selection, is_finished=all(block.is_finished for block in blocks)
    )


def _lines(data: bytes) -> list[str]:
    text = _COLOUR.sub("", data.decode("utf-8", errors="replace"))
    return [line.rstrip("\r") for line in text.split("\n")]


def _read_blocks(lines: Sequence[str]) -> list[_Block]:
    """Return the output of each test program: number of tests, a line for each, failure
    texts, a last line.
    """
    blocks: list[_Block] = []
    block: _Block | None = None
    text: list[str] = []
    for line in lines:
        if block is None:
            count = _COUNT.fullmatch(line)
            if count is not None:
                block, text = _Block(int(count[1])), []
                blocks.append(block)
            continue
        if len(block.tests) < block.expected:
            block.add_test(line)
            continue
        if block.is_end(line):
            block.is_finished = True
            block = None
            continue
        heading = _TEXT.fullmatch(line)
        if heading is not None:
            text = block.texts.setdefault(heading[1], [])
        else:
            text.append(f"{line}\n")
    return blocks


def _add_doc_tests(blocks: Sequence[_Block], results: Results) -> None:
    """Number the doc tests of an item, because their line numbers change between
    runs.
    """
    tests: list[tuple[str, str, int, Result, str]] = []
    for block in blocks:
        for test, result in block.tests:
            match = _DOC_TEST.fullmatch(test)
            if match is None:
                raise ReportUnreadable("it does not show which program ran which tests")
            file, item, line = match.groups()
            file, item = file.replace("\\", "/"), item.strip() or "(module)"
            tests.append((file, item, int(line), result, block.text_of(test)))
    counts = Counter[tuple[str, str]]()
    for file, item, _, result, text in sorted(tests):
        counts[file, item] += 1
        number = counts[file, item]
        name = f"doc test > {item}"
        if number > 1:
            name += f" #{number}"
        results.add(str(TestId(file, name)), result, text)


class _Sources:
    """Source files of packages. Cargo names them by their path in the package."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.current: str | None = None
        """Folder of the last program's package."""
        self.packages: dict[str, str] = {}
        """Folder → crate name."""
        for pattern in ("", "*/", "*/*/", "*/*/*/"):
            for file in sorted(root.glob(f"{pattern}Cargo.toml")):
                folder = file.parent.relative_to(root).as_posix()
                package = _package(file.parent)
                if package and not folder.startswith("target/"):
                    crate = str(package.get("name", "")).replace("-", "_")
                    self.packages[folder] = crate

    def find_file(self, source: str, crate: str) -> str:
        """Raises `ReportUnreadable` if several packages have such a file."""
        folders = [
            folder
            for folder in self.packages
            if (self.root / folder / source).is_file()
        ]
        named = [folder for folder in folders if self.packages[folder] == crate]
        if len(named) == 1:
            self.current = named[0]
        elif len(folders) == 1:
            self.current = folders[0]
        elif self.current not in folders:
            why = f"it does not show which package's {source[:80]} ran"
            raise ReportUnreadable(why)
        return str(PurePosixPath(self.current or ".") / source)

    def find_test(self, file: str, test: str) -> TestId:
        """Return the id of a test. A module has its own file if the usual file
        exists.
        """
        *modules, name = test.split("::")
        place = PurePosixPath(file)
        folder = place.with_suffix("")
        if place.stem in ("lib", "main", "mod"):
            folder = place.parent
        while modules:
            module = self._find_module(folder, modules[0])
            if module is None:
                break
            place, folder = module, folder / modules.pop(0)
        return TestId(str(place), "::".join((*modules, name)))

    def _find_module(self, folder: PurePosixPath, name: str) -> PurePosixPath | None:
        for path in (folder / f"{name}.rs", folder / name / "mod.rs"):
            if (self.root / path).is_file():
                return path
        return None


def _package(folder: Path) -> Mapping[str, Any]:
    try:
        return section(Manifests(folder).content("Cargo.toml"), "package")
    except ManifestUnreadable:
        return {}


def _test_keys(text: str) -> object:
    """Return the values that decide which tests run, and how."""
    try:
        content = parse_manifest("Cargo.toml", text)
    except ManifestUnreadable:
        return text
    library, keys = section(content, "lib"), ("test", "doctest", "harness")
    return (
        content.get("test"),
        {key: library[key] for key in keys if key in library},
        section(content, "package").get("autotests"),
        section(content, "workspace").get("exclude"),
    )
