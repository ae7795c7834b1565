"""Fallbacks: another model is asked where one cannot be, that is told, and each call is
paid at its own price.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cdd_agent.errors import BudgetExhausted
from cdd_agent.llm.budget import Tally
from cdd_agent.llm.fallbacks import REST, WithFallbacks
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.port import (
    AuthenticationFailed,
    BadAnswer,
    ConnectionFailed,
    ContextTooLong,
    Done,
    EmptyReply,
    Message,
    Model,
    ModelError,
    ModelEvent,
    ModelNotFound,
    NotReachable,
    QuotaUsedUp,
    RateLimited,
    Replaced,
    Request,
    RequestRejected,
    StartedAgain,
    TextDelta,
    Usage,
    WebPageAnswered,
)
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.settings.config import Budget, Config, ModelSettings
from cdd_agent.wiring.models import add_fallbacks, equip_model, make_model
from tests.llm.server import Answer, LoopbackServer, failure
from tests.support.projects import FakeTime
from tests.support.tables import each_row

REQUEST = Request((Message("user", "Say hello."),))


def named(
    name: str,
    script: Sequence[str | ModelError | ScriptedReply],
    window: int | None = None,
) -> ScriptedModel:
    class Named(ScriptedModel):
        pass

    model = Named(script)
    model.name = name
    Named.window = property(lambda self: window)  # type: ignore[assignment, method-assign]
    return model


class Asked:
    """A model and its fallbacks as work has them, and what came."""

    def __init__(self, *models: ScriptedModel) -> None:
        self.time, self.tally = FakeTime(), Tally()
        first, *others = models
        chain = WithFallbacks(first, others)
        self.model = equip_model(chain, Config(), self.tally, clock=self.time.clock)
        self.events: list[ModelEvent | Done] = []

    async def answer(self) -> str:
        return await answer_of(self.model, self.events)

    @property
    def replaced(self) -> list[tuple[str, str]]:
        return [
            (event.instead_of, event.model)
            for event in self.events
            if isinstance(event, Replaced)
        ]


async def answer_of(model: Model, events: list[ModelEvent | Done]) -> str:
    """The reply, as a caller puts it together."""
    text: list[str] = []

    def on_event(event: ModelEvent) -> None:
        events.append(event)
        match event:
            case TextDelta(text=piece):
                text.append(piece)
            case StartedAgain():
                text.clear()
            case _:
                pass

    events.append(await model.reply(REQUEST, on_event))
    return "".join(text)


@each_row(
    "error",
    [
        RateLimited("busy"),
        QuotaUsedUp("no money"),
        ConnectionFailed("down"),
        NotReachable("a certificate"),
        BadAnswer("broken"),
        WebPageAnswered("a firewall"),
    ],
)
async def test_the_next_model_answers_if_a_provider_is_out_of_service(
    error: ModelError,
) -> None:
    asked = Asked(named("a", [error] * 9), named("b", ["Hello."]))
    assert await asked.answer() == "Hello."
    assert asked.replaced == [("a", "b")]
    (told,) = [event for event in asked.events if isinstance(event, Replaced)]
    assert told.reason == error.message


@each_row(
    "error",
    [
        AuthenticationFailed("wrong key"),
        ModelNotFound("unknown"),
        RequestRejected("no"),
        ContextTooLong("long"),
        EmptyReply("empty"),
    ],
)
async def test_errors_of_settings_or_request_use_no_fallback(
    error: ModelError,
) -> None:
    asked = Asked(named("a", [error] * 9), named("b", ["Hello."]))
    with pytest.raises(type(error)):
        await asked.answer()
    assert asked.replaced == []


async def test_an_exhausted_quota_is_not_waited_for() -> None:
    asked = Asked(named("a", [QuotaUsedUp("no money")]), named("b", ["Hello."]))
    await asked.answer()
    assert asked.time.waited == 0


async def test_half_of_a_reply_is_never_joined_to_another_model_s_reply() -> None:
    asked = Asked(
        named("a", [ScriptedReply("Never whole", cut=5) for _ in range(9)]),
        named("b", ["Hello."]),
    )
    assert await asked.answer() == "Hello."
    assert asked.replaced == [("a", "b")]


async def test_calls_stay_with_the_answering_model_until_the_first_has_rested() -> None:
    asked = Asked(
        named("a", [QuotaUsedUp("no money"), "I am back."]),
        named("b", ["One.", "Two."]),
    )
    assert [await asked.answer(), await asked.answer()] == ["One.", "Two."]
    assert asked.model.name == "b"
    asked.time.waited += REST
    assert asked.model.name == "a"
    assert await asked.answer() == "I am back."
    assert asked.replaced == [("a", "b"), ("b", "a")]


async def test_a_model_rests_as_long_as_its_provider_says() -> None:
    asked = Asked(
        named("a", [RateLimited("busy", retry_after=REST * 3), "Back."]),
        named("b", ["One.", "Two."]),
    )
    await asked.answer()
    asked.time.waited += REST * 2
    assert await asked.answer() == "Two."


async def test_every_model_is_tried_and_the_last_error_is_raised() -> None:
    asked = Asked(
        *(named(name, [QuotaUsedUp(f"{name} has no money")]) for name in "abc")
    )
    with pytest.raises(QuotaUsedUp, match="c has no money"):
        await asked.answer()
    assert asked.replaced == [("a", "b"), ("b", "c")]


async def test_a_model_with_a_window_that_is_too_small_is_skipped() -> None:
    asked = Asked(
        named("a", [QuotaUsedUp("no")]),
        named("small", ["No."], window=1),
        named("c", ["Hello."]),
    )
    assert await asked.answer() == "Hello."
    assert asked.replaced == [("a", "c")]


async def test_each_model_has_its_own_address_and_price(
    tmp_path: Path,
) -> None:
    broke = failure(402, "Insufficient credits.")
    with (
        LoopbackServer([broke]) as first,
        LoopbackServer([Answer("Hello there.")]) as second,
    ):
        config = Config(
            model="openai/gpt-5",
            api_base=first.url,
            fallbacks=(
                ModelSettings(
                    model="openai/gpt-4o-mini", api_base=second.url, temperature=0.5
                ),
            ),
        )
        tally, events = Tally(), list[ModelEvent | Done]()
        chain = add_fallbacks(
            make_model(config, tmp_path, watched=False), config, tmp_path, watched=False
        )
        model = equip_model(chain, config, tally)
        assert await answer_of(model, events) == "Hello there."
    assert second.requests[0].body["temperature"] == 0.5
    price = known_model("openai/gpt-4o-mini").price
    assert price is not None
    assert tally.spent.usd == pytest.approx(price.cost_of(Usage(2, 2)))
    assert isinstance(events[-1], Done)


async def test_all_models_share_one_budget() -> None:
    first, second = (
        named("a", ["one " * 3000, QuotaUsedUp("no")]),
        named("b", ["two " * 3000, "three"]),
    )
    config = Config(budget=Budget(tokens=12_000))
    model = equip_model(WithFallbacks(first, [second]), config, Tally())
    await answer_of(model, [])
    await answer_of(model, [])
    with pytest.raises(BudgetExhausted):
        await answer_of(model, [])


@each_row(
    ("status", "words", "code"),
    [
        (402, "Insufficient credits. Add more using https://openrouter.ai", None),
        (402, "Insufficient Balance", None),
        (
            429,
            "You exceeded your current quota, please check your plan.",
            "insufficient_quota",
        ),
        (429, "Your account is suspended", "exceeded_current_quota_error"),
        (429, "Insufficient balance or no resource package. Please recharge.", "1113"),
        (400, "Your credit balance is too low to access the Anthropic API.", None),
        (
            400,
            (
                "You have reached your specified API usage limits. You will regain"
                " access on 2026-12-01."
            ),
            None,
        ),
        (
            429,
            (
                "You have reached your specified API usage limits. You will regain"
                " access on 2026-12-01."
            ),
            None,
        ),
        (
            403,
            (
                "Your team has either used all available credits or reached its monthly"
                " spending limit."
            ),
            None,
        ),
    ],
)
async def test_the_wordings_of_providers_for_no_money_are_known(
    tmp_path: Path, status: int, words: str, code: str | None
) -> None:
    with LoopbackServer([failure(status, words, code)]) as server:
        model = make_model(
            Config(model="openai/x", api_base=server.url), tmp_path, watched=False
        )
        with pytest.raises(QuotaUsedUp):
            await answer_of(model, [])


async def test_a_limit_per_minute_is_not_an_exhausted_quota(tmp_path: Path) -> None:
    words = (
        "You exceeded your current quota. Please retry in 12s. Quota metric: requests"
        " per minute"
    )
    with LoopbackServer([failure(429, words)]) as server:
        model = make_model(
            Config(model="openai/x", api_base=server.url), tmp_path, watched=False
        )
        with pytest.raises(RateLimited) as raised:
            await answer_of(model, [])
    assert raised.value.is_transient
