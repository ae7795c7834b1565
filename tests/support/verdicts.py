"""Verdicts on checks, without a step."""

from collections.abc import Sequence
from pathlib import Path

from cdd_agent.process.policy import CommandRunner
from cdd_agent.verification.before import Before
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import Ran, run_check
from cdd_agent.verification.verdict import Verdict, Work, judge, judge_check


def judge_all(
    ran: Sequence[tuple[Check, Ran]],
    before: Before | None = None,
    work: Work | None = None,
) -> Verdict:
    """Judge the runs of checks. Those after the first failed one count as not run."""
    before, work = before or Before(), work or Work()
    results = []
    for check, run in ran:
        results.append(judge_check(check, run, before, work))
        if results[-1].objections:
            break
    return judge(results, before, work, [check for check, _ in ran[len(results) :]])


def judge_one(
    check: Check, ran: Ran, before: Before | None = None, work: Work | None = None
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
