"""The coordinator: so many at once, and what the end of one means for the others."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cdd_agent.errors import BadInput, ExitCode
from cdd_agent.events.dialogue_events import ReplyFinished
from cdd_agent.events.stream import to_json
from cdd_agent.fleet.board import Board, Row, RunState
from cdd_agent.fleet.coordinator import Coordinator
from cdd_agent.fleet.job import Ending, TicketJob
from cdd_agent.fleet.order import OnRunEvent, RunOrder
from cdd_agent.llm.port import Usage
from tests.support.tables import each_row

JOBS = [TicketJob(slug) for slug in "abcde"]


@dataclass
class Stage:
    """A place where runs end as they are told to, and which knows who was there at
    once.
    """

    endings: Mapping[str, Ending | BaseException] = field(default_factory=dict)
    hangs: str = ""
    """Those that never end."""
    present: set[str] = field(default_factory=set)
    most: int = 0
    began: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    async def carry_out(self, order: RunOrder, tell: OnRunEvent) -> Ending:
        job = order.job
        self.began.append(job.slug)
        self.present.add(job.slug)
        self.most = max(self.most, len(self.present))
        try:
            await asyncio.sleep(0)
            tell(to_json(ReplyFinished(1, Usage(90, 10))))
            if job.slug in self.hangs:
                await asyncio.Event().wait()
            ending = self.endings.get(job.slug, Ending(ExitCode.DONE))
            if isinstance(ending, BaseException):
                raise ending
            return ending
        except asyncio.CancelledError:
            self.stopped.append(job.slug)
            raise
        finally:
            self.present.discard(job.slug)


def coordinator(
    stage: Stage, at_once: int = 2, *, stop_on_failure: bool = False
) -> Coordinator:
    board = Board({job.name: Row(job) for job in JOBS})
    return Coordinator(
        board,
        {job.name: RunOrder(Path(), job.slug) for job in JOBS},
        stage,
        at_once,
        lambda row, event: None,
        stop_on_failure=stop_on_failure,
    )


def states(of: Coordinator) -> str:
    return " ".join(row.state.value for row in of.board.rows.values())


async def test_all_are_carried_out_and_never_more_at_once_than_asked_for() -> None:
    stage = Stage()
    one = coordinator(stage)
    assert await one.carry_out() is ExitCode.DONE
    assert (stage.began, stage.most) == (["a", "b", "c", "d", "e"], 2)
    assert one.board.cost.tokens == 500


async def test_what_fails_does_not_stop_the_others() -> None:
    refused = BadInput("There is no such plan", hint="Make one.")
    one = coordinator(Stage({"a": Ending(ExitCode.FAILED), "b": refused}))
    assert await one.carry_out() is ExitCode.FAILED
    assert states(one) == "failed refused done done done"
    assert "no such plan. Make one." in one.board.rows["b"].why


async def test_unless_that_is_asked_for() -> None:
    stage = Stage({"a": Ending(ExitCode.FAILED)}, hangs="b")
    one = coordinator(stage, stop_on_failure=True)
    assert await one.carry_out() is ExitCode.FAILED
    assert states(one) == "failed stopped waiting waiting waiting"
    assert stage.stopped == ["b"]


@each_row(
    "ending",
    [
        Ending(ExitCode.NOT_APPROVED, budget_used_up=True),
        Ending(ExitCode.COME_BACK_LATER),
    ],
)
async def test_without_budget_or_provider_no_other_is_begun(ending: Ending) -> None:
    one = coordinator(Stage({"a": ending}))
    assert await one.carry_out() is ending.exit_code
    assert one.board.count(RunState.WAITING) == 3
    assert one.board.rows["b"].state is RunState.DONE


async def test_to_cancel_it_stops_those_under_way_and_waits_for_them() -> None:
    stage = Stage(hangs="bc")
    one = coordinator(stage)
    work = asyncio.ensure_future(one.carry_out())
    while stage.present != {"b", "c"}:
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert states(one) == "done stopped stopped waiting waiting"
    assert stage.present == set()


async def test_an_error_of_the_program_is_raised_when_the_others_are_over() -> None:
    one = coordinator(Stage({"a": ZeroDivisionError()}))
    with pytest.raises(ZeroDivisionError):
        await one.carry_out()
    assert one.board.count(RunState.DONE) == 4
