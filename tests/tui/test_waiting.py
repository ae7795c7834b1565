"""A provider that asks to come back later, as the person in front of the shell sees
it.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.providers import endpoint_of
from tests.llm.server import LoopbackServer, failure
from tests.support.projects import SLUG, FakeTime, Sandbox, Step, says
from tests.tui.person import Person, person_at

LIMIT = (
    "Rate limit reached for the organization of this key on tokens per minute: limit"
    " 30000, used 29871."
)


@dataclass
class SteppedTime(FakeTime):
    """The time of waits: each sleep takes until a test lets it pass."""

    may_pass: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def sleep(self, seconds: float) -> None:
        await self.may_pass.acquire()
        self.waited += seconds


@pytest.fixture
def time(sandbox: Sandbox) -> SteppedTime:
    sandbox.time = SteppedTime()
    return sandbox.time


@pytest.fixture
def limited(sandbox: Sandbox, time: SteppedTime) -> Iterator[LoopbackServer]:
    """A project whose model is at a server that first asks to wait for three
    seconds.
    """
    sandbox.write(Step("a.txt", "none"))
    with LoopbackServer(
        [failure(429, LIMIT, headers={"Retry-After": "3"}), says("a.txt", "good")]
    ) as server:
        endpoint = endpoint_of("openai/any-model", server.url, {})
        assert endpoint is not None
        sandbox.real_model = DirectModel("openai/any-model", endpoint)
        yield server


def seconds_left(person: Person) -> int | None:
    found = re.search(r"Retrying in (\d+) s", person.activity)
    return int(found[1]) if found else None


async def test_the_seconds_are_counted_down_and_then_the_step_continues(
    sandbox: Sandbox, limited: LoopbackServer, time: SteppedTime
) -> None:
    async with person_at(sandbox, f"/exec {SLUG}", size=(80, 24)) as person:
        await person.begin("")
        # the three that were asked for, and a part of one by chance
        for left in (4, 3, 2, 1):
            await person.until(lambda left=left: seconds_left(person) == left)  # type: ignore[misc]
            assert "openai/any-model" in person.activity
            assert "Esc stops" in person.activity
            assert len(person.activity) <= 78
            time.may_pass.release()
        await person.until(lambda: not person.is_waiting)

        assert sandbox.statuses() == ["completed"]
        assert len(limited.requests) == 2


async def test_the_whole_reason_for_a_wait_is_shown_once_in_a_narrow_window(
    sandbox: Sandbox, limited: LoopbackServer, time: SteppedTime
) -> None:
    async with person_at(sandbox, f"/exec {SLUG}", size=(60, 24)) as person:
        await person.begin("")
        for _ in range(4):
            time.may_pass.release()
        await person.until(lambda: not person.is_waiting)

        assert " ".join(person.told.split()).count(LIMIT) == 1


async def test_escape_ends_the_wait_and_no_request_follows(
    sandbox: Sandbox, limited: LoopbackServer
) -> None:
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until(lambda: seconds_left(person))

        await person.press("escape")
        await person.until(lambda: not person.is_waiting)

        assert sandbox.statuses() == ["pending"]
        assert len(limited.requests) == 1
