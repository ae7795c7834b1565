"""The settings' screen: a person changes settings, saves them somewhere, and resets
them.
"""

from pathlib import Path

import pytest
from textual.screen import Screen
from textual.widgets import Static

from cdd_agent.settings.config import PROJECT_FILE
from cdd_agent.settings.reading import user_file
from cdd_agent.tui.screens.setting_places import ResetDialog, SaveDialog
from cdd_agent.tui.screens.setting_values import ChoiceList, ValueField
from cdd_agent.tui.screens.settings import SettingsScreen
from cdd_agent.tui.screens.theme_list import ThemeList
from tests.support.projects import Sandbox
from tests.support.settings import load_config
from tests.tui.person import Person, person_at

FILE = """\
# Ours.
approval: ask   # until we trust it
budget:
  usd: 2  # a run
# max_attempts: 3   # as it was
"""


@pytest.fixture
def config(sandbox: Sandbox) -> Path:
    file = sandbox.root / PROJECT_FILE
    file.parent.mkdir()
    file.write_text(FILE)
    return file


def users_file() -> Path:
    file = user_file()
    assert file is not None
    return file


async def until_on(person: Person, kind: type[Screen[str]]) -> None:
    """Wait until a dialog is open and has read what it shows."""

    def is_ready() -> bool:
        is_reading = any(w.group in ("settings", "save") for w in person.app.workers)
        return isinstance(person.app.screen, kind) and not is_reading

    await person.until(is_ready)


async def open_setting(person: Person, name: str, kind: type[Screen[str]]) -> None:
    """Open the settings, and then the dialog of one of them."""
    if not isinstance(person.app.screen, SettingsScreen):
        await person.press("f5")
        await until_on(person, SettingsScreen)
    await person.press("ctrl+u", *name)
    await person.press("enter")
    await until_on(person, kind)


async def save(person: Person, *walk: str) -> None:
    """Walk to a place, and save there."""
    await until_on(person, SaveDialog)
    await person.press(*walk, "enter")
    await until_on(person, SettingsScreen)


async def test_the_settings_are_in_groups_with_their_sources(
    sandbox: Sandbox, config: Path
) -> None:
    async with person_at(sandbox, size=(100, 40)) as person:
        await person.press("f5")
        await until_on(person, SettingsScreen)
        assert "Model\n" in "\n".join(
            row.strip(" │") for row in person.screen.splitlines()
        )
        await person.press(*"approval mode")
        assert "ask" in person.screen
        assert "project file .cdd/config.yaml:2" in person.screen
        assert "ask before files change" in person.screen


async def test_a_boolean_is_chosen_from_a_list_and_saved_for_the_user(
    sandbox: Sandbox, config: Path
) -> None:
    async with person_at(sandbox) as person:
        await open_setting(person, "bell", ChoiceList)
        assert "ring the terminal's bell" in person.screen
        await person.press("down", "enter")
        await save(person)
        assert "Saved Bell: false" in person.screen
        assert person.app.session
        assert not person.app.session.project.config.notifications.bell
    assert users_file().read_text() == 'notifications: {"bell": false}\n'
    assert config.read_text() == FILE


async def test_an_enumeration_is_saved_for_the_project_and_a_number_in_the_session(
    sandbox: Sandbox, config: Path
) -> None:
    async with person_at(sandbox) as person:
        await open_setting(person, "approval mode", ChoiceList)
        await person.press("end", "enter")
        await save(person)
        assert person.mode.startswith("auto")
        await open_setting(person, "max_attempts", ValueField)
        await person.press("backspace", "9", "enter")
        await save(person, "left")
        assert person.app.session
        current = person.app.session.project.config
        assert (current.approval, current.max_attempts) == ("auto", 9)
    assert config.read_text() == FILE.replace("ask ", '"auto" ')


async def test_a_wrong_value_shows_the_reason_at_once_and_is_not_accepted(
    sandbox: Sandbox, config: Path
) -> None:
    async with person_at(sandbox) as person:
        await open_setting(person, "max_attempts", ValueField)
        await person.press("0", "0")
        assert "at most 100" in person.screen
        await person.press("enter")
        assert isinstance(person.app.screen, ValueField)
        await person.press("escape")
        await until_on(person, SettingsScreen)
    assert config.read_text() == FILE


async def test_a_file_that_cannot_be_changed_keeps_the_dialog_and_the_value(
    sandbox: Sandbox, config: Path
) -> None:
    config.chmod(0o444)
    async with person_at(sandbox) as person:
        await open_setting(person, "approval mode", ChoiceList)
        await person.press("down", "enter")
        await until_on(person, SaveDialog)
        await person.press("enter")
        await person.until(lambda: "read-only" in person.screen)
        # another place is still possible
        await person.press("left", "enter")
        await until_on(person, SettingsScreen)
        assert person.mode.startswith("edits")
    assert config.read_text() == FILE


async def test_an_unchanged_value_is_not_saved(sandbox: Sandbox, config: Path) -> None:
    async with person_at(sandbox) as person:
        await open_setting(person, "approval mode", ChoiceList)
        await person.press("enter")
        await until_on(person, SettingsScreen)
        await open_setting(person, "max_attempts", ValueField)
        await person.press("enter")
        await until_on(person, SettingsScreen)
    assert config.read_text() == FILE


async def test_a_reset_shows_what_applies_then_and_removes_the_key(
    sandbox: Sandbox, config: Path
) -> None:
    async with person_at(sandbox) as person:
        await person.press("f5")
        await until_on(person, SettingsScreen)
        await person.press(*"approval mode", "ctrl+r")
        await until_on(person, ResetDialog)
        assert "edits (built in)" in person.screen
        await person.press("enter")
        await until_on(person, SettingsScreen)
        assert person.mode.startswith("edits")
        await person.press("ctrl+r")
        await person.until(lambda: "built-in value" in person.screen)
    assert config.read_text() == FILE.replace(
        "approval: ask   # until we trust it\n", ""
    )


async def test_escape_leaves_one_dialog_after_the_other(
    sandbox: Sandbox, config: Path
) -> None:
    async with person_at(sandbox) as person:
        await open_setting(person, "approval mode", ChoiceList)
        await person.press("down", "enter")
        for kind in (SaveDialog, SettingsScreen):
            await until_on(person, kind)
            await person.press("escape")
        await person.until(lambda: person.app.screen is person.app.home)
    assert config.read_text() == FILE


async def test_a_secret_is_neither_shown_nor_changed_here(
    sandbox: Sandbox, config: Path
) -> None:
    text = "request:\n  headers:\n    X-Key: sk-very-secret\n"
    config.write_text(text)
    async with person_at(sandbox, size=(120, 40)) as person:
        await person.press("f5")
        await until_on(person, SettingsScreen)
        assert "sk-very" not in person.screen
        await person.press(*"headers", "enter")
        assert isinstance(person.app.screen, SettingsScreen)
        assert "Edit request.headers in" in person.screen
        assert "sk-very" not in person.screen
    assert config.read_text() == text


async def test_a_changed_setting_makes_a_project_of_a_plain_folder(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await open_setting(person, "approval mode", ChoiceList)
        await person.press("home", "enter")
        await save(person)
    assert load_config(sandbox.root, {}).approval == "ask"
    assert "# model: anthropic" in (sandbox.root / PROJECT_FILE).read_text()


@pytest.fixture
def truecolour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLORFGBG", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.usefixtures("truecolour")
async def test_a_theme_is_previewed_and_escape_restores_the_former_one(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.say("/theme")
        await until_on(person, ThemeList)
        await person.press(*"gruvb")
        await person.until(lambda: person.app.theme == "gruvbox")
        await person.press("ctrl+u", "end")
        await person.until(lambda: person.app.theme not in ("gruvbox", "textual-dark"))
        await person.press("escape")
        await person.until(lambda: person.app.theme == "textual-dark")
        assert not users_file().exists()


@pytest.mark.usefixtures("truecolour")
async def test_a_theme_is_saved_where_the_user_says_and_shown_at_the_next_start(
    sandbox: Sandbox,
) -> None:
    async with person_at(sandbox) as person:
        await person.say("/theme")
        await until_on(person, ThemeList)
        await person.press(*"nord", "enter")
        await until_on(person, SaveDialog)
        await person.press("escape")
        await person.until(lambda: person.app.theme == "textual-dark")

        await person.say("/theme")
        await until_on(person, ThemeList)
        await person.press(*"nord", "enter")
        await until_on(person, SaveDialog)
        await person.press("enter")
        await person.until(lambda: person.app.screen is person.app.home)
        assert person.app.theme == "nord"
    assert users_file().read_text() == 'theme: "nord"\n'
    async with person_at(sandbox) as person:
        assert person.app.theme == "nord"


async def test_the_screens_fit_into_a_small_window(
    sandbox: Sandbox, config: Path
) -> None:
    async with person_at(sandbox, size=(60, 20)) as person:
        await open_setting(person, "approval mode", ChoiceList)
        await person.press("down", "enter")
        await until_on(person, SaveDialog)
        for text in ("this session", "project", "user", "Enter: save"):
            assert text in person.screen
        about = person.app.screen.query_one("#note", Static)
        assert about.size.height > 0
