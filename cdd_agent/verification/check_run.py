"""The result of a check, and how a check is run.

The baseline and the checks of a step have the same kind of result, so that one can be
compared with the other.
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
"""A check that states that it watches files is ended after this time without output. A
server that tests start states it too, and the tests may be silent for a while.
"""
_KEPT_OUTPUT = 20_000
"""Characters of the output of such a check."""
_TIMED_OUT = -1
_FOLDER_PREFIX = "check-"
"""Prefix of the folders in which checks write their reports."""


class CheckRun(Struct, frozen=True):
    """The result of one check."""

    command: str
    """As the user writes it."""
    return_code: int | None = None
    """None if the program could not start, or if cdd ended it."""
    seconds: float = 0.0
    tests: SuiteRun | None = None
    """Each test that is known to have run, with its result. None if the check does not
    report on its tests.
    """
    statements: tuple[Statement, ...] = ()
    unread: str = ""
    """Why the report of a test runner cannot be used, as a clause."""
    problem: str = ""
    """Why it was not completed, as the words after "it". Empty if it was. Otherwise its
    tests are not the whole result.
    """
    unusable: str = ""
    """Why no change of the code could make it pass, as the words after "it": its
    program cannot start, or it watches files.
    """
    output: str = ""
    """It is not saved with the result."""

    @property
    def timed_out(self) -> bool:
        return self.return_code is None and not self.unusable

    def states(self, kind: StatementKind) -> bool:
        return any(statement.kind is kind for statement in self.statements)

    @property
    def exit_reasons(self) -> tuple[Statement, ...]:
        """The statements that explain an exit code other than 0 if no test failed."""
        return tuple(one for one in self.statements if one.kind.explains_exit)

    @property
    def has_tests(self) -> bool:
        """True if at least one test is known to have run."""
        return self.tests is not None and bool(self.tests.ran)

    @property
    def ran_no_test(self) -> bool:
        """True if the report or the output says so."""
        if self.tests is not None:
            return not self.tests.ran
        return self.states(StatementKind.NO_TESTS)

    def as_saved(self, redactor: Redactor) -> "CheckRun":
        """Return the result without the output, the texts of failures and secrets. The
        names of tests are unchanged, because they are compared later.
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
    """Run a check for at most `limit` seconds. Its report is written to a new folder
    inside `folder`, which is removed at the end; see `remove_abandoned`.
    """
    tests = check.invocation
    # the words of other programs prove nothing
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
    """Return the result of a check that came to an end. `reporter` is the invocation of
    a runner that was made to report into `scratch`.
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
    """Return the result of a check that would never end."""
    why = f"never ends: {statement.text}" if statement else "never ends"
    return CheckRun(
        check.shown,
        statements=(statement,) if statement else (),
        problem=why,
        unusable=why,
        output=output,
    )


class _WatcherEnd:
    """Ends a check that states that it waits for changes of files, once no more output
    follows.
    """

    def __init__(self) -> None:
        self.statement: Statement | None = None
        """Set if the check was ended because of it."""
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
        """Return the result of the command, or None if it was ended here."""
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
    """Add how the check ended, and what its output states."""
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
    # Python would take the bytecode of a file for current if the file was rewritten
    # within the same second and with the same size.
    env = {"PYTHONDONTWRITEBYTECODE": "1"}
    # Many tools watch files or ask questions unless CI is set. The user's own value
    # counts, also that no command sees it.
    is_hidden = is_secret_name("CI", hide=commands.settings.hide_env)
    is_set = is_hidden or "CI" in {**os.environ, **commands.env}
    # a step may write a test with a new snapshot
    if not is_set and not (tests and tests.runner.forbids_snapshots):
        env["CI"] = "1"
    return env


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
            f"Could not create a folder for a check's report in {parent}:"
            f" {error.strerror or error}",
            refusal=Refusal.DISK,
        ) from error
    with made as folder:
        yield Path(folder)


class _OutputFilter(Struct):
    """Removes what a runner prints about the report that cdd asked for. Holds a line
    that may be about the report until the line is complete.
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
