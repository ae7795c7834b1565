"""Find the commands that run a project's tests, by the files of the project.

A runner runs unasked if it is declared, and starts without a build tool: pytest,
unittest, Django, the scripts of `package.json`, cargo, go, and `make test` if there is
no other. Other tools are recognised and run on request, see `requested_tools.py`. No
tool is asked, nothing is installed, and no network is used.

The project's root comes first. Folders with a manifest of their own, such as `backend`
and `packages/api`, follow where no folder around them has a runner of that language.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from cdd_agent.files.manifests import Manifests, ManifestUnreadable
from cdd_agent.process.command_folder import in_folder
from cdd_agent.process.environments import as_started
from cdd_agent.process.policy import Command
from cdd_agent.project.source_folders import SourceFolder, source_folders
from cdd_agent.verification.check import Check
from cdd_agent.verification.javascript_tests import (
    javascript_runner,
    why_not_installed,
)
from cdd_agent.verification.project_runner import ProjectRunner
from cdd_agent.verification.python_tests import any_python_tests, python_runner
from cdd_agent.verification.requested_tools import RequestedTool, requested_tools

_DEPTH = 3
"""Levels of folders that are searched for manifests."""
_MOST_NESTED = 6
"""Most checks of folders below the root. With more, none of these runs unasked."""
_SAMPLES = frozenset(
    (
        *("example", "examples", "sample", "samples", "demo", "demos"),
        *("fixture", "fixtures", "testdata", "test_data", "test-data"),
        *("tests", "test", "spec", "specs", "__tests__", "e2e", "fuzz"),
        *("doc", "docs", "website", "site", "template", "templates"),
        *("bench", "benchmark", "benchmarks"),
    )
)
"""Names of folders whose manifests are not parts of the project."""
_MAKE = ProjectRunner("make", ("make", "test"), "the Makefile has a target `test`")
"""It runs if nothing else declares tests."""
_GO_USE = re.compile(r"^\s*(?:use\s+)?(\.[^\s()]*)\s*$", re.MULTILINE)


class DetectedCheck(Struct, frozen=True):
    """A check that follows from the project's files."""

    check: Check
    reason: str
    """Why the runner is used, such as "declared in requirements.txt"."""


class Survey(Struct, frozen=True):
    """The runners and tools of a project's tests."""

    runs: tuple[DetectedCheck, ...] = ()
    requested: tuple[RequestedTool, ...] = ()
    """Tools that run only if a setting or a plan names them."""
    notes: tuple[str, ...] = ()
    """Runners that do not run, each with the reason, as a sentence without its end."""

    @property
    def worth_naming(self) -> tuple[RequestedTool, ...]:
        """The tools that may run tests which no check runs."""
        tools = self.requested
        if self.runs:
            tools = tuple(tool for tool in tools if not tool.is_wrapper)
        return tools


def detect(root: Path) -> tuple[Check, ...]:
    """Return the checks that run the project's tests; empty if there is no runner that
    cdd runs unasked. Raises `BadInput` for a manifest that cannot be read.
    """
    return tuple(found.check for found in survey(root).runs)


def survey(root: Path) -> Survey:
    """Find the runners of the project's tests. Raises `BadInput` for a manifest at the
    root that cannot be read.
    """
    folders = list(source_folders(root, _DEPTH, _SAMPLES))
    usable: list[_Found] = []
    unusable: list[_Found] = []
    for found in _find_runners(root, folders):
        runners = unusable if found.problem else usable
        runners.append(found)
    if not usable and len(unusable) == 1:
        # the only runner there is: its error says what is missing
        usable, unusable = unusable, []
    notes = [f"{found.shown} does not run: {found.problem}" for found in unusable]
    nested = [found for found in usable if found.folder]
    if len(nested) > _MOST_NESTED:
        usable = [found for found in usable if not found.folder]
        places = ", ".join(found.folder for found in nested)
        notes.append(
            f"{len(nested)} folders have tests of their own, and none of these runs"
            f" unasked: {places}"
        )
    is_undeclared = not usable and not notes
    if is_undeclared and "test" in Manifests(root).targets:
        usable = [_Found(root, "", _MAKE)]
    requested = requested_tools(root, folders)
    if is_undeclared and not usable and not requested:
        runner = any_python_tests(root)
        usable = [_Found(root, "", runner)] if runner else []
    runs = tuple(DetectedCheck(found.check, found.reason) for found in usable)
    return Survey(runs, requested, tuple(notes))


def why_no_check(root: Path) -> str:
    """Return why no check follows from the project's files, as a clause."""
    known = survey(root)
    if known.requested:
        tool = known.requested[0]
        return f"{tool.name} runs only on request: `test_command: {tool.command}`"
    if known.notes:
        return known.notes[0]
    return "no runner that cdd knows"


class _Found(Struct, frozen=True, dict=True):
    """A runner in a folder of the project."""

    root: Path
    folder: str
    runner: ProjectRunner

    @property
    def place(self) -> Path:
        return self.root / self.folder

    @property
    def shown(self) -> str:
        return in_folder(self.folder, shlex.join(self.runner.argv))

    @property
    def reason(self) -> str:
        return self.runner.reason

    @cached_property
    def check(self) -> Check:
        argv = as_started(self.runner.argv, self.root, self.place)
        return Check(
            Command(self.shown, argv, self.place), found=True, folder=self.folder
        )

    @cached_property
    def problem(self) -> str:
        """Why the runner cannot start; empty if it can."""
        program = self.runner.argv[0]
        if not Path(self.check.argv[0]).is_absolute():
            return f"{program} is not installed"
        if self.runner.language == "javascript":
            return why_not_installed(self.place, self.root)
        return ""


def _find_runners(root: Path, folders: Sequence[SourceFolder]) -> Iterator[_Found]:
    """Yield the runners, at most one of each language in a folder, and none below a
    folder that has one of that language.
    """
    taken: set[tuple[str, str]] = set()
    for folder in folders:
        for find, manifests in _FINDERS:
            is_root = not folder.path
            if not is_root and folder.files.isdisjoint(manifests):
                continue
            try:
                runner = find(root, folder, folders)
            except ManifestUnreadable:
                if is_root:
                    raise
                continue
            if runner is None:
                continue
            around = [folder.path, *map(str, Path(folder.path).parents)]
            around = ["" if place == "." else place for place in around]
            if taken.isdisjoint((runner.language, place) for place in around):
                yield _Found(root, folder.path, runner)
            taken.add((runner.language, folder.path))


def _rust(
    root: Path, folder: SourceFolder, folders: Sequence[SourceFolder]
) -> ProjectRunner | None:
    del folders
    if "Cargo.toml" not in folder.files:
        return None
    content = Manifests(root / folder.path).content("Cargo.toml")
    words: tuple[str, ...] = ("cargo", "test")
    if "workspace" in content and "package" in content:
        # otherwise cargo tests only the package at the root of the workspace
        words = ("cargo", "test", "--workspace")
    return ProjectRunner("rust", words, "there is a Cargo.toml")


def _go(
    root: Path, folder: SourceFolder, folders: Sequence[SourceFolder]
) -> ProjectRunner | None:
    del folders
    if "go.work" in folder.files:
        modules = _GO_USE.findall(Manifests(root / folder.path).text("go.work"))
        words = [f"{module.rstrip('/')}/..." for module in modules]
        if words:
            return ProjectRunner(
                "go", ("go", "test", *words), "go.work names the modules"
            )
    if "go.mod" in folder.files:
        return ProjectRunner("go", ("go", "test", "./..."), "there is a go.mod")
    return None


_Find = Callable[[Path, SourceFolder, Sequence[SourceFolder]], ProjectRunner | None]
_FINDERS: tuple[tuple[_Find, frozenset[str]], ...] = (
    (
        python_runner,
        frozenset(
            (
                *("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "Pipfile"),
                *("pytest.ini", "requirements.txt", "requirements-dev.txt"),
                *("manage.py", "environment.yml", "conftest.py"),
            )
        ),
    ),
    (javascript_runner, frozenset(("package.json",))),
    (_rust, frozenset(("Cargo.toml",))),
    (_go, frozenset(("go.mod", "go.work"))),
)
"""The language's function, and the manifests by which a folder below the root has a
part of the project.
"""
