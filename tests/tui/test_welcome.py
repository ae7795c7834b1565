"""The first screen: rows that Enter starts while the prompt is empty; all else is as
ever.
"""

import shutil
from collections.abc import Sequence

from textual import events

from cdd_agent.commands.registry import handle
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.llm.local_servers import LocalServer
from cdd_agent.tui.guide import NamedWish
from cdd_agent.tui.screens.help import HelpScreen
from cdd_agent.tui.screens.model_setup import ModelSetup
from cdd_agent.tui.screens.tickets import TicketsScreen
from cdd_agent.tui.screens.wish import Wish
from cdd_agent.tui.widgets.welcome import Welcome
from tests.agents.asking import asks
from tests.llm.model_lists import LIST, server
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, check, no_servers, says
from tests.support.settings import load_config
from tests.support.tables import each_row
from tests.support.time_of_loops import leap
from tests.tui.person import Person, person_at

SERVER = LocalServer("vLLM", "http://127.0.0.1:8000/v1", ("only",))
WORDS = "I want to export the monthly report as CSV"
WISHED = "feature-export-monthly-report-as-csv"
SIZES = ((60, 20), (80, 24), (120, 40), (200, 50), (80, 12), (40, 8), (20, 4))


async def servers() -> Sequence[LocalServer]:
    return (SERVER,)


def ready(sandbox: Sandbox) -> Sandbox:
    """A project with a ticket that is planned, and a model."""
    sandbox.flags = {"model": "script:none.yaml"}
    return sandbox.write(Step("a.txt", check("a.txt")))


async def rows_of(person: Person) -> Welcome:
    """Wait for the rows, and read them."""
    welcome = person.app.query_one(Welcome)
    await person.until(lambda: welcome.hint and not list(person.app.workers))
    await person.rest()
    return welcome


async def home(person: Person) -> None:
    await person.until(
        lambda: person.app.screen is person.app.home and not person.is_waiting
    )


def chosen(person: Person) -> str:
    """The highlighted row."""
    place = person.app.query_one(Welcome).region
    for line in person.screen.splitlines()[place.y : place.bottom]:
        if line.lstrip().startswith("❯"):
            return line.strip(" ❯").split("  ")[0]
    return ""


async def test_keys_choose_and_start_rows(sandbox: Sandbox) -> None:
    for keys, screen in (
        (("enter",), Wish),
        (("down", "enter"), TicketsScreen),
        (("down", "down", "enter"), HelpScreen),
        (("down", "down", "down", "down", "enter"), HelpScreen),
        (("down", "up", "enter"), Wish),
    ):
        async with person_at(ready(sandbox), helps_to_begin=True) as person:
            await rows_of(person)
            assert chosen(person) == "New ticket"
            await person.press(*keys)
            await person.until(lambda: person.app.screen is not person.app.home)
            assert isinstance(person.app.screen, screen), keys


async def test_an_enter_that_comes_with_the_rows_starts_nothing(
    sandbox: Sandbox,
) -> None:
    async with person_at(ready(sandbox), helps_to_begin=True) as person:
        welcome = person.app.query_one(Welcome)
        await person.until(lambda: welcome.hint and not list(person.app.workers))
        await person.press("enter")
        assert person.app.screen is person.app.home
        assert person.activity.startswith("Too soon, ignored · Enter: new")
        await person.rest()
        await person.press("enter")
        await person.until(lambda: isinstance(person.app.screen, Wish))


async def test_what_is_typed_is_sent_and_the_rows_are_gone(sandbox: Sandbox) -> None:
    sandbox.replies("Hello.")
    async with person_at(ready(sandbox), helps_to_begin=True) as person:
        welcome = await rows_of(person)
        person.at_once(*"12", "enter")
        await person.until(lambda: "Hello." in person.told)
        assert not welcome.display
        assert "12" in person.told
        await person.press("down", "up")
        assert person.prompt.text == "12"


async def test_typing_and_escape_leave_the_rows(sandbox: Sandbox) -> None:
    async with person_at(ready(sandbox), helps_to_begin=True) as person:
        await rows_of(person)
        await person.type("a")
        assert chosen(person) == ""
        await person.press("backspace")
        assert chosen(person) == "New ticket"
        await person.press("enter")
        assert person.app.screen is person.app.home
        await person.press("escape")
        assert chosen(person) == ""
        await person.rest()
        await person.press("enter")
        assert person.app.screen is person.app.home
        await person.press("down")
        assert chosen(person) == "New ticket"


async def test_up_on_the_first_row_and_for_an_unsent_line_is_for_the_history(
    sandbox: Sandbox,
) -> None:
    async with person_at(ready(sandbox)) as person:
        await person.say("/list")
    async with person_at(sandbox, helps_to_begin=True) as person:
        await rows_of(person)
        await person.press("up")
        assert person.prompt.text == ""
        await person.press("up")
        assert person.prompt.text == "/list"
        await person.press("down")
        assert person.prompt.text == ""
        assert chosen(person) == f"Continue {SLUG}"
        await person.press("down")
        person.prompt.bring_back(["unsent"], is_typing=True)
        await person.press("up")
        assert person.prompt.text == "unsent"


async def test_a_click_starts_a_row(sandbox: Sandbox) -> None:
    async with person_at(ready(sandbox), helps_to_begin=True) as person:
        await rows_of(person)
        lines = person.screen.splitlines()
        row = next(n for n, line in enumerate(lines) if "Open a ticket" in line)
        await person.pilot.click(offset=(lines[row].index("Open"), row))
        await person.until(lambda: isinstance(person.app.screen, TicketsScreen))


async def test_a_planned_ticket_is_put_into_the_prompt_and_not_begun(
    sandbox: Sandbox,
) -> None:
    async with person_at(ready(sandbox), helps_to_begin=True) as person:
        await rows_of(person)
        await person.press("up", "enter")
        await person.until(lambda: person.prompt.text == f"/exec {SLUG}")
        assert person.app.home.agent is None


async def test_an_interrupted_run_is_opened_by_one_enter(sandbox: Sandbox) -> None:
    ready(sandbox).replies(says("a.txt", "bad"))
    async with person_at(sandbox, f"/exec {SLUG}") as person:
        await person.say("c")
    async with person_at(sandbox, helps_to_begin=True) as person:
        await rows_of(person)
        assert chosen(person) == f"Continue {SLUG}"
        assert "step 1 of 1 failed" in person.screen
        await person.press("enter")
        await home(person)
        assert person.app.home.agent is not None
        assert person.app.home.agent.name == "executor"
        assert len(sandbox.model.requests) == 1


async def test_notices_of_the_opening_are_below_the_rows_and_stay(
    sandbox: Sandbox,
) -> None:
    opening = (Notice("Settings are left out: /trust shows them.", Tone.WARNING),)
    async with person_at(
        ready(sandbox), helps_to_begin=True, opening=opening
    ) as person:
        await rows_of(person)
        assert "Settings are left out" in person.screen
        await person.say("/list")
        assert "Settings are left out" in person.told


async def test_it_is_composed_in_windows_of_every_size(sandbox: Sandbox) -> None:
    wrong = []
    for size in SIZES:
        async with person_at(
            sandbox, size=size, helps_to_begin=True, find_servers=no_servers
        ) as person:
            welcome = await rows_of(person)
            lines = [
                line.rstrip()
                for line in person.screen.splitlines()[
                    welcome.region.y : welcome.region.bottom
                ]
            ]
            text = [line for line in lines if line.strip()]
            left = min(len(line) - len(line.lstrip()) for line in text)
            if max(map(len, text)) - left > 70:
                wrong.append(f"{size}: wider than 70 columns")
            if "Set up a model" not in "\n".join(text) and size[0] > 20:
                wrong.append(f"{size}: the first row is missing")
            if size[0] > 74 and abs(left - (size[0] - 70) // 2) > 1:
                wrong.append(f"{size}: begins at column {left}")
            if size[1] >= 20 and "isn't a cdd project" not in "\n".join(text):
                wrong.append(f"{size}: the folder is missing")
            await person.press("down", "down", "down")
            if size[0] > 20 and chosen(person) != "Help":
                wrong.append(f"{size}: the chosen row is {chosen(person)!r}")
    assert wrong == []


async def test_without_a_model_the_dialog_is_one_enter_away_and_not_forced(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox, find_servers=servers, helps_to_begin=True) as person:
        await rows_of(person)
        assert chosen(person) == "Set up a model"
        assert "No model set up yet" not in person.screen
        assert "specs, plans and steps need one" in person.screen
        await person.press("enter")
        await person.until(lambda: isinstance(person.app.screen, ModelSetup))
        await person.rest()
        await person.press("enter")
        await person.until(lambda: isinstance(person.app.screen, Wish))
        assert "No model" not in person.told


async def test_choosing_the_demo_leaves_the_shell(sandbox: Sandbox) -> None:
    async with person_at(
        sandbox, find_servers=no_servers, helps_to_begin=True
    ) as person:
        await rows_of(person)
        await person.press("down", "down", "enter")
        await person.until(lambda: not person.app.is_running)
    assert person.app.wants_demo


async def wished(person: Person) -> Wish:
    """Set up the first model that is offered, and wait for the next screen."""
    await rows_of(person)
    await person.press("enter")
    await person.until(lambda: isinstance(person.app.screen, ModelSetup))
    await person.rest()
    await person.press("enter")
    await person.until(lambda: isinstance(person.app.screen, Wish))
    assert isinstance(person.app.screen, Wish)
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
        assert "does nothing here" not in person.screen
        assert "Type what you want first" in person.screen
        person.app.post_message(events.Paste(f"{WORDS}x"))
        await person.rest()
        assert "Type what you want first" not in person.screen
        await person.press("backspace", "enter")
        await home(person)
        assert (sandbox.root / "tickets" / WISHED / "spec.yaml").exists()
        await person.until(lambda: person.prompt.text == f"/socrates {WISHED}")
        assert sandbox.model.requests == []
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
        WORDS: "feature-export-monthly-report-as-csv",
        "fix the login": "bug-fix-login",
        "Größe ändern": "feature-grosse-andern",
        "数を数える": "feature-数を数える",
        "मुझे हिन्दी में लॉगिन": "feature-मुझे-हिन्दी-में-लॉगिन",
        "Customers pay less. It is a percentage": "feature-customers-pay-less",
        "Hello! Fix the login": "feature-fix-login",
        "take 2.5 % off": "feature-take-2-5-off",
        "🚀": "feature-first-ticket",
        "the": "feature-first-ticket",
        "x" * 300: f"feature-{'x' * 48}",
    }
    assert {words: NamedWish(words).ticket_slug for words in names} == names


@each_row(
    ("words", "title"),
    [
        ("export the monthly report, as CSV", "Export the monthly report, as CSV"),
        ("Customers pay less. It is a percentage", "Customers pay less"),
        ("Größe ändern", "Größe ändern"),
        ("--force a login", "Force a login"),
        ('it\'s "quoted" & odd', 'It\'s "quoted" & odd'),
        ("🚀", "🚀"),
        ("...", "First ticket"),
        (
            "many words " * 20,
            f"Many words{' many words' * 5} many …",
        ),
    ],
)
async def test_the_title_of_a_wished_ticket_is_its_sentence(
    sandbox: Sandbox, words: str, title: str
) -> None:
    (sandbox.root / ".cdd").mkdir(exist_ok=True)
    wish = NamedWish(words)
    session = sandbox.session()
    await collect(handle(session, wish.first_line))
    ticket = session.project.tickets.find_slug(wish.ticket_slug)
    assert ticket.read_spec().title == title
    shutil.rmtree(ticket.folder)


async def test_from_an_empty_folder_to_a_ticket_with_a_server_of_ones_own(
    sandbox: Sandbox,
) -> None:
    with server({"/v1/models": (200, LIST)}) as (host, _):
        async with person_at(
            sandbox, find_servers=no_servers, helps_to_begin=True
        ) as person:
            await rows_of(person)
            await person.press("enter")
            await person.until(lambda: isinstance(person.app.screen, ModelSetup))
            await person.type("another\n")
            await person.type(f"{host}\n")
            await person.until(lambda: f"{host}: model" in person.screen)
            await person.rest()
            await person.press("down", "enter")
            await person.until(lambda: isinstance(person.app.screen, Wish))
            await person.type(f"{WORDS}\n")
            await home(person)
            await person.until(lambda: person.prompt.text == f"/socrates {WISHED}")
    config = load_config(sandbox.root, {})
    assert (config.model, config.api_base) == ("openai/two", f"http://{host}/v1")
    assert (sandbox.root / "tickets" / WISHED / "spec.yaml").exists()
