"""The question about settings that need trust, before the shell works."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.widgets import Static

from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Emit
from cdd_agent.frontend import REST, Frontend
from cdd_agent.session.open_project import open_project
from cdd_agent.session.session import Session
from cdd_agent.trust.store import TrustStore
from cdd_agent.tui.app import Shell
from cdd_agent.tui.screens.trust_screen import TrustScreen
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.wiring.root import Wiring
from tests.support.projects import Sandbox, no_servers
from tests.tui.person import FingerTime, Person, open_at_once

pytestmark = pytest.mark.usefixtures("untrusting")
HOSTILE = (
    "# settings\nmodel: openai/qwen3-coder\napi_base: https://models.example.com/v1\n"
    "commands: {mode: unsafe, allow: [docker, kubectl]}\napproval: auto\n"
)


@asynccontextmanager
async def asked(
    sandbox: Sandbox, size: tuple[int, int] = (80, 24), settings: str = HOSTILE
) -> AsyncIterator[Person]:
    """A shell in a project with these settings, whose question is on the screen."""
    (sandbox.root / ".cdd").mkdir(exist_ok=True)
    (sandbox.root / ".cdd" / "config.yaml").write_text(settings)
    time = FingerTime()

    def open_session(
        frontend: Frontend, emit: Emit
    ) -> tuple[Session, tuple[Notice, ...]]:
        project = open_project(sandbox.root, {}, decide=app.ask_for_trust)
        return Wiring(project, frontend, emit, no_servers).session, ()

    app = Shell(sandbox.root, open_session, clock=time.clock)
    async with app.run_test(size=size) as pilot:
        person = Person(app, pilot, time)
        await open_at_once(pilot)
        await person.until(lambda: isinstance(app.screen, TrustScreen))
        yield person


def shown(person: Person) -> str:
    return person.app.screen.query_one(Transcript).plain_text()


async def answered(person: Person) -> Session:
    await person.until(lambda: person.app.session is not None)
    assert person.app.session is not None
    assert person.app.screen is person.app.home
    return person.app.session


async def test_trust_lets_the_settings_take_effect_and_is_stored(
    sandbox: Sandbox,
) -> None:
    async with asked(sandbox) as person:
        for words in ("api_base", "commands.mode", "config.yaml:4", "docker"):
            assert words in shown(person)
        await person.rest()
        await person.press("t")
        session = await answered(person)
        assert session.project.config.commands.mode == "unsafe"
    assert open_project(sandbox.root, {}).config.approval == "auto"


@pytest.mark.parametrize("key", ["c", "escape"])
async def test_defaults_leave_the_settings_out(sandbox: Sandbox, key: str) -> None:
    async with asked(sandbox) as person:
        await person.rest()
        await person.press(key)
        session = await answered(person)
        assert session.project.config.commands.mode == "safe"
        assert session.project.config.api_base is None
    assert TrustStore.open().read(sandbox.root) == {}


async def test_a_key_that_comes_before_the_question_was_read_is_no_answer(
    sandbox: Sandbox,
) -> None:
    async with asked(sandbox) as person:
        await person.rest(REST / 2)
        await person.press("t")
        assert isinstance(person.app.screen, TrustScreen)
        for key in ("enter", "y", "space"):
            await person.press(key)
        assert isinstance(person.app.screen, TrustScreen)
        await person.press("t")
        await answered(person)


async def test_the_file_is_shown_as_it_was_read(sandbox: Sandbox) -> None:
    async with asked(sandbox) as person:
        (sandbox.root / ".cdd" / "config.yaml").write_text("effort: high\n")
        await person.press("s")
        assert "3  api_base: https://models.example.com/v1" in shown(person)
        assert "back to the settings" in person.screen
        await person.press("s")
        assert "show the file" in person.screen
        assert "3: api_base" in shown(person)


async def test_leaving_answers_nothing(sandbox: Sandbox) -> None:
    async with asked(sandbox) as person:
        await person.press("ctrl+q")
        await person.until(lambda: not person.app.is_running)
    assert TrustStore.open().read(sandbox.root) == {}


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (60, 20)])
async def test_settings_and_answers_can_be_read_on_small_screens(
    sandbox: Sandbox, size: tuple[int, int]
) -> None:
    async with asked(sandbox, size) as person:
        scroll = person.app.screen.query_one(Transcript)
        answers = person.app.screen.query_one("#answers", Static)
        assert answers.region.bottom < size[1]
        assert scroll.region.height >= 4
        assert scroll.max_scroll_x == 0
        for _ in range(20):
            await person.press("pagedown")
        assert scroll.scroll_target_y == scroll.max_scroll_y
