"""Transient errors are asked for again, after a wait that can be seen and ended; all
others are told at once.
"""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Done,
    EmptyReply,
    Message,
    ModelError,
    ModelEvent,
    ModelNotFound,
    RateLimited,
    Request,
    RequestRejected,
    StartedAgain,
    StopReason,
    TextDelta,
    Waiting,
)
from cdd_agent.llm.retrying import LONGEST_WAIT, Retrying
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.llm.wrapper import RejectEmpty
from tests.llm.server import Answer, LoopbackServer, directly, failure
from tests.support.projects import FakeTime
from tests.support.replies import all_of, stopped
from tests.support.tables import each_row

REQUEST = Request((Message("user", "Say hello."),))


class Asked:
    """A patient model around a script, with a clock on which waiting takes no time."""

    def __init__(self, *script: str | ModelError | ScriptedReply) -> None:
        self.time = FakeTime()
        self.script = ScriptedModel(script)
        self.model = Retrying(RejectEmpty(self.script), self.time.clock)
        self.events: list[ModelEvent | Done] = []

    async def answer(self) -> str:
        """The reply, as a caller puts it together."""
        text: list[str] = []

        def on_event(event: ModelEvent) -> None:
            self.events.append(event)
            match event:
                case TextDelta(text=piece):
                    text.append(piece)
                case StartedAgain():
                    text.clear()
                case _:
                    pass

        self.events.append(await self.model.reply(REQUEST, on_event))
        return "".join(text)

    @property
    def calls(self) -> int:
        return len(self.script.requests)

    def of(self, kind: type[ModelEvent]) -> list[ModelEvent | Done]:
        return [event for event in self.events if isinstance(event, kind)]


async def test_a_successful_call_is_passed_on_unchanged() -> None:
    asked = Asked("Hello there.")
    assert await asked.answer() == "Hello there."
    assert [type(event) for event in asked.events] == [TextDelta, TextDelta, Done]
    assert asked.time.waited == 0


async def test_waits_for_a_rate_limit_double() -> None:
    asked = Asked(*[RateLimited("Slow down.")] * 4, "Hello")
    assert await asked.answer() == "Hello"
    assert asked.time.waited == 1 + 2 + 4 + 8
    assert asked.of(StartedAgain) == []  # nothing of a reply had come


async def test_the_wait_is_reported_every_second() -> None:
    asked = Asked(RateLimited("Slow down.", retry_after=3), "Hello")
    await asked.answer()
    assert asked.of(Waiting) == [
        Waiting(seconds, "Slow down.") for seconds in (4, 3, 2, 1)
    ]
    # what was asked for, and a part of a second by chance
    assert asked.time.waited == pytest.approx(3.5)


@each_row("chance", [0.0, 0.5, 1.0])
async def test_random_delays_spread_retries_and_never_shorten_a_wait(
    chance: float,
) -> None:
    time = FakeTime()
    model = Retrying(
        ScriptedModel([RateLimited("x", retry_after=5), "Hello"]),
        replace(time.clock, chance=lambda: chance),
    )
    await all_of(model, REQUEST)
    assert time.waited == pytest.approx(5 + chance)


async def test_a_wait_that_is_too_long_is_an_error_with_its_time() -> None:
    limit = RateLimited(
        "Quota used up.", hint="Look at your account.", retry_after=LONGEST_WAIT + 1
    )
    asked = Asked(limit)
    with pytest.raises(RateLimited) as raised:
        await asked.answer()
    assert raised.value.message == limit.message
    assert "12:02" in raised.value.hint
    assert raised.value.hint.endswith(limit.hint)
    assert (asked.calls, asked.time.waited) == (1, 0)


@each_row("wait", [1e9, 1e15, 1e300, float("inf")])
async def test_a_wait_without_end_is_an_error(wait: float) -> None:
    asked = Asked(RateLimited("Quota used up.", retry_after=wait))
    with pytest.raises(RateLimited, match="Quota used up") as raised:
        await asked.answer()
    assert "744 hours" in raised.value.hint


@each_row("wait", [None, 0.0, 0.02, 0.5])
async def test_waiting_ends_after_a_minute_of_rate_limits(wait: float | None) -> None:
    asked = Asked(*[RateLimited("Slow down.", retry_after=wait)] * 9)
    with pytest.raises(RateLimited, match="Slow down"):
        await asked.answer()
    assert asked.calls == 7
    assert asked.time.waited == 63


@each_row(
    "error", [ConnectionFailed("No network."), BadAnswer("The server failed (500).")]
)
async def test_broken_connections_and_server_errors_get_two_retries(
    error: ModelError,
) -> None:
    asked = Asked(error, error, "Hello")
    assert await asked.answer() == "Hello"

    asked = Asked(*[error] * 5)
    with pytest.raises(type(error)) as raised:
        await asked.answer()
    assert raised.value is error
    assert asked.calls == 3


async def test_a_broken_reply_starts_again_and_its_start_does_not_count() -> None:
    asked = Asked(ScriptedReply("Hello there, you.", cut=8), "Good evening.")
    assert await asked.answer() == "Good evening."
    kinds = [type(event) for event in asked.events]
    assert kinds == [
        TextDelta,
        TextDelta,
        Waiting,
        StartedAgain,
        TextDelta,
        TextDelta,
        Done,
    ]


async def test_an_empty_reply_is_requested_once_more_and_then_an_error() -> None:
    asked = Asked(" \n", "Hello")
    assert await asked.answer() == "Hello"

    asked = Asked("", "", "never asked for")
    with pytest.raises(EmptyReply, match="empty reply"):
        await asked.answer()
    assert asked.calls == 2


async def test_a_reply_cut_by_its_length_is_passed_on_even_if_empty() -> None:
    asked = Asked(ScriptedReply("", stop=StopReason.LENGTH))
    assert await asked.answer() == ""
    done = asked.events[-1]
    assert isinstance(done, Done)
    assert done.stop_reason is StopReason.LENGTH


async def test_each_kind_of_failure_has_separate_retries() -> None:
    limit, broken = RateLimited("Slow down."), ConnectionFailed("Broken.")
    asked = Asked(limit, limit, broken, limit, broken, "Hello")
    assert await asked.answer() == "Hello"
    assert asked.time.waited == (1 + 2) + 1 + 4 + 2


@each_row(
    "error",
    [
        AuthenticationFailed("x"),
        ModelNotFound("x"),
        RequestRejected("x"),
        ContextTooLong("x"),
    ],
)
async def test_permanent_errors_are_raised_at_once(error: ModelError) -> None:
    asked = Asked(error, "Hello")
    with pytest.raises(type(error)):
        await asked.answer()
    assert (asked.calls, asked.events) == (1, [])


async def test_an_exhausted_script_is_not_retried() -> None:
    asked = Asked()
    with pytest.raises(BadAnswer, match="request"):
        await asked.answer()
    assert asked.calls == 1


async def test_cancelling_ends_the_wait_without_a_call() -> None:
    asked = Asked(RateLimited("Slow down.", retry_after=60), "Hello")
    await stopped(asked.model, REQUEST)
    # the second in which it was stopped
    assert (asked.calls, asked.time.waited) == (1, 1)


# --- Over a real connection -----------------------------------------------------------


async def over_http(script: Sequence[str | Answer]) -> tuple[str, int]:
    """The reply to one request, and how many calls the server saw."""
    with LoopbackServer(script) as server:
        model = Retrying(RejectEmpty(directly(server.url)), FakeTime().clock)
        text = ""
        for event in await all_of(model, REQUEST):
            text = (
                ""
                if isinstance(event, StartedAgain)
                else text + getattr(event, "text", "")
            )
        return text, len(server.requests)


@each_row(
    "fault",
    [
        failure(429, "Slow down", headers={"retry-after": "1"}),
        failure(503, "Overloaded"),
        failure(529, "Overloaded"),
        failure(500, "Oops"),
        Answer("Good morning to you all", cut_after=2),
        Answer("Good morning", cut_after=1, chunked=False, finish_reason=None),
        Answer(""),
    ],
    ids=["429", "503", "529", "500", "cut", "an end that is none", "empty"],
)
async def test_a_fault_of_a_real_server_costs_one_more_call(fault: Answer) -> None:
    assert await over_http([fault, "Hello"]) == ("Hello", 2)
