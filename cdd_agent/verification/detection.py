"""Finds the commands that run a project's tests, from its files.

A runner runs unasked if it is declared and needs no build tool: pytest, unittest,
Django, `package.json` scripts, cargo, go, and `make test` if there is nothing else.
Other tools run on request, see `requested_tools.py`. Nothing is started or installed
for that, and the network is not used.

The root comes first. Other folders with a manifest, such as `backend` and
`packages/api`, follow unless a folder around them has a runner of that language.
"""

import shlex
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from cdd_agent.files.manifests import Manifests, ManifestUnreadable
from cdd_agent.pattern import Pattern
from cdd_agent.process.command_folder import in_folder
from cdd_agent.process.environments import as_started
from cdd_agent.process.policy import JudgedCommand
from cdd_agent.project.source_folders import source_folders
from cdd_agent.verification.check import Check
from cdd_agent.verification.compiled_tests import go_runner, rust_runner
from cdd_agent.verification.javascript_tests import (
    javascript_runner,
    why_not_installed,
)
from cdd_agent.verification.project_runner import (
    ProjectFolder,
    ProjectRunner,
    project_folders,
)
from cdd_agent.verification.python_tests import (
    declared_runner,
    is_python_project,
    undeclared_runner,
)
from cdd_agent.verification.requested_tools import RequestedTool, requested_tools

_DEPTH = 3
"""Depth of the search for manifests."""
_MOST_NESTED = 6
"""Most checks below the root. If there are more, none of them runs unasked."""
_SAMPLES = frozenset(
    (
        *("example", "examples", "sample", "samples", "demo", "demos"),
        *("fixture", "fixtures", "testdata", "test_data", "test-data"),
        *("tests", "test", "spec", "specs", "__tests__", "e2e", "fuzz"),
        *("doc", "docs", "website", "site", "template", "templates"),
        *("bench", "benchmark", "benchmarks"),
    )
)
"""Folders whose manifests are not part of the project."""
_MAKE = ProjectRunner("make", ("make", "test"), "the Makefile has a target `test`")
"""Used if nothing else declares tests."""
_PYTHON_TESTS = Pattern(r"\b(pytest|unittest|tox|nox)\b")
"""Programs in a make recipe that run the test files which cdd finds, too."""


class DetectedCheck(Struct, frozen=True):
    """A check derived from the project's files."""

    check: Check
    reason: str
    """Such as "declared in requirements.txt"."""


class Survey(Struct, frozen=True):
    runs: tuple[DetectedCheck, ...] = ()
    requested: tuple[RequestedTool, ...] = ()
    """Tools that run only if a setting or a plan names them."""
    notes: tuple[str, ...] = ()
    """Runners that do not run, each with the reason: sentences without full stops."""

    @property
    def worth_naming(self) -> tuple[RequestedTool, ...]:
        """Tools that may run tests which no check runs."""
        tools = self.requested
        if self.runs:
            tools = tuple(tool for tool in tools if not tool.is_wrapper)
        return tools


def detect(root: Path) -> tuple[Check, ...]:
    """Return the checks that run the project's tests; empty if no runner runs unasked.
    Raises `BadInput` for an unreadable manifest.
    """
    return tuple(run.check for run in survey(root).runs)


def survey(root: Path) -> Survey:
    """Raises `BadInput` for an unreadable manifest at the root."""
    listed = list(source_folders(root, _DEPTH, _SAMPLES))
    folders = project_folders(root, listed)
    requested = requested_tools(root, listed)
    all_runs = _declared(folders)
    has_others = bool(all_runs or requested)
    guessed = _undeclared(folders, all_runs, has_others=has_others)
    if all(each.problem for each in all_runs):
        make = _make_test(root)
        if make and (not guessed or not _PYTHON_TESTS.search(make)):
            all_runs, guessed = [*all_runs, _Found(root, "", _MAKE)], []
    runs, notes = _choose([*all_runs, *guessed])
    detected = tuple(DetectedCheck(each.check, each.reason) for each in runs)
    return Survey(detected, requested, tuple(notes))


def why_no_check(root: Path) -> str:
    """Return why no check was derived, as a clause."""
    runs = survey(root)
    if runs.requested:
        tool = runs.requested[0]
        return f"{tool.name} runs only if you set `test_command: {tool.command}`"
    if runs.notes:
        return runs.notes[0]
    return "cdd found no test runner that it knows"


class _Found(Struct, frozen=True, dict=True):
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
            JudgedCommand(self.shown, argv, self.place), found=True, folder=self.folder
        )

    def covers(self, other: "_Found") -> bool:
        is_below = _is_inside(other.folder, self.folder)
        if self.runner.language != other.runner.language or not is_below:
            return False
        return self.runner.covers(other.folder.removeprefix(self.folder).lstrip("/"))

    @cached_property
    def problem(self) -> str:
        """Why the runner cannot start; empty if it can."""
        program = self.runner.argv[0]
        if not Path(self.check.argv[0]).is_absolute():
            return f"{program} is not installed"
        if self.runner.language == "javascript":
            return why_not_installed(self.place, self.root)
        return ""


def _choose(runs: Sequence[_Found]) -> tuple[list[_Found], list[str]]:
    usable = [each for each in runs if not each.problem]
    unusable = [each for each in runs if each.problem]
    if not usable:
        # its error names what is missing
        usable, unusable = unusable[:1], unusable[1:]
    notes = [f"`{each.shown}` does not run: {each.problem}" for each in unusable]
    nested = [each for each in usable if each.folder]
    if len(nested) > _MOST_NESTED:
        usable = [each for each in usable if not each.folder]
        places = ", ".join(each.folder for each in nested)
        notes.append(
            f"{len(nested)} folders have their own tests, which run only if you"
            f" set `test_command`: {places}"
        )
    return usable, notes


def _declared(folders: Sequence[ProjectFolder]) -> list[_Found]:
    """Return the declared runners: one for each language in a folder, and none for
    tests that an outer runner runs.
    """
    runs: list[_Found] = []
    for folder in folders:
        for find in _FINDERS:
            try:
                runner = find(folder)
            except ManifestUnreadable:
                if folder.is_root:
                    raise
                continue
            if runner is None:
                continue
            added = _Found(folder.root, folder.path, runner)
            if not any(each.covers(added) for each in runs):
                runs.append(added)
    return runs


def _undeclared(
    folders: Sequence[ProjectFolder], declared: Sequence[_Found], *, has_others: bool
) -> list[_Found]:
    """Return runners for Python test files that no manifest covers, in folders without
    a Python runner above or below. If such a runner is below the root, the root's usual
    test folders run as well.
    """
    python_folders = [
        each.folder for each in declared if each.runner.language == "python"
    ]
    runs: list[_Found] = []
    for folder in folders:
        is_python = is_python_project(folder)
        is_known = any(_is_inside(folder.path, other) for other in python_folders)
        if is_known or not (folder.is_root or is_python):
            continue
        below = [other for other in python_folders if _is_inside(other, folder.path)]
        if below and not folder.is_root:
            continue
        is_deep = not below and (is_python or not has_others)
        runner = undeclared_runner(folder, is_deep=is_deep, elsewhere=below)
        if runner is not None:
            runs.append(_Found(folder.root, folder.path, runner))
            python_folders.append(folder.path)
    return runs


def _is_inside(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _make_test(root: Path) -> str:
    """Return the commands of the make target `test`; empty without one."""
    manifests = Manifests(root)
    if "test" not in manifests.targets:
        return ""
    return manifests.recipe("test") or "test"


_FINDERS: tuple[Callable[[ProjectFolder], ProjectRunner | None], ...] = (
    declared_runner,
    javascript_runner,
    rust_runner,
    go_runner,
)
"""One for each language, in the order in which the checks run."""
