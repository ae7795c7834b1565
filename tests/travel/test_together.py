"""Several at once, with real git: who takes a run while others try, and who keeps it
while it goes on.
"""

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import Phase, RunElsewhere, load_whereabouts
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Event
from cdd_agent.text.redaction import Redactor
from cdd_agent.travel.lease import DURATION
from cdd_agent.travel.pull import pull
from cdd_agent.travel.push import push
from cdd_agent.travel.renewal import lease_kept
from cdd_agent.travel.transfer import Travel
from cdd_agent.wiring.runs import open_travel
from tests.support.listening import tell
from tests.support.projects import SLUG, Sandbox
from tests.travel.copies import GOOD, Copies, cdd, many_processes

ROUNDS = 2


def travel(sandbox: Sandbox) -> Travel:
    return open_travel(sandbox.project, sandbox.project.tickets.find(SLUG), tell)


def phase(sandbox: Sandbox) -> Phase | None:
    known = load_whereabouts(sandbox.root / ".cdd" / "runs" / SLUG)
    return known and known.phase


def opened_by_a_reader(pipe: Path) -> int:
    """Return the pipe, opened for writing, once another process reads it; else 0."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return 0


@many_processes
async def test_of_those_who_pull_at_once_one_gets_it(copies: Copies) -> None:
    everybody = [copies.first, copies.second, copies.clone("third")]
    await push(travel(everybody[0]), None)
    for number in range(ROUNDS):
        delays = [(number * factor % 5) * 0.02 for factor in (0, 1, 3)]

        async def pull_late(sandbox: Sandbox, delay: float) -> None:
            await asyncio.sleep(delay)
            await pull(travel(sandbox), "origin")

        pulls = [
            pull_late(sandbox, delay)
            for sandbox, delay in zip(everybody, delays, strict=True)
        ]
        ends = await asyncio.gather(*pulls, return_exceptions=True)
        assert all(end is None or isinstance(end, RunElsewhere) for end in ends), ends
        holders = [sandbox for sandbox in everybody if phase(sandbox) is Phase.HERE]
        assert len(holders) == 1
        assert ends[everybody.index(holders[0])] is None
        await push(travel(holders[0]), None)


@many_processes
async def test_a_lease_is_renewed_while_the_run_goes_on_and_losing_it_ends_the_work(
    pushed: Copies,
) -> None:
    first, second = pushed.first, pushed.second
    await pull(travel(second), None)
    record = RunRecord.of(second.root, SLUG, Redactor())
    later = timedelta()
    told = list[Event]()

    def now() -> datetime:
        return datetime.now(UTC) + later

    before = load_whereabouts(record.folder)
    assert before
    assert before.until

    async def work() -> None:
        nonlocal later
        async with lease_kept(record, told.append, now=now, every=0.05):
            later = DURATION * 0.75
            async with asyncio.timeout(60):
                while load_whereabouts(record.folder) == before:
                    await asyncio.sleep(0.05)
            renewed = load_whereabouts(record.folder)
            assert renewed
            assert renewed.until
            assert renewed.until > before.until
            await pull(travel(first), None, force=True)
            await asyncio.sleep(600)  # until it is cancelled

    with pytest.raises(RunElsewhere):
        await work()
    assert not [event for event in told if isinstance(event, Notice)]
    assert phase(first) is Phase.HERE


@many_processes
async def test_without_an_answer_the_work_ends_with_the_lease(pushed: Copies) -> None:
    first = pushed.first
    await pull(travel(first), None)
    record, later, told = (
        RunRecord.of(first.root, SLUG, Redactor()),
        timedelta(),
        list[Event](),
    )

    async def work() -> None:
        nonlocal later
        async with lease_kept(
            record, told.append, now=lambda: datetime.now(UTC) + later, every=0.05
        ):
            pushed.remote.rename(pushed.folder / "away.git")
            async with asyncio.timeout(60):
                while not told:
                    await asyncio.sleep(0.05)
            later = DURATION
            await asyncio.sleep(600)

    with pytest.raises(RunElsewhere):
        await work()


@many_processes
async def test_a_remote_that_hangs_does_not_make_the_lease_longer(
    pushed: Copies,
) -> None:
    first = pushed.first
    await pull(travel(first), None)
    record, later = RunRecord.of(first.root, SLUG, Redactor()), timedelta()

    async def work() -> None:
        nonlocal later
        async with lease_kept(
            record, tell, now=lambda: datetime.now(UTC) + later, every=0.05
        ):
            (pushed.remote / "HEAD").unlink()
            os.mkfifo(pushed.remote / "HEAD")  # whoever reads it waits
            while not (reader := opened_by_a_reader(pushed.remote / "HEAD")):
                await asyncio.sleep(0.01)
            later = DURATION
            try:
                await asyncio.sleep(600)
            finally:
                os.close(reader)

    with pytest.raises(RunElsewhere):
        await work()


@many_processes
async def test_work_ends_when_nobody_can_see_any_more_whose_the_run_is(
    pushed: Copies,
) -> None:
    """The disk refuses what looking needs, after another copy has taken the run."""
    first, second = pushed.first, pushed.second
    await pull(travel(first), None)
    record = RunRecord.of(first.root, SLUG, Redactor())

    async def work() -> None:
        async with lease_kept(record, tell, every=0.05):
            (record.folder / "travel.git" / "asked").unlink(missing_ok=True)
            (record.folder / "travel.git" / "asked").mkdir()
            await pull(travel(second), None, force=True)
            await asyncio.sleep(600)

    with pytest.raises(BadInput):
        await work()


async def test_no_step_of_a_run_that_is_elsewhere_is_begun_nor_undone(
    pushed: Copies,
) -> None:
    """Whichever face it is: a shell may have had the run open before it was pushed."""
    first = pushed.first.replies(*GOOD)
    before = first.statuses()
    engine = first.engine()
    try:
        second = engine.run.next_step
        assert second
        for work in (
            engine.run_step(second),
            engine.skip(second, "no", keep=False),
            engine.undo(),
            engine.run_all(),
        ):
            with pytest.raises(RunElsewhere):
                await work
    finally:
        engine.close()
    assert first.statuses() == before
    assert not first.model.requests


def test_the_status_of_a_run_that_was_pushed_says_so_until_it_is_back(
    pushed: Copies, capsys: pytest.CaptureFixture[str]
) -> None:

    def told() -> bool:
        capsys.readouterr()
        assert cdd(pushed.first, "list") == 0
        is_listed = "pushed to origin" in capsys.readouterr().out
        assert cdd(pushed.first, "status", SLUG, "--json") == 0
        is_told = '"run_moved"' in capsys.readouterr().out
        assert is_listed == is_told
        return is_told

    assert told()
    assert cdd(pushed.first, "pull", SLUG) == 0
    assert not told()


@many_processes
def test_a_run_that_is_busy_is_not_pushed(begun: Copies) -> None:
    engine = begun.first.engine()
    try:
        assert cdd(begun.first, "push", SLUG) == 2
        assert cdd(begun.first, "pull", SLUG) == 2
    finally:
        engine.close()
    assert cdd(begun.first, "push", SLUG) == 0
