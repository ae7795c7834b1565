"""What a provider reports about a call is believed only if it can be true."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.errors import BudgetExhausted
from cdd_agent.llm.budget import CEILING, Budgeted, Limit, Tally
from cdd_agent.llm.direct.chat_reply import usage_of
from cdd_agent.llm.port import Done, Message, Model, Picture, Price, Request, Usage
from cdd_agent.llm.token_estimates import estimate_prompt, estimate_tokens
from cdd_agent.llm.usage_check import believable_usage, believable_usd
from tests.llm.server import Answer, LoopbackServer
from tests.llm.test_contract import DIRECT, LITELLM, SERVED, through_litellm
from tests.support.replies import all_of
from tests.support.tables import each_row

REQUEST = Request((Message("user", "Say what is to be done here. " * 100),))
REPLY = "All of this is to be done. " * 20
ESTIMATE = Usage(estimate_prompt(REQUEST), estimate_tokens(REPLY), estimated=True)
PROMPT, COMPLETION = ESTIMATE.prompt_tokens, ESTIMATE.completion_tokens
TRUE = Usage(600, 140)
GUESSED_PROMPT = replace(TRUE, prompt_tokens=PROMPT, estimated=True)
GUESSED_COMPLETION = replace(TRUE, completion_tokens=COMPLETION, estimated=True)


@each_row(
    "reported, believed",
    [
        (TRUE, TRUE),
        (Usage(0, 0), ESTIMATE),
        (Usage(1, 1), ESTIMATE),
        (Usage(-600, -140), ESTIMATE),
        (Usage(10**12, 10**12), ESTIMATE),
        (Usage(10**400, 10**400), ESTIMATE),
        (Usage(0, 140), GUESSED_PROMPT),
        (Usage(600, 0), GUESSED_COMPLETION),
        (Usage(10**12, 140, cached_tokens=10**12), GUESSED_PROMPT),
        (Usage(600, 10**12, thinking_tokens=10**12), GUESSED_COMPLETION),
        # the limits
        (Usage(PROMPT // 10, 140), replace(GUESSED_PROMPT)),
        (Usage(PROMPT // 10 + 1, 140), Usage(PROMPT // 10 + 1, 140)),
        (Usage(PROMPT * 10, 140), Usage(PROMPT * 10, 140)),
        (Usage(PROMPT * 10 + 1, 140), GUESSED_PROMPT),
        # thoughts that are not shown
        (
            Usage(600, 90_000, thinking_tokens=89_860),
            Usage(600, 90_000, thinking_tokens=89_860),
        ),
        (Usage(600, 90_000), Usage(600, 90_000)),
        # parts that are counted separately from their whole
        (
            Usage(600, 140, thinking_tokens=5_000),
            Usage(600, 5_140, thinking_tokens=5_000),
        ),
        (Usage(40, 140, cached_tokens=560), Usage(600, 140, cached_tokens=560)),
        (
            Usage(40, 140, cached_tokens=300, cache_write_tokens=260),
            Usage(600, 140, cached_tokens=300, cache_write_tokens=260),
        ),
        (Usage(600, 140, cached_tokens=10**12), GUESSED_PROMPT),
        (Usage(600, 140, cached_tokens=-5, thinking_tokens=-5), TRUE),
        # the cost belongs to the counts
        (replace(TRUE, usd=0.01), replace(TRUE, usd=0.01)),
        (Usage(0, 140, usd=0.0), GUESSED_PROMPT),
        (Usage(600, 10**12, usd=9.9), GUESSED_COMPLETION),
    ],
)
def test_only_counts_that_can_be_true_are_believed(
    reported: Usage, believed: Usage
) -> None:
    assert believable_usage(reported, ESTIMATE, REQUEST) == believed


def picture(width: int, height: int) -> Picture:
    return Picture("shot.png", "image/png", width, height, b"")


def showing(*pictures: Picture) -> tuple[Message, ...]:
    return (Message("user", "Why is it red?", pictures=pictures),)


@each_row(
    "messages, reply, counted",
    [
        # a template and the provider's own text about tools around a short prompt
        ((Message("user", "Hi"),), "Yes.", Usage(9, 1)),
        ((Message("user", "Hi"),), "Yes.", Usage(700, 2)),
        ((Message("user", "?"),), "", Usage(3, 0)),
        # a reply of one token, and one of nothing but hidden thoughts
        ((Message("user", "Hi"),), "Absolutely", Usage(9, 1)),
        ((Message("user", "Hi"),), "", Usage(9, 64_000)),
        # one to three tokens a character
        ((Message("user", "世界" * 500),), "世界" * 50, Usage(650, 60)),
        ((Message("user", "世界" * 500),), "世界" * 50, Usage(3_010, 300)),
        ((Message("user", "నమస్కారం" * 100),), "నమస్కారం", Usage(2_400, 24)),
        ((Message("user", "👩‍👩‍👧‍👦" * 100),), "👍", Usage(2_500, 3)),
        # pictures: uncounted, few tokens, many
        (showing(picture(2000, 1500)), "Y", Usage(8, 1)),
        (showing(picture(2000, 1500)), "Y", Usage(266, 1)),
        (showing(picture(64, 64)), "Y", Usage(8_508, 1)),
        (showing(picture(768, 2048), picture(768, 2048)), "Y", Usage(96_347, 1)),
    ],
)
def test_true_counts_are_believed(
    messages: tuple[Message, ...], reply: str, counted: Usage
) -> None:
    request = Request(messages)
    estimate = Usage(estimate_prompt(request), estimate_tokens(reply), estimated=True)
    assert believable_usage(counted, estimate, request) == counted


@each_row(
    "completion, thinking, total, counted",
    [(1, 386, 399, 387), (900, 386, 1_298, 1_286), (387, 386, 399, 387), (9, 0, 21, 9)],
)
def test_thoughts_that_xai_counts_in_the_total_alone_belong_to_the_reply(
    completion: int, thinking: int, total: int, counted: int
) -> None:
    document = {
        "prompt_tokens": 12,
        "completion_tokens": completion,
        "completion_tokens_details": {"reasoning_tokens": thinking},
        "total_tokens": total,
    }
    assert usage_of(document) == Usage(12, counted, thinking_tokens=thinking)


@each_row(
    "total, cached, counted",
    [
        (623, 0, Usage(20, 603, thinking_tokens=405)),
        (218, 0, Usage(20, 198)),
        (100, 0, Usage(20, 198)),
        (None, 0, Usage(20, 198)),
        # the total of a server that counts the cache apart
        (618, 400, Usage(20, 198, cached_tokens=400)),
    ],
)
def test_thoughts_that_only_the_total_has_belong_to_the_reply(
    total: int | None, cached: int, counted: Usage
) -> None:
    document = {
        "prompt_tokens": 20,
        "completion_tokens": 198,
        "prompt_tokens_details": {"cached_tokens": cached},
        "total_tokens": total,
    }
    assert usage_of(document) == counted


counts = st.integers(-(10**13), 10**13) | st.integers(-10, 200_000)


@given(counts, counts, counts, counts, counts, st.none() | st.floats(0, 1e12))
def test_what_is_believed_is_consistent_and_near_the_estimate(
    prompt: int, completion: int, cached: int, write: int, thinking: int, usd: float
) -> None:
    reported = Usage(prompt, completion, False, usd, cached, write, thinking)
    usage = believable_usage(reported, ESTIMATE, REQUEST)

    assert PROMPT / 10 <= usage.prompt_tokens <= PROMPT * 10
    assert COMPLETION / 10 <= usage.completion_tokens <= 2**20
    assert 0 <= usage.cached_tokens + usage.cache_write_tokens <= usage.prompt_tokens
    assert 0 <= usage.thinking_tokens <= usage.completion_tokens
    assert usage.estimated or usage.usd == reported.usd
    assert believable_usage(usage, ESTIMATE, REQUEST) == usage


@each_row(
    "stated, believed",
    [
        (None, 0.007),
        (0.007, 0.007),
        (0.001, 0.001),
        (0.05, 0.05),
        (0.9, 0.9),
        # zero for a model with a price, as OpenRouter reports if you bring your own key
        (0.0, 0.007),
        (0.0003, 0.007),
        (1e12, 0.007),
    ],
)
def test_a_cost_that_cannot_be_true_is_replaced_by_the_price(
    stated: float | None, believed: float
) -> None:
    usage = Usage(600, 100, usd=stated)
    assert believable_usd(usage, Price(1e-5, 1e-5)) == pytest.approx(believed)


def test_a_free_model_costs_what_its_provider_states() -> None:
    free = Price(0.0, 0.0)
    assert believable_usd(Usage(600, 100, usd=0.0), free) == 0.0
    assert believable_usd(Usage(600, 100, usd=0.02), free) == 0.02


@pytest.fixture(params=[LITELLM, *DIRECT])
def served(request: pytest.FixtureRequest) -> Callable[[str], Model]:
    return SERVED[request.param]


IMPOSSIBLE: list[Any] = [0, 1, -7, 10**12, None]
NOT_NUMBERS: list[Any] = ["many", "600", 1.5, [], {}, True]
"""litellm refuses the whole reply with these, before it shows any of it."""


async def ask_until_exhausted(model: Model) -> None:
    for _ in range(6):
        try:
            await all_of(model, REQUEST)
        except BudgetExhausted:
            return
    pytest.fail("the budget was never reached")


async def test_a_budget_holds_whatever_the_server_reports(
    served: Callable[[str], Model],
) -> None:
    reported = IMPOSSIBLE
    if served is not through_litellm:
        reported = IMPOSSIBLE + NOT_NUMBERS
    for count in reported:
        for counts in ((count, count), (count, 140), (600, count)):
            with LoopbackServer(lambda _: Answer(REPLY, counts=counts)) as server:  # noqa: B023
                tally = Tally()
                limit = Limit(tokens=2 * (PROMPT + COMPLETION) + CEILING)
                model = Budgeted(served(server.url), limit, spend=tally.add)
                await ask_until_exhausted(model)
            calls = len(server.requests)
            assert 2 <= calls <= 4, counts
            assert calls * 450 <= tally.spent.tokens, counts
            assert tally.spent.tokens <= calls * (PROMPT + COMPLETION), counts


ZEROS_FIRST = {
    "direct": (
        {
            "choices": [{"index": 0, "delta": {"content": REPLY}}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0},
        },
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ),
    "messages": (
        {
            "type": "message_start",
            "message": {"usage": {"input_tokens": 0, "output_tokens": 0}},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": REPLY},
        },
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ),
    "responses": (
        {
            "type": "response.created",
            "response": {"usage": {"input_tokens": 0, "output_tokens": 0}},
        },
        {"type": "response.output_text.delta", "output_index": 0, "delta": REPLY},
        {
            "type": "response.completed",
            "response": {"status": "completed", "output": []},
        },
    ),
    "ollama": (
        {
            "message": {"content": REPLY},
            "done": False,
            "prompt_eval_count": 0,
            "eval_count": 0,
        },
        {"message": {"content": ""}, "done": True, "done_reason": "stop"},
    ),
}


@each_row("protocol", ZEROS_FIRST)
async def test_zeros_at_the_start_and_no_count_later_are_not_believed(
    protocol: str,
) -> None:
    lines = [json.dumps(line) for line in ZEROS_FIRST[protocol]]
    if protocol != "ollama":
        lines = [f"data: {line}\n" for line in lines]
    answer = Answer(raw="\n".join([*lines, ""]), content_type="text/event-stream")
    with LoopbackServer([answer]) as server:
        model = Budgeted(SERVED[protocol](server.url), Limit())
        *_, done = await all_of(model, REQUEST)

    assert done == Done(usage=ESTIMATE)
