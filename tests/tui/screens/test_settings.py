"""The settings' screen: what holds and why, and changing it in the project's file."""

from pathlib import Path

import pytest
from msgspec import Struct

from cdd_agent.commands.settings import settings_of
from cdd_agent.settings.config import Config
from cdd_agent.settings.reading import user_file
from cdd_agent.tui.screens.settings import SettingsScreen
from tests.support.projects import Sandbox
from tests.support.settings import load_config
from tests.tui.person import Person, person_at
from tests.tui.screens.reading import has_read

FILE = """\
# Ours.
approval: ask   # until we trust it
budget:
  usd: 2  # a run
# max_attempts: 3   # as it was
"""


@pytest.fixture
def config(sandbox: Sandbox) -> Path:
    (sandbox.root / ".cdd").mkdir()
    file = sandbox.root / ".cdd" / "config.yaml"
    file.write_text(FILE)
    return file


async def settings(person: Person) -> SettingsScreen:
    await person.press("f5")
    await person.until(
        lambda: isinstance(person.app.screen, SettingsScreen) and has_read(person)
    )
    assert isinstance(person.app.screen, SettingsScreen)
    return person.app.screen


async def put(person: Person, name: str, value: str) -> None:
    """Go to a setting, and type another value for it."""
    screen = person.app.screen
    assert isinstance(screen, SettingsScreen)
    await person.press("ctrl+u")
    screen.type(name)
    await person.press("enter", "ctrl+u")
    screen.type(value)
    await person.press("enter")
    await person.until(lambda: has_read(person))


def leaves(settings: Struct, prefix: str = "") -> set[str]:
    found: set[str] = set()
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        is_section = isinstance(value, Struct) and name != "models"
        found |= (
            leaves(value, f"{prefix}{name}.") if is_section else {f"{prefix}{name}"}
        )
    return found


def test_every_setting_is_shown_with_its_description(sandbox: Sandbox) -> None:
    settings = settings_of(sandbox.project)
    assert {setting.name for setting in settings} == leaves(Config())
    assert all(setting.words for setting in settings)


def test_each_setting_shows_where_its_value_comes_from(
    sandbox: Sandbox, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text("test_timeout: 20\napproval: auto\n")
    monkeypatch.setenv("CDD_EFFORT", "low")
    sandbox.flags = {"max_attempts": 7}
    found = {
        setting.name: (setting.value, setting.origin)
        for setting in settings_of(sandbox.project)
    }
    assert found["approval"] == ("ask", "project")
    assert found["budget.usd"] == ("2.0", "project")
    assert found["budget.tokens"] == ("null", "default")
    assert found["test_timeout"] == ("20.0", "user")
    assert found["effort"] == ("low", "CDD_EFFORT")
    assert found["max_attempts"] == ("7", "session")


async def test_a_secret_is_neither_shown_nor_changed_here(
    sandbox: Sandbox, config: Path
) -> None:
    text = "request:\n  headers:\n    X-Key: sk-very-secret\n"
    config.write_text(text)
    async with person_at(sandbox, size=(120, 40)) as person:
        screen = await settings(person)
        assert "sk-very" not in person.screen
        screen.type("headers")
        await person.press("enter", "x", "enter")
        assert "sk-very" not in person.screen
    assert config.read_text() == text


async def test_a_change_is_written_and_used_and_the_comments_remain(
    sandbox: Sandbox, config: Path
) -> None:
    async with person_at(sandbox) as person:
        await settings(person)
        await put(person, "approval", "auto")
        await put(person, "max_attempts", "9")
        assert person.app.session is not None
        now = person.app.session.project.config
        assert (now.approval, now.max_attempts) == ("auto", 9)
        text = FILE.replace("ask ", '"auto" ') + "max_attempts: 9\n"
        assert config.read_text() == text
        assert load_config(sandbox.root, {}) == now

        # no value means the default
        await put(person, "approval", "")
        assert load_config(sandbox.root, {}).approval == "edits"


async def test_a_wrong_value_is_refused_and_changes_nothing(
    sandbox: Sandbox, config: Path
) -> None:
    async with person_at(sandbox, size=(160, 30)) as person:
        await settings(person)
        for name, value, allowed in (
            ("approval", "sometimes", "one of `ask`, `auto`, `edits`"),
            ("budget.usd", "[", "budget.usd"),
            ("tickets_dir", "../elsewhere", ".."),
        ):
            await put(person, name, value)
            await person.until(lambda allowed=allowed: allowed in person.screen)
            await person.press("escape")
        assert config.read_text() == FILE


async def test_escape_leaves_the_value_first_and_then_the_screen(
    sandbox: Sandbox, config: Path
) -> None:
    async with person_at(sandbox) as person:
        screen = await settings(person)
        screen.type("approval")
        await person.press("enter", "x", "escape")
        assert person.app.screen is screen
        assert config.read_text() == FILE
        await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)


async def test_a_changed_setting_makes_a_project_of_a_plain_folder(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.say("/settings")
        await person.until(
            lambda: isinstance(person.app.screen, SettingsScreen) and has_read(person)
        )
        await put(person, "approval", "ask")
    assert load_config(sandbox.root, {}).approval == "ask"
    assert "# model: anthropic" in (sandbox.root / ".cdd" / "config.yaml").read_text()
