"""`/init`: a project's own files, made where they are missing, and only in a place for
a project.
"""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from cdd_agent.commands.initialise import NoPlace, initialise
from cdd_agent.commands.registry import handle
from cdd_agent.errors import BadInput
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.files.atomic import NotWritten
from cdd_agent.session.open_project import Project, open_project
from cdd_agent.settings.config import PROJECT_FILE, Config
from cdd_agent.tickets.spec import TicketType
from cdd_agent.tickets.store import TicketStore
from tests.support.listening import collect
from tests.support.projects import Sandbox, noticed
from tests.support.settings import load_config
from tests.support.tables import each_row

MADE = [".cdd/.gitignore", ".cdd/config.yaml", "tickets/.gitkeep", "AGENTS.md"]


def initialised(
    root: Path, *, templates: bool = False, tickets_dir: str = "tickets"
) -> list[Notice]:
    project = Project(
        root, Config(tickets_dir=tickets_dir), TicketStore(root, tickets_dir)
    )
    return list(initialise(project, templates=templates))


def init(
    root: Path, *, templates: bool = False, tickets_dir: str = "tickets"
) -> list[str]:
    return [
        notice.text
        for notice in initialised(root, templates=templates, tickets_dir=tickets_dir)
    ]


def files(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for path in root.rglob("*")
        if path.is_file()
    }


def test_init_creates_missing_files_and_names_them(tmp_path: Path) -> None:
    told = init(tmp_path)
    assert str(tmp_path) in told[0]
    assert [line.split()[-1] for line in told[1:5]] == MADE
    assert sorted(files(tmp_path)) == sorted(MADE)


def test_a_second_init_changes_nothing(tmp_path: Path) -> None:
    init(tmp_path, templates=True)
    before = files(tmp_path)
    assert noticed(initialised(tmp_path, templates=True)) == [NoticeKind.NOT_DONE]
    assert files(tmp_path) == before


def test_existing_files_are_never_overwritten(tmp_path: Path) -> None:
    own = {
        ".cdd/config.yaml": "model: mine\n",
        ".cdd/.gitignore": "x\n",
        "agents.md": "ours\n",
    }
    own |= {
        "tickets/bug-a/spec.yaml": "title: x\n",
        ".cdd/templates/bug.yaml": "title: ours\n",
    }
    for name, text in own.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    told = init(tmp_path, templates=True)

    after = files(tmp_path)
    assert {name: after[name] for name in own} == own
    assert "AGENTS.md" not in after  # it is there, under another spelling
    assert "tickets/.gitkeep" not in after
    assert ".cdd/templates/spike.yaml" in " ".join(told)


def test_every_setting_is_in_the_config_with_its_default(tmp_path: Path) -> None:
    init(tmp_path)
    text = (tmp_path / PROJECT_FILE).read_text()
    assert load_config(tmp_path, {}, {}) == Config()
    settings = (
        text.partition("\n\n")[2].replace("# model:", "model:").replace("\n# ", "\n")
    )
    assert set(yaml.safe_load(settings)) == set(Config.__struct_fields__)
    (tmp_path / PROJECT_FILE).write_text(
        settings.replace("model: anthropic/claude-sonnet-5-5", "model: null")
    )
    assert load_config(tmp_path, {}, {}) == Config()


def test_templates_are_copied_on_request_and_work_at_once(
    tmp_path: Path,
) -> None:
    init(tmp_path, templates=True)
    template = tmp_path / ".cdd/templates/bug.yaml"
    template.write_text(
        template.read_text().replace("priority: medium", "priority: high")
    )
    store = TicketStore(tmp_path)
    assert store.create("bug", "a").read_spec().priority == "high"
    assert all(store.create(kind, "b").read_spec().type is kind for kind in TicketType)


def test_git_ignores_the_files_of_runs_only(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert init(tmp_path, templates=True)[0].endswith("a git repository.")
    (tmp_path / ".cdd/runs").mkdir()
    (tmp_path / ".cdd/runs/log").write_text("x")
    status = ["git", "-C", tmp_path, "status", "--porcelain", "-uall"]
    seen = subprocess.run(status, capture_output=True, text=True, check=True).stdout
    assert all(name in seen for name in MADE)
    assert "runs" not in seen


def test_another_tickets_dir_is_used(tmp_path: Path) -> None:
    init(tmp_path, tickets_dir="work/items")
    assert (tmp_path / "work/items/.gitkeep").is_file()
    assert "`work/items/`" in (tmp_path / "AGENTS.md").read_text()


@each_row(
    "place",
    ["/", "/usr", "/etc", "/bin", "/var", "/etc/cdd/project", "/usr/bin", "/tmp", "~"],
)
def test_the_system_and_the_home_folder_are_refused(place: str) -> None:
    folder = Path(place).expanduser()
    before = [(folder / name).exists() for name in MADE]
    with pytest.raises(NoPlace) as caught:
        init(folder)
    assert "git init" in caught.value.hint
    assert [(folder / name).exists() for name in MADE] == before


def test_a_link_to_a_refused_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to("/etc")
    with pytest.raises(NoPlace):
        init(tmp_path / "mine")


def test_the_folders_that_windows_names_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Windows/System32").mkdir(parents=True)
    (tmp_path / "Users/ada/shop").mkdir(parents=True)
    monkeypatch.setenv("SYSTEMROOT", str(tmp_path / "Windows"))
    monkeypatch.setenv("SYSTEMDRIVE", str(tmp_path))
    for refused in ("Windows", "Windows/System32", "Users"):
        with pytest.raises(NoPlace):
            init(tmp_path / refused)
    assert init(tmp_path / "Users/ada/shop")


def test_a_project_in_the_home_folder_is_an_error_with_advice() -> None:
    home = Path.home()
    (home / ".git").mkdir()
    (home / "shop").mkdir()
    with pytest.raises(NoPlace) as caught:
        list(initialise(open_project(home / "shop", {})))
    assert "`git init`" in caught.value.hint
    assert not (home / ".cdd").exists()


@each_row("way", [".cdd", "tickets"])
def test_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path, way: str) -> None:
    (tmp_path / way).write_text("a file")
    with pytest.raises(NotWritten):
        init(tmp_path)


def test_agents_md_describes_the_project_s_files(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[project]\n"
        'name = "shop"\n'
        'description = "Sells."\n'
        "[tool.pytest.ini_options]\n"
        "[tool.ruff]\n"
    )
    init(tmp_path)
    text = (tmp_path / "AGENTS.md").read_text()
    assert text.startswith("# shop\n\nSells.\n")
    assert "- Test: `pytest`" in text
    assert "`ruff check .`" in text
    assert "- Build: <" in text


def test_agents_md_takes_the_test_command_that_is_set(tmp_path: Path) -> None:
    (tmp_path / ".cdd").mkdir()
    (tmp_path / ".cdd/config.yaml").write_text("test_command: tox -e fast\n")
    list(initialise(open_project(tmp_path, {})))
    assert "`tox -e fast`" in (tmp_path / "AGENTS.md").read_text()


@each_row(
    ("name", "text"),
    [("pyproject.toml", "[project"), ("package.json", "{"), ("go.mod", "\xff")],
)
def test_an_unreadable_file_is_reported_and_init_continues(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    told = init(tmp_path)
    assert any(name in line for line in told)
    assert (tmp_path / "AGENTS.md").is_file()


@pytest.mark.skipif(os.name != "posix", reason="names of files are text there")
@each_row("name", ["", "package.json"])
def test_undecodable_names_and_descriptions_are_replaced(
    tmp_path: Path, name: str
) -> None:
    root = tmp_path / os.fsdecode(b"caf\xe9")
    root.mkdir()
    if name == "package.json":
        (root / name).write_text(r'{"description": "It \ud800 \u001b[31mdoes."}')
    init(root)
    text = (root / "AGENTS.md").read_text(encoding="utf-8")
    assert text.startswith("# caf\ufffd\n")
    assert ("It \ufffd ␛[31mdoes." in text) == (name == "package.json")


async def test_the_slash_command_does_the_same(sandbox: Sandbox) -> None:
    events = await collect(handle(sandbox.session(), "/init --templates"))
    made = [
        event.text.split()[-1]
        for event in events
        if isinstance(event, Notice) and event.kind is NoticeKind.CREATED
    ]
    assert {".cdd/config.yaml", ".cdd/templates/bug.yaml"} <= set(made)
    with pytest.raises(BadInput, match="'--template'"):
        await collect(handle(sandbox.session(), "/init --template"))
