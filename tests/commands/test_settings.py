"""Settings in words: their sources, and saving and resetting them in each place."""

from pathlib import Path

import pytest
import yaml
from msgspec import Struct

from cdd_agent.commands.setting_changes import (
    SettingPlace,
    find_inherited,
    reset_setting,
    save_places,
    save_setting,
    usual_place,
)
from cdd_agent.commands.settings import (
    Setting,
    SettingOrigin,
    find_setting,
    list_settings,
    read_settings,
)
from cdd_agent.commands.typed_settings import check_value
from cdd_agent.errors import BadInput
from cdd_agent.session.session import Session
from cdd_agent.settings.config import PROJECT_FILE, Config
from cdd_agent.settings.descriptions import SettingGroup
from cdd_agent.settings.reading import user_file
from tests.support.projects import Sandbox
from tests.support.settings import load_config
from tests.support.tables import each_row

FILE = """\
# Ours.
approval: ask   # until we trust it
budget:
  usd: 2  # a run
"""


@pytest.fixture
def config(sandbox: Sandbox) -> Path:
    file = sandbox.root / PROJECT_FILE
    file.parent.mkdir()
    file.write_text(FILE)
    return file


@pytest.fixture
def user_config() -> Path:
    file = user_file()
    assert file is not None
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("# Mine.\ntest_timeout: 20\n")
    return file


def setting(session: Session, name: str) -> Setting:
    return find_setting(session.project, name)


def leaves(settings: Struct, prefix: str = "") -> set[str]:
    names: set[str] = set()
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if isinstance(value, Struct) and name != "models":
            names |= leaves(value, f"{prefix}{name}.")
        else:
            names.add(f"{prefix}{name}")
    return names


def test_every_setting_is_listed_in_a_group_with_its_purpose(sandbox: Sandbox) -> None:
    settings = read_settings(sandbox.project)
    assert {one.name for one in settings} == leaves(Config())
    assert all(one.description.purpose for one in settings)
    groups = [one.description.group for one in settings]
    assert groups == sorted(groups, key=list(SettingGroup).index)
    titles = [one.description.title for one in settings]
    assert len(titles) == len(set(titles))


def test_each_choice_is_explained(sandbox: Sandbox) -> None:
    for one in read_settings(sandbox.project):
        for value in one.choices:
            check_value(one.name, value)
        is_choice = one.allowed.startswith(("one of", "true or false"))
        assert bool(one.choices) == is_choice, one.name
        assert all(one.choices.values())


@pytest.mark.usefixtures("config", "user_config")
def test_each_setting_names_the_source_of_its_value(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDD_EFFORT", "low")
    sandbox.flags = {"max_attempts": 7}
    shown = {
        one.name: (one.value, one.origin, one.source.detail)
        for one in read_settings(sandbox.project)
    }
    assert shown["approval"] == ("ask", SettingOrigin.PROJECT, ".cdd/config.yaml:2")
    assert shown["budget.usd"] == ("2", SettingOrigin.PROJECT, ".cdd/config.yaml:4")
    assert shown["budget.tokens"] == ("null", SettingOrigin.BUILT_IN, "")
    assert shown["test_timeout"][:2] == ("20", SettingOrigin.USER)
    assert shown["test_timeout"][2].endswith("config.yaml")
    assert shown["effort"] == ("low", SettingOrigin.ENVIRONMENT, "CDD_EFFORT")
    assert shown["max_attempts"] == ("7", SettingOrigin.COMMAND_LINE, "--max-attempts")


@pytest.mark.usefixtures("config")
async def test_a_value_of_the_session_says_so(sandbox: Sandbox) -> None:
    session = sandbox.session()
    await save_setting(session, "jobs", "3", SettingPlace.SESSION)
    assert setting(session, "jobs").origin is SettingOrigin.SESSION
    assert session.project.config.jobs == 3
    assert load_config(sandbox.root, {}).jobs == 1


TYPED: list[tuple[str, str, object]] = [
    ("approval", "auto", "auto"),
    ("tool_calls", "on", "on"),
    ("notifications.bell", "false", False),
    ("notifications.bell", "off", False),
    ("pictures", "null", None),
    ("temperature", "0.5", 0.5),
    ("temperature", "", None),
    ("test_timeout", "20", 20.0),
    ("test_command", "pytest -k 'a: b' # all", "pytest -k 'a: b' # all"),
    ("test_command", " make test ", "make test"),
    ("commands.allow", "npm, make", ("npm", "make")),
    ("commands.allow", "[npm, make]", ("npm", "make")),
    ("commands.allow", "", ()),
    ("record", "yes", "yes"),
]


@each_row(("name", "typed", "value"), TYPED)
async def test_a_typed_value_is_read_by_the_type_of_its_setting(
    sandbox: Sandbox, name: str, typed: str, value: object
) -> None:
    session = sandbox.session()
    for place in (SettingPlace.SESSION, SettingPlace.PROJECT, SettingPlace.USER):
        await save_setting(session, name, typed, place)
        current: object = session.project.config
        for key in name.split("."):
            current = getattr(current, key)
        assert current == value
    stored: object = load_config(sandbox.root, {})
    for key in name.split("."):
        stored = getattr(stored, key)
    assert stored == value
    shown = setting(session, name).value
    check_value(name, shown)


WRONG = [
    ("approval", "sometimes", "one of `ask`, `auto`, `edits`"),
    ("approval", "", "needs a value"),
    ("max_attempts", "0", "at least 1"),
    ("temperature", "3", "at most 2"),
    ("budget.usd", "[", "budget.usd"),
    ("commands.allow", "bash", "runs the command in its arguments"),
    ("api_base", "not a url", "api_base"),
    ("tickets_dir", "../elsewhere", ".."),
    ("theme", "Neon Light", "the name of a theme"),
]


@each_row(("name", "typed", "reason"), WRONG)
@pytest.mark.parametrize("place", [SettingPlace.PROJECT, SettingPlace.USER])
async def test_a_wrong_value_is_refused_and_changes_nothing(
    sandbox: Sandbox,
    config: Path,
    user_config: Path,
    name: str,
    typed: str,
    reason: str,
    place: SettingPlace,
) -> None:
    session = sandbox.session()
    former = session.project.config
    with pytest.raises(BadInput) as refusal:
        await save_setting(session, name, typed, place)
    assert reason in f"{refusal.value.message} {refusal.value.hint}"
    assert session.project.config == former
    assert config.read_text() == FILE
    assert user_config.read_text() == "# Mine.\ntest_timeout: 20\n"


async def test_saving_keeps_the_comments_of_each_file(
    sandbox: Sandbox, config: Path, user_config: Path
) -> None:
    session = sandbox.session()
    await save_setting(session, "approval", "auto", SettingPlace.PROJECT)
    await save_setting(session, "theme", "nord", SettingPlace.USER)
    assert config.read_text() == FILE.replace("ask ", '"auto" ')
    assert user_config.read_text() == '# Mine.\ntest_timeout: 20\ntheme: "nord"\n'


async def test_the_users_file_is_created_with_its_folder(sandbox: Sandbox) -> None:
    file = user_file()
    assert file is not None
    await save_setting(sandbox.session(), "theme", "nord", SettingPlace.USER)
    assert yaml.safe_load(file.read_text()) == {"theme": "nord"}


@pytest.mark.usefixtures("config")
async def test_a_file_that_is_overridden_later_is_reported(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sandbox.session()
    remark = await save_setting(session, "approval", "auto", SettingPlace.USER)
    assert ".cdd/config.yaml" in remark
    assert "overrides" in remark
    monkeypatch.setenv("CDD_JOBS", "2")
    remark = await save_setting(session, "jobs", "3", SettingPlace.PROJECT)
    assert "CDD_JOBS" in remark


async def test_a_read_only_file_is_refused(sandbox: Sandbox, config: Path) -> None:
    session = sandbox.session()
    config.chmod(0o444)
    with pytest.raises(BadInput, match="read-only"):
        await save_setting(session, "approval", "auto")
    with pytest.raises(BadInput, match="read-only"):
        await reset_setting(session, setting(session, "approval"))
    assert config.read_text() == FILE
    assert session.project.config.approval == "ask"


async def test_a_folder_that_cannot_be_written_restores_the_former_value(
    sandbox: Sandbox, user_config: Path
) -> None:
    user_config.unlink()
    user_config.parent.rmdir()
    user_config.parent.write_text("a file")
    session = sandbox.session()
    with pytest.raises(BadInput):
        await save_setting(session, "theme", "nord", SettingPlace.USER)
    assert session.project.config.theme == "auto"


@pytest.mark.parametrize("damage", ["approval: [", "approval: sometimes\n", "- a\n"])
async def test_a_damaged_file_is_refused_and_stays(
    sandbox: Sandbox, config: Path, damage: str
) -> None:
    session = sandbox.session()
    config.write_text(damage)
    with pytest.raises(BadInput, match=r"config\.yaml"):
        await save_setting(session, "jobs", "2")
    assert config.read_text() == damage


async def test_a_value_that_changed_since_it_was_shown_is_not_overwritten(
    sandbox: Sandbox, config: Path
) -> None:
    session = sandbox.session()
    seen = setting(session, "budget.usd")
    config.write_text(FILE.replace("usd: 2", "usd: 5"))
    with pytest.raises(BadInput, match="has changed"):
        await save_setting(session, "budget.usd", "3", SettingPlace.PROJECT, seen)
    assert "usd: 5" in config.read_text()


async def test_other_changes_of_the_file_are_kept(
    sandbox: Sandbox, config: Path
) -> None:
    session = sandbox.session()
    seen = setting(session, "approval")
    config.write_text(f"{FILE}# new\ncommit: step\n")
    await save_setting(session, "approval", "edits", SettingPlace.PROJECT, seen)
    assert "# new\ncommit: step\n" in config.read_text()


async def test_a_reset_removes_the_key_and_uses_the_inherited_value(
    sandbox: Sandbox, config: Path, user_config: Path
) -> None:
    user_config.write_text("approval: auto\n")
    session = sandbox.session()
    current = setting(session, "approval")
    inherited = find_inherited(session, current)
    assert inherited.startswith("auto (user file")
    assert await reset_setting(session, current) == inherited
    assert config.read_text() == FILE.replace(
        "approval: ask   # until we trust it\n", ""
    )
    assert session.approval.value == "auto"

    current = setting(session, "approval")
    assert await reset_setting(session, current) == "edits (built in)"
    assert user_config.read_text() == ""
    assert session.approval.value == "edits"
    with pytest.raises(BadInput, match="built-in value"):
        await reset_setting(session, setting(session, "approval"))


@pytest.mark.usefixtures("config")
async def test_a_reset_of_a_session_value_returns_to_the_files(
    sandbox: Sandbox,
) -> None:
    sandbox.flags = {"max_attempts": 7}
    session = sandbox.session()
    await save_setting(session, "budget.usd", "9", SettingPlace.SESSION)
    outcome = await reset_setting(session, setting(session, "budget.usd"))
    assert outcome == "2 (project file .cdd/config.yaml:4)"
    assert session.project.config.budget.usd == 2
    outcome = await reset_setting(session, setting(session, "max_attempts"))
    assert outcome == "3 (built in)"
    assert session.project.config.max_attempts == 3


async def test_a_variable_cannot_be_reset(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDD_EFFORT", "low")
    session = sandbox.session()
    with pytest.raises(BadInput, match="CDD_EFFORT is set"):
        await reset_setting(session, setting(session, "effort"))


@pytest.mark.usefixtures("config", "user_config")
def test_the_usual_place_is_where_the_value_came_from(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDD_EFFORT", "low")
    sandbox.flags = {"max_attempts": 7}
    usual = {one.name: usual_place(one) for one in read_settings(sandbox.project)}
    assert usual["approval"] is SettingPlace.PROJECT
    assert usual["test_timeout"] is SettingPlace.USER
    assert usual["max_attempts"] is SettingPlace.SESSION
    assert usual["effort"] is SettingPlace.PROJECT
    assert usual["commit"] is SettingPlace.PROJECT
    assert usual["theme"] is SettingPlace.USER


def test_a_setting_that_needs_trust_says_so(sandbox: Sandbox) -> None:
    places = {
        one.name: {place.place: place.note for place in save_places(one)}
        for one in read_settings(sandbox.project)
    }
    assert "must trust it" in places["test_command"][SettingPlace.PROJECT]
    assert places["effort"][SettingPlace.PROJECT] == ""
    assert SettingPlace.SESSION not in places["tickets_dir"]


@pytest.mark.usefixtures("config")
def test_the_list_has_the_groups_with_their_rows(sandbox: Sandbox) -> None:
    lines = list_settings(read_settings(sandbox.project)).splitlines()
    assert [line for line in lines if line and line[0] != " "] == list(SettingGroup)
    (row,) = [line for line in lines if "(approval)" in line]
    assert row.split("  ")[-1] == "[project file .cdd/config.yaml:2]"


async def test_an_address_with_a_password_is_not_saved(
    sandbox: Sandbox, config: Path
) -> None:
    session = sandbox.session()
    with pytest.raises(BadInput, match="password"):
        await save_setting(session, "api_base", "http://u:p@127.0.0.1:1/v1")
    assert config.read_text() == FILE


async def test_a_setting_of_the_shell_leaves_the_models_alone(
    sandbox: Sandbox,
) -> None:
    session = sandbox.session()
    used: list[Config] = []
    session.use = used.append
    await save_setting(session, "theme", "nord", SettingPlace.SESSION)
    assert session.project.config.theme == "nord"
    assert used == []
    await save_setting(session, "jobs", "2", SettingPlace.SESSION)
    assert len(used) == 1


def test_without_a_home_a_setting_that_needs_trust_stays_in_the_session(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("cdd_agent.commands.setting_changes", "cdd_agent.commands.settings"):
        monkeypatch.setattr(f"{module}.user_file", lambda: None)
    monkeypatch.setattr("cdd_agent.trust.store.state_folder", lambda: None)
    settings = {one.name: one for one in read_settings(sandbox.project)}
    offered = {
        name: [place.place for place in save_places(one)]
        for name, one in settings.items()
    }
    assert offered["test_command"] == [SettingPlace.SESSION]
    assert offered["effort"] == [SettingPlace.SESSION, SettingPlace.PROJECT]
    assert usual_place(settings["theme"]) is SettingPlace.PROJECT
