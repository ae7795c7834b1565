"""Run a check, and read what it reports."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import CommandResult, OnOutput, OutputChunk, ignore_output
from cdd_agent.secret_names import is_secret_name
from cdd_agent.verification.check import Check
from cdd_agent.verification.invocation import Invocation
from cdd_agent.verification.outcomes import SuiteRun
from cdd_agent.verification.runner import Reported, Reporting, ReportUnreadable

_FOLDER_PREFIX = "check-"
"""Prefix of the folders in which checks write their reports."""


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
            env={**_environment(commands, tests if reporting else None), **command.env},
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
            return Ran(result, unread=tests.why_unread)
        return await asyncio.to_thread(_read_report, tests, Reported(scratch, result))


def _environment(commands: CommandRunner, tests: Invocation | None) -> dict[str, str]:
    """Return the variables that a check gets."""
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
