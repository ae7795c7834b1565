"""Checks: the commands that decide about a step, and running them.

The plan names them (`**Verify:**`), otherwise the settings (`test_command`), otherwise
they follow from the project's files. `verdict.py` judges their results.
"""

import asyncio
import re
import shlex
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.config import Commands, runs_others
from cdd_agent.errors import BadInput
from cdd_agent.files.manifests import Manifests, section
from cdd_agent.process.policy import (
    Command,
    CommandRefused,
    CommandRunner,
    needs_shell,
    split,
)
from cdd_agent.process.programs import as_started
from cdd_agent.process.run import CommandResult, OnOutput, OutputChunk, ignore_output
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.invocation import Invocation, invocation
from cdd_agent.verification.outcomes import SuiteRun
from cdd_agent.verification.runner import Reported, Reporting, ReportUnreadable

_FOLDER_PREFIX = "check-"
"""Prefix of the folders in which checks write their reports."""
_NPM_PLACEHOLDER = "no test specified"  # what `npm init` writes as the test script
_INTERPRETERS = re.compile(r"(python|node|ruby|perl|bash|sh)[\d.]*")


class Check(Struct, frozen=True, dict=True):
    """A command that decides about a step."""

    command: Command
    found: bool = False
    """True if the command follows from the files of the project. There may be no tests
    yet.
    """

    @property
    def argv(self) -> tuple[str, ...]:
        return self.command.argv

    @property
    def shown(self) -> str:
        """The command as the user writes it."""
        return self.command.text

    @property
    def script(self) -> str:
        """The path of the project's script that the command runs; empty if it runs
        none.
        """
        if self.command.in_shell or self.invocation:
            return ""
        program, *words = split(self.shown).argv
        if words and _INTERPRETERS.fullmatch(program):
            program = words[0]
        return program.removeprefix("./")

    @cached_property
    def invocation(self) -> Invocation | None:
        """The test runner that the command starts; None if cdd knows none."""
        if self.command.in_shell:
            return None
        return invocation(self.argv, self.command.folder)

    @property
    def always_reports(self) -> bool:
        """True if a run without a report on its tests was cut short."""
        return (
            self.asks_for_report
            and self.invocation is not None
            and self.invocation.runner.always_reports
        )

    @cached_property
    def asks_for_report(self) -> bool:
        """True if the command can be made to report on each test."""
        return (
            self.invocation is not None
            and self.invocation.reporting(self.command.folder) is not None
        )

    def came_to_its_end(self, result: CommandResult) -> bool:
        """True if the exit code says that the runner ran all tests it chose."""
        return (
            self.invocation is not None
            and result.return_code in self.invocation.runner.ends_with
        )

    def says_nothing_ran(self, result: CommandResult) -> bool:
        """True if the exit code says that there was no test to run."""
        return (
            self.invocation is not None
            and result.return_code == self.invocation.runner.nothing_ran
        )


class Ran(Struct, frozen=True):
    """The run of a check, not yet judged."""

    result: CommandResult
    tests: SuiteRun | None = None
    """None if the command does not report on each test, or its report cannot be
    read.
    """
    unread: str = ""
    """Why the report of a test runner cannot be used, as a clause."""

    @property
    def output(self) -> str:
        out, err = self.result.stdout, self.result.stderr
        separator = "\n" if out and err else ""
        return out + separator + err


def checks_for(
    step: PlanStep, test_command: str | None, commands: CommandRunner
) -> tuple[Check, ...]:
    """Return the checks that verify this step, in the order in which they run; empty if
    there is nothing to run. Raises `BadInput` for the first unusable command.
    """
    if step.checks is not None:
        return tuple(_judge_line(line, test_command, commands) for line in step.checks)
    check = project_check(test_command, commands)
    return (check,) if check else ()


def check_problems(
    step: PlanStep, test_command: str | None, commands: CommandRunner
) -> list[BadInput]:
    """Return an error for each check of the plan that cannot run."""
    problems = []
    for line in step.checks or ():
        try:
            _judge_line(line, test_command, commands)
        except BadInput as error:
            problems.append(error)
    return problems


def _judge_line(line: str, test_command: str | None, commands: CommandRunner) -> Check:
    """Judge a check of the plan like a command that a model asks for. It may also use
    the program of the project's tests, and the project's own command is trusted.

    Unsafe mode lets the user's own plans run anything. A plan that came with a clone
    has no say in that: the user is asked.
    """
    if line == test_command:
        return parse_command(line, commands.root, commands.settings)
    settings = commands.settings
    if settings.mode == "unsafe" and not commands.trusted_checks.accepts(line):
        commands = replace(commands, settings=replace(settings, mode="ask"))
    return _judge(
        line,
        commands,
        also=lambda program: program == test_program(test_command, commands.root),
    )


def project_check(test_command: str | None, commands: CommandRunner) -> Check | None:
    """Return the check that runs the project's tests; None if there is nothing to run.
    Raises `BadInput`.
    """
    if test_command:
        return parse_command(test_command, commands.root, commands.settings)
    return detect(commands.root)


def detect(root: Path) -> Check | None:
    """Find the project's tests by its files; None if there is no test framework that
    cdd knows.
    """
    manifests = Manifests(root)
    if _uses_pytest(manifests):
        return _detected(root, "pytest")
    npm_test = str(
        section(manifests.content("package.json"), "scripts").get("test", "")
    )
    if npm_test and _NPM_PLACEHOLDER not in npm_test:
        return _detected(root, "npm", "test")
    if manifests.has("Cargo.toml"):
        return _detected(root, "cargo", "test")
    if manifests.has("go.mod"):
        return _detected(root, "go", "test", "./...")
    if "test" in manifests.targets:
        return _detected(root, "make", "test")
    return None


def parse_command(command: str, root: Path, settings: Commands | None = None) -> Check:
    """Judge the user's own test command: it may use any program, but a shell only in
    unsafe mode. Raises `BadInput`.
    """
    return _judge(command, CommandRunner(root, settings or Commands()), trusted=True)


async def run_check(
    check: Check,
    commands: CommandRunner,
    limit: float,
    folder: Path,
    on_output: OnOutput = ignore_output,
) -> Ran:
    """Run a check for at most `limit` seconds. Its report is written to a new folder
    inside `folder`, which is removed at the end; see `remove_abandoned`.

    Raises `BadInput` if the command cannot be started: no reply of a model would fix
    that.
    """
    # Python would take the bytecode of a file for current if the file was rewritten
    # within the same second and with the same size.
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    tests = check.invocation
    with _new_folder(folder) as scratch:
        report = scratch / "report"
        reporting = tests.reporting(report) if tests else None
        command = reporting or Reporting(check.argv)
        filtered = _OutputFilter(tests if reporting else None, report)

        def pass_on(chunk: OutputChunk) -> None:
            text = filtered.add(chunk.text)
            if text:
                on_output(replace(chunk, text=text))

        needs_copies = reporting and tests and tests.runner.captures
        result = await commands.start(
            replace(check.command, argv=command.argv),
            env={**env, **command.env},
            limit=limit,
            copies=scratch if needs_copies else None,
            on_output=pass_on,
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
        if filtered.unfinished_line:
            on_output(OutputChunk(filtered.clean(filtered.unfinished_line), "stdout"))
        if tests is None:
            return Ran(result)
        if reporting is None:
            return Ran(
                result,
                unread=(
                    "its words ask for another report, or leave no place to ask for one"
                ),
            )
        return await asyncio.to_thread(_read_report, tests, Reported(scratch, result))


def remove_abandoned(folder: Path) -> None:
    """Remove the report folders of killed checks from `folder`. No check may run
    there.
    """
    for abandoned in folder.glob(f"{_FOLDER_PREFIX}*"):
        # a folder that cannot be removed does no harm
        shutil.rmtree(abandoned, ignore_errors=True)


@contextmanager
def _new_folder(parent: Path) -> Iterator[Path]:
    """Make a folder whose name no one can guess, and remove it at the end."""
    try:
        made = tempfile.TemporaryDirectory(
            prefix=_FOLDER_PREFIX, dir=parent.absolute(), ignore_cleanup_errors=True
        )
    except OSError as error:
        raise BadInput(
            f"No folder for a check's report could be made in {parent}:"
            f" {error.strerror or error}"
        ) from error
    with made as folder:
        yield Path(folder)


class _OutputFilter(Struct):
    """Removes what a runner prints about the report that cdd asked for. Holds a line
    that may be about the report until the line is complete.
    """

    tests: Invocation | None
    report: Path
    unfinished_line: str = ""

    def add(self, piece: str) -> str:
        """Return the output that can be shown now."""
        if self.tests is None:
            return piece
        text = self.unfinished_line + piece
        self.unfinished_line = text[text.rfind("\n") + 1 :]
        if self.unfinished_line and not self.tests.may_be_about_report(
            self.unfinished_line
        ):
            self.unfinished_line = ""
        return self.clean(text.removesuffix(self.unfinished_line))

    def clean(self, text: str) -> str:
        """Return the text without words about the report."""
        if self.tests is None:
            return text
        lines = text.splitlines(keepends=True)
        return "".join(self.tests.shown(line, self.report) for line in lines)


def _read_report(tests: Invocation, reported: Reported) -> Ran:
    result = reported.result
    output = _OutputFilter(tests, reported.file)
    result = replace(
        result, stdout=output.clean(result.stdout), stderr=output.clean(result.stderr)
    )
    try:
        return Ran(result, tests.read(reported))
    except ReportUnreadable as reason:
        return Ran(result, unread=str(reason))


def _judge(command: str, commands: CommandRunner, **how: Any) -> Check:
    try:
        return Check(commands.judge(command, **how))
    except CommandRefused as refusal:
        hint = refusal.hint or "Write `none` for no check."
        raise BadInput(
            f"The check `{command}` cannot be run: {refusal.message}", hint=hint
        ) from refusal


def runs_usual_program(text: str, allowed: Collection[str], root: Path) -> bool:
    """True if a command starts, without a shell, an allowed program or the one that
    runs the tests that cdd finds.
    """
    try:
        words = split(text)
    except CommandRefused:
        return False
    if words.expands or needs_shell(words):
        return False
    program = words.argv[0]
    return program in allowed or program == test_program(None, root)


def test_program(test_command: str | None, root: Path) -> str | None:
    """Return the program that runs the project's tests; None for a shell and other
    programs that would run anything.
    """
    try:
        check = parse_command(test_command, root) if test_command else detect(root)
    except BadInput:  # the steps that use it report the error
        return None
    if check is None:
        return None
    program = split(check.shown).argv[0]
    return None if runs_others(Path(program).name) else program


def _detected(root: Path, *argv: str) -> Check:
    started = as_started(argv, root)
    shown = argv
    if started[1:] != argv[1:]:
        shown = (Path(started[0]).name, *started[1:])
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
