"""The way of somebody who has nothing yet: a model, their words, a ticket; each by a
key that they mean.
"""

from collections.abc import Sequence

from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.local_servers import LocalServer
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.llm.providers import PROVIDERS
from cdd_agent.tui.guide import Wish
from cdd_agent.tui.screens.board import BoardScreen
from cdd_agent.tui.screens.first_run import (
    DEMO,
    SUGGESTED,
    FirstRun,
    WishScreen,
    choices,
)
from cdd_agent.tui.screens.help import HelpScreen
from cdd_agent.tui.screens.opening import offer_first_steps
from tests.agents.asking import asks
from tests.support.projects import Sandbox, no_servers
from tests.support.settings import load_config
from tests.support.time_of_loops import leap
from tests.tui.person import Person, person_at

SERVER = LocalServer(
    "Ollama", "http://127.0.0.1:11434/v1", ("qwen3-coder:30b", "llama3.2")
)
WORDS = "I want to export the monthly report as CSV"
SLUG = "feature-export-monthly-report-as-csv"


async def servers() -> Sequence[LocalServer]:
    return (SERVER,)


async def first_run(person: Person) -> FirstRun:
    await person.until(lambda: isinstance(person.app.screen, FirstRun))
    assert isinstance(person.app.screen, FirstRun)
    return person.app.screen


async def home(person: Person) -> None:
    await person.until(
        lambda: person.app.screen is person.app.home and not person.is_waiting
    )


def test_models_and_keys_are_offered_and_no_key_is_shown() -> None:
    offers = [OfferedModel("my model", "LM Studio", "http://127.0.0.1:1234/v1")]
    found = list(
        choices(
            offers,
            {
                "OPENAI_API_KEY": "sk-secret",
                "CEREBRAS_API_KEY": "csk-secret",
                "XAI_API_KEY": "",
            },
        )
    )
    assert [row.key for row in found] == [
        "/model 'openai/my model' http://127.0.0.1:1234/v1 --save",
        f"/model openai/{SUGGESTED['openai']} --save",
        "/model cerebras/",
        DEMO,
    ]
    assert "OPENAI_API_KEY" in found[1].detail
    assert "secret" not in str(found)


def test_each_suggested_model_is_known_and_its_provider_needs_a_key() -> None:
    for provider, model in SUGGESTED.items():
        assert known_model(f"{provider}/{model}") is not None, provider
        assert PROVIDERS[provider].needs_key, provider


async def test_arrows_and_enter_choose_a_model_for_the_project(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, find_servers=servers, helps_to_begin=True) as person:
        await first_run(person)
        await person.rest()
        await person.press("down", "enter")
        await person.until(lambda: isinstance(person.app.screen, WishScreen))
        assert "openai/llama3.2" in person.app.home.bar.render().plain
        await person.press("escape")
        await home(person)
        await person.say("/list")
        assert person.app.screen is person.app.home
    config = load_config(sandbox.root, {})
    assert (config.model, config.api_base) == ("openai/llama3.2", SERVER.api_base)
    async with person_at(sandbox, find_servers=servers, helps_to_begin=True) as person:
        await person.until(lambda: not list(person.app.workers))
        assert person.app.screen is person.app.home


async def test_an_enter_that_was_pressed_before_the_screen_chooses_nothing(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, find_servers=servers, helps_to_begin=True) as person:
        await first_run(person)
        await person.press("enter")
        assert "Enter once more" in person.screen
        assert load_config(sandbox.root, {}).model is None
        await person.press("enter")
        await person.until(lambda: isinstance(person.app.screen, WishScreen))
        assert load_config(sandbox.root, {}).model == "openai/qwen3-coder:30b"


async def test_escape_closes_it_and_it_does_not_come_back(sandbox: Sandbox) -> None:
    async with person_at(sandbox, find_servers=servers, helps_to_begin=True) as person:
        await first_run(person)
        await person.press("escape")
        await home(person)
        assert person.prompt.text == ""
        await person.say("/list")
        await person.say("/model")
        assert person.app.screen is person.app.home
        assert load_config(sandbox.root, {}).model is None


async def test_what_is_typed_at_once_closes_it_and_is_all_in_the_prompt(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, find_servers=servers, helps_to_begin=True) as person:
        await first_run(person)
        person.at_once(*"/boarx", "backspace", "d")
        await home(person)
        await person.until(lambda: person.prompt.text == "/board")
        await person.press("enter")
        await person.until(lambda: isinstance(person.app.screen, BoardScreen))


async def test_a_key_that_comes_twice_at_once_closes_only_one_screen(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        below, above = HelpScreen("chat"), WishScreen()
        for screen in (below, above):
            await person.app.push_screen(screen)
        above.type("words")
        person.at_once("enter", "enter")
        await person.until(lambda: "Enter does nothing here" in person.screen)
        assert person.app.screen is below
        person.at_once("escape", "escape", "w")
        await person.until(lambda: person.prompt.text == "w")
        assert "fault in cdd" not in person.told


async def test_the_first_run_screen_does_not_interrupt_typing(sandbox: Sandbox) -> None:
    async with person_at(
        sandbox, find_servers=no_servers, helps_to_begin=False
    ) as person:
        await person.type("wh")
        offer_first_steps(person.app)
        await person.pilot.pause()
        assert person.app.screen is person.app.home
        assert person.prompt.text == "wh"


async def test_choosing_the_demo_leaves_the_shell(sandbox: Sandbox) -> None:
    async with person_at(
        sandbox, find_servers=no_servers, helps_to_begin=True
    ) as person:
        await first_run(person)
        await person.rest()
        await person.press("end", "enter")
        await person.until(lambda: not person.app.is_running)
    assert person.app.wants_demo


async def wished(person: Person) -> WishScreen:
    """Choose the first model that is offered, and wait for the next screen."""
    await first_run(person)
    await person.rest()
    await person.press("enter")
    await person.until(lambda: isinstance(person.app.screen, WishScreen))
    assert isinstance(person.app.screen, WishScreen)
    return person.app.screen


async def test_a_wish_becomes_a_ticket_and_enter_confirms_each_further_step(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".cdd").mkdir()
    sandbox.find_servers = servers
    sandbox.replies(asks("Which months?"))
    async with person_at(sandbox, helps_to_begin=True) as person:
        screen = await wished(person)
        await person.press("enter")
        assert person.app.screen is screen
        screen.type(f"{WORDS}x")
        await person.press("backspace", "enter")
        await home(person)
        assert (sandbox.root / "tickets" / SLUG / "spec.yaml").exists()
        await person.until(lambda: person.prompt.text == f"/socrates {SLUG}")
        assert sandbox.model.requests == []
        await person.press("enter")
        assert "Too soon" in person.activity
        await person.rest()
        await person.press("enter")
        await person.until(lambda: person.prompt.text == WORDS)
        await person.rest()
        await person.press("enter")
        await person.until(lambda: sandbox.model.requests)
        await home(person)
        assert person.prompt.text == ""


async def test_the_guide_does_not_replace_what_the_user_types(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".cdd").mkdir()
    sandbox.find_servers = servers
    async with person_at(sandbox, helps_to_begin=True) as person:
        (await wished(person)).type(WORDS)
        person.at_once("enter", *"draft")
        await person.until(lambda: person.prompt.text == "draft")
        await home(person)
        leap(10)
        await person.pilot.pause()
        assert person.prompt.text == "draft"


def test_a_ticket_is_named_by_the_words_that_carry_meaning() -> None:
    names = {
        WORDS: "/new feature export-monthly-report-as-csv",
        "fix the login": "/new bug fix-login",
        "Größe ändern": "/new feature grosse-andern",
        "数を数える": "/new feature '数を数える'",
        "मुझे हिन्दी में लॉगिन": "/new feature 'मुझे-हिन्दी-में-लॉगिन'",
        "🚀": "/new feature first-ticket",
        "the": "/new feature first-ticket",
        "x" * 300: f"/new feature {'x' * 48}",
    }
    assert {words: Wish(words).first_line for words in names} == names
