"""Verdicts on checks, without a step."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import CommandResult
from cdd_agent.verification.before import Before
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import CheckRun, add_end, run_check
from cdd_agent.verification.facts import Work
from cdd_agent.verification.outcomes import SuiteRun
from cdd_agent.verification.verdict import Verdict, judge, judge_check


def run_of(
    check: Check,
    code: int,
    tests: SuiteRun | None = None,
    *,
    output: str = "",
    unread: str = "",
    timed_out: bool = False,
) -> CheckRun:
    """Return the result of a check that ended with an exit code, like running it."""
    result = CommandResult(output, "", code, timed_out=timed_out, limit=60)
    run = CheckRun(
        check.shown,
        None if timed_out else code,
        tests=tests,
        unread=unread,
        output=output,
    )
    return add_end(run, check, result)


CHANGED = Work(changed=frozenset({"app.py"}))
"""A step that changed a file."""


def judge_all(
    ran: Sequence[tuple[Check, CheckRun]],
    before: Before | None = None,
    work: Work | None = None,
) -> Verdict:
    """Judge the runs of checks. Those after the first failed one count as not run."""
    before, work = before or Before(), work or CHANGED
    results = []
    for check, run in ran:
        results.append(judge_check(check, run, before, work))
        if results[-1].has_failed:
            break
    return judge(results, before, work, [check for check, _ in ran[len(results) :]])


def judge_one(
    check: Check, ran: CheckRun, before: Before | None = None, work: Work | None = None
) -> Verdict:
    """Judge the run of the only check."""
    return judge_all([(check, ran)], before, work)


async def verify(
    check: Check,
    commands: CommandRunner,
    limit: float,
    folder: Path,
    before: Before | None = None,
) -> Verdict:
    """Run the only check and judge it."""
    return judge_one(check, await run_check(check, commands, limit, folder), before)


def judge_unchecked(work: Work) -> Verdict:
    """Judge a step that changed a file and has no check."""
    work = replace(work, changed=work.changed or CHANGED.changed)
    return judge([], Before(), work, why_unchecked="the plan asks for no check")
