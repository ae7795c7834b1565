"""The way of somebody who has nothing yet: a model, their words, a ticket; each by a
key that they mean.
"""

from collections.abc import Sequence

import pytest

from cdd_agent.config import load_config
from cdd_agent.llm.known_models import known_model
from cdd_agent.llm.local_servers import LocalServer
from cdd_agent.llm.offered_model import OfferedModel
from cdd_agent.llm.providers import PROVIDERS
from cdd_agent.tui.guide import Guide
from cdd_agent.tui.screens.board import BoardScreen
from cdd_agent.tui.screens.first_run import DEMO, SUGGESTED, FirstRun, Wish, choices
from cdd_agent.tui.screens.help import HelpScreen
from tests.agents.asking import asks
from tests.support.projects import Sandbox, no_servers
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


def test_what_is_found_is_offered_and_of_a_key_only_its_name() -> None:
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


@pytest.mark.parametrize("provider", SUGGESTED)
def test_what_is_suggested_is_known(provider: str) -> None:
    assert known_model(f"{provider}/{SUGGESTED[provider]}") is not None
    assert PROVIDERS[provider].needs_key


async def test_arrows_and_enter_choose_a_model_for_the_project(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, find_servers=servers, helps_to_begin=True) as person:
        await first_run(person)
        await person.rest()
        await person.press("down", "enter")
        await person.until(lambda: isinstance(person.app.screen, Wish))
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


async def test_an_enter_that_was_on_its_way_chooses_nothing(sandbox: Sandbox) -> None:
    async with person_at(sandbox, find_servers=servers, helps_to_begin=True) as person:
        await first_run(person)
        await person.press("enter")
        assert "Enter once more" in person.screen
        assert load_config(sandbox.root, {}).model is None
        await person.press("enter")
        await person.until(lambda: isinstance(person.app.screen, Wish))
        assert load_config(sandbox.root, {}).model == "openai/qwen3-coder:30b"


@pytest.mark.parametrize("key", ["escape", "w"])
async def test_escape_and_typing_leave_it_and_it_does_not_come_back(
    sandbox: Sandbox, key: str
) -> None:
    async with person_at(sandbox, find_servers=servers, helps_to_begin=True) as person:
        await first_run(person)
        await person.press(key)
        await home(person)
        assert person.prompt.text == ("" if key == "escape" else "w")
        person.prompt.replace("")
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


async def test_nobody_who_types_already_is_interrupted(sandbox: Sandbox) -> None:
    async with person_at(
        sandbox, find_servers=no_servers, helps_to_begin=False
    ) as person:
        from cdd_agent.tui.screens.opening import offer_first_steps

        await person.type("wh")
        offer_first_steps(person.app)
        await person.pilot.pause()
        assert person.app.screen is person.app.home
        assert person.prompt.text == "wh"


async def test_the_demo_is_what_the_shell_is_left_for(sandbox: Sandbox) -> None:
    async with person_at(
        sandbox, find_servers=no_servers, helps_to_begin=True
    ) as person:
        await first_run(person)
        await person.rest()
        await person.press("end", "enter")
        await person.until(lambda: not person.app.is_running)
    assert person.app.wants_demo


async def test_what_is_wanted_becomes_a_ticket_and_each_step_is_an_enter(
    sandbox: Sandbox,
) -> None:
    (sandbox.root / ".cdd").mkdir()
    sandbox.flags = {}
    sandbox.replies(asks("Which months?"))
    async with person_at(sandbox, helps_to_begin=False) as person:
        from cdd_agent.tui.screens.opening import _ask_for_a_wish

        assert person.app.session is not None
        sandbox.flags = {"model": "openai/llama3.2"}
        person.app.session.project = sandbox.project
        _ask_for_a_wish(person.app)
        await person.until(lambda: isinstance(person.app.screen, Wish))
        await person.press("enter")
        assert "Enter does nothing here" in person.screen
        await person.press(
            *("space" if letter == " " else letter for letter in f"{WORDS}x"),
            "backspace",
            "enter",
        )
        await home(person)
        assert (sandbox.root / "tickets" / SLUG / "spec.yaml").exists()
        await person.until(lambda: person.prompt.text == f"/socrates {SLUG}")
        assert person.activity == "Enter: Socrates asks until the ticket is clear"
        assert sandbox.model.requests == []
        await person.press("enter")
        await person.until(lambda: person.prompt.text == WORDS)
        assert person.activity == "Enter: says it to Socrates"
        await person.press("enter")
        await person.until(lambda: sandbox.model.requests)
        await home(person)
        assert person.prompt.text == ""


async def test_somebody_at_something_else_is_let_be(sandbox: Sandbox) -> None:
    async with person_at(sandbox) as person:
        from cdd_agent.tui.screens.opening import _done_with_wish

        _done_with_wish(person.app, WORDS)
        person.prompt.replace("a draft")
        await home(person)
        await person.pilot.pause(1.0)
        assert person.prompt.text == "a draft"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (WORDS, "/new feature export-monthly-report-as-csv"),
        ("fix the login", "/new bug fix-login"),
        ("Größe ändern", "/new feature grosse-andern"),
        ("数を数える", "/new feature first-ticket"),
        ("the", "/new feature first-ticket"),
        ("x" * 300, f"/new feature {'x' * 48}"),
    ],
)
def test_a_ticket_is_named_by_the_words_that_say_something(
    words: str, line: str
) -> None:
    assert Guide(words).first_line == line
