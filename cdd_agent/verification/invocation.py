"""Commands that run tests: which runner a command starts, itself or by way of the
script in `package.json`.
"""

import re
from collections.abc import Sequence
from pathlib import Path, PurePath, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.files.manifests import Manifests, ManifestUnreadable, section
from cdd_agent.process.policy import CommandRefused, split
from cdd_agent.verification.outcomes import Selection, SuiteRun
from cdd_agent.verification.runner import Matters, Reported, Reporting, TestRunner
from cdd_agent.verification.runners import RUNNERS
from cdd_agent.verification.settings import package_json

_RUN = {
    "npm": ("test", "t", "tst", "run", "run-script"),
    "yarn": ("test", "run"),
    "pnpm": ("test", "t", "run"),
}
_ECHO = ("> ", "$ ")
"""How lines begin in which a script is shown as it is started."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)


class Invocation(Struct, frozen=True):
    """A command that runs tests, with what it comes to."""

    runner: TestRunner
    root: Path
    argv: tuple[str, ...]
    """As it is started."""
    script: tuple[str, ...] | None = None
    """The runner's own words, where the command starts a script that has them."""
    folder: str = ""
    """The folder in which the command runs, from the project's root; empty for the
    root.
    """

    def reporting(self, report: Path) -> Reporting | None:
        """The command with a report on each test; None where it cannot be told to make
        one.
        """
        if self.script is None:
            return self.runner.reporting(self.argv, report)
        made = self.runner.reporting(self.script, report)
        # words can be added to a script's end only
        if made is None or made.argv[: len(self.script)] != self.script:
            return None
        added = made.argv[len(self.script) :]
        is_npm = _name(self.argv[0]) == "npm"
        separator = ("--",) if added and is_npm and "--" not in self.argv else ()
        return Reporting((*self.argv, *separator, *added), made.env)

    @property
    def selection(self) -> Selection:
        """The tests that the command asks for, with paths from the project's root."""
        asked = self._selection_in_folder
        paths = tuple(self._from_root(path) for path in asked.paths)
        if self.folder and not paths:
            paths = (self.folder,)
        return replace(asked, paths=paths, runner=self.runner.name)

    @property
    def _selection_in_folder(self) -> Selection:
        return self.runner.selection(self.script or self.argv, self.root)

    def read(self, reported: Reported) -> SuiteRun:
        """Return the results, with ids that begin at the project's root."""
        run = self.runner.read(reported, self._selection_in_folder, self.root)
        results = {self._from_root(test): each for test, each in run.results.items()}
        texts = {self._from_root(test): text for test, text in run.texts.items()}
        return replace(run, selection=self.selection, results=results, texts=texts)

    def _from_root(self, path: str) -> str:
        """Return a path or the id of a test as it is from the project's root."""
        return f"{self.folder}/{path}" if self.folder else path

    def shown(self, line: str, report: Path) -> str:
        """A line of output as people read it; empty where it is only about the
        report.
        """
        made = (
            self.reporting(report)
            if self.script is not None and line.startswith(_ECHO)
            else None
        )
        if added := (
            [word for word in made.argv[len(self.argv) :] if word != "--"]
            if made
            else []
        ):
            line, cut, _ = line.partition(f" {added[0]}")  # they come last
            line += "\n" if cut else ""
        return self.runner.shown(line, report)

    def may_be_about_report(self, begun: str) -> bool:
        """Whether a line that begins so may be one that is not to be shown as it is."""
        beginnings = (
            *self.runner.about_report,
            *(_ECHO if self.script is not None else ()),
        )
        return any(begun.startswith(one) or one.startswith(begun) for one in beginnings)

    def what_matters(self, path: PurePosixPath) -> Matters | None:
        """The part of a file of this name that decides how this command runs tests."""
        if path.is_relative_to(self.folder):
            path = path.relative_to(self.folder)
        if self.script is not None and path.name == "package.json":
            return package_json
        return self.runner.what_matters(path)


def invocation(argv: Sequence[str], root: Path, folder: str = "") -> Invocation | None:
    """Return the runner that a command starts in `root`, with the words for it; None if
    it does not report each test. `folder` leads from the project's root to `root`.
    """
    if runner := _runner(argv):
        return Invocation(runner, root, tuple(argv), folder=folder)
    script = _script(argv, root)
    runner = _runner(script) if script else None
    if runner is None:
        return None
    return Invocation(runner, root, tuple(argv), script, folder)


def _runner(argv: Sequence[str]) -> TestRunner | None:
    return next((runner for runner in RUNNERS if runner.recognises(argv)), None)


def _script(argv: Sequence[str], root: Path) -> tuple[str, ...] | None:
    """The words that a script of `package.json` runs, with those of the command; None
    where it is more than one plain command.
    """
    program, *words = argv or ("",)
    program = _name(program)
    if not words or words[0] not in _RUN.get(program, ()):
        return None
    name, rest = (
        ("test", words[1:])
        if words[0] in ("test", "t", "tst")
        else (words[1] if words[1:] else "", words[2:])
    )
    # npm's own options, or words that it takes for such
    if program == "npm" and rest and rest[0] != "--":
        return None
    try:
        plain = split(section(Manifests(root).content("package.json"), "scripts")[name])
    except (ManifestUnreadable, LookupError, TypeError, CommandRefused):
        return None
    if plain.operator:
        return None
    own = list(plain.argv)
    while own and _ASSIGNMENT.fullmatch(own[0]):
        own.pop(0)
    return (*own, *(rest[1:] if program == "npm" else rest)) or None


def _name(program: str) -> str:
    return re.sub(r"\.(cmd|exe|bat)$", "", PurePath(program).name.lower())
