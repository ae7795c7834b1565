"""Settings of how a model is asked: what of them is in the request that arrives,
whichever adapter sends it.
"""

from pathlib import Path
from typing import Any

import pytest

from cdd_agent.llm.port import Message, Request
from cdd_agent.settings.config import Config, OwnRequest
from cdd_agent.wiring.models import make_model
from tests.llm.server import LoopbackServer, Recorded
from tests.support.replies import all_of
from tests.support.tables import each_row

REQUEST = Request((Message("user", "Say hello."),))
LITELLM = pytest.param(
    "litellm",
    marks=[
        pytest.mark.adapters,
        pytest.mark.xdist_group("litellm"),
    ],
)


async def arrives(tmp_path: Path, **settings: Any) -> Recorded:
    """The request that a server gets under these settings."""
    with LoopbackServer(["Hello."]) as server:
        config = Config(api_base=server.url, **{"model": "openai/gpt-5.1", **settings})
        await all_of(make_model(config, tmp_path, watched=False), REQUEST)
    (request,) = server.requests
    return request


@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_every_setting_is_in_the_request(tmp_path: Path, adapter: str) -> None:
    extras = OwnRequest(
        body={"service_tier": "flex", "future": {"a": [1]}}, headers={"X-Team": "red"}
    )
    request = await arrives(
        tmp_path,
        model_adapter=adapter,
        effort="high",
        max_output_tokens=9000,
        request=extras,
    )
    assert request.body["reasoning_effort"] == "high"
    assert request.body["max_completion_tokens"] == 9000
    assert (request.body["service_tier"], request.body["future"]) == (
        "flex",
        {"a": [1]},
    )
    assert request.headers["X-Team"] == "red"


@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_a_temperature_is_sent_only_to_models_that_accept_one(
    tmp_path: Path, adapter: str
) -> None:
    sent = await arrives(
        tmp_path, model_adapter=adapter, model="openai/gpt-4o", temperature=0.5
    )
    assert sent.body["temperature"] == 0.5
    kept = await arrives(
        tmp_path, model_adapter=adapter, model="openai/gpt-5", temperature=0.5
    )
    assert "temperature" not in kept.body


@pytest.mark.parametrize("adapter", ["direct", LITELLM])
async def test_without_settings_no_parameters_are_sent(
    tmp_path: Path, adapter: str
) -> None:
    body = (await arrives(tmp_path, model_adapter=adapter)).body
    assert not body.keys() & {
        "reasoning_effort",
        "temperature",
        "max_tokens",
        "max_completion_tokens",
    }


@each_row("name", ["Authorization", "authorization"])
async def test_a_configured_header_replaces_the_usual_one(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "usual")
    request = await arrives(tmp_path, request=OwnRequest(headers={name: "Bearer own"}))
    assert [
        value
        for header, value in request.headers.items()
        if header.lower() == "authorization"
    ] == ["Bearer own"]
