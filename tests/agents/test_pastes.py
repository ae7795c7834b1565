"""A long pasted text is saved once. Its beginning and its end are sent and kept."""

import os
from pathlib import Path

import pytest

from cdd_agent.agents.pastes import LONGEST, save_long_line
from cdd_agent.commands.registry import handle
from cdd_agent.session.session import Session
from cdd_agent.text.redaction import Redactor
from tests.agents.asking import TEMPLATE, asks
from tests.support.listening import collect
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.support.tables import each_row

ROWS = [f"row {number:>6} of the log" for number in range(12_000)]
LOG = "why?\n" + "\n".join(ROWS) + "\nSee above."
MIDDLE = ROWS[5_000]


@pytest.fixture
def project(sandbox: Sandbox) -> Sandbox:
    sandbox.write(Step("a.txt"), spec=TEMPLATE)
    (sandbox.root / ".cdd").mkdir(exist_ok=True)
    return sandbox


async def say(session: Session, *lines: str) -> None:
    for line in lines:
        await collect(handle(session, line))


def saved(root: Path) -> list[Path]:
    return sorted((root / ".cdd" / "pastes").glob("*.txt"))


def files_with(root: Path, text: str) -> list[str]:
    """The files below `.cdd` that have a text."""
    names = []
    for file in (root / ".cdd").rglob("*"):
        if file.is_file() and text.encode() in file.read_bytes():
            names.append(file.name)
    return names


def test_the_beginning_and_the_end_are_shown_with_the_lines_left_out(
    project: Sandbox,
) -> None:
    shown = save_long_line(project.root, LOG, Redactor())
    (file,) = saved(project.root)
    assert file.read_text() == LOG
    head, note, tail = shown.partition("… (lines ")[0], "", shown.rpartition(") …\n")[2]
    assert LOG.startswith(head.rstrip("\n"))
    assert LOG.endswith(tail)
    assert len(shown) < 17_000
    first, last = head.count("\n") + 1, LOG.count("\n") - tail.count("\n")
    note = f"… (lines {first:,} to {last:,} are left out here."
    assert note in shown
    assert f"in .cdd/pastes/{file.name}" in shown
    assert save_long_line(project.root, shown, Redactor()) == shown


@each_row("line", ["short", "x" * LONGEST, "row\n" * (LONGEST // 4)])
def test_other_lines_stay_unchanged(project: Sandbox, line: str) -> None:
    assert save_long_line(project.root, line, Redactor()) == line
    assert saved(project.root) == []


def test_a_long_line_without_line_ends_is_shortened(project: Sandbox) -> None:
    shown = save_long_line(project.root, "x" * 300_000, Redactor())
    assert len(shown) < 17_000
    assert "284,000 characters are left out here" in shown


def test_the_same_text_is_saved_once_and_old_ones_are_deleted(
    project: Sandbox,
) -> None:
    for number in range(55):
        save_long_line(project.root, f"{number} {LOG}", Redactor())
        newest = max(saved(project.root), key=lambda file: file.stat().st_mtime_ns)
        os.utime(newest, ns=(number, number))
    assert len(saved(project.root)) == 50
    save_long_line(project.root, f"54 {LOG}", Redactor())
    assert len(saved(project.root)) == 50
    assert (project.root / ".cdd" / "pastes" / ".gitignore").read_text().endswith("*\n")


def test_secrets_are_not_saved(project: Sandbox) -> None:
    redactor = Redactor({"s3cr3t-of-the-shop": "KEY"})
    save_long_line(project.root, LOG + "s3cr3t-of-the-shop", redactor)
    assert "s3cr3t" not in saved(project.root)[0].read_text()


def test_a_refusing_disk_and_a_folder_without_settings_change_nothing(
    project: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (project.root / ".cdd" / "pastes").write_text("in the way")
    assert save_long_line(project.root, LOG, Redactor()) == LOG
    assert save_long_line(tmp_path_factory.mktemp("other"), LOG, Redactor()) == LOG


@each_row(
    ("lines", "replies"),
    [
        (["{log}"], ["Because."]),
        ([f"/socrates {SLUG}", "{log}"], [asks("Who?"), asks("What?")]),
        ([f"/exec {SLUG}", "{log}"], [says("a.txt", "good")]),
        ([f"/exec {SLUG}", "{log} ?"], ["Because."]),
    ],
)
async def test_every_agent_gets_and_keeps_a_long_line_in_part(
    project: Sandbox, lines: list[str], replies: list[str]
) -> None:
    session = project.replies(*replies).session()
    await say(session, *(line.replace("{log}", LOG) for line in lines))
    prompt = project.prompt()
    assert ROWS[0] in prompt
    assert ROWS[-1] in prompt
    assert MIDDLE not in prompt
    (file,) = saved(project.root)
    assert f".cdd/pastes/{file.name}" in prompt
    assert files_with(project.root, MIDDLE) == [file.name]
    session.leave()


async def test_the_model_can_read_the_rest(project: Sandbox) -> None:
    session = project.replies("Because.", "Yes.").session()
    await say(session, LOG)
    (file,) = saved(project.root)
    await say(session, f"see @.cdd/pastes/{file.name}:5002-5003")
    assert MIDDLE in project.prompt()
