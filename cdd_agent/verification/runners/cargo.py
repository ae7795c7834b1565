"""`cargo test`, read from its output: only Rust's nightly can report in another form.

Cargo prints the programs of tests that it starts on stderr. The programs print their
results on stdout.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from msgspec import Struct, field

from cdd_agent.files.manifests import Manifests, ManifestUnreadable, parsed, section
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
from cdd_agent.verification.test_id import TestId

_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_STARTED = re.compile(
    r" *Running (?:unittests )?(\S.*) \((?:.*[/\\])?(.+)-[0-9a-f]{8,}(?:\.exe)?\)"
)
_STARTED_DOC_TESTS = re.compile(r" *Doc-tests (\S+)")
_COUNT = re.compile(r"running (\d{1,9}) tests?")
_TEST = re.compile(
    r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:, .*| \(.*| <.*)?"
)
_END = re.compile(
    r"test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9})"
    r" ignored; "
)
_TEXT = re.compile(r"---- (.+) stdout ----")
_DOC_TEST = re.compile(r"(.+?) - (.*?)\(line (\d{1,9})\)(?: - .*)?")
_RESULTS = {"ok": Result.PASSED, "FAILED": Result.FAILED, "ignored": Result.SKIPPED}
_PLAIN = (
    "--no-fail-fast",
    "--release",
    "-r",
    "--locked",
    "--offline",
    "--frozen",
    "--verbose",
    "-v",
    "-vv",
)
_WITH_VALUE = (
    *(
        "-p",
        "--package",
        "--exclude",
        "--test",
        "--bin",
        "--example",
        "--bench",
        "--features",
        "-F",
        "--target",
    ),
    *(
        "--manifest-path",
        "--profile",
        "-j",
        "--jobs",
        "--target-dir",
        "--color",
        "--config",
        "-Z",
    ),
)
_CONFLICTS = (
    "-q",
    "--quiet",
    "--no-run",
    "--message-format",
    "--help",
    "-h",
    "--list",
    "--format",
    "--nocapture",
)


class Cargo(TestRunner):
    """`cargo test`."""

    name = "cargo test"
    ends_with = frozenset((0, 101))
    captures = True

    def place(self, argv: Sequence[str]) -> int | None:
        has_toolchain = len(argv) > 1 and argv[1].startswith("+")
        place = 2 if has_toolchain else 1
        if len(argv) <= place or PurePath(argv[0]).name not in ("cargo", "cargo.exe"):
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
        """Return the words. They name parts of tests' names, and no files, so only
        equal words ask for the same tests.
        """
        return Selection(
            (),
            paths_and_options(
                self.words(argv), root / "\0", _PLAIN, _WITH_VALUE
            ).options,
        )

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        return read_output(
            reported.data("stdout"), reported.data("stderr"), selection, root
        )

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        if path.parts[0] == ".cargo":
            return whole
        return _test_keys if path.name == "Cargo.toml" else None


class _Block(Struct):
    """The output of one program of tests."""

    count: int
    tests: list[tuple[str, Result]] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    is_finished: bool = False

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of passed, failed and ignored tests."""
        seen = Counter(result for _, result in self.tests)
        return seen[Result.PASSED], seen[Result.FAILED], seen[Result.SKIPPED]


def read_output(
    stdout: bytes, stderr: bytes, selection: Selection, root: Path
) -> SuiteRun:
    """Read both streams of `cargo test`. Raises `ReportUnreadable` if they do not fit
    together.
    """
    blocks = _read_blocks(_lines(stdout))
    messages = [line.rstrip("\r") for line in _lines(stderr)]
    started = [program for line in messages if (program := _STARTED.fullmatch(line))]
    programs = [(program[1].replace("\\", "/"), program[2]) for program in started]
    has_doc_tests = any(map(_STARTED_DOC_TESTS.fullmatch, messages))
    if not blocks or not (programs or has_doc_tests):
        raise ReportUnreadable("no program of tests was started")
    others = blocks[len(programs) :]
    if len(blocks) < len(programs) or (others and not has_doc_tests):
        raise ReportUnreadable("it does not show which program ran which tests")
    found, sources = Results(), _Sources(root)
    files = [sources.find_file(source, crate) for source, crate in programs]
    if len({*files}) < len(files):
        raise ReportUnreadable("it names one program of tests twice")
    for file, block in zip(files, blocks, strict=False):
        for test, result in block.tests:
            found.add(
                str(sources.find_test(file, test)),
                result,
                "".join(block.texts.get(test, ())),
            )
    _read_doc_tests(others, found)
    return found.run(selection, is_finished=all(block.is_finished for block in blocks))


def _lines(data: bytes) -> list[str]:
    return [
        _COLOUR.sub("", line)
        for line in data.decode("utf-8", errors="replace").split("\n")
    ]


def _read_blocks(lines: Sequence[str]) -> list[_Block]:
    """Return the output of each program. A block begins with the number of its tests. A
    line for each test and the end follow.
    """
    blocks: list[_Block] = []
    block: _Block | None = None
    text: list[str] = []
    for line in (line.rstrip("\r") for line in lines):
        if block is None:
            if count := _COUNT.fullmatch(line):
                block, text = _Block(int(count[1])), []
                blocks.append(block)
        elif len(block.tests) < block.count:
            if test := _TEST.fullmatch(line):
                block.tests.append((test[1], _RESULTS[test[2]]))
            elif line and " has been running for over " not in line:
                raise ReportUnreadable(
                    f"a line of it is not about a test: {line[:80]!r}"
                )
        elif (end := _END.match(line)) and tuple(
            map(int, end.groups())
        ) == block.counts:
            block.is_finished, block = True, None
        elif named := _TEXT.fullmatch(line):
            text = block.texts.setdefault(named[1], [])
        else:
            text.append(f"{line}\n")
    return blocks


def _read_doc_tests(blocks: Sequence[_Block], found: Results) -> None:
    """Add the doc tests. Those of one item are numbered in their order, since their
    lines change from run to run.
    """
    tests: list[tuple[str, str, int, Result, str]] = []
    for test, result, text in (
        (*test, block.texts.get(test[0], ()))
        for block in blocks
        for test in block.tests
    ):
        doc_test = _DOC_TEST.fullmatch(test)
        if doc_test is None:
            raise ReportUnreadable("it does not show which program ran which tests")
        item = doc_test[2].strip() or "(module)"
        tests.append(
            (
                doc_test[1].replace("\\", "/"),
                item,
                int(doc_test[3]),
                result,
                "".join(text),
            )
        )
    seen = Counter[tuple[str, str]]()
    for file, item, _, result, words in sorted(tests):
        seen[file, item] += 1
        number = f" #{seen[file, item]}" if seen[file, item] > 1 else ""
        found.add(str(TestId(file, f"doc test > {item}{number}")), result, words)


class _Sources:
    """The files of a project's packages. Cargo names the source of a program by its
    path in the package.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.current: str | None = None
        """The folder of the last program's package."""
        patterns = ("Cargo.toml", "*/Cargo.toml", "*/*/Cargo.toml", "*/*/*/Cargo.toml")
        files = [file for pattern in patterns for file in sorted(root.glob(pattern))]
        found = [
            (file.parent.relative_to(self.root).as_posix(), _package(file.parent))
            for file in files
        ]
        self.packages = {
            folder: str(package.get("name", "")).replace("-", "_")
            for folder, package in found
            if package and not folder.startswith("target/")
        }

    def find_file(self, source: str, crate: str) -> str:
        """Return the path of a program's source, from the root."""
        able = [
            folder
            for folder in self.packages
            if (self.root / folder / source).is_file()
        ]
        named = [folder for folder in able if self.packages[folder] == crate]
        if len(named) == 1 or len(able) == 1:
            self.current = (named or able)[0]
        elif self.current not in able:
            raise ReportUnreadable(
                f"it does not show which package's {source[:80]} ran"
            )
        return str(PurePosixPath(self.current or ".") / source)

    def find_test(self, file: str, test: str) -> TestId:
        """Return the test in the file of its module, if that is the usual one."""
        *modules, name = test.split("::")
        place = PurePosixPath(file)
        folder = (
            place.parent
            if place.stem in ("lib", "main", "mod")
            else place.with_suffix("")
        )
        while modules:
            candidates = (folder / f"{modules[0]}.rs", folder / modules[0] / "mod.rs")
            found = next(
                (path for path in candidates if (self.root / path).is_file()), None
            )
            if found is None:
                break
            place, folder = found, folder / modules.pop(0)
        return TestId(str(place), "::".join((*modules, name)))


def _package(folder: Path) -> Mapping[str, Any]:
    try:
        return section(Manifests(folder).content("Cargo.toml"), "package")
    except ManifestUnreadable:
        return {}


def _test_keys(text: str) -> object:
    """Return the keys of a `Cargo.toml` that decide which tests there are, and how they
    run.
    """
    try:
        content = parsed("Cargo.toml", text)
    except ManifestUnreadable:
        return text
    library, keys = section(content, "lib"), ("test", "doctest", "harness")
    return (
        content.get("test"),
        {key: library[key] for key in keys if key in library},
        section(content, "package").get("autotests"),
        section(content, "workspace").get("exclude"),
    )
