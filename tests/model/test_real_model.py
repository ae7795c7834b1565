"""A real model, over a real connection, through both adapters."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import cast

import httpx
import pytest

from cdd_agent.llm.direct.model import DirectModel
from cdd_agent.llm.failure_rules import explain_failure
from cdd_agent.llm.failures import Failure
from cdd_agent.llm.litellm_adapter import LitellmModel
from cdd_agent.llm.local_servers import LocalServer, find_local_servers
from cdd_agent.llm.port import (
    BadAnswer,
    ContextTooLong,
    Message,
    Model,
    ModelEvent,
    Request,
    TextDelta,
)
from cdd_agent.llm.providers import endpoint_of
from tests.model.conftest import Server
from tests.support.replies import all_of

NAME = "openai/smollm2"
SLUG = "feature-add"
SPEC = """\
title: Add two numbers
type: feature
description: A Python function add(a, b) that returns the sum of a and b.
acceptance_criteria: [add(2, 3) is 5]
"""
PLAN = """\
# Implementation Plan: Add two numbers

## Implementation Steps

### Step 1: Write add(a, b)

**Description:** Write a Python function `add(a, b)` that returns `a + b`.

```python:add.py
def add(a, b):
    return ...
```

**Files Affected:**
- `add.py` (new)
"""
CONFIG = """\
test_command: >-
  python -c "from add import add; assert add(2, 3) == 5; assert add(-1, 1) == 0"
"""


def through_litellm(api_base: str) -> Model:
    return LitellmModel(NAME, api_base)


def directly(api_base: str) -> Model:
    endpoint = endpoint_of(NAME, api_base, {})
    assert endpoint is not None
    return DirectModel(NAME, endpoint)


ADAPTERS = {"litellm": through_litellm, "direct": directly}


@pytest.fixture(params=list(ADAPTERS))
def model(request: pytest.FixtureRequest, server: Server) -> Model:
    make: Callable[[str], Model] = ADAPTERS[request.param]
    return make(server.api_base)


def request_of(words: str) -> Request:
    return Request((Message("user", words),))


async def test_the_server_is_found_with_its_model(server: Server) -> None:
    assert await find_local_servers({"llama.cpp": server.port}) == (
        LocalServer("llama.cpp", server.api_base, ("smollm2",)),
    )


@pytest.mark.parametrize("adapter", list(ADAPTERS))
def test_the_model_writes_the_code_of_a_step_and_its_check_passes(
    tmp_path: Path, server: Server, adapter: str
) -> None:
    ticket = tmp_path / "tickets" / SLUG
    ticket.mkdir(parents=True)
    (tmp_path / ".cdd").mkdir()
    (ticket / "spec.yaml").write_text(SPEC)
    (ticket / "plan.md").write_text(PLAN)
    (tmp_path / ".cdd" / "config.yaml").write_text(CONFIG)

    command = [
        sys.executable,
        "-m",
        "cdd_agent",
        "exec",
        SLUG,
        "--model",
        NAME,
        "--api-base",
        server.api_base,
    ]
    run = subprocess.run(
        [*command, "--max-attempts", "5", "--json"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "CDD_MODEL_ADAPTER": adapter,
        },
        capture_output=True,
        text=True,
    )

    # what the model said, where the test fails
    print(run.stdout, run.stderr)  # noqa: T201
    assert run.returncode == 0
    state = json.loads((ticket / "execution-state.json").read_text())
    assert state["status"] == "completed"
    assert state["step_executions"]["1"]["verification"] == "exit_code"
    assert state["step_executions"]["1"]["files_created"] == ["add.py"]
    assert "return" in (tmp_path / "add.py").read_text()
    # it did not send the plan's block back
    assert "..." not in (tmp_path / "add.py").read_text()
    events = [json.loads(line) for line in run.stdout.splitlines()]
    assert sum(event["event"] == "reply_delta" for event in events) > 5


async def test_a_reply_comes_in_pieces_while_it_is_written(model: Model) -> None:
    arrived, text = list[float](), ""

    def on_event(event: ModelEvent) -> None:
        nonlocal text
        arrived.append(time.monotonic())
        text += cast("TextDelta", event).text
        if len(arrived) == 40:  # it would go on for long
            call.cancel()

    call = asyncio.ensure_future(
        model.reply(
            request_of("Write a story about a ship, with many chapters."), on_event
        )
    )
    await asyncio.wait([call])
    assert call.cancelled()
    assert "ship" in text.lower()
    gaps = [later - earlier for earlier, later in pairwise(arrived)]
    assert sum(gap > 0.001 for gap in gaps) > len(gaps) / 2  # not all at once


async def test_leaving_closes_the_connection_at_once_and_the_next_call_is_answered(
    model: Model, server: Server
) -> None:
    begun = asyncio.Event()
    words = request_of("Write a very long story about a ship, with many chapters.")
    call = asyncio.ensure_future(model.reply(words, lambda event: begun.set()))
    await begun.wait()
    assert server.connections == 1

    began = time.monotonic()
    call.cancel()
    await asyncio.wait([call])
    while server.connections:
        assert time.monotonic() < began + 10
        time.sleep(0.01)
    assert time.monotonic() < began + 5

    assert await all_of(model, request_of("Say hello."))


async def test_a_prompt_that_is_too_long_is_never_taken_for_an_answered_one(
    model: Model,
) -> None:
    """This server has begun a stream when it notices, and ends it without a word:
    nobody can know, but it is named.
    """
    with pytest.raises(BadAnswer) as raised:
        await all_of(model, request_of("All work and no play. " * 2_000))
    assert "context" in raised.value.hint


def test_without_a_stream_the_server_says_in_known_words_that_a_prompt_is_too_long(
    server: Server,
) -> None:
    messages = [{"role": "user", "content": "All work and no play. " * 2_000}]
    answer = httpx.post(
        f"{server.api_base}/chat/completions", json={"messages": messages}, timeout=60
    )
    assert answer.status_code == 400
    error = explain_failure(
        Failure(status=400, words=answer.text, all_words=answer.text), NAME, None, str
    )
    assert type(error) is ContextTooLong
