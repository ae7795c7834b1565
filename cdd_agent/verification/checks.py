"""Checks: which command decides about a step, and running it.

The command is the step's own (`**Verify:**` in the plan), else the config's, else found
by what the project holds. It is run by the same runner as every other command. What its
outcome means is for `verdict.py` to say.
"""

import asyncio
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.config import Commands, runs_others
from cdd_agent.errors import BadInput
from cdd_agent.files.manifests import Manifests, section
from cdd_agent.process.policy import Command, CommandRefused, CommandRunner, split
from cdd_agent.process.programs import as_started
from cdd_agent.process.run import CommandResult, Hear, OutputChunk, unheard
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.invocation import Invocation, invocation
from cdd_agent.verification.outcomes import SuiteRun
from cdd_agent.verification.runner import Reported, Reporting, ReportUnreadable

_BEGINNING = "check-"
"""Of the names of the folders in which checks report."""
_NPM_PLACEHOLDER = "no test specified"  # what `npm init` writes as the test script
_INTERPRETERS = re.compile(r"(python|node|ruby|perl|bash|sh)[\d.]*")


class Check(Struct, frozen=True, dict=True):
    """One command that decides about a step."""

    command: Command
    found: bool = False
    """Nobody asked for it by name: it was found by what the project holds, and may have
    nothing to say yet.
    """

    @property
    def argv(self) -> tuple[str, ...]:
        return self.command.argv

    @property
    def shown(self) -> str:
        """As people write it."""
        return self.command.text

    @property
    def script(self) -> str:
        """The file of the project that the command runs, where its words name one."""
        if self.command.in_shell or self.invocation:
            return ""
        program, *words = split(self.shown).argv
        named = words[0] if words and _INTERPRETERS.fullmatch(program) else program
        return named.removeprefix("./")

    @cached_property
    def invocation(self) -> Invocation | None:
        """Of a command that runs tests of which each can be told."""
        return (
            None
            if self.command.in_shell
            else invocation(self.argv, self.command.folder)
        )

    @property
    def always_reports(self) -> bool:
        """Whether a run of it without a report on each test was cut short."""
        return (
            self.asks_for_report
            and self.invocation is not None
            and self.invocation.runner.always_reports
        )

    @cached_property
    def asks_for_report(self) -> bool:
        """Whether it can be told to report on each test."""
        return (
            self.invocation is not None
            and self.invocation.reporting(self.command.folder) is not None
        )

    def came_to_its_end(self, result: CommandResult) -> bool:
        """Whether the exit code is one of a run of tests that nothing but its tests
        ended.
        """
        return (
            self.invocation is not None
            and result.return_code in self.invocation.runner.ends_with
        )

    def says_nothing_ran(self, result: CommandResult) -> bool:
        """Whether the exit code says that there was no test to run."""
        return (
            self.invocation is not None
            and result.return_code == self.invocation.runner.nothing_ran
        )


class Ran(Struct, frozen=True):
    """A check's run, before anybody says what it means."""

    result: CommandResult
    tests: SuiteRun | None = None
    """None where a command does not tell of each test, or did not come to telling it in
    a way that can be read.
    """
    unread: str = ""
    """Why a command that tells of each test did not, as a clause."""

    @property
    def output(self) -> str:
        out, err = self.result.stdout, self.result.stderr
        return out + ("\n" if out and err else "") + err


def check_for(
    step: PlanStep, test_command: str | None, commands: CommandRunner
) -> Check | None:
    """The check that verifies this step; None when there is nothing to run. Raises
    `BadInput` for an unusable command.

    The plan's own is judged like any command that a model asks for, but may also use
    the program of the project's tests. In the check's `command` is whether a person has
    to be asked.
    """
    if step.checks is None or step.checks == (test_command,):
        return project_check(test_command, commands)
    if step.has_no_check:
        return None
    if len(step.checks) > 1:
        raise BadInput(f"Step {step.label} has several checks; one is run")
    return _judged(
        step.checks[0],
        commands,
        also=lambda program: program == _test_program(test_command, commands.root),
    )


def project_check(test_command: str | None, commands: CommandRunner) -> Check | None:
    """The check that runs the project's tests; None when there is nothing to run.
    Raises `BadInput`.
    """
    return (
        parse_command(test_command, commands.root, commands.settings)
        if test_command
        else detect(commands.root)
    )


def detect(root: Path) -> Check | None:
    """The project's own tests, by the files it holds; None when no test framework is
    found.
    """
    manifests = Manifests(root)
    if _uses_pytest(manifests):
        return _found(root, "pytest")
    npm_test = str(
        section(manifests.content("package.json"), "scripts").get("test", "")
    )
    if npm_test and _NPM_PLACEHOLDER not in npm_test:
        return _found(root, "npm", "test")
    if manifests.has("Cargo.toml"):
        return _found(root, "cargo", "test")
    if manifests.has("go.mod"):
        return _found(root, "go", "test", "./...")
    return _found(root, "make", "test") if "test" in manifests.targets else None


def parse_command(command: str, root: Path, settings: Commands | None = None) -> Check:
    """The person's own command for tests: it may use any program, but a shell only in
    unsafe mode.
    """
    return _judged(command, CommandRunner(root, settings or Commands()), trusted=True)


async def run_check(
    check: Check,
    commands: CommandRunner,
    limit: float,
    folder: Path,
    hear: Hear = unheard,
) -> Ran:
    """Run a check, and `hear` its output. While it runs it has a new folder of its own
    in `folder`; see `remove_abandoned`.

    Raises `BadInput` when it cannot be started: no reply of a model would fix that.
    """
    # Bytecode of a file rewritten within the same second and with the same size would
    # be taken for current.
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    tests = check.invocation
    with _new_folder(folder) as scratch:
        report = scratch / "report"
        reporting = tests.reporting(report) if tests else None
        told = reporting or Reporting(check.argv)
        shown = _Shown(tests if reporting else None, report)

        def pass_on(chunk: OutputChunk) -> None:
            if text := shown.pass_on(chunk.text):
                hear(replace(chunk, text=text))

        result = await commands.start(
            replace(check.command, argv=told.argv),
            env={**env, **told.env},
            limit=limit,
            copies=scratch if reporting and tests and tests.runner.captures else None,
            hear=pass_on,
        )
        if not result.started:
            raise BadInput(
                f"The check `{check.shown}` could not be run:"
                f" {result.stderr.removeprefix('Error: ')}",
                hint=(
                    "Install it, or set `test_command` in .cdd/config.yaml or the"
                    " step's `**Verify:**`."
                ),
            )
        if shown.held:
            hear(OutputChunk(shown.shown(shown.held), "stdout"))
        if tests is None:
            return Ran(result)
        if reporting is None:
            return Ran(
                result,
                unread=(
                    "its words ask for another report, or leave no place to ask for one"
                ),
            )
        return await asyncio.to_thread(_ran, tests, Reported(scratch, result))


def remove_abandoned(folder: Path) -> None:
    """Remove what checks left in `folder` whose run was killed. To be called when none
    is running there.
    """
    for left in folder.glob(f"{_BEGINNING}*"):
        shutil.rmtree(left, ignore_errors=True)  # it is in nobody's way


@contextmanager
def _new_folder(parent: Path) -> Iterator[Path]:
    """One whose name nobody can guess."""
    try:
        made = tempfile.TemporaryDirectory(
            prefix=_BEGINNING, dir=parent.absolute(), ignore_cleanup_errors=True
        )
    except OSError as error:
        raise BadInput(
            f"No folder for a check's report could be made in {parent}:"
            f" {error.strerror or error}"
        ) from error
    with made as folder:
        yield Path(folder)


class _Shown(Struct):
    """Output as people read it, as it comes: a line that may be about the report is
    held back until its end is there.
    """

    tests: Invocation | None
    report: Path
    held: str = ""

    def pass_on(self, piece: str) -> str:
        if self.tests is None:
            return piece
        text = self.held + piece
        end = text.rfind("\n") + 1
        self.held = (
            text[end:]
            if text[end:] and self.tests.may_be_about_report(text[end:])
            else ""
        )
        return self.shown(text.removesuffix(self.held))

    def shown(self, text: str) -> str:
        if self.tests is None:
            return text
        return "".join(
            self.tests.shown(line, self.report)
            for line in text.splitlines(keepends=True)
        )


def _ran(tests: Invocation, reported: Reported) -> Ran:
    result, shown = reported.result, _Shown(tests, reported.file)
    result = replace(
        result, stdout=shown.shown(result.stdout), stderr=shown.shown(result.stderr)
    )
    try:
        return Ran(result, tests.read(reported))
    except ReportUnreadable as reason:
        return Ran(result, unread=str(reason))


def _judged(command: str, commands: CommandRunner, **how: Any) -> Check:
    try:
        return Check(commands.judge(command, **how))
    except CommandRefused as refusal:
        hint = refusal.hint or "Write `none` for no check."
        raise BadInput(
            f"The check `{command}` cannot be run: {refusal.message}", hint=hint
        ) from refusal


def _test_program(test_command: str | None, root: Path) -> str | None:
    """The program that runs the project's tests; None for a shell and the like, which
    would run anything.
    """
    try:
        check = parse_command(test_command, root) if test_command else detect(root)
    except BadInput:  # that is a matter of the steps that use it
        return None
    program = split(check.shown).argv[0] if check else None
    return program if program and not runs_others(Path(program).name) else None


def _found(root: Path, *argv: str) -> Check:
    started = as_started(argv, root)
    shown = argv if started[1:] == argv[1:] else (Path(started[0]).name, *started[1:])
    return Check(Command(shlex.join(shown), started, root), found=True)


def _uses_pytest(manifests: Manifests) -> bool:
    if manifests.has("pytest.ini", "conftest.py", ".pytest.ini"):
        return True
    if "pytest" in section(manifests.content("pyproject.toml"), "tool"):
        return True
    configured = (("tox.ini", b"[pytest]"), ("setup.cfg", b"[tool:pytest]"))
    if any(words in manifests.data(name) for name, words in configured):
        return True
    folders = (manifests.root, *(manifests.root / name for name in ("tests", "test")))
    return any(
        file for folder in folders if folder.is_dir() for file in _test_files(folder)
    )


def _test_files(folder: Path) -> list[Path]:
    depth = ("*", "*/*", "*/*/*") if folder.name in ("tests", "test") else ("*",)
    return [
        file
        for pattern in depth
        for file in folder.glob(f"{pattern}.py")
        if file.name.startswith("test_") or file.stem.endswith("_test")
    ]
