"""Text that was typed and not sent outlives the shell."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cdd_agent.tui.drafts import Drafts
from tests.support.projects import Sandbox
from tests.support.screens import Screen
from tests.support.terminals import CDD, Terminal
from tests.tui.person import person_at


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".cdd").mkdir()
    return tmp_path


def killed(root: Path, *lines: str) -> None:
    """A shell that had these drafts when it was killed."""
    code = (
        "import os, sys, json, pathlib; from cdd_agent.tui.drafts import"
        " Drafts;Drafts(pathlib.Path(sys.argv[1])).save(json.loads(sys.argv[2]));"
        " os.kill(os.getpid(), 9)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, str(root), json.dumps(lines)], check=False
    )
    assert process.returncode == -9


def files(root: Path) -> list[str]:
    return sorted(file.suffix for file in (root / ".cdd/runs/drafts").iterdir())


LINES = ("half a thought", "a\nb", "日本語", "\ud800 half a pair")


def left_behind(root: Path, *lines: str) -> None:
    """A shell that had these drafts ended, and no one left it."""
    drafts = Drafts(root)
    drafts.save(lines)
    drafts.close(keep=True)


def test_a_shell_leaves_its_drafts_to_the_next_one_alone(project: Path) -> None:
    left_behind(project, *LINES)
    first, second = Drafts(project), Drafts(project)
    assert first.take_over() == [*LINES]
    assert second.take_over() == []
    assert files(project) == []


@pytest.mark.fork
def test_a_killed_shell_leaves_its_drafts_to_the_next_one_alone(project: Path) -> None:
    killed(project, *LINES)
    first, second = Drafts(project), Drafts(project)
    assert first.take_over() == [*LINES]
    assert second.take_over() == []
    assert files(project) == []


def test_the_drafts_of_a_running_shell_stay_its_own(project: Path) -> None:
    alive, other = Drafts(project), Drafts(project)
    alive.save(["mine"])
    assert other.take_over() == []
    alive.close()
    assert other.take_over() == []
    assert files(project) == []


def test_after_the_end_nothing_is_kept_any_more(project: Path) -> None:
    drafts = Drafts(project)
    drafts.save(["one"])
    drafts.close()
    drafts.save(["two"])
    assert files(project) == []


def test_a_damaged_file_is_ignored(project: Path) -> None:
    for content in ("", "{", '{"a": 1}', "[1, null]", "[" * 100_000):
        left_behind(project, "x")
        (file,) = (project / ".cdd/runs/drafts").glob("*.json")
        file.write_text(content)
        assert Drafts(project).take_over() == [], content[:20]
        assert files(project) == [], content[:20]


def test_outside_a_project_nothing_is_written(tmp_path: Path) -> None:
    Drafts(tmp_path).save(["x"])
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_costs_only_the_memory(project: Path) -> None:
    (project / ".cdd" / "runs").touch()
    Drafts(project).save(["x"])
    assert Drafts(project).take_over() == []


async def test_a_draft_is_on_the_disk_soon_after_a_key_and_gone_when_it_is_sent(
    sandbox: Sandbox,
) -> None:
    sandbox.write().replies("Yes.")
    drafts = sandbox.root / ".cdd/runs/drafts"

    def kept() -> list[str]:
        return [
            line
            for file in drafts.glob("*.json")
            for line in json.loads(file.read_text())
        ]

    async with person_at(sandbox) as person:
        await person.press(*"half")
        await person.until(lambda: kept() == ["half"])
        await person.press("enter")
        await person.until(lambda: kept() == [])
        await person.press(*"other")
        await person.until(lambda: kept() == ["other"])
        await person.press("ctrl+d")
    assert list(drafts.iterdir()) == []


async def test_a_line_that_has_an_effect_is_no_draft(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.write().replies("Yes.")
    drafts = sandbox.root / ".cdd/runs/drafts"

    async with person_at(sandbox) as person:
        await person.press(*"half")
        await person.until(lambda: len(list(drafts.glob("*.json"))) == 1)
        # The timer that saves drafts does not help from now on.
        monkeypatch.setattr("cdd_agent.tui.widgets.prompt._SOON", 3600)
        await person.press("enter")
        await person.until(lambda: "Yes." in person.screen)
        saved = [json.loads(file.read_text()) for file in drafts.glob("*.json")]
        assert saved == [[]]


async def test_a_shell_that_ends_without_being_left_leaves_its_draft(
    sandbox: Sandbox,
) -> None:
    sandbox.write()
    async with person_at(sandbox) as person:
        await person.press(*"half a thought")
        drafts = sandbox.root / ".cdd/runs/drafts"
        await person.until(
            lambda: any(
                "half a thought" in file.read_text() for file in drafts.glob("*.json")
            )
        )
    async with person_at(sandbox) as person:
        await person.until(lambda: "not sent · ↑: restore it" in person.screen)
        assert "half a thought" in person.screen
        assert person.prompt.text == ""
        await person.press("up")
        assert person.prompt.text == "half a thought"


@pytest.mark.pty
def test_kill_9_loses_no_draft(sandbox: Sandbox) -> None:
    def opened() -> tuple[Terminal, Screen]:
        terminal = Terminal(sandbox.root, CDD, size=(80, 24))
        screen = Screen(terminal)
        terminal.until(lambda: "New ticket" in screen.text)
        return terminal, screen

    sandbox.write()
    # else one is offered first
    (sandbox.root / ".cdd/config.yaml").write_text("model: openai/any-model\n")
    first, _ = opened()
    first.press(b"half a thought")
    first.until(
        lambda: any(
            "half a thought" in text.read_text()
            for text in sandbox.root.glob(".cdd/runs/drafts/*.json")
        )
    )
    first.end()
    second, screen = opened()
    second.until(lambda: "half a thought" in screen.text and "not sent" in screen.text)
    second.end()
