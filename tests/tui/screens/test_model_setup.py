"""The dialog that sets up a model: from where, with which key, at which address; each
by a key that the user means.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from textual import events

from cdd_agent.llm.local_servers import LocalServer
from cdd_agent.llm.providers import endpoint_of
from cdd_agent.llm.server_keys import forget_server_keys
from cdd_agent.text.redaction import forget_typed_keys
from cdd_agent.tui.screens.help import HelpScreen
from cdd_agent.tui.screens.model_setup import ModelSetup
from cdd_agent.tui.screens.wish import Wish
from tests.llm.model_lists import KEY, LIST, PAGE, server
from tests.support.projects import Sandbox, no_servers
from tests.support.settings import load_config
from tests.tui.person import Person, person_at

SERVER = LocalServer(
    "Ollama", "http://127.0.0.1:11434/v1", ("qwen3-coder:30b", "llama3.2")
)
ONE = LocalServer("vLLM", "http://127.0.0.1:8000/v1", ("only",))


async def servers() -> Sequence[LocalServer]:
    return (SERVER, ONE)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in os.environ:
        if name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    for name in ("MISTRAL_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "")
    yield
    forget_typed_keys()
    forget_server_keys()


async def dialog(person: Person) -> ModelSetup:
    """Open it by `/model`, and read its first page."""
    await person.begin("/model")
    await person.until(lambda: isinstance(person.app.screen, ModelSetup))
    screen = person.app.screen
    assert isinstance(screen, ModelSetup)
    await person.rest()
    return screen


async def choose(person: Person, words: str) -> None:
    """Filter by words, and press Enter."""
    await person.type(words)
    await person.press("enter")
    await person.until(lambda: not list(person.app.screen.workers))


async def paste(person: Person, text: str) -> None:
    person.app.post_message(events.Paste(text))
    await person.pilot.pause()


async def home(person: Person) -> None:
    await person.until(
        lambda: person.app.screen is person.app.home and not person.is_waiting
    )


async def test_a_model_of_a_local_server_is_chosen_by_two_enters(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, find_servers=servers) as person:
        await dialog(person)
        assert "No model set up yet. Choose one:" in person.screen
        await person.press("enter")
        await person.rest()
        await person.press("down", "enter")
        await home(person)
        assert "/model openai/llama3.2" in person.told
    config = load_config(sandbox.root, {})
    assert (config.model, config.api_base) == ("openai/llama3.2", SERVER.api_base)


async def test_the_only_model_of_a_server_is_chosen_by_one_enter(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, find_servers=servers) as person:
        await dialog(person)
        await choose(person, "vllm")
        await home(person)
    assert load_config(sandbox.root, {}).model == "openai/only"


async def test_a_second_enter_that_comes_at_once_chooses_no_model(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, find_servers=servers) as person:
        screen = await dialog(person)
        await person.press("enter", "enter")
        assert person.app.screen is screen
        assert "Too soon, ignored" in person.screen
        await person.rest()
        await person.press("enter")
        await home(person)
    assert load_config(sandbox.root, {}).model == "openai/qwen3-coder:30b"


async def test_escape_goes_back_page_by_page_and_changes_nothing(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, find_servers=servers) as person:
        screen = await dialog(person)
        await choose(person, "more")
        await person.rest()
        await choose(person, "groq")
        assert "export GROQ_API_KEY=…" in person.screen
        await person.press("escape")
        assert "Choose a provider:" in person.screen
        await person.press("escape")
        assert "Choose one:" in person.screen
        assert person.app.screen is screen
        await person.press("escape")
        await home(person)
        assert person.prompt.text == ""
    assert load_config(sandbox.root, {}).model is None


async def test_a_typed_key_is_tried_and_used_and_stored_nowhere(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    no = "no: my-wrong-key-0123456789"
    with server({"/v1/models": (401, no)}) as (host, _):
        monkeypatch.setenv("MISTRAL_API_BASE", f"http://{host}")
        sandbox.replies("Hello.", f"Your key is {KEY}.")
        (sandbox.root / ".cdd").mkdir()
        async with person_at(sandbox) as person:
            await person.say("hello")
            await dialog(person)
            await choose(person, "mistral")
            await paste(person, "my-wrong-key-0123456789")
            await person.press("enter")
            await person.until(lambda: "Mistral refused the key" in person.screen)
            assert "wrong-key" not in person.screen
            await paste(person, f' "{KEY}" \n')
            assert "•" in person.screen
            assert KEY[:6] not in person.screen
            await person.press("enter")
            await person.until(lambda: "Mistral: model" in person.screen)
            assert os.environ["MISTRAL_API_KEY"] == KEY
            await person.rest()
            await choose(person, "two")
            await home(person)
            await person.until(lambda: "For next time: export" in person.told)
            await person.say("/cost")
            assert load_config(sandbox.root, {}).model == "mistral/two"
            await person.say("what is my key?")
            assert "Your key is" in person.told
            await person.type("more")
            for text in (str(person.shown), person.told, files(sandbox.root)):
                assert KEY not in text
        assert "Your key is" in files(sandbox.root)
        assert KEY not in files(sandbox.root)


def files(root: Path) -> str:
    """All texts below a folder, with their names."""
    home = Path(os.environ["HOME"])
    paths = [path for folder in (root, home) for path in folder.rglob("*")]
    return "\n".join(
        f"{path}: {path.read_text(errors='replace')}"
        for path in paths
        if path.is_file()
    )


async def test_a_key_of_the_environment_is_tried_first(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-an-old-key-0123456789")
    with server({"/v1/models": (401, "no")}) as (host, _):
        monkeypatch.setenv("MISTRAL_API_BASE", f"http://{host}")
        async with person_at(sandbox, find_servers=no_servers) as person:
            await dialog(person)
            assert "key in MISTRAL_API_KEY" in person.screen
            await choose(person, "mistral")
            await person.until(lambda: "refused the key in MISTRAL" in person.screen)
            await person.press("escape")
            monkeypatch.setenv("MISTRAL_API_KEY", KEY)
            await choose(person, "mistral")
            await person.until(lambda: "Mistral: model" in person.screen)


async def test_a_model_that_is_not_in_the_list_can_be_named(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    with server({"/v1/models": (200, LIST)}) as (host, _):
        monkeypatch.setenv("MISTRAL_API_BASE", f"http://{host}")
        async with person_at(sandbox, find_servers=no_servers) as person:
            await dialog(person)
            await choose(person, "mistral")
            await person.until(lambda: "Mistral: model" in person.screen)
            await person.type("mistral/zzz-new")
            assert "use it anyway" in person.screen
            await person.press("enter")
            await home(person)
    assert load_config(sandbox.root, {}).model == "mistral/zzz-new"


async def test_a_server_is_found_by_its_address(sandbox: Sandbox) -> None:
    with server({"/v1/models": (401, "a key, please")}) as (host, _):
        async with person_at(sandbox, find_servers=no_servers) as person:
            await dialog(person)
            await choose(person, "another server")
            await choose(person, "two words")
            assert "not the address of a server" in person.screen
            await person.press("ctrl+u")
            await choose(person, host)
            await person.until(lambda: "a key, please" in person.screen)
            await paste(person, KEY)
            await person.press("enter")
            await person.until(lambda: f"{host}: model" in person.screen)
            await person.rest()
            await person.press("enter")
            await home(person)
            config = load_config(sandbox.root, {})
            assert config.model == "openai/one"
            assert config.api_base == f"http://{host}/v1"
            assert os.environ["OPENAI_API_KEY"] == ""
            endpoint = endpoint_of(config.model, config.api_base)
            assert endpoint is not None
            assert endpoint.key == KEY
            assert KEY not in files(sandbox.root)


async def test_a_server_gets_the_key_of_the_environment_only_by_enter(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with server({"/v1/models": (401, "a key, please")}) as (host, asked):
        async with person_at(sandbox, find_servers=no_servers) as person:
            await dialog(person)
            await choose(person, "another server")
            await choose(person, host)
            await person.until(lambda: "Enter tries the key in" in person.screen)
            assert KEY not in str(asked)
            await person.press("enter")
            await person.until(lambda: f"{host}: model" in person.screen)
            assert KEY in str(asked)
            await person.rest()
            await person.press("enter")
            await home(person)
            assert "For next time" not in person.told


async def test_a_failed_search_keeps_the_address_and_says_what_came_back(
    sandbox: Sandbox,
) -> None:
    with server({"/v1/models": (200, PAGE)}) as (host, _):
        async with person_at(sandbox, find_servers=no_servers) as person:
            await dialog(person)
            await choose(person, "another server")
            await choose(person, host)
            await person.until(lambda: "web page" in person.screen)
            assert f"› {host}" in person.screen
            await person.press("escape", "escape")
            await home(person)


async def test_escape_cancels_a_search(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        async with person_at(sandbox, find_servers=no_servers) as person:
            screen = await dialog(person)
            await choose(person, "another server")
            await person.type(address)
            await person.press("enter")
            await person.until(lambda: "Looking for models" in person.screen)
            await person.press("x", "enter")
            await person.press("escape")
            await person.until(lambda: not list(screen.workers))
            assert person.app.screen is screen
            assert f"› {address}▏" in person.screen


async def test_a_key_that_comes_twice_at_once_closes_only_one_screen(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        below, above = HelpScreen("chat"), Wish()
        for screen in (below, above):
            await person.app.push_screen(screen)
        above.type("words")
        person.at_once("enter", "enter")
        await person.until(lambda: "Enter does nothing here" in person.screen)
        assert person.app.screen is below
        person.at_once("escape", "escape", "w")
        await person.until(lambda: person.prompt.text == "w")
        assert "fault in cdd" not in person.told
