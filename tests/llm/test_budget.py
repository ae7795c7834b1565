"""A budget: every call is counted, also a lost one, and none begins that could pass
what is left.
"""

import asyncio

import pytest
from msgspec.structs import replace

from cdd_agent.cost import Cost
from cdd_agent.errors import BadInput, BudgetExhausted, ExitCode
from cdd_agent.llm.budget import CEILING, Budgeted, Limit, Tally
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.port import (
    Done,
    EmptyReply,
    Message,
    ModelError,
    ModelEvent,
    OnEvent,
    Price,
    RateLimited,
    Request,
    TextDelta,
    ToolCall,
    ToolDefinition,
    Usage,
)
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.llm.wrapper import ModelWrapper, RejectEmpty
from tests.support.replies import all_of, stopped
from tests.support.tables import each_row

# 3 words, which are the script's tokens
REQUEST = Request((Message("user", "Say hello, please."),))
PROMPT = estimate_prompt(REQUEST)


class Uncounted(ModelWrapper):
    """A provider that tells no usage."""

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        return replace(await self.inner.reply(request, on_event), usage=None)


class Books:
    """A budgeted model around a script, and what it told of."""

    def __init__(
        self,
        *script: str | ModelError | ScriptedReply,
        limit: Limit | None = None,
        spent: Cost | None = None,
        price: Price | None = None,
        counted: bool = True,
    ) -> None:
        self.lost: list[Usage] = []
        self.tally = Tally()
        self.script = ScriptedModel(script)
        inner = RejectEmpty(self.script if counted else Uncounted(self.script))
        self.model = Budgeted(
            inner,
            limit or Limit(),
            account=Tally(spent or Cost()),
            price=lambda: price,
            spend=self.tally.add,
            lost=self.lost.append,
        )

    async def ask(self) -> list[ModelEvent | Done]:
        return await all_of(self.model, REQUEST)


async def test_each_call_is_counted_as_the_provider_counted_it() -> None:
    books = Books("Hello there.", "Good evening to you.")
    await books.ask()
    await books.ask()
    assert books.model.spent == books.tally.spent == Cost(tokens=3 + 2 + 3 + 4)
    assert books.lost == []


async def test_usage_is_estimated_and_marked_if_the_provider_sends_none() -> None:
    books = Books("Hello there.", counted=False)
    *_, done = await books.ask()
    assert done == Done(usage=Usage(PROMPT, 4, estimated=True))
    assert books.model.spent.estimated


async def test_the_usage_includes_the_price() -> None:
    books = Books("Hello there.", price=Price(1.0, 10.0))
    *_, done = await books.ask()
    assert done == Done(usage=Usage(3, 2, usd=23.0))
    assert books.tally.spent.usd == 23.0


async def test_a_call_that_could_exceed_the_remaining_tokens_is_refused() -> None:
    books = Books("Hello", "never said", limit=Limit(tokens=PROMPT + CEILING + 3))
    await books.ask()  # takes 4, one more than there was to spare
    with pytest.raises(
        BudgetExhausted,
        match=rf"4 of 8,\d+ tokens used, .* could take ~{PROMPT + CEILING:,}",
    ) as raised:
        await books.ask()
    assert len(books.script.requests) == 1
    assert raised.value.exit_code is ExitCode.NOT_APPROVED
    assert "`budget.tokens`" in raised.value.hint


async def test_a_call_that_just_fits_the_budget_is_made() -> None:
    books = Books("Hello", limit=Limit(tokens=PROMPT + CEILING))
    assert await books.ask()


async def test_a_call_that_could_exceed_the_remaining_dollars_is_refused() -> None:
    books = Books(
        "Hello", limit=Limit(usd=0.09), spent=Cost(usd=0.01), price=Price(0.0, 0.00001)
    )
    with pytest.raises(
        BudgetExhausted, match=r"\$0.0100 of \$0.09 used, .* could take ~\$0.0819"
    ) as raised:
        await books.ask()
    assert "`budget.usd`" in raised.value.hint
    assert books.script.requests == []


async def test_usage_of_earlier_processes_counts_and_estimates_are_marked() -> None:
    books = Books(
        "Hello", limit=Limit(tokens=10_000), spent=Cost(9_000, estimated=True)
    )
    with pytest.raises(BudgetExhausted, match=r"9,000.*10,000"):
        await books.ask()


async def test_a_limit_in_dollars_needs_a_known_price() -> None:
    with pytest.raises(BadInput, match="scripted") as raised:
        Books(limit=Limit(usd=1.0))
    assert "`budget.tokens`" in raised.value.hint


async def test_a_reply_that_exceeds_the_budget_is_stopped_while_it_streams() -> None:
    books = Books("many words " * 20_000, limit=Limit(tokens=20_000))
    with pytest.raises(
        BudgetExhausted, match=r"a reply reached ~20,\d+ tokens and was stopped"
    ):
        await books.ask()
    (lost,) = books.lost
    assert (
        20_000
        < books.model.spent.tokens
        == lost.prompt_tokens + lost.completion_tokens
        < 20_020
    )


async def test_a_reply_that_broke_off_counts_as_lost_by_an_estimate() -> None:
    books = Books(ScriptedReply("Hello there, you.", cut=12), price=Price(0.0, 1.0))
    with pytest.raises(ModelError):
        await books.ask()
    assert books.lost == [Usage(PROMPT, 4, estimated=True, usd=4.0)]
    assert books.tally.spent == Cost(PROMPT + 4, 4.0, estimated=True)


async def test_an_empty_reply_counts_as_lost_with_the_provider_s_usage() -> None:
    books = Books("")
    with pytest.raises(EmptyReply):
        await books.ask()
    assert books.lost == [Usage(3, 0)]


async def test_a_cancelled_reply_counts_as_lost() -> None:
    books = Books("Hello there, you.")
    await stopped(books.model, REQUEST)
    assert books.lost == [Usage(PROMPT, 2, estimated=True)]


async def test_a_reply_that_is_complete_before_a_cancel_counts_once() -> None:
    books = Books("Hello there, you.")
    await stopped(books.model, REQUEST, after=3)
    assert books.lost == []
    assert books.tally.spent.tokens == 3 + 3


async def test_a_refused_call_costs_nothing() -> None:
    books = Books(RateLimited("Later."))
    with pytest.raises(RateLimited):
        await books.ask()
    assert books.lost == []
    assert books.model.spent == Cost()


def test_the_estimate_is_high_and_includes_tools() -> None:
    tool = ToolDefinition("read_file", "Reads.", {"type": "object"})
    call = ToolCall("1", "read_file", '{"path": "a.txt"}')
    assert estimate_prompt(Request((Message("user", "word " * 300),))) >= 400
    assert estimate_prompt(Request((Message("user", "世界" * 50),))) >= 100
    assert estimate_prompt(Request((Message("user", "x"),), (tool,))) > 10
    assert estimate_prompt(Request((Message("assistant", "", (call,)),))) > 8


async def test_tool_calls_count_as_part_of_the_reply() -> None:
    class Calling(ModelWrapper):
        async def reply(self, request: Request, on_event: OnEvent) -> Done:
            on_event(TextDelta("I look. "))
            on_event(ToolCall("1", "read_file", '{"path": "a.txt"}'))
            return Done()

    model = Budgeted(Calling(ScriptedModel([])), Limit())
    *_, done = await all_of(model, REQUEST)
    assert done == Done(usage=Usage(PROMPT, 12, estimated=True))


@each_row(
    "name", ["anthropic/claude-sonnet-4-5", "openai/gpt-5", "gemini/gemini-2.5-pro"]
)
def test_the_prices_of_well_known_models_are_known(name: str) -> None:
    price = known_model(name).price
    assert price
    assert 0 < price.prompt < price.completion < 0.001


@each_row("name", ["openai/my-own", "mistral/gpt-5", "", "gpt-5-of-mine"])
def test_unknown_prices_are_not_guessed(name: str) -> None:
    assert known_model(name).price is None


def test_cached_tokens_have_separate_prices() -> None:
    price = Price(4.0, 20.0, cache_read=0.4, cache_write=5.0)

    assert price.cost_of(
        Usage(100, 10, cached_tokens=60, cache_write_tokens=30)
    ) == pytest.approx(40 + 24 + 150 + 200)
    assert Price(4.0, 20.0).cost_of(Usage(100, 10, cached_tokens=60)) == pytest.approx(
        600
    )


def test_the_cache_savings_are_the_difference_to_the_full_price() -> None:
    price = Price(4.0, 20.0, cache_read=0.4, cache_write=5.0)

    assert price.saved_by_cache(
        Usage(100, 10, cached_tokens=60, cache_write_tokens=30)
    ) == pytest.approx(60 * 3.6 - 30)


def test_writing_to_a_cache_never_exceeds_the_upper_estimate() -> None:
    for price in (
        Price(4.0, 20.0, 0.4, 5.0),
        Price(4.0, 20.0, 0.4, 0.0),
        Price(4.0, 20.0),
    ):
        most = price.highest_cost_of(Usage(100, 10))
        for cached in range(0, 101, 25):
            usages = [
                Usage(100, 10, cached_tokens=cached, cache_write_tokens=n)
                for n in range(0, 101 - cached, 25)
            ]
            assert all(price.cost_of(usage) <= most for usage in usages)


async def test_cached_tokens_are_counted() -> None:
    class Caching(ModelWrapper):
        async def reply(self, request: Request, on_event: OnEvent) -> Done:
            on_event(TextDelta("Hello."))
            return Done(
                usage=Usage(1_000, 10, cached_tokens=800, cache_write_tokens=100)
            )

    tally = Tally()
    model = Budgeted(
        Caching(ScriptedModel([])),
        Limit(),
        price=lambda: Price(0.01, 0.1, 0.001, 0.02),
        spend=tally.add,
    )
    *_, done = await all_of(model, REQUEST)

    assert isinstance(done, Done)
    assert done.usage is not None
    assert (done.usage.usd, done.usage.saved_usd) == (
        pytest.approx(4.8),
        pytest.approx(6.2),
    )
    assert (tally.spent.tokens, tally.spent.cached_tokens) == (1_010, 800)
    assert (tally.spent.usd, tally.spent.saved_usd) == (
        pytest.approx(4.8),
        pytest.approx(6.2),
    )


def test_a_long_prompt_changes_the_price_of_the_whole_call() -> None:
    price = Price(1.0, 2.0, above=(100, Price(3.0, 4.0)))

    assert (price.cost_of(Usage(100, 1)), price.cost_of(Usage(101, 1))) == (
        102.0,
        307.0,
    )


class Held(ModelWrapper):
    """A model whose replies come when they are let go, by default when so many are
    waited for at once.
    """

    def __init__(self, at_once: int = 1) -> None:
        super().__init__(ScriptedModel(["Hello."] * 2))
        self.now = self.most = 0
        self.at_once = at_once
        self.let_go = asyncio.Event()

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now == self.at_once:
            self.let_go.set()
        await self.let_go.wait()
        await asyncio.sleep(0.01)  # time for another one to come, if it may
        self.now -= 1
        return await self.inner.reply(request, on_event)


async def test_a_call_waits_until_a_running_call_releases_its_budget() -> None:
    held, account = Held(), Tally()
    model = Budgeted(held, Limit(tokens=PROMPT + CEILING + 100), account=account)
    await asyncio.gather(*(all_of(model, REQUEST) for _ in range(2)))
    assert held.most == 1
    assert account.spent.tokens == 2 * (3 + 1)


async def test_calls_that_fit_the_budget_together_run_concurrently() -> None:
    held = Held(at_once=2)
    model = Budgeted(held, Limit(tokens=2 * (PROMPT + CEILING)))
    await asyncio.gather(*(all_of(model, REQUEST) for _ in range(2)))
    assert held.most == 2
