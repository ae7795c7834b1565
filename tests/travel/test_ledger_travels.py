"""The ledger of a run and the contents that it names travel; what is private stays."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from cdd_agent.engine.ledger_file import LedgerFile
from cdd_agent.git.content_store import hash_content
from tests.engine import test_old_records
from tests.support.projects import SLUG, Sandbox, Step, says
from tests.travel.copies import (
    REFERENCE,
    Copies,
    cdd,
    events,
    files,
    git,
    many_processes,
    run,
)

CHECK = "python -S check.py"
FORMAT = """\
import sys
text = open('a.txt').read()
open('a.txt', 'w').write(text.strip() + '\\n')
sys.exit('good' not in text)
"""
IGNORED = "what only this computer has\n"
SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


def record_of(sandbox: Sandbox) -> Path:
    return sandbox.root / ".cdd" / "runs" / SLUG


@pytest.fixture
def formatting(tmp_path: Path) -> Copies:
    """Step 1 makes a.txt, which its check formats, and changes an ignored file."""
    step = Step("a.txt", CHECK, also=("`local/b.txt`", "`conf.txt`"))
    copies = Copies.made(tmp_path.resolve() / "copies", step)
    first = copies.first
    (first.root / "check.py").write_text(FORMAT)
    git(first.root, "add", "check.py")
    git(first.root, "commit", "--quiet", "--message=A check")
    git(first.root, "push", "--quiet", "origin", "HEAD:main")
    copies.clone("second")
    (first.root / "local").mkdir()
    (first.root / "local" / "b.txt").write_text(IGNORED)
    return copies


def reply(*more: str) -> str:
    return says("a.txt", "good\n\n\n") + "".join(more)


@many_processes
def test_each_content_travels_also_one_that_no_checkpoint_has(
    formatting: Copies,
) -> None:
    first, second = formatting.first, formatting.second
    assert run(first, reply()) == 0
    assert cdd(first, "push", SLUG) == 0
    assert cdd(second, "pull", SLUG) == 0
    names = {place.name for place in (record_of(first) / "versions").iterdir()}
    assert len(names) == 2, "before and after its check"
    assert {place.name for place in (record_of(second) / "versions").iterdir()} == names
    assert cdd(second, "undo", SLUG) == 0
    assert not (second.root / "a.txt").exists()
    assert cdd(second, "redo", SLUG) == 0
    assert second.text("a.txt") == "good\n"
    assert cdd(second, "push", SLUG) == 0
    assert cdd(first, "pull", SLUG) == 0
    assert cdd(first, "undo", SLUG) == 0
    assert not (first.root / "a.txt").exists()


@many_processes
def test_contents_of_ignored_files_stay_and_are_named(
    formatting: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = formatting.first, formatting.second
    assert run(first, reply(says("local/b.txt", "ignored", ""))) == 0
    capsys.readouterr()
    assert cdd(first, "push", SLUG, "--json") == 0
    assert "local/b.txt" in left_out(capsys)
    # but what the model was shown, and said
    git(formatting.remote, "cat-file", "-e", name_of("good\n"))
    for content in (IGNORED, "ignored\n"):
        with pytest.raises(subprocess.CalledProcessError):
            git(formatting.remote, "cat-file", "-e", name_of(content))
    assert b"-what only" not in formatting.everything_sent(), "changes.diff"
    assert cdd(second, "pull", SLUG, "--json") == 0
    assert "local/b.txt" in left_out(capsys)
    assert not (record_of(second) / "contents").exists()
    assert cdd(second, "diff", SLUG) == 0
    assert cdd(second, "undo", SLUG) == 0
    assert not (second.root / "a.txt").exists()
    assert cdd(second, "push", SLUG) == 0
    # where they stayed, all is undone
    assert cdd(first, "pull", SLUG) == 0
    assert cdd(first, "redo", SLUG) == 0
    assert first.text("local/b.txt") == "ignored\n"
    assert cdd(first, "undo", SLUG) == 0
    assert first.text("local/b.txt") == IGNORED


@many_processes
def test_a_content_with_a_secret_stays_and_is_named(
    formatting: Copies, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = formatting.first, formatting.second
    (first.root / "conf.txt").write_text(f"key = {SECRET}\n")
    assert run(first, reply(says("conf.txt", "key = none", ""))) == 0
    capsys.readouterr()
    assert cdd(first, "push", SLUG, "--json") == 0
    assert "conf.txt" in left_out(capsys)
    assert SECRET.encode() not in formatting.everything_sent()
    assert cdd(second, "pull", SLUG) == 0
    assert cdd(second, "diff", SLUG) == 0
    assert cdd(second, "push", SLUG) == 0
    assert cdd(first, "pull", SLUG) == 0
    assert cdd(first, "undo", SLUG) == 0
    assert SECRET in first.text("conf.txt")


@many_processes
def test_what_an_undo_discarded_stays(formatting: Copies) -> None:
    first = formatting.first
    assert run(first, reply()) == 0
    assert cdd(first, "undo", SLUG) == 0
    assert [*(record_of(first) / "kept").iterdir()]
    assert cdd(first, "push", SLUG) == 0
    listed = git(formatting.remote, "ls-tree", "-r", "--name-only", REFERENCE)
    assert not [name for name in listed.splitlines() if "/kept/" in name]


@many_processes
def test_a_run_that_version_0_1_began_is_taken_over_before_it_is_pushed(
    tmp_path: Path,
) -> None:
    unpack(tmp_path, "completed")
    first = Sandbox((tmp_path / "completed").resolve())
    git(tmp_path, "init", "--quiet", "--bare", "--template=", "remote.git")
    remote = str(tmp_path / "remote.git")
    git(first.root, "remote", "add", "origin", remote)
    git(first.root, "push", "--quiet", "origin", "HEAD:main")
    git(tmp_path, "clone", "--quiet", "--branch=main", remote, "second")
    second = Sandbox((tmp_path / "second").resolve())
    assert cdd(first, "push", SLUG) == 0
    assert cdd(second, "pull", SLUG) == 0
    assert cdd(second, "undo", SLUG, "--step", "1") == 0
    assert not {"a.txt", "b.txt"} & files(second.root).keys()
    assert second.text("report.txt") == "report\n"


@many_processes
def test_a_run_that_version_0_1_pushed_is_pulled_and_taken_over(tmp_path: Path) -> None:
    unpack(tmp_path, "remote.git")
    git(tmp_path, "clone", "--quiet", "--branch=main", "remote.git", "second")
    second = Sandbox((tmp_path / "second").resolve())
    assert cdd(second, "pull", SLUG) == 0
    assert second.text("a.txt") == "good\n"
    assert cdd(second, "diff", SLUG) == 0
    assert LedgerFile(record_of(second) / "step-01" / "ledger.jsonl").entries()
    assert cdd(second, "undo", SLUG, "--step", "1") == 0
    assert not (second.root / "a.txt").exists()


def name_of(content: str) -> str:
    """Return git's name of the content of a file."""
    return hash_content([content.encode()], len(content), "sha1")


def unpack(folder: Path, name: str) -> None:
    with tarfile.open(test_old_records.ARCHIVE) as archive:
        members = [
            one for one in archive.getmembers() if one.name.split("/")[0] == name
        ]
        archive.extractall(folder, members, filter="fully_trusted")


def left_out(capsys: pytest.CaptureFixture[str]) -> str:
    """What was named as not sent, or not arrived."""
    return " ".join(
        event["text"]
        for event in events(capsys.readouterr().out)
        if event.get("kind") == "not_sent"
    )
