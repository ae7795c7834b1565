"""Checks that never end, and checks that cannot start."""

import asyncio
import sys
import time
from pathlib import Path

import pytest

from cdd_agent.process.policy import CommandRunner
from cdd_agent.verification.check_run import CheckRun, run_check
from cdd_agent.verification.checks import parse_command
from cdd_agent.verification.outcomes import StatementKind

WATCHER = """
import time
print("Found 0 errors. Watching for file changes.", flush=True)
time.sleep(60)
"""
SAYS_SO_AND_GOES_ON = """
import time
print("Watching for file changes.", flush=True)
time.sleep(5)
print("a test passed", flush=True)
"""


async def run(folder: Path, text: str, limit: float = 60) -> CheckRun:
    (folder / "watch.py").write_text(text)
    check = parse_command(f"{sys.executable} watch.py", folder)
    return await run_check(check, CommandRunner(folder), limit, folder)


@pytest.mark.long
@pytest.mark.story
async def test_a_check_that_waits_for_changes_is_ended_before_its_limit(
    tmp_path: Path,
) -> None:
    begun = time.monotonic()
    result = await run(tmp_path, WATCHER)
    assert time.monotonic() - begun < 40
    assert result.states(StatementKind.WATCHES)
    assert result.unusable
    assert "Watching for file changes" in result.output


@pytest.mark.story
async def test_a_check_that_prints_more_after_a_while_is_not_ended(
    tmp_path: Path,
) -> None:
    result = await run(tmp_path, SAYS_SO_AND_GOES_ON)
    assert result.return_code == 0
    assert not result.unusable


@pytest.mark.story
async def test_a_user_who_stops_a_watching_check_stops_the_run(tmp_path: Path) -> None:
    task = asyncio.create_task(run(tmp_path, WATCHER))
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_runner_that_is_told_to_watch_is_not_started(tmp_path: Path) -> None:
    check = parse_command("jest --watch", tmp_path)
    result = await run_check(check, CommandRunner(tmp_path), 30, tmp_path)
    assert result.unusable
    assert result.return_code is None


async def test_a_program_that_is_missing_makes_the_check_unusable(
    tmp_path: Path,
) -> None:
    check = parse_command("no-such-program-here test", tmp_path)
    result = await run_check(check, CommandRunner(tmp_path), 30, tmp_path)
    assert result.states(StatementKind.PROGRAM_MISSING)
    assert "no-such-program-here" in result.unusable
