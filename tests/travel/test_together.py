"""Several at once, with real git: who takes a run while others try, and who keeps it
while it goes on.
"""

import asyncio
import os
from datetime import UTC, datetime, timedelta

import pytest

from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.whereabouts import Phase, RunElsewhere, load_whereabouts
from cdd_agent.errors import BadInput
from cdd_agent.events import Event, Notice
from cdd_agent.redaction import Redactor
from cdd_agent.travel.keeping import lease_kept
from cdd_agent.travel.lease import DURATION
from cdd_agent.travel.travelling import Travel
from cdd_agent.wiring import open_travel
from tests.support.listening import tell
from tests.support.projects import SLUG, Sandbox
from tests.travel.copies import GOOD, Copies, cdd, run

ROUNDS = 4


def travel(sandbox: Sandbox) -> Travel:
    return open_travel(sandbox.project, sandbox.project.tickets.find(SLUG), tell)


def phase(sandbox: Sandbox) -> Phase | None:
    known = load_whereabouts(sandbox.root / ".cdd" / "runs" / SLUG)
    return known and known.phase


async def test_of_those_who_pull_at_once_one_gets_it(copies: Copies) -> None:
    everybody = [copies.first, copies.second, copies.clone("third")]
    await travel(everybody[0]).push(None)
    for number in range(ROUNDS):
        delays = [(number * factor % 5) * 0.02 for factor in (0, 1, 3)]

        async def pull(sandbox: Sandbox, delay: float) -> None:
            await asyncio.sleep(delay)
            await travel(sandbox).pull("origin")

        pulls = [
            pull(sandbox, delay)
            for sandbox, delay in zip(everybody, delays, strict=True)
        ]
        ends = await asyncio.gather(*pulls, return_exceptions=True)
        assert all(end is None or isinstance(end, RunElsewhere) for end in ends), ends
        holders = [sandbox for sandbox in everybody if phase(sandbox) is Phase.HERE]
        assert len(holders) == 1
        assert ends[everybody.index(holders[0])] is None
        await travel(holders[0]).push(None)


async def test_a_lease_is_renewed_while_the_run_goes_on_and_losing_it_ends_the_work(
    copies: Copies,
) -> None:
    first, second = copies.first, copies.second
    await travel(first).push(None)
    await travel(second).pull(None)
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
            await travel(first).pull(None, by_word=True)
            await asyncio.sleep(600)  # until it is cancelled

    with pytest.raises(RunElsewhere):
        await work()
    assert not [event for event in told if isinstance(event, Notice)]
    assert phase(first) is Phase.HERE


async def test_without_an_answer_the_work_ends_with_the_lease(copies: Copies) -> None:
    first = copies.first
    await travel(first).push(None)
    await travel(first).pull(None)
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
            copies.remote.rename(copies.folder / "away.git")
            async with asyncio.timeout(60):
                while not told:
                    await asyncio.sleep(0.05)
            later = DURATION
            await asyncio.sleep(600)

    with pytest.raises(RunElsewhere):
        await work()


async def test_a_remote_that_hangs_does_not_make_the_lease_longer(
    copies: Copies,
) -> None:
    first = copies.first
    await travel(first).push(None)
    await travel(first).pull(None)
    record, later = RunRecord.of(first.root, SLUG, Redactor()), timedelta()

    async def work() -> None:
        nonlocal later
        async with lease_kept(
            record, tell, now=lambda: datetime.now(UTC) + later, every=0.05
        ):
            (copies.remote / "HEAD").unlink()
            os.mkfifo(copies.remote / "HEAD")  # whoever reads it waits
            await asyncio.sleep(1)
            later = DURATION
            await asyncio.sleep(600)

    with pytest.raises(RunElsewhere):
        await work()


async def test_work_ends_when_nobody_can_see_any_more_whose_the_run_is(
    copies: Copies,
) -> None:
    """The disk refuses what looking needs, after another copy has taken the run."""
    first, second = copies.first, copies.second
    await travel(first).push(None)
    await travel(first).pull(None)
    record = RunRecord.of(first.root, SLUG, Redactor())

    async def work() -> None:
        async with lease_kept(record, tell, every=0.05):
            (record.folder / "travel.git" / "asked").unlink(missing_ok=True)
            (record.folder / "travel.git" / "asked").mkdir()
            await travel(second).pull(None, by_word=True)
            await asyncio.sleep(600)

    with pytest.raises(BadInput):
        await work()


async def test_no_step_of_a_run_that_is_elsewhere_is_begun_nor_undone(
    copies: Copies,
) -> None:
    """Whichever face it is: a shell may have had the run open before it was pushed."""
    first = copies.first.replies(*GOOD)
    engine = first.engine()
    step = engine.run.next_step
    assert step
    await engine.run_step(step)
    engine.close()
    await travel(first).push(None)
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
    assert first.statuses() == ["completed", "pending", "pending"]
    assert len(first.model.requests) == 1


def test_the_status_of_a_run_that_was_pushed_says_so_until_it_is_back(
    copies: Copies, capsys: pytest.CaptureFixture[str]
) -> None:

    def told() -> bool:
        capsys.readouterr()
        assert cdd(copies.first, "list") == 0
        is_listed = "pushed to origin" in capsys.readouterr().out
        assert cdd(copies.first, "status", SLUG, "--json") == 0
        is_told = '"elsewhere"' in capsys.readouterr().out
        assert is_listed == is_told
        return is_told

    assert not told()
    assert cdd(copies.first, "push", SLUG) == 0
    assert told()
    assert cdd(copies.first, "pull", SLUG) == 0
    assert not told()


def test_a_run_that_is_busy_is_not_pushed(copies: Copies) -> None:
    assert run(copies.first, GOOD[0]) != 0
    engine = copies.first.engine()
    try:
        assert cdd(copies.first, "push", SLUG) == 2
        assert cdd(copies.first, "pull", SLUG) == 2
    finally:
        engine.close()
    assert cdd(copies.first, "push", SLUG) == 0
