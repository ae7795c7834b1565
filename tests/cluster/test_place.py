"""Hearing what workers ask, where the scheduler does what a real one does only now and
then.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")

from cdd_agent.cluster import place as module
from cdd_agent.cluster.messages import WorkerEnd
from cdd_agent.cluster.place import ClusterPlace
from cdd_agent.session.open_project import open_project
from cdd_agent.version import VERSION


class Line:
    """A queue of the scheduler's: what comes out of it, or how that fails."""

    def __init__(self, *comes: Any) -> None:
        self.comes = list(comes)
        self.told: list[Any] = []

    def __call__(self, name: str, client: object) -> "asyncio.Future[Line]":
        made = asyncio.get_running_loop().create_future()
        made.set_result(self)
        return made

    async def get(self) -> Any:
        if not self.comes:
            await asyncio.Event().wait()
        come = self.comes.pop(0)
        if isinstance(come, Exception):
            raise come
        return come

    async def put(self, value: Any) -> None:
        self.told.append(value)

    def close(self) -> None:
        """Nobody asks any more."""


class Unsettled:
    """A task that comes to no end."""

    async def exception(self) -> None:
        await asyncio.Event().wait()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterPlace:
    monkeypatch.setattr(module, "_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(module, "_RECONNECT_SECONDS", 0.0)
    return ClusterPlace(
        open_project(tmp_path, {}), tmp_path, None, "tcp://nowhere", 1.0
    )


@pytest.mark.parametrize(
    "failure", [OSError("gone"), KeyError("a queue that it does not have any more")]
)
async def test_a_scheduler_that_was_started_again_is_heard_again(
    place: ClusterPlace, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    line = Line(
        failure, {"ticket": "nobody's", "answer_to": "one", "number": 3, "question": {}}
    )
    monkeypatch.setattr(module, "Queue", line)
    hearing = asyncio.create_task(place._listen())
    while not line.told and not hearing.done():
        await asyncio.wait([hearing], timeout=0.01)
    assert line.told == [{"number": 3, "answer": {"gone": True}}]
    hearing.cancel()


async def test_where_nobody_hears_workers_any_more_no_ticket_waits_for_ever(
    place: ClusterPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "Queue", Line(RuntimeError("a fault")))
    place._listening = asyncio.create_task(place._listen())
    await asyncio.wait([place._listening])
    with pytest.raises(RuntimeError, match="a fault"):
        await asyncio.wait_for(place._wait_for_end(Unsettled(), None, []), 60)


class Ended:
    """A task that has ended."""

    status = "finished"

    def __init__(self, end: WorkerEnd) -> None:
        self.end = end

    async def exception(self) -> None:
        """It has none."""

    async def result(self) -> dict[str, Any]:
        return self.end.to_values()

    async def cancel(self) -> None:
        """Nothing runs."""


class Workers:
    """A scheduler whose workers take turns. All but the last are unfit."""

    def __init__(self, count: int) -> None:
        self.names = [f"tcp://{number:02}" for number in range(count)]

    async def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.names, 1)

    async def run(self, *_: object, workers: list[str], **__: object) -> dict[str, str]:
        return dict.fromkeys(workers, VERSION)

    def submit(self, *_: object, workers: list[str] | None, **__: object) -> Ended:
        worker = (workers or self.names)[0]
        is_unfit = worker != self.names[-1]
        return Ended(WorkerEnd(0, 0, "the disk is full", is_unfit, worker))


class QuietDesk:
    attempt = 0
    on_event = staticmethod(lambda event: None)
    forget_worker = staticmethod(lambda: None)


async def test_a_ticket_reaches_the_only_fit_worker_of_many(
    place: ClusterPlace,
) -> None:
    place.client = Workers(12)
    end = await place._run_until_done("bug-a", QuietDesk(), {})
    assert end.worker == "tcp://11"
    assert len(place.refused) == 11
