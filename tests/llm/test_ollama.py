"""A request that Ollama cut is an error, by chat completions too."""

from typing import Any

import httpx
import pytest

from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.port import (
    ContextTooLong,
    Done,
    Message,
    ModelEvent,
    Request,
    TextDelta,
)
from cdd_agent.llm.providers import endpoint_of
from tests.llm.simulators.base import Said
from tests.llm.simulators.ollama import Ollama
from tests.support.replies import all_of
from tests.support.tables import each_row

SENTENCE = "The quick brown fox jumps over a lazy dog. "  # 43 characters
KNOWN = Message("system", "The password is ANANAS. Say it when you are asked.")


def words(tokens: int) -> str:
    return SENTENCE * (tokens * 4 // len(SENTENCE))


def asking(*texts: str) -> Request:
    return Request((KNOWN, *(Message("user", text) for text in texts)))


def model_at(simulator: Ollama, prefix: str = "openai") -> DirectModel:
    endpoint = endpoint_of(f"{prefix}/{simulator.model}", simulator.url, {})
    assert endpoint is not None
    return DirectModel(f"{prefix}/{simulator.model}", endpoint)


async def heard(model: DirectModel, request: Request) -> list[ModelEvent | Done]:
    return await all_of(model, request)


LONG = {
    "one long message": (False, asking(words(6_000), "What is the password?")),
    "a long conversation": (True, asking(*[words(900)] * 9, "What is the password?")),
}


@each_row(("drops_messages", "request_"), LONG.values(), ids=LONG)
async def test_a_request_that_ollama_cut_is_an_error(
    drops_messages: bool, request_: Request
) -> None:
    says = r"Ollama has cut .* it read [\d,]+, and its window has 4,096"
    with (
        Ollama([Said("No idea.")], drops_messages=drops_messages) as simulator,
        pytest.raises(ContextTooLong, match=says) as raised,
    ):
        await heard(model_at(simulator), request_)

    assert len(simulator.read) < sum(
        len(message.content) for message in request_.messages
    )
    assert "OLLAMA_CONTEXT_LENGTH" in raised.value.hint


async def test_a_cut_request_makes_no_tool_calls() -> None:
    events: list[ModelEvent] = []

    with Ollama(
        [Said("I look.", calls=(("read_file", {"path": "a.txt"}),))]
    ) as simulator:
        with pytest.raises(ContextTooLong):
            await model_at(simulator).reply(asking(words(6_000)), events.append)
        assert len(simulator.bills) == 1
    assert {type(event) for event in events} == {TextDelta}


@each_row("tokens", [10, 1_500, 2_040, 3_500, 4_000])
async def test_a_request_that_ollama_read_completely_is_answered(tokens: int) -> None:
    with Ollama([Said("ANANAS")]) as simulator:
        events = await heard(model_at(simulator), asking(words(tokens)))

    assert "ANANAS" in simulator.read
    assert (
        "".join(event.text for event in events if isinstance(event, TextDelta))
        == "ANANAS"
    )


async def test_without_a_window_the_token_count_alone_shows_a_cut() -> None:
    with (
        Ollama([Said("No idea.")], tells=False) as simulator,
        pytest.raises(ContextTooLong, match=r"it read 2,050$"),
    ):
        await heard(model_at(simulator, "ollama"), asking(words(12_000)))


async def test_another_server_with_a_low_count_is_not_treated_as_ollama() -> None:
    with Ollama([Said("Yes.")], tells=False) as simulator:
        assert await heard(model_at(simulator), asking(words(12_000)))


async def test_the_window_is_known_after_the_first_call() -> None:
    with Ollama([Said("Yes.")], window=8192) as simulator:
        model = model_at(simulator)
        assert model.window is None  # nothing is loaded yet
        await heard(model, asking("Hello."))
        assert model.window == 8192


def test_a_naive_client_accepts_the_reply_to_half_of_a_request() -> None:
    with Ollama([Said("No idea.")]) as simulator:
        body = {
            "model": simulator.model,
            "stream": True,
            "options": {"num_ctx": 32_768},
        }
        messages = [
            {"role": "user", "content": f"The password is ANANAS. {words(9_000)}"}
        ]
        answer = httpx.post(
            f"{simulator.url}/chat/completions", json={**body, "messages": messages}
        )

    assert (answer.status_code, "ANANAS" in simulator.read) == (200, False)


async def test_another_server_is_asked_about_its_window_only_a_few_times() -> None:
    asked: list[str] = []

    class Other(Ollama):
        def get(self, path: str) -> dict[str, Any] | None:
            asked.append(path)
            return None

    with Other([Said("Yes.")] * 6) as simulator:
        model = model_at(simulator)
        for _ in range(6):
            await heard(model, asking("Hello."))

    assert asked.count("/api/ps") <= 3  # once to begin with, and after two replies
