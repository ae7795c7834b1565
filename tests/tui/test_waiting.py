"""A provider that asks to come back later, as the person in front of the shell sees it."""

import re
from collections.abc import Iterator

import pytest

from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.providers import endpoint_of
from tests.llm.server import LoopbackServer, failure
from tests.projects import SLUG, Sandbox, Step, check, says
from tests.tui.person import Person, person_at

LIMIT = "Rate limit reached for the organization of this key on tokens per minute: limit 30000, used 29871."


@pytest.fixture
def limited(sandbox: Sandbox) -> Iterator[LoopbackServer]:
    """A project whose model is at a server that first asks to wait for three seconds, and a clock that is real."""
    sandbox.write(Step("a.txt", check("a.txt")))
    with LoopbackServer([failure(429, LIMIT, headers={"Retry-After": "3"}), says("a.txt", "good")]) as server:
        endpoint = endpoint_of("openai/any-model", server.url, {})
        assert endpoint is not None
        sandbox.real_model, sandbox.time = DirectModel("openai/any-model", endpoint), None
        yield server


def seconds_left(person: Person) -> int | None:
    found = re.search(r"Asking again in (\d+) s", person.activity)
    return int(found[1]) if found else None


async def test_the_seconds_are_counted_down_and_then_the_step_goes_on(
    sandbox: Sandbox, limited: LoopbackServer
) -> None:
    async with person_at(sandbox, f"/exec {SLUG}", size=(80, 24)) as person:
        await person.begin("")
        await person.until(lambda: seconds_left(person))
        seen = [seconds_left(person)]
        while (left := seconds_left(person)) is not None:
            assert "openai/any-model" in person.activity
            assert "Esc stops" in person.activity
            assert len(person.activity) <= 78
            seen += [left] * (left != seen[-1])
            await person.pilot.pause(0.02)
        await person.until(lambda: not person.is_waiting)

        assert len(seen) > 1
        assert seen == sorted(seen, reverse=True)  # on a busy machine some number may be missed
        assert sandbox.statuses() == ["completed"]
        assert len(limited.requests) == 2


async def test_on_a_narrow_screen_too_the_whole_reason_can_be_read_once(
    sandbox: Sandbox, limited: LoopbackServer
) -> None:
    async with person_at(sandbox, f"/exec {SLUG}", size=(60, 24)) as person:
        await person.begin("")
        await person.until(lambda: not person.is_waiting)

        assert " ".join(person.told.split()).count(LIMIT) == 1


async def test_escape_ends_the_wait_and_nothing_more_is_asked(sandbox: Sandbox, limited: LoopbackServer) -> None:
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.begin("")
        await person.until(lambda: seconds_left(person))

        await person.press("escape")
        await person.until(lambda: not person.is_waiting)

        assert "`continue`" in person.told
        assert sandbox.statuses() == ["pending"]
        assert len(limited.requests) == 1
