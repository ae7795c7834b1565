"""Runs checks. The baseline and steps use the same kind of result, so that they can be
compared.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import CommandResult, OnOutput, OutputChunk, ignore_output
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.text.redaction import Redactor
from cdd_agent.text.secret_names import is_secret_name
from cdd_agent.verification.check import Check
from cdd_agent.verification.invocation import RunnerInvocation
from cdd_agent.verification.outcomes import (
    Result,
    Statement,
    StatementKind,
    SuiteRun,
)
from cdd_agent.verification.runner import Reported, Reporting, ReportUnreadable
from cdd_agent.verification.statements import (
    OutputWatch,
    find_statements,
)

_QUIET_SECONDS = 15.0
"""A check that says it watches files is ended after this time without output. Not at
once: a server under test may say it too.
"""
_KEPT_OUTPUT = 20_000
"""Characters of output to keep from such a check."""
_TIMED_OUT = -1
_FOLDER_PREFIX = "check-"


class CheckRun(Struct, frozen=True):
    command: str
    """As the user writes it."""
    return_code: int | None = None
    """None if the program did not start or was ended by cdd."""
    seconds: float = 0.0
    tests: SuiteRun | None = None
    """All tests known to have run. None if the check does not report tests."""
    statements: tuple[Statement, ...] = ()
    unread: str = ""
    """Why the runner's report is unusable, as a clause."""
    problem: str = ""
    """Why the check was not completed, as words after "it"; may be empty. If set,
    `tests` is incomplete.
    """
    unusable: str = ""
    """Why no code change could make it pass, as words after "it": the program cannot
    start, or watches files.
    """
    output: str = ""
    """Not saved."""

    @property
    def timed_out(self) -> bool:
        return self.return_code is None and not self.unusable

    def states(self, kind: StatementKind) -> bool:
        return any(statement.kind is kind for statement in self.statements)

    @property
    def exit_reasons(self) -> tuple[Statement, ...]:
        """Statements that explain a non-zero exit code without a failed test."""
        return tuple(one for one in self.statements if one.kind.explains_exit)

    @property
    def has_tests(self) -> bool:
        return self.tests is not None and bool(self.tests.ran)

    @property
    def ran_no_test(self) -> bool:
        """True if the report or the output says so."""
        if self.tests is not None:
            return not self.tests.ran
        return self.states(StatementKind.NO_TESTS)

    def as_saved(self, redactor: Redactor) -> "CheckRun":
        """Remove the output, texts of failures, and secrets. Test names stay unchanged
        for later comparison.
        """
        tests = self.tests
        if tests is not None:
            causes = {
                test: redactor.redact(text) for test, text in tests.causes.items()
            }
            tests = replace(tests, texts={}, causes=causes)
        statements = tuple(
            Statement(statement.kind, redactor.redact(statement.text))
            for statement in self.statements
        )
        return replace(self, tests=tests, statements=statements, output="")


async def run_check(
    check: Check,
    commands: CommandRunner,
    limit: float,
    folder: Path,
    on_output: OnOutput = ignore_output,
) -> CheckRun:
    """Run a check for at most `limit` seconds. The report goes to a temporary folder in
    `folder`; see `remove_abandoned`.
    """
    tests = check.invocation
    # only the words of known runners count
    if tests is not None and check.watches is not None:
        return _watches(check, check.watches, "")
    with _new_folder(folder) as scratch:
        reporting = tests.reporting(scratch / "report") if tests else None
        if tests is None or reporting is None:
            reporter, command = None, Reporting(check.argv)
        else:
            reporter, command = tests, reporting
        output = _OutputFilter(reporter, scratch / "report")
        ender = _WatcherEnd()

        def pass_on(chunk: OutputChunk) -> None:
            ender.add(chunk.text)
            text = output.add(chunk.text)
            if text:
                on_output(replace(chunk, text=text))

        needs_copies = reporter is not None and reporter.runner.captures
        result = await ender.run(
            commands.start(
                replace(check.command, argv=command.argv),
                env={**_environment(commands, reporter), **command.env},
                limit=limit,
                copies=scratch if needs_copies else None,
                on_output=pass_on,
            )
        )
        if result is None:
            return _watches(check, ender.statement, ender.output)
        if not result.started:
            return _not_started(check, result)
        if output.unfinished_line:
            on_output(OutputChunk(output.clean(output.unfinished_line), "stdout"))
        return await asyncio.to_thread(_read_result, check, result, reporter, scratch)


def _read_result(
    check: Check,
    result: CommandResult,
    reporter: RunnerInvocation | None,
    scratch: Path,
) -> CheckRun:
    """Return the result of a completed check. `reporter` is set if the runner reports
    into `scratch`.
    """
    run = CheckRun(check.shown, seconds=result.seconds, output=_output_of(result))
    if not result.timed_out:
        run = replace(run, return_code=result.return_code)
    if reporter is not None:
        run = _read_report(run, reporter, Reported(scratch, result))
    elif check.invocation is not None:
        run = replace(run, unread=check.invocation.why_unread)
    return add_end(run, check, result)


def _not_started(check: Check, result: CommandResult) -> CheckRun:
    why = f"could not be run: {result.stderr.removeprefix('Error: ').strip()}"
    statement = Statement(StatementKind.PROGRAM_MISSING, f"{check.argv[0]} is missing")
    return CheckRun(
        check.shown,
        statements=(statement,),
        problem=why,
        unusable=why,
        output=result.stderr,
    )


def _watches(check: Check, statement: Statement | None, output: str) -> CheckRun:
    why = f"never ends: {statement.text}" if statement else "never ends"
    return CheckRun(
        check.shown,
        statements=(statement,) if statement else (),
        problem=why,
        unusable=why,
        output=output,
    )


class _WatcherEnd:
    """Ends a check that says it watches files, once its output stops."""

    def __init__(self) -> None:
        self.statement: Statement | None = None
        """The statement for which the check was ended, if it was."""
        self.output = ""
        self._watch = OutputWatch()
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[CommandResult] | None = None

    def add(self, text: str) -> None:
        self.output = (self.output + text)[-_KEPT_OUTPUT:]
        self._stop_timer()
        statement = self._watch.add(text)
        if statement is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_QUIET_SECONDS, self._end, statement)

    def _end(self, statement: Statement) -> None:
        if self._work is not None and not self._work.done():
            self.statement = statement
            self._work.cancel()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def run(
        self, work: Coroutine[Any, Any, CommandResult]
    ) -> CommandResult | None:
        """Return the command's result, or None if it was ended here."""
        self._work = asyncio.create_task(work)
        try:
            return await self._work
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.statement is None or (task is not None and task.cancelling()):
                raise
            return None
        finally:
            self._stop_timer()


def _output_of(result: CommandResult) -> str:
    separator = "\n" if result.stdout and result.stderr else ""
    return result.stdout + separator + result.stderr


def add_end(run: CheckRun, check: Check, result: CommandResult) -> CheckRun:
    code = _TIMED_OUT if result.timed_out else result.return_code
    statements = find_statements(code, result.stdout, result.stderr)
    run = replace(run, statements=statements, problem=_problem(run, check, result))
    if check.says_nothing_ran(result) and not run.states(StatementKind.NO_TESTS):
        none_ran = Statement(StatementKind.NO_TESTS, "no tests ran")
        run = replace(run, statements=(*statements, none_ran))
    if result.timed_out and run.states(StatementKind.WATCHES):
        run = replace(run, unusable=f"{run.problem}: it watches files")
    return run


def _problem(run: CheckRun, check: Check, result: CommandResult) -> str:
    if result.timed_out:
        return f"was still running after {result.limit:g} s and was stopped"
    code = result.return_code
    if run.tests is None:
        if check.always_reports:
            return f"wrote no test report (exit code {code})"
        return ""
    if not run.tests.is_finished:
        return f"stopped in the middle of a test (exit code {code})"
    if not check.came_to_its_end(result):
        return f"stopped before its end (exit code {code})"
    return ""


def _environment(
    commands: CommandRunner, tests: RunnerInvocation | None
) -> dict[str, str]:
    # Python would reuse stale bytecode for a file rewritten within a second at the same
    # size.
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    # Many tools watch files or prompt unless CI is set. A value from the user counts,
    # even a hidden one.
    is_hidden = is_secret_name("CI", hide=commands.settings.hide_env)
    is_set = is_hidden or "CI" in {**os.environ, **commands.env}
    # a step may write a test with a new snapshot
    if not is_set and not (tests and tests.runner.forbids_snapshots):
        env["CI"] = "1"
    return env


def remove_abandoned(folder: Path) -> None:
    """Remove report folders of killed checks. No check may be running there."""
    for abandoned in folder.glob(f"{_FOLDER_PREFIX}*"):
        # a leftover folder does no harm
        shutil.rmtree(abandoned, ignore_errors=True)


@contextmanager
def _new_folder(parent: Path) -> Iterator[Path]:
    """Make a temporary folder whose name cannot be guessed."""
    try:
        made = tempfile.TemporaryDirectory(
            prefix=_FOLDER_PREFIX, dir=parent.absolute(), ignore_cleanup_errors=True
        )
    except OSError as error:
        raise BadInput(
            f"Could not create a folder for a check's report in {parent}:"
            f" {error.strerror or error}",
            refusal=Refusal.DISK,
        ) from error
    with made as folder:
        yield Path(folder)


class _OutputFilter(Struct):
    """Removes what the runner prints about cdd's report. Holds back lines that may be
    about it until they are complete.
    """

    tests: RunnerInvocation | None
    report: Path
    unfinished_line: str = ""

    def add(self, piece: str) -> str:
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
        if self.tests is None:
            return text
        lines = text.splitlines(keepends=True)
        return "".join(self.tests.shown(line, self.report) for line in lines)


def _read_report(
    run: CheckRun, tests: RunnerInvocation, reported: Reported
) -> CheckRun:
    output = _OutputFilter(tests, reported.file)
    result = reported.result
    cleaned = replace(
        result, stdout=output.clean(result.stdout), stderr=output.clean(result.stderr)
    )
    run = replace(run, output=_output_of(cleaned))
    try:
        return replace(run, tests=_with_causes(tests.read(reported)))
    except ReportUnreadable as reason:
        return replace(run, unread=str(reason))


def _with_causes(tests: SuiteRun) -> SuiteRun:
    causes = {}
    for test in tests.having(Result.FAILED):
        for statement in find_statements(1, tests.texts.get(test, "")):
            if statement.kind is StatementKind.ENVIRONMENT:
                causes[test] = statement.text
                break
    return replace(tests, causes=causes)
