"""The safety of the program itself, where the user trusts all settings of a project: no
path leads out, no hook of git runs, and commands see no key.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cdd_agent.engine.record import RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.session.open_project import Project, accept_once, open_project
from cdd_agent.text.redaction import Redactor
from cdd_agent.tickets.status import StepStatus
from cdd_agent.wiring.projects import open_commands
from tests.support.projects import SLUG, Sandbox, Step, check, run_all, says
from tests.support.tables import each_row

EVERYTHING = """\
commands: {mode: unsafe, allow: [curl], hide_env: [], timeout: 60}
approval: auto
commit: step
web: {private: true}
test_command: ./evil
"""


@pytest.fixture
def trusted(sandbox: Sandbox) -> Sandbox:
    """A project whose settings allow all that settings can."""
    sandbox.write(Step("a.txt", check("a.txt")))
    (sandbox.root / ".cdd" / "config.yaml").write_text(EVERYTHING)
    return sandbox


def opened(sandbox: Sandbox) -> Project:
    project = open_project(sandbox.root, {}, decide=accept_once)
    assert project.config.commands.mode == "unsafe"
    return project


@each_row(
    "path",
    (
        "../outside.txt",
        "/tmp/outside.txt",
        ".git/hooks/pre-commit",
        ".cdd/config.yaml",
        f"tickets/{SLUG}/plan.md",
        "away/outside.txt",
    ),
)
async def test_no_reply_writes_outside_or_into_git_and_cdd(
    trusted: Sandbox, tmp_path_factory: pytest.TempPathFactory, path: str
) -> None:
    away = tmp_path_factory.mktemp("away")
    # a fake repository, without commits
    settings = trusted.root / ".cdd" / "config.yaml"
    settings.write_text(EVERYTHING.replace("commit: step\n", ""))
    link = trusted.root / "away"
    link.unlink(missing_ok=True)
    link.symlink_to(away)
    (trusted.root / ".git" / "hooks").mkdir(parents=True, exist_ok=True)
    before = _content(trusted.root / path)
    trusted.replies(says("a.txt", "good") + says(path, "evil"))
    await run_all(trusted)
    assert trusted.statuses() == [StepStatus.FAILED]
    assert _content(trusted.root / path) == before
    assert list(away.iterdir()) == []


@each_row(
    "place",
    (
        ".cdd/runs",
        ".cdd/conversations",
        f".cdd/runs/{SLUG}",
        f".cdd/runs/{SLUG}/events.jsonl",
        f".cdd/runs/{SLUG}/step-01/attempt-1",
        "tickets",
        f"tickets/{SLUG}",
        f"tickets/{SLUG}/plan.md",
    ),
)
def test_no_record_is_written_through_a_link_out_of_the_project(
    trusted: Sandbox, tmp_path_factory: pytest.TempPathFactory, place: str
) -> None:
    away = tmp_path_factory.mktemp("away")
    (away / "kept").write_text("as it was")
    link = trusted.root / place
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir():
        shutil.copytree(link, away, dirs_exist_ok=True)
        shutil.rmtree(link)
    elif link.exists():
        link.rename(away / link.name)
    is_file = link.suffix in (".md", ".jsonl")
    (away / link.name).touch() if is_file else None
    link.symlink_to(away / link.name if is_file else away)
    before = {path: _content(path) for path in away.rglob("*") if path.is_file()}

    def begin() -> None:
        project = opened(trusted)
        project.tickets.find(SLUG)
        RunRecord.of(project.root, SLUG, Redactor()).prepare()

    with pytest.raises(BadInput):
        begin()
    after = {path: _content(path) for path in away.rglob("*") if path.is_file()}
    assert after == before


def _content(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


async def test_no_command_sees_a_key(
    trusted: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "K" * 40)
    monkeypatch.setenv("MY_SECRET_TOKEN", "T" * 20)
    monkeypatch.setenv("HARMLESS", "seen")
    commands = open_commands(opened(trusted), trusted.frontend)
    result = await commands.run('echo "[$OPENAI_API_KEY$MY_SECRET_TOKEN$HARMLESS]"')
    assert result.stdout == "[seen]\n"


async def test_only_what_a_trusted_setting_names_is_passed(
    trusted: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "K" * 40)
    monkeypatch.setenv("MY_SECRET_TOKEN", "T" * 20)
    (trusted.root / ".cdd" / "config.yaml").write_text(
        "commands: {mode: unsafe, pass_env: [MY_SECRET_TOKEN]}\n"
    )
    commands = open_commands(opened(trusted), trusted.frontend)
    result = await commands.run('echo "[$OPENAI_API_KEY$MY_SECRET_TOKEN]"')
    assert result.stdout == f"[{'T' * 20}]\n"


@pytest.mark.story
async def test_no_hook_of_git_runs(trusted: Sandbox) -> None:
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org")
    (trusted.root / ".gitignore").write_text("/.cdd\nran\n")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "start")):
        subprocess.run([*git, *words], cwd=trusted.root, check=True)
    for name in ("pre-commit", "commit-msg", "post-commit", "post-checkout"):
        hook = trusted.root / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {trusted.root}/ran\n")
        hook.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        for who in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{who}_NAME", "A")
            patch.setenv(f"GIT_{who}_EMAIL", "a@example.org")
        trusted.replies(says("a.txt", "good"))
        await run_all(trusted)
    assert trusted.statuses() == [StepStatus.COMPLETED]
    log = subprocess.run(
        [*git, "log", "--oneline"], cwd=trusted.root, capture_output=True, check=True
    )
    assert len(log.stdout.splitlines()) == 2
    assert not os.path.lexists(trusted.root / "ran")
