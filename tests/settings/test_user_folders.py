"""The user's folders, and what modules do for a user without a home folder."""

import pwd
import sys
from pathlib import Path

import platformdirs
import pytest

import cdd_agent
from cdd_agent.cluster.project_cache import find_folder_of_caches
from cdd_agent.engine.whereabouts import copy_id
from cdd_agent.errors import BadInput
from cdd_agent.faces.faults import FaultLog
from cdd_agent.process.session import execute_command_tool
from cdd_agent.settings import user_folders
from cdd_agent.settings.reading import user_file
from cdd_agent.tui.themes import LastTheme, load_last_theme, save_last_theme
from tests.support.settings import load_config

FOLDERS = (
    user_folders.config_folder,
    user_folders.data_folder,
    user_folders.cache_folder,
    user_folders.state_folder,
    user_folders.worker_cache_folder,
)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.delenv(f"XDG_{name}_HOME", raising=False)


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_entry(user_id: int) -> pwd.struct_passwd:
        raise KeyError(user_id)

    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    monkeypatch.delenv("HOME")


@pytest.mark.skipif(sys.platform != "linux", reason="other platforms differ")
def test_the_folders_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")

    assert user_folders.home_folder() == Path("/home/ada")
    assert [str(folder()) for folder in FOLDERS] == [
        "/home/ada/.config/cdd-agent",
        "/home/ada/.local/share/cdd-agent",
        "/home/ada/.cache/cdd-agent",
        "/home/ada/.local/state/cdd",
        "/home/ada/.cache/cdd/cluster",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="other platforms differ")
@pytest.mark.usefixtures("no_home")
def test_absolute_variables_need_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", f"/kept/{name.lower()}")

    assert [str(folder()) for folder in FOLDERS] == [
        "/kept/config/cdd-agent",
        "/kept/data/cdd-agent",
        "/kept/cache/cdd-agent",
        "/kept/state/cdd",
        "/kept/cache/cdd/cluster",
    ]


@pytest.mark.usefixtures("no_home")
@pytest.mark.parametrize("value", [None, "", "relative/folder", "~"])
def test_without_an_absolute_path_there_is_no_folder(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            monkeypatch.setenv(name, value)

    assert user_folders.home_folder() is None
    assert [folder() for folder in FOLDERS] == [None] * len(FOLDERS)


@pytest.mark.parametrize("home", [None, "", "relative"])
def test_the_passwd_entry_names_the_home_that_the_environment_does_not(
    monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    entry = pwd.struct_passwd(("ada", "x", 1, 1, "", "/home/ada", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda user_id: entry)
    monkeypatch.delenv("HOME")
    if home is not None:
        monkeypatch.setenv("HOME", home)

    assert user_folders.home_folder() == Path("/home/ada")
    assert user_folders.config_folder() == platformdirs.user_config_path("cdd-agent")


@pytest.mark.usefixtures("no_home")
def test_without_a_home_nothing_is_kept_and_nothing_fails(tmp_path: Path) -> None:
    assert user_file() is None
    assert load_config(tmp_path, {}).model is None
    save_last_theme(LastTheme("light"))
    assert load_last_theme({}) == LastTheme("dark")
    assert "RuntimeError: no" in FaultLog(tmp_path).write(RuntimeError("no"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_home")
def test_without_a_home_a_copy_keeps_its_identity_in_the_project(
    tmp_path: Path,
) -> None:
    first = copy_id(tmp_path)

    assert copy_id(tmp_path) == first
    (tmp_path / ".cdd" / "runs" / "machine").write_text("another machine")
    assert copy_id(tmp_path) != first


@pytest.mark.usefixtures("no_home")
def test_what_needs_a_home_names_the_variable_that_replaces_it() -> None:
    answer = execute_command_tool("ls", "workspace", "agent", "session")
    assert "CDD_WORKSPACES" in str(answer["error"])
    with pytest.raises(BadInput) as refused:
        find_folder_of_caches()
    assert "XDG_CACHE_HOME" in refused.value.hint


def test_no_other_module_looks_for_the_home_folder() -> None:
    """Ruff bans the functions by name, and cannot see methods of paths."""
    package = Path(cdd_agent.__file__).parent
    found = set()
    for path in package.rglob("*.py"):
        text = path.read_text()
        if ".expanduser(" in text or '"HOME"' in text:
            found.add(path.relative_to(package).as_posix())
    assert found == {"settings/user_folders.py"}
