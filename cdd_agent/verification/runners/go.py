"""`go test`. With `-json`, it prints events for each test."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from msgspec import Struct, field

from cdd_agent.pattern import Pattern
from cdd_agent.verification.outcomes import Result, Results, Selection, SuiteRun
from cdd_agent.verification.runner import (
    Matters,
    Reported,
    Reporting,
    ReportUnreadable,
    TestRunner,
)
from cdd_agent.verification.runners.launchers import program_name
from cdd_agent.verification.test_id import TestId

_PLAIN = ("-v", "-race", "-cover", "-failfast", "-json")
_CONFLICTS = (
    *("-json", "-c", "-exec", "-bench", "-fuzz", "-list", "-h", "-help", "-args"),
)
_RESULTS = {"pass": Result.PASSED, "fail": Result.FAILED, "skip": Result.SKIPPED}
_NOT_BUILT = Pattern(r"FAIL\t(\S+) \[(?:build|setup) failed\]")
_TEST_MAIN = Pattern(
    r"^func\s+TestMain\s*\(.*?(?:^\}|\}$|\Z)", re.MULTILINE | re.DOTALL
)
_TEST = Pattern(r"^func\s+((?:Test|Example|Fuzz|Benchmark)\w*)\s*\(", re.MULTILINE)
_LARGEST_SOURCE = 2_000_000  # in bytes


class Go(TestRunner):
    """Has no settings files: the function `TestMain` runs the tests."""

    name = "go test"
    # before Go 1.20, 2 means that a package does not build
    ends_with = frozenset((0, 1, 2))
    captures = True
    about_report = ("{",)

    def place(self, argv: Sequence[str]) -> int | None:
        is_go_test = len(argv) > 1 and program_name(argv[0]) == "go"
        return 1 if is_go_test and argv[1] == "test" else None

    def reporting(self, argv: Sequence[str], report: Path) -> Reporting | None:
        del report
        if any(_option(word) in _CONFLICTS for word in argv):
            return None
        words = [word for word in argv[2:] if _option(word) != "-failfast"]
        return Reporting((*argv[:2], "-json", *words))

    def selection(self, argv: Sequence[str], root: Path) -> Selection:
        """Only `folder/...` counts as a folder; other words count as options."""
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
        stdout, stderr = reported.data("stdout"), reported.data("stderr")
        return read_report(stdout, selection, root, stderr)

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        return _TEST_MAIN.findall if path.name.endswith("_test.go") else None

    def shown(self, line: str, report: Path) -> str:
        """Return the output in a Go event; other lines unchanged."""
        del report
        event = _event(line)
        if event is None:
            return line
        output = event.get("Output")
        return output if isinstance(output, str) else ""


def _option(word: str) -> str:
    return word.replace("--", "-", 1).partition("=")[0]


class _Package(Struct):
    tests: dict[str, Result] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    output: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    result: Result | None = None

    def add(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"Action": "output", "Output": str(text), **more}:
                self.output[str(more.get("Test", ""))].append(text)
            case {"Action": "run", "Test": str(test)}:
                self.begun.add(test)
            case {"Action": "pass" | "fail" | "skip" as ended, "Test": str(test)}:
                self.tests[test] = _RESULTS[ended]
            case {"Action": "pass" | "fail" | "skip" as ended}:
                self.result = _RESULTS[ended]

    def text_of(self, test: str = "") -> str:
        return "".join(self.output.get(test, ()))

    @property
    def is_finished(self) -> bool:
        return self.result is not None and self.begun <= self.tests.keys()

    @property
    def failed_outside_tests(self) -> bool:
        has_failed_test = Result.FAILED in self.tests.values()
        return self.result is Result.FAILED and not has_failed_test


def read_report(
    stdout: bytes, selection: Selection, root: Path, stderr: bytes = b""
) -> SuiteRun:
    """Read the output of `go test -json`. Raises `ReportUnreadable`."""
    lines = stdout.decode("utf-8", errors="replace").split("\n")
    packages = _read_packages(lines)
    build_errors = _read_build_errors(lines, stderr)
    if not packages:
        raise ReportUnreadable("no package was tested")
    results = Results()
    modules = _Modules(root)
    for name, package in packages.items():
        folder = modules.folder(name)
        for test, result in package.tests.items():
            text = package.text_of(test) if result is Result.FAILED else ""
            results.add(str(TestId(folder.file_of(test), test)), result, text)
        if package.failed_outside_tests:
            text = build_errors[name] + package.text_of()
            for file in folder.test_files or (folder.path,):
                results.add(file, Result.FAILED, text)
    is_finished = all(package.is_finished for package in packages.values())
    return results.run(selection, is_finished=is_finished)


def _read_packages(lines: Iterable[str]) -> dict[str, _Package]:
    """Return packages by name, including those that do not build."""
    packages: dict[str, _Package] = defaultdict(_Package)
    for line in lines:
        event = _event(line) or {}
        name = event.get("Package")
        if isinstance(name, str):
            packages[name].add(event)
        not_built = _NOT_BUILT.match(line)
        if not_built is not None:
            packages[not_built[1]].result = Result.FAILED
    return packages


def _read_build_errors(lines: Iterable[str], stderr: bytes) -> dict[str, str]:
    """Package → build error. Go 1.24 and newer report them as events, older versions on
    stderr below the package's name.
    """
    errors = defaultdict[str, str](str)
    package = ""
    for line in stderr.decode("utf-8", errors="replace").splitlines(keepends=True):
        if line.startswith("# "):
            package = _package_name(line.removeprefix("# "))
        else:
            errors[package] += line
    for line in lines:
        match _event(line):
            case {
                "ImportPath": str(name),
                "Action": "build-output",
                "Output": str(text),
            }:
                errors[_package_name(name)] += text
    return errors


def _package_name(built: str) -> str:
    return built.strip().partition(" ")[0]


def _event(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        event: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if isinstance(event, dict) and isinstance(event.get("Action"), str):
        return event
    return None


class _Folder(Struct, frozen=True):
    """A package's folder, relative to the root."""

    path: str
    files: Mapping[str, str]
    test_files: tuple[str, ...]

    def file_of(self, test: str) -> str:
        return self.files.get(test.partition("/")[0], self.path)


class _Modules(Struct, frozen=True, dict=True):
    """The modules of a project, which locate packages."""

    root: Path

    def folder(self, package: str) -> _Folder:
        path = self._find_path(package)
        if path is None:
            return _Folder(package, {}, ())
        files: dict[str, str] = {}
        names = []
        for file in sorted((self.root / path).glob("*_test.go")):
            name = file.relative_to(self.root).as_posix()
            names.append(name)
            for test in _TEST.findall(_text(file)):
                files[test] = name
        return _Folder(path, files, tuple(names))

    def _find_path(self, package: str) -> str | None:
        """None if there is no such folder."""
        for module, folder in self._by_length:
            if package != module and not package.startswith(f"{module}/"):
                continue
            path = normpath(f"{folder}/{package[len(module) + 1 :]}")
            is_inside = ".." not in PurePosixPath(path).parts
            if is_inside and (self.root / path).is_dir():
                return path
        return None

    @cached_property
    def _by_length(self) -> list[tuple[str, str]]:
        """Names and folders of modules, longest name first."""
        modules = []
        for pattern in ("go.mod", "*/go.mod", "*/*/go.mod"):
            for file in self.root.glob(pattern):
                name = re.search(r"^module\s+(\S+)", _text(file), re.MULTILINE)
                if name is not None:
                    folder = file.parent.relative_to(self.root).as_posix()
                    modules.append((name[1].strip('"'), folder))
        return sorted(modules, key=lambda module: -len(module[0]))


def _text(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(_LARGEST_SOURCE)
    except OSError:
        return ""
