"""Every provider's rules, kept in replies, in loops with tools, and after a kill in the
middle of one.
"""

import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx
import msgspec
import pytest

from cdd_agent.dialogue.text_tools import FENCE
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.events.dialogue_events import ReplyFinished, ThinkingDelta
from cdd_agent.events.stream import Event
from cdd_agent.llm.budget import Budgeted, Limit, Tally
from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.options import Effort, ModelOptions
from cdd_agent.llm.port import Message, Price, RequestRejected, Usage
from cdd_agent.llm.providers import endpoint_of
from cdd_agent.text.sanitize import fenced
from cdd_agent.tools.read_only import read_only_tools
from tests.dialogue.talking import after_rounds, heard
from tests.llm.simulators.anthropic import Anthropic
from tests.llm.simulators.base import Bill, Said, Simulator
from tests.llm.simulators.chat import (
    Chat,
    ClaudeBehindOpenRouter,
    DeepSeek,
    Gemini,
    Kimi,
    MiniMax,
    MiniMaxBehindOpenRouter,
    Mistral,
    OpenAIChat,
    OpenAIChatWithoutThoughts,
    OpenRouter,
    Vllm,
)
from tests.llm.simulators.gateway import Gateway
from tests.llm.simulators.ollama_chat import OllamaChat
from tests.llm.simulators.openai_responses import OpenAIResponses
from tests.support.tables import each_row

ASKED = (
    Message("system", "You carry out steps. " * 40),
    Message("user", "What is in the files? " * 40),
)
LOOKS = [
    Said(f"Look {n}.", f"Perhaps in a{n}.", (("read_file", {"path": f"a{n}.txt"}),))
    for n in range(5)
]
LAST = "They say what they say."
SIX_ROUNDS = [*LOOKS, Said(LAST, "That is all.")]


@dataclass(frozen=True)
class Provider:
    """How one is simulated, and how its model is named."""

    model: str
    simulated: Callable[[list[Said]], Simulator]
    key: str
    caches: bool = True
    """It reads what is repeated from a cache, if it is asked as it wants to be."""
    thinks_aloud: bool = True
    """Its thoughts can be seen."""

    def asked_at(self, url: str, options: ModelOptions | None = None) -> DirectModel:
        endpoint = endpoint_of(self.model, url, {self.key: "a-key"})
        assert endpoint is not None
        return DirectModel(self.model, endpoint, options or ModelOptions())


PROVIDERS = {
    "anthropic": Provider("anthropic/claude-opus-5", Anthropic, "ANTHROPIC_API_KEY"),
    "deepseek": Provider("deepseek/deepseek-v4", DeepSeek, "DEEPSEEK_API_KEY"),
    "kimi": Provider("moonshot/kimi-k3", Kimi, "MOONSHOT_API_KEY"),
    "mistral": Provider("mistral/mistral-large-4", Mistral, "MISTRAL_API_KEY"),
    "gemini": Provider("gemini/gemini-3-pro", Gemini, "GEMINI_API_KEY"),
    "gemini behind openrouter": Provider(
        "openrouter/google/gemini-3-pro", OpenRouter, "OPENROUTER_API_KEY"
    ),
    "claude behind openrouter": Provider(
        "openrouter/anthropic/claude-opus-5",
        ClaudeBehindOpenRouter,
        "OPENROUTER_API_KEY",
    ),
    "minimax": Provider("minimax/MiniMax-M2.5", MiniMax, "MINIMAX_API_KEY"),
    "minimax with two copies": Provider(
        "minimax/MiniMax-M3",
        partial(MiniMax, mirrors=True),
        "MINIMAX_API_KEY",
        thinks_aloud=False,
    ),
    "minimax by another name": Provider("openai/MiniMax-M2", MiniMax, "OPENAI_API_KEY"),
    "minimax behind openrouter": Provider(
        "openrouter/minimax/minimax-m2.5", MiniMaxBehindOpenRouter, "OPENROUTER_API_KEY"
    ),
    "minimax on a server here": Provider(
        "hosted_vllm/MiniMaxAI/MiniMax-M2.5", MiniMax, "HOSTED_VLLM_API_KEY"
    ),
    "vllm": Provider("hosted_vllm/qwen3", Vllm, "HOSTED_VLLM_API_KEY"),
    "ollama": Provider("ollama/qwen3:8b", OllamaChat, "OLLAMA_API_KEY", caches=False),
    "openai responses": Provider(
        "openai/responses/gpt-5.6", OpenAIResponses, "OPENAI_API_KEY"
    ),
    "openai chat": Provider(
        "openai/gpt-5", OpenAIChat, "OPENAI_API_KEY", thinks_aloud=False
    ),
}


THINK_ALOUD = {
    name: provider for name, provider in PROVIDERS.items() if provider.thinks_aloud
}
each_provider = each_row("provider", PROVIDERS.values(), ids=PROVIDERS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for n in range(5):
        (tmp_path / f"a{n}.txt").write_text(f"content of {n}\n" * 50)
    return tmp_path


def usages(events: list[Event]) -> list[Usage]:
    return [
        event.usage
        for event in events
        if isinstance(event, ReplyFinished) and event.usage is not None
    ]


def as_saved(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """A dialogue after it was written to the disk and read again."""
    return msgspec.json.decode(msgspec.json.encode(messages), type=tuple[Message, ...])


@each_provider
async def test_a_reply_arrives_complete_with_its_usage(provider: Provider) -> None:
    with provider.simulated([Said("Hello there.", "They greet me.")]) as simulator:
        result = await heard(Dialogue(provider.asked_at(simulator.url)))

    assert (result.seen, result.turn.problem, simulator.refusals) == (
        "Hello there.",
        "",
        [],
    )
    (usage,), (bill,) = usages(result.events), simulator.bills
    assert (usage.prompt_tokens, usage.completion_tokens) == (
        bill.prompt,
        bill.completion,
    )


@each_row("provider", THINK_ALOUD.values(), ids=THINK_ALOUD)
async def test_watched_thoughts_are_shown_and_not_part_of_the_reply(
    provider: Provider,
) -> None:
    said = Said("Hello there.", "They greet me, I think.")
    with provider.simulated([said]) as simulator:
        model = provider.asked_at(simulator.url, ModelOptions(watched=True))
        result = await heard(Dialogue(model))

    thoughts = "".join(
        event.text for event in result.events if isinstance(event, ThinkingDelta)
    )
    assert (thoughts.strip(), result.seen) == (said.thinking, said.text)


@each_row("name", ["anthropic", "gemini"])
async def test_unwatched_thoughts_are_not_requested(name: str) -> None:
    provider, seen = PROVIDERS[name], []
    for watched in (False, True):
        with provider.simulated([Said("Hello there.", "They greet me.")]) as simulator:
            model = provider.asked_at(simulator.url, ModelOptions(watched=watched))
            result = await heard(Dialogue(model))
        seen.append(any(isinstance(event, ThinkingDelta) for event in result.events))

    assert seen == [False, True]


@each_provider
async def test_a_loop_of_six_rounds_is_cached_and_counted_as_billed(
    provider: Provider, root: Path
) -> None:
    with provider.simulated(SIX_ROUNDS) as simulator:
        result = await heard(
            Dialogue(provider.asked_at(simulator.url), read_only_tools(root), "on")
        )

    assert (result.turn.text, simulator.refusals, len(simulator.bills)) == (LAST, [], 6)
    counted = [
        (
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
            usage.completion_tokens,
        )
        for usage in usages(result.events)
    ]
    assert counted == [
        (bill.prompt, bill.cached, bill.written, bill.completion)
        for bill in simulator.bills
    ]
    if provider.caches:
        # each request repeats the one before it
        repeated = sum(bill.prompt for bill in simulator.bills[:-1])
        assert sum(bill.cached for bill in simulator.bills[1:]) >= 0.95 * repeated


async def test_thoughts_without_their_first_tag_are_sent_back(root: Path) -> None:
    provider = PROVIDERS["minimax on a server here"]
    with MiniMax(SIX_ROUNDS, has_first_tag=False) as simulator:
        await heard(
            Dialogue(provider.asked_at(simulator.url), read_only_tools(root), "on")
        )

    assert (simulator.refusals, len(simulator.bills)) == ([], 6)


async def test_thoughts_in_the_text_are_sent_back_with_tools_in_words(
    root: Path,
) -> None:
    look = fenced('{"tool": "read_file", "arguments": {"path": "a1.txt"}}', FENCE)
    provider = PROVIDERS["minimax on a server here"]
    with MiniMax([Said(look, "I look."), Said(LAST, "Aha.")]) as simulator:
        result = await heard(
            Dialogue(provider.asked_at(simulator.url), read_only_tools(root), "off")
        )

    assert (result.turn.text, simulator.refusals, len(simulator.bills)) == (LAST, [], 2)


@each_provider
async def test_a_killed_loop_resumes_with_the_provider_s_data(
    provider: Provider, root: Path
) -> None:
    with provider.simulated(SIX_ROUNDS) as simulator:
        spoken = await after_rounds(
            Dialogue(provider.asked_at(simulator.url), read_only_tools(root), "on"), 3
        )
        again = Dialogue(provider.asked_at(simulator.url), read_only_tools(root), "on")
        result = await heard(again, as_saved(spoken))

    assert (result.turn.text, simulator.refusals, len(simulator.bills)) == (LAST, [], 6)


@each_provider
async def test_another_model_gets_none_of_the_first_model_s_thoughts(
    provider: Provider, root: Path
) -> None:
    with (
        provider.simulated(SIX_ROUNDS[:1]) as first,
        provider.simulated(SIX_ROUNDS[1:]) as second,
    ):
        model = provider.asked_at(first.url)
        tools = read_only_tools(root)
        spoken = await after_rounds(Dialogue(model, tools, "on"), 1)
        result = await heard(
            Dialogue(provider.asked_at(second.url), tools, "on"), spoken
        )

    assert (result.turn.problem, len(second.bills)) == ("", 5)
    # what it wants of another model's calls is not known before
    assert len(second.refusals) <= 1
    assert not [
        piece for piece in first.opaque if piece in json.dumps(second.sent[-1].body)
    ]


@each_provider
async def test_calls_in_parallel_are_answered_together(
    provider: Provider, root: Path
) -> None:
    both = Said(
        "",
        "Two at once.",
        tuple(("read_file", {"path": f"a{n}.txt"}) for n in range(3)),
    )
    with provider.simulated([both, both, Said("Done.")]) as simulator:
        result = await heard(
            Dialogue(provider.asked_at(simulator.url), read_only_tools(root), "on")
        )

    assert (result.turn.text, simulator.refusals) == ("Done.", [])


NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""To read the usual ones takes a while, and no simulator needs them."""


def post(
    simulator: Simulator, path: str, body: dict[str, object], **headers: str
) -> httpx.Response:
    url = simulator.url.removesuffix("/v1") + path
    return httpx.post(
        url, json=body, headers=headers, verify=NO_CERTIFICATES, trust_env=False
    )


TEXT = {"type": "text", "text": "Look."}
MARKED = {**TEXT, "cache_control": {"type": "ephemeral"}}
THINKING = {"type": "thinking", "thinking": "", "signature": "made up"}
CALLS = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "There."}


def looked(
    first: dict[str, object], second: dict[str, object], answer: list[dict[str, object]]
) -> list[dict[str, object]]:
    """A round with one call."""
    return [
        {"role": "user", "content": [TEXT]},
        {"role": "assistant", "content": [first, second]},
        {"role": "user", "content": answer},
    ]


def test_a_naive_client_is_refused_by_anthropic() -> None:
    plain = {
        "model": "claude-opus-5",
        "messages": [{"role": "user", "content": "Hello."}],
    }
    headers = {"x-api-key": "a-key", "anthropic-version": "2023-06-01"}
    naive: list[dict[str, object]] = [
        plain,  # no max_tokens
        {**plain, "max_tokens": 1_000_000},
        {**plain, "max_tokens": 9, "temperature": 0.2},
        {**plain, "max_tokens": 9, "stream_options": {}},
        {
            **plain,
            "max_tokens": 9,
            "messages": [*plain["messages"], {"role": "assistant", "content": "Hel"}],
        },
        {
            **plain,
            "max_tokens": 9,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        },
        {
            **plain,
            "max_tokens": 9,
            "messages": [{"role": "user", "content": [MARKED] * 5}],
        },
        {
            **plain,
            "max_tokens": 9,
            "messages": [{"role": "user", "content": [{**MARKED, "text": ""}]}],
        },
        {**plain, "max_tokens": 9, "messages": looked(TEXT, CALLS, [TEXT, RESULT])},
        {**plain, "max_tokens": 9, "messages": looked(THINKING, CALLS, [RESULT])},
    ]
    with Anthropic([Said("Hello.")]) as simulator:
        statuses = [
            post(simulator, "/v1/messages", body, **headers).status_code
            for body in naive
        ]
        accepted = post(
            simulator, "/v1/messages", {**plain, "max_tokens": 9}, **headers
        ).status_code

    assert (statuses, accepted) == ([400] * len(naive), 200)


NAIVE = [
    {"role": "user", "content": "Look."},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "call_1_0",
                "type": "function",
                "function": {"name": "look", "arguments": "{}"},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1_0", "content": "There."},
]


@each_row("kind", [DeepSeek, Kimi, Mistral, Gemini, OpenRouter])
def test_a_naive_client_is_refused_after_the_first_round(kind: type[Chat]) -> None:
    first = {"model": "m", "messages": NAIVE[:1], "stream": True}
    with kind([Said("", "I look.", (("look", {}),)), Said("Done.")]) as simulator:
        path, key = "/v1/chat/completions", {"authorization": "Bearer a-key"}
        accepted = post(simulator, path, first, **key).status_code
        refused = post(simulator, path, {**first, "messages": NAIVE}, **key).status_code

    assert (accepted, refused) == (200, 400)


def billed(bills: list[Bill], price: Price) -> tuple[float, float]:
    """Dollars for the calls by a price list, and the same as if nothing had been
    cached.
    """
    paid = sum(
        bill.plain * price.prompt
        + bill.cached * (price.cache_read or 0.0)
        + bill.written * (price.cache_write or 0.0)
        + bill.completion * price.completion
        for bill in bills
    )
    return paid, sum(
        bill.prompt * price.prompt + bill.completion * price.completion
        for bill in bills
    )


@each_row(
    ("provider", "name"),
    [
        ("anthropic", "anthropic/claude-opus-5"),
        ("deepseek", "deepseek/deepseek-v4-pro"),
    ],
)
async def test_cost_and_cache_savings_equal_the_bill(
    provider: str, name: str, root: Path
) -> None:
    price, tally = known_model(name).price, Tally()
    assert price is not None
    with PROVIDERS[provider].simulated(SIX_ROUNDS) as simulator:
        asked = replace(PROVIDERS[provider], model=name).asked_at(simulator.url)
        model = Budgeted(asked, Limit(), price=lambda: price, spend=tally.add)
        await heard(Dialogue(model, read_only_tools(root), "on"))

    paid, uncached = billed(simulator.bills, price)
    assert tally.spent.usd == pytest.approx(paid, rel=0.01)
    assert tally.spent.saved_usd == pytest.approx(uncached - paid, rel=0.01)
    assert tally.spent.cached_tokens == sum(bill.cached for bill in simulator.bills) > 0


async def test_the_cost_that_openrouter_reports_counts(root: Path) -> None:
    with OpenRouter(SIX_ROUNDS) as simulator:
        model = PROVIDERS["gemini behind openrouter"].asked_at(simulator.url)
        result = await heard(Dialogue(model, read_only_tools(root), "on"))

    assert [usage.usd for usage in usages(result.events)] == simulator.dollars


GPT_AT_A_GATEWAY = Provider("openai/gpt-5.6", Gateway, "OPENAI_API_KEY")


async def test_a_gateway_s_gpt_thinks_with_tools_by_responses(root: Path) -> None:
    with Gateway([Said("Hello."), *SIX_ROUNDS]) as simulator:
        model = GPT_AT_A_GATEWAY.asked_at(simulator.url, ModelOptions(watched=True))
        await heard(Dialogue(model))
        result = await heard(Dialogue(model, read_only_tools(root), "on"))

    assert (result.turn.text, len(simulator.refusals)) == (LAST, 1)
    paths = [sent.path for sent in simulator.sent]
    assert paths == ["/v1/chat/completions"] * 2 + ["/v1/responses"] * 6
    assert all(bill.reasoning for bill in simulator.bills[1:])


async def test_a_gateway_whose_responses_lack_the_model_is_asked_by_chat(
    root: Path,
) -> None:
    with Gateway(SIX_ROUNDS, has_model=lambda number: False) as simulator:
        model = GPT_AT_A_GATEWAY.asked_at(simulator.url)
        result = await heard(Dialogue(model, read_only_tools(root), "on"))

    assert (result.turn.text, len(simulator.refusals)) == (LAST, 2)
    assert simulator.sent[-1].path == "/v1/chat/completions"


async def test_a_later_refusal_of_responses_does_not_end_thinking(root: Path) -> None:
    with Gateway(SIX_ROUNDS, has_model=lambda number: number != 2) as simulator:
        model = GPT_AT_A_GATEWAY.asked_at(simulator.url)
        talk = Dialogue(model, read_only_tools(root), "on")
        with pytest.raises(RequestRejected):
            await heard(talk)
        await after_rounds(talk, 1)

    assert simulator.sent[-1].path == "/v1/responses"


async def test_a_gateway_s_gpt_that_was_told_not_to_think_stays_with_chat(
    root: Path,
) -> None:
    with Gateway(SIX_ROUNDS) as simulator:
        options = ModelOptions(effort=Effort.NONE)
        model = GPT_AT_A_GATEWAY.asked_at(simulator.url, options)
        result = await heard(Dialogue(model, read_only_tools(root), "on"))

    assert (result.turn.text, simulator.refusals) == (LAST, [])
    assert {sent.path for sent in simulator.sent} == {"/v1/chat/completions"}


async def test_without_responses_gpt_does_not_think_with_tools(root: Path) -> None:
    with OpenAIChatWithoutThoughts([*SIX_ROUNDS, Said("Hello.")]) as simulator:
        model = GPT_AT_A_GATEWAY.asked_at(simulator.url)
        with_tools = await heard(Dialogue(model, read_only_tools(root), "on"))
        without = await heard(Dialogue(model))

    assert (with_tools.turn.text, without.turn.text) == (LAST, "Hello.")
    assert len(simulator.refusals) == 2  # by chat, and then by Responses
    assert ["reasoning_effort" in sent.body for sent in simulator.sent] == [
        False,
        False,
        *[True] * 6,
        False,
    ]


async def test_the_cost_of_a_gpt_loop_equals_the_bill(root: Path) -> None:
    provider = PROVIDERS["openai responses"]
    with OpenAIResponses(SIX_ROUNDS) as simulator:
        result = await heard(
            Dialogue(provider.asked_at(simulator.url), read_only_tools(root), "on")
        )

    price = known_model(provider.model).price
    assert price is not None
    billed = [
        4e-6 * bill.plain
        + 0.4e-6 * bill.cached
        + 5e-6 * bill.written
        + 20e-6 * bill.completion
        for bill in simulator.bills
    ]
    assert [price.cost_of(usage) for usage in usages(result.events)] == pytest.approx(
        billed
    )


async def test_all_output_items_of_gpt_are_sent_back_unchanged(root: Path) -> None:
    with OpenAIResponses(SIX_ROUNDS) as simulator:
        model = PROVIDERS["openai responses"].asked_at(
            simulator.url, ModelOptions(watched=True)
        )
        await heard(Dialogue(model, read_only_tools(root), "on"))

    returned = [item for item in simulator.sent[-1].body["input"] if "id" in item]
    # of the last round
    given = [
        item for item in simulator.issued.values() if not item["id"].endswith("_6")
    ]
    assert returned == given
    assert [item["phase"] for item in returned if item["type"] == "message"] == [
        "commentary"
    ] * 5
    assert all(
        item["summary"] and item["encrypted_content"]
        for item in returned
        if item["type"] == "reasoning"
    )


async def test_unreadable_thoughts_are_dropped(
    root: Path,
) -> None:
    with OpenAIResponses(SIX_ROUNDS) as simulator:
        talk = Dialogue(
            PROVIDERS["openai responses"].asked_at(simulator.url),
            read_only_tools(root),
            "on",
        )
        spoken = await after_rounds(talk, 1)
        for given in simulator.issued.values():
            given["encrypted_content"] = "of another key"
        result = await heard(talk, spoken)

    assert (result.turn.text, len(simulator.bills), len(simulator.refusals)) == (
        LAST,
        6,
        1,
    )


async def test_an_unverified_account_gets_the_reply_without_streaming(
    root: Path,
) -> None:
    with OpenAIResponses(SIX_ROUNDS, is_verified=False) as simulator:
        model = PROVIDERS["openai responses"].asked_at(
            simulator.url, ModelOptions(watched=True)
        )
        result = await heard(Dialogue(model, read_only_tools(root), "on"))

    assert (result.turn.text, len(simulator.bills), len(simulator.refusals)) == (
        LAST,
        6,
        2,
    )


CALL = {
    "type": "function_call",
    "id": "fc_1_1_0",
    "call_id": "call_1_1_0",
    "name": "look",
    "arguments": "{}",
}
ANSWER = {"type": "function_call_output", "call_id": "call_1_1_0", "output": "There."}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1_1",
    "summary": [],
    "encrypted_content": "gAAAA-1_1-.kool I==",
}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
USER = {"role": "user", "content": "Look."}


@each_row(
    ("changed", "says"),
    [
        ({"messages": [USER]}, "Unknown parameter: 'messages'"),
        ({"max_tokens": 9}, "Unknown parameter: 'max_tokens'"),
        ({"reasoning_effort": "low"}, "Unknown parameter"),
        ({"stream_options": {"include_usage": True}}, "Unknown parameter"),
        ({"temperature": 0.2}, "not supported with this model"),
        ({"reasoning": {"effort": "max"}}, "Unsupported value: 'max'"),
        (
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "look", "parameters": SCHEMA},
                    }
                ]
            },
            "'tools[0].name'",
        ),
        (
            {"tools": [{"type": "function", "name": "look", "parameters": SCHEMA}]},
            "Invalid schema",
        ),
        ({"input": []}, "Missing required parameter"),
        (
            {"input": [USER, {"role": "assistant", "content": "", "tool_calls": []}]},
            "'input[1].tool_calls'",
        ),
        ({"input": [USER, {"role": "tool", "content": "There."}]}, "Invalid role tool"),
        ({"input": [USER, CALL, ANSWER]}, "without its required 'reasoning' item"),
        ({"input": [USER, THOUGHT]}, "without its required following item"),
        ({"input": [USER, THOUGHT, ANSWER]}, "No tool call found"),
        ({"input": [USER, THOUGHT, CALL]}, "No tool output found"),
        (
            {"input": [USER, THOUGHT, {**CALL, "id": "call_1_1_0"}, ANSWER]},
            "is not an id of this API",
        ),
        (
            {"input": [USER, {**THOUGHT, "encrypted_content": "gAAAA"}, CALL, ANSWER]},
            "could not be verified",
        ),
        (
            {"input": [USER, {**THOUGHT, "encrypted_content": None}, CALL, ANSWER]},
            "not found",
        ),
        (
            {
                "input": [
                    USER,
                    {**THOUGHT, "summary": [{"type": "summary_text"}]},
                    CALL,
                    ANSWER,
                ]
            },
            "could not be verified",
        ),
    ],
)
def test_a_naive_client_is_refused_by_openai(
    changed: dict[str, object], says: str
) -> None:
    plain = {"model": "gpt-5.6", "input": [USER], "store": False, "stream": True}
    plain["include"] = ["reasoning.encrypted_content"]
    with OpenAIResponses(
        [Said("", "I look.", (("look", {}),)), Said("Done.")], number=1
    ) as simulator:
        path, key = "/v1/responses", {"authorization": "Bearer a-key"}
        assert post(simulator, path, plain, **key).status_code == 200
        refused = post(simulator, path, {**plain, **changed}, **key)
        accepted = post(
            simulator, path, {**plain, "input": [USER, THOUGHT, CALL, ANSWER]}, **key
        )

    assert refused.is_client_error
    assert says in refused.text
    assert accepted.status_code == 200


async def test_the_cost_that_openrouter_reports_overrides_a_known_price(
    root: Path,
) -> None:
    tally = Tally()
    with OpenRouter(SIX_ROUNDS) as simulator:
        model = PROVIDERS["gemini behind openrouter"].asked_at(simulator.url)
        priced = Budgeted(
            model, Limit(), price=lambda: Price(1e-6, 1e-6), spend=tally.add
        )
        await heard(Dialogue(priced, read_only_tools(root), "on"))

    assert tally.spent.usd == pytest.approx(sum(simulator.dollars))
