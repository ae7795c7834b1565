"""`go test`. With `-json`, its output reports each test."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from posixpath import normpath
from typing import Any

from msgspec import Struct, field

from cdd_agent.verification.outcomes import Result, Results, Selection, SuiteRun
from cdd_agent.verification.runner import (
    Matters,
    Reported,
    Reporting,
    ReportUnreadable,
    TestRunner,
)
from cdd_agent.verification.test_id import TestId

_PLAIN = ("-v", "-race", "-cover", "-failfast", "-json")
_CONFLICTS = (
    "-json",
    "-c",
    "-exec",
    "-bench",
    "-fuzz",
    "-list",
    "-h",
    "-help",
    "-args",
)
_RESULTS = {"pass": Result.PASSED, "fail": Result.FAILED, "skip": Result.SKIPPED}
_NOT_BUILT = re.compile(r"FAIL\t(\S+) \[(?:build|setup) failed\]")
_TEST_MAIN = re.compile(
    r"^func\s+TestMain\s*\(.*?(?:^\}|\}$|\Z)", re.MULTILINE | re.DOTALL
)
_TEST = re.compile(r"^func\s+((?:Test|Example|Fuzz|Benchmark)\w*)\s*\(", re.MULTILINE)
_LARGEST_SOURCE = 2_000_000  # bytes


class Go(TestRunner):
    """`go test`. It has no files of settings, only code: `TestMain` runs the tests."""

    name = "go test"
    # 2: before Go 1.20, for a package that cannot be built
    ends_with = frozenset((0, 1, 2))
    captures = True
    about_report = ("{",)

    def place(self, argv: Sequence[str]) -> int | None:
        is_test = (
            len(argv) > 1
            and PurePath(argv[0]).name in ("go", "go.exe")
            and argv[1] == "test"
        )
        return 1 if is_test else None

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        del report
        if any(
            word.replace("--", "-", 1).partition("=")[0] in _CONFLICTS for word in argv
        ):
            return None
        words = (
            word
            for word in argv[2:]
            if word.replace("--", "-", 1).partition("=")[0] != "-failfast"
        )
        return Reporting((*argv[:2], "-json", *words))

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        """Return the paths and options. Only `folder/...` names a whole folder."""
        del root
        words = [word for word in self.words(argv) if word not in _PLAIN]
        paths = [
            normpath(word.removesuffix("..."))
            for word in words
            if re.fullmatch(r"\.?/?([\w.-]+/)*\.\.\.", word)
        ]
        options = [word for word in words if not word.endswith("...")]
        return Selection(tuple(sorted(set(paths))), tuple(options))

    def read(self, reported: Reported, selection: Selection, root: Path) -> SuiteRun:
        return read_report(
            reported.data("stdout"), selection, root, reported.data("stderr")
        )

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        return _TEST_MAIN.findall if path.name.endswith("_test.go") else None

    def shown(self, line: str, report: Path) -> str:
        """Return the text in a line of go's JSON."""
        del report
        event = _event(line)
        if event is None:
            return line
        output = event.get("Output")
        return output if isinstance(output, str) else ""


class _Package(Struct):
    """The events of one package."""

    tests: dict[str, Result] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    output: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    result: Result | None = None


def read_report(
    data: bytes, selection: Selection, root: Path, stderr: bytes = b""
) -> SuiteRun:
    """Read what `go test -json` writes. Raises `ReportUnreadable`.

    Before Go 1.24, `stderr` tells why a package cannot be built.
    """
    build_output = _read_build_output(stderr)
    packages = _read_packages(data, build_output)
    if not packages:
        raise ReportUnreadable("no package was tested")
    found, is_finished = Results(), True
    modules = _Modules(root)
    for name, package in packages.items():
        folder = modules.folder(name)
        for test, result in package.tests.items():
            words = "".join(package.output[test]) if result is Result.FAILED else ""
            found.add(str(TestId(folder.file_of(test), test)), result, words)
        is_finished = (
            is_finished
            and package.result is not None
            and package.begun <= package.tests.keys()
        )
        if (
            package.result is Result.FAILED
            and Result.FAILED not in package.tests.values()
        ):
            # it could not be built, or failed outside its tests
            for file in folder.test_files or (folder.path,):
                words = build_output[name] + "".join(package.output[""])
                found.add(file, Result.FAILED, words)
    return found.run(selection, is_finished=is_finished)


def _read_packages(
    data: bytes, build_output: defaultdict[str, str]
) -> dict[str, _Package]:
    """Read the lines of the report. Go 1.24 tells there why a package is not built."""
    packages: dict[str, _Package] = defaultdict(_Package)
    for line in data.decode("utf-8", errors="replace").split("\n"):
        match _event(line):
            case {
                "Package": str(name),
                "Action": "output",
                "Output": str(text),
                **more,
            }:
                packages[name].output[str(more.get("Test", ""))].append(text)
            case {
                "ImportPath": str(built),
                "Action": "build-output",
                "Output": str(text),
            }:
                build_output[_path_of(built)] += text
            case {"Package": str(name), "Action": "run", "Test": str(test)}:
                packages[name].begun.add(test)
            case {
                "Package": str(name),
                "Action": "pass" | "fail" | "skip" as ended,
                "Test": str(test),
            }:
                packages[name].tests[test] = _RESULTS[ended]
            case {"Package": str(name), "Action": "pass" | "fail" | "skip" as ended}:
                packages[name].result = _RESULTS[ended]
            case {"Package": str(name), "Action": str()}:
                packages.setdefault(name, _Package())
        if not_built := _NOT_BUILT.match(line):
            packages[not_built[1]].result = Result.FAILED
    return packages


def _read_build_output(stderr: bytes) -> defaultdict[str, str]:
    """Return what is told of each package, below a line with its name."""
    told = defaultdict[str, str](str)
    package = ""
    for line in stderr.decode("utf-8", errors="replace").splitlines(keepends=True):
        if line.startswith("# "):
            package = _path_of(line[2:])
        else:
            told[package] += line
    return told


def _path_of(built: str) -> str:
    """Return the path of a package, without that of the program of its tests."""
    return built.strip().partition(" ")[0]


def _event(line: str) -> dict[str, Any] | None:
    """Return the event of a line; None if it has none."""
    if not line.startswith("{"):
        return None
    try:
        event: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and "Action" in event else None


class _Folder(Struct, frozen=True):
    """The folder of a package, from the root."""

    path: str
    files: Mapping[str, str]
    """The file of each test."""
    test_files: tuple[str, ...]

    def file_of(self, test: str) -> str:
        return self.files.get(test.partition("/")[0], self.path)


class _Modules(Struct, frozen=True, dict=True):
    """The modules of a project. They decide which package is in which folder."""

    root: Path

    def folder(self, package: str) -> _Folder:
        path = self._path(package)
        files = sorted((self.root / path).glob("*_test.go")) if path != package else []
        names = [file.relative_to(self.root).as_posix() for file in files]
        declared = {
            test: name
            for file, name in zip(files, names, strict=True)
            for test in _TEST.findall(_text(file))
        }
        return _Folder(path, declared, tuple(names))

    def _path(self, package: str) -> str:
        """Return the folder of a package, or its name if there is no such folder."""
        for module, folder in self._by_length:
            if package == module or package.startswith(f"{module}/"):
                path = normpath(f"{folder}/{package[len(module) + 1 :]}")
                if (
                    ".." not in PurePosixPath(path).parts
                    and (self.root / path).is_dir()
                ):
                    return path
        return package

    @cached_property
    def _by_length(self) -> list[tuple[str, str]]:
        """The modules with their folders, the longest name first."""
        files = [
            file
            for pattern in ("go.mod", "*/go.mod", "*/*/go.mod")
            for file in self.root.glob(pattern)
        ]
        named = [
            (re.search(r"^module\s+(\S+)", _text(file), re.MULTILINE), file.parent)
            for file in files
        ]
        found = [
            (name[1].strip('"'), folder.relative_to(self.root).as_posix())
            for name, folder in named
            if name
        ]
        return sorted(found, key=lambda module: -len(module[0]))


def _text(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(_LARGEST_SOURCE)
    except OSError:
        return ""
