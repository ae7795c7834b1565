"""Facts that servers tell of their models: believed where they have the right shape,
kept, never waited for long.
"""

import itertools
import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from platformdirs import user_cache_path

from cdd_agent.llm import timeouts
from cdd_agent.llm.budget import Budgeted, Limit
from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.fetched_json import fetch_json
from cdd_agent.llm.options import Effort, ModelOptions
from cdd_agent.llm.port import Message, Model, Price, Request
from cdd_agent.llm.providers import endpoint_of
from tests.llm.listing import HEAD, answering
from tests.llm.simulators.base import Said
from tests.llm.simulators.chat import OpenRouter
from tests.llm.test_local_servers import deserted_port
from tests.support.replies import all_of
from tests.support.tables import each_row

NAME = "openrouter/maker/model-9"
ENTRY = {
    "id": "maker/model-9",
    "description": "Long.",
    "context_length": 400_000,
    "pricing": {
        "prompt": "0.000003",
        "completion": "0.000015",
        "input_cache_read": "0.0000003",
        "input_cache_write": "0.00000375",
    },
    "supported_parameters": ["tools", "reasoning"],
    "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000},
    "architecture": {"input_modalities": ["text", "image"]},
}


def listed(*entries: object) -> bytes:
    return HEAD + json.dumps({"data": entries}).encode()


def asked_at(port: int, name: str = NAME) -> DirectModel:
    endpoint = endpoint_of(name, f"http://127.0.0.1:{port}/v1", {})
    assert endpoint is not None
    return DirectModel(name, endpoint)


def kept() -> Path:
    return user_cache_path("cdd-agent") / "openrouter-models.json"


def age(seconds: float) -> None:
    """As if the list had been asked for so long ago."""
    content = json.loads(kept().read_text())
    kept().write_text(json.dumps({**content, "asked_at": time.time() - seconds}))


def facts(model: Model) -> tuple[bool, int | None, Price | None]:
    return model.calls_tools, model.window, model.price


PRICE = Price(3e-6, 1.5e-5, 3e-7, 3.75e-6)


def test_tools_window_and_price_of_a_model_behind_openrouter_are_known() -> None:
    with answering(listed({"id": "other/one"}, ENTRY)) as (port, heads):
        model = asked_at(port)
        model.warm_up()
        assert facts(model) == (True, 200_000, PRICE)
        assert facts(asked_at(port, f"{NAME}:nitro")) == (True, 200_000, PRICE)

    assert [head.splitlines()[0] for head in heads] == ["GET /v1/models HTTP/1.1"]
    assert "Long." not in kept().read_text()


def test_a_budget_in_dollars_works_with_the_listed_price() -> None:
    with answering(listed(ENTRY)) as (port, _):
        model = asked_at(port)
        assert (
            Budgeted(model, Limit(usd=1.0), price=lambda: model.price).limit.usd == 1.0
        )


def test_the_list_is_kept_for_a_day_or_until_a_new_one_arrives() -> None:
    with answering(listed(ENTRY)) as (port, heads):
        assert facts(asked_at(port))[1] == 200_000
        age(80_000)
        assert facts(asked_at(port))[1] == 200_000
        assert len(heads) == 1

    age(90_000)
    assert facts(asked_at(port)) == (True, 200_000, PRICE)  # nobody is there any more


def test_an_old_list_is_requested_again() -> None:
    with answering([listed(ENTRY)]) as (port, heads):
        assert facts(asked_at(port))[1] == 200_000
        age(90_000)
        asked_at(port).warm_up()
        while len(heads) < 2:
            time.sleep(0.01)


def test_a_model_missing_from_the_list_is_looked_up() -> None:
    with answering(listed(ENTRY)) as (port, heads):
        assert facts(asked_at(port, "openrouter/maker/new"))[1] is None
        assert facts(asked_at(port, "openrouter/maker/new"))[1] is None
        assert len(heads) == 1  # not each time
        age(4_000)
        assert facts(asked_at(port, "openrouter/maker/new"))[1] is None
        assert len(heads) == 2


def test_answers_of_another_address_do_not_count() -> None:
    with answering(listed(ENTRY)) as (port, _):
        assert facts(asked_at(port))[1] == 200_000
    with deserted_port() as port:
        assert facts(asked_at(port))[1] is None


@each_row(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 100_000,
        b'{"base": 1, "asked_at": "x", "data": 7}',
        b"\xff",
    ],
)
def test_a_damaged_kept_list_does_no_harm(data: bytes) -> None:
    kept().parent.mkdir(parents=True, exist_ok=True)
    kept().write_bytes(data)
    with answering(listed(ENTRY)) as (port, _):
        assert facts(asked_at(port)) == (True, 200_000, PRICE)


WRONG = [None, -1, 0, True, "many", [], {}, 10**30]


@each_row("wrong", WRONG)
def test_a_fact_of_a_wrong_type_is_unknown(wrong: object) -> None:
    entry = {
        "id": "maker/model-9",
        "context_length": wrong,
        "pricing": {"prompt": wrong if wrong != 0 else "-1", "completion": "0.1"},
        "supported_parameters": wrong,
        "top_provider": wrong,
        "architecture": wrong,
    }
    with answering(listed(7, entry)) as (port, _):
        assert facts(asked_at(port)) == (False, None, None)


@each_row(
    "pricing",
    [{"prompt": "nan", "completion": "1"}, {"prompt": "1e999", "completion": "1"}, {}],
)
def test_an_unusable_price_is_unknown(pricing: object) -> None:
    with answering(listed({**ENTRY, "pricing": pricing})) as (port, _):
        assert facts(asked_at(port)) == (True, 200_000, None)


@each_row(
    "answer",
    [
        b"",
        HEAD + b"<html>",
        HEAD + b"null",
        HEAD + b'{"data": {}}',
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_an_answer_that_is_not_a_list_is_not_kept(answer: bytes) -> None:
    with answering(answer) as (port, _):
        assert facts(asked_at(port)) == (False, None, None)
    assert not kept().exists()


def test_a_silent_server_delays_nothing_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeouts, "FACTS_TIMEOUT", 0.2)
    with answering(itertools.repeat(b""), pause=0.05) as (port, _):
        began = time.monotonic()
        model = asked_at(port)
        model.warm_up()
        assert facts(model) == (False, None, None)
        assert time.monotonic() - began < 30


def test_an_endless_answer_is_abandoned() -> None:
    with answering(itertools.chain([HEAD], itertools.repeat(b" " * 2**20))) as (
        port,
        _,
    ):
        assert fetch_json(f"http://127.0.0.1:{port}/v1/models", None, 60.0) is None


@dataclass
class Listing(OpenRouter):
    """OpenRouter, with one model in its list."""

    takes: tuple[str, ...] = ()

    def get(self, path: str) -> dict[str, Any] | None:
        return (
            {"data": [{**ENTRY, "supported_parameters": self.takes}]}
            if path == "/v1/models"
            else None
        )


@each_row(
    ("takes", "fields"),
    [
        (
            ("tools", "reasoning"),
            {"reasoning": {"effort": "high"}, "max_tokens": 64_000},
        ),
        (("tools",), {"max_tokens": 64_000}),
    ],
)
async def test_a_request_uses_only_abilities_that_the_list_names(
    takes: tuple[str, ...], fields: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "a-key")
    with Listing([Said("Hello.")], takes=takes) as simulator:
        endpoint = endpoint_of(NAME, simulator.url)
        assert endpoint is not None
        model = DirectModel(
            NAME, endpoint, ModelOptions(effort=Effort.HIGH, max_output_tokens=100_000)
        )
        await all_of(model, Request((Message("user", "Hello."),)))

    (sent,) = simulator.sent
    assert {
        name: sent.body.get(name)
        for name in ("reasoning", "max_tokens")
        if name in sent.body
    } == fields


LOCAL = {
    "ollama": {
        "models": [
            {"name": "other:latest", "context_length": 1},
            {"name": "m:latest", "context_length": 8192},
        ]
    },
    "vllm": {"data": [{"id": "m", "max_model_len": 8192}]},
    "llama.cpp": {"default_generation_settings": {"n_ctx": 8192}},
    "lm studio": {
        "data": [
            {"id": "m", "max_context_length": 99_999, "loaded_context_length": 8192}
        ]
    },
}


@each_row("said", LOCAL.values(), ids=LOCAL)
def test_the_window_of_a_server_on_this_computer_is_known(said: object) -> None:
    with answering(HEAD + json.dumps(said).encode()) as (port, _):
        model = asked_at(port, "openai/m")
        model.warm_up()
        assert model.window == 8192


@each_row("wrong", WRONG)
def test_a_window_of_a_wrong_type_is_unknown(wrong: object) -> None:
    said = {
        "models": [{"name": "m", "context_length": wrong}],
        "data": [{"id": "m", "max_model_len": wrong}],
    }
    with answering(HEAD + json.dumps(said).encode()) as (port, _):
        assert asked_at(port, "openai/m").window is None


def test_a_server_on_another_computer_is_not_asked() -> None:
    endpoint = endpoint_of("openai/m", "http://10.255.255.1/v1", {})
    assert endpoint is not None
    before = set(threading.enumerate())
    assert DirectModel("openai/m", endpoint).window is None
    assert set(threading.enumerate()) <= before
