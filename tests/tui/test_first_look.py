"""The first screen of somebody without a model: what runs on this computer is found
behind it, and can be chosen.
"""

import asyncio
import re
from functools import partial

from cdd_agent.events.shell_events import ModelChosen, ModelsFound
from cdd_agent.events.ticket_events import TicketsListed
from cdd_agent.llm.local_servers import LocalServer, find_local_servers
from tests.llm.listing import answering, listing
from tests.support.projects import Sandbox
from tests.support.settings import load_config
from tests.tui.person import person_at


async def test_local_models_are_offered_and_one_choice_sets_the_projects_model(
    sandbox: Sandbox,
) -> None:
    with answering(listing("qwen3-coder:30b", "llama3.2")) as (port, _):
        find = partial(find_local_servers, {"Ollama": port})
        async with person_at(sandbox, find_servers=find) as person:
            await person.until_told("Models on this computer:")
            assert re.search(r"\b1 +qwen3-coder:30b ", person.told)
            assert "no model" in person.title

            await person.say("/model 2 --save")

            assert "openai/llama3.2" in person.title
            assert person.shown[-1] == ModelChosen(
                "openai/llama3.2", f"http://127.0.0.1:{port}/v1", ".cdd/config.yaml"
            )
        config = load_config(sandbox.root, {})
        assert (config.model, config.api_base) == (
            "openai/llama3.2",
            f"http://127.0.0.1:{port}/v1",
        )

        async with person_at(sandbox, find_servers=find) as person:
            assert "openai/llama3.2" in person.title
            await person.until(lambda: not list(person.app.workers))
            assert not [
                event for event in person.shown if isinstance(event, ModelsFound)
            ]


async def test_a_server_without_a_model_is_named(sandbox: Sandbox) -> None:
    with answering(listing()) as (port, _):
        async with person_at(
            sandbox, find_servers=partial(find_local_servers, {"Ollama": port})
        ) as person:
            await person.until_told(
                "Ollama is running on this computer but has no model yet."
            )


async def test_a_slow_search_for_models_delays_neither_typing_nor_leaving(
    sandbox: Sandbox,
) -> None:
    looks = asyncio.Event()

    async def find_servers() -> tuple[LocalServer, ...]:
        looks.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async with person_at(sandbox, find_servers=find_servers) as person:
        await person.until(looks.is_set)
        await person.say("/list")
        assert TicketsListed(()) in person.shown
        assert any(worker.group == "look" for worker in person.app.workers)
        await person.press("ctrl+d")
    assert person.app.return_code == 0


async def test_nonsense_at_a_port_is_ignored(sandbox: Sandbox) -> None:
    page = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<html>\x1b[31mIt works!</html>"
    with answering(page) as (port, heads):
        async with person_at(
            sandbox, find_servers=partial(find_local_servers, {"llama.cpp": port})
        ) as person:
            await person.until(lambda: heads and not list(person.app.workers))
            assert not [
                event
                for event in person.shown
                if isinstance(event, ModelsFound) and event.models
            ]
