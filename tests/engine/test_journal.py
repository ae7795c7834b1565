"""An attempt's journal: its files are as before after a kill at any moment, and nobody
else's edit is lost.
"""

import hashlib
import json
import stat
from pathlib import Path, PurePosixPath

import pytest

from cdd_agent.edits.build import change_set
from cdd_agent.edits.changes import ChangeSet
from cdd_agent.edits.model import ReplyRefused
from cdd_agent.edits.parse import parse_reply
from cdd_agent.edits.policy import EditPolicy
from cdd_agent.engine.journal import Journal, WrittenFile
from cdd_agent.errors import BadInput
from cdd_agent.git.restore import RestoreResult
from tests.support.tables import each_row

DELETE = "*** Begin Patch\n*** Delete File: old.txt\n*** End Patch\n"
MOVE = (
    "*** Begin Patch\n*** Update File: old.txt\n*** Move to: new.txt\n*** End Patch\n"
)
A = PurePosixPath("a.txt")


def journal_in(root: Path) -> Journal:
    return Journal(root, root / ".cdd/runs/x/step-01/attempt-1")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return journal_in(tmp_path)


def noted(journal: Journal, reply: str) -> ChangeSet:
    """The changes of a reply, of which nothing is written yet."""
    changes = change_set(journal.root, parse_reply(reply).edits, EditPolicy(seen=None))
    with journal.writing(changes):
        pass
    return changes


def wrote(journal: Journal, text: str) -> None:
    noted(journal, f"```text:a.txt\n{text}\n```").apply(journal.root)


def test_all_that_is_needed_to_go_back_is_saved_before_anything_is_written(
    journal: Journal,
) -> None:
    (journal.root / "a.txt").write_text("first\n")
    changes = change_set(
        journal.root,
        parse_reply("```text:a.txt\none\n```").edits,
        EditPolicy(seen=None),
    )
    with journal.writing(changes):
        changes.apply(journal.root)
        # of the process after a kill at this moment
        later = Journal(journal.root, journal.folder)
        assert later.restore() == RestoreResult(restored=("a.txt",))
    assert (journal.root / "a.txt").read_text() == "first\n"


@each_row("reply", [DELETE, MOVE])
@each_row("is_killed", ["before", "between", "after"])
def test_after_a_kill_a_deleted_file_comes_back_as_it_was(
    tmp_path: Path, reply: str, is_killed: str
) -> None:
    journal = journal_in(tmp_path)
    old, new = journal.root / "old.txt", journal.root / "new.txt"
    old.write_bytes(b"\xffold\r\n")
    old.chmod(0o750)
    changes = noted(journal, reply)
    if is_killed == "after":
        changes.apply(journal.root)
    elif is_killed == "between" and reply == MOVE:
        new.write_bytes(b"\xffold\r\n")
        new.chmod(0o750)  # it has them from its first moment
    for _ in range(2):
        journal.restore()
        assert old.read_bytes() == b"\xffold\r\n"
        assert stat.S_IMODE(old.stat().st_mode) == 0o750
        assert not new.exists()


def test_a_journal_of_an_earlier_version_is_restored(journal: Journal) -> None:
    sha = {
        text: hashlib.sha1(b"blob %d\0%s" % (len(text), text)).hexdigest()
        for text in (b"mine\n", b"new\n")
    }
    before, after = (
        {"mode": "100644", "content": sha[text], "permissions": None}
        for text in (b"mine\n", b"new\n")
    )
    files = [
        {"path": "a.txt", "before": before, "after": after},
        {"path": "b.txt", "before": None, "after": after},
    ]
    journal.folder.mkdir(parents=True)
    (journal.folder / "changes.json").write_text(json.dumps({"files": files}))
    (journal.folder / "before-0").write_text("mine\n")
    for name in ("a.txt", "b.txt"):
        (journal.root / name).write_text("new\n")
    assert journal.restore() == RestoreResult(restored=("a.txt", "b.txt"))
    assert (journal.root / "a.txt").read_text() == "mine\n"


def test_folders_that_a_killed_write_made_go_again(journal: Journal) -> None:
    noted(journal, "```text:deep/er/a.txt\nnew\n```")
    (journal.root / "deep/er").mkdir(parents=True)
    assert journal.restore() == RestoreResult()
    assert not (journal.root / "deep").exists()


def test_a_file_behind_a_link_to_a_folder_is_restored(journal: Journal) -> None:
    (journal.root / "real").mkdir()
    (journal.root / "real/a.txt").write_text("mine\n")
    (journal.root / "link").symlink_to("real")
    noted(journal, "```text:link/a.txt\nnew\n```").apply(journal.root)
    assert journal.changed_since() == frozenset()
    assert journal.restore() == RestoreResult(restored=("real/a.txt",))
    assert (journal.root / "link/a.txt").read_text() == "mine\n"


@each_row("leads_to", ["..", "elsewhere"])
def test_a_link_that_came_later_is_followed_within_the_project_alone(
    tmp_path: Path, leads_to: str
) -> None:
    journal = journal_in(tmp_path)
    (journal.root / "sub").mkdir()
    noted(journal, "```text:sub/a.txt\nnew\n```").apply(journal.root)
    (journal.root / "sub").rename(journal.root / "elsewhere")
    (journal.root / "sub").symlink_to(leads_to)
    back = journal.restore()
    assert (journal.root / "elsewhere/a.txt").exists() is (leads_to == "..")
    assert back.kept == ()


def test_a_file_that_a_person_made_in_its_place_stays(journal: Journal) -> None:
    (journal.root / "old.txt").write_text("old\n")
    noted(journal, DELETE).apply(journal.root)
    (journal.root / "old.txt").write_text("mine\n")
    assert journal.restore().kept == ("old.txt",)
    assert (journal.root / "old.txt").read_text() == "mine\n"


@each_row("now", ["one\n", "two\n", "formatted\n"])
def test_whatever_the_attempt_made_of_a_file_last_what_was_there_first_comes_back(
    tmp_path: Path, now: str
) -> None:
    journal = journal_in(tmp_path)
    file = journal.root / "a.txt"
    file.write_text("first\n")
    wrote(journal, "one")
    wrote(journal, "two")
    journal.record_command_writes({A: WrittenFile(b"formatted\n", 0o644)})
    file.write_text(now)  # as a kill may have left it
    assert journal.restore() == RestoreResult(restored=("a.txt",))
    assert file.read_text() == "first\n"
    assert journal.restore() == RestoreResult()


def test_a_refusal_is_forgotten_and_what_was_written_before_it_is_not(
    journal: Journal,
) -> None:
    wrote(journal, "one")
    changes = change_set(
        journal.root, parse_reply("```text:b.txt\nb\n```").edits, EditPolicy(seen=None)
    )
    with pytest.raises(ReplyRefused), journal.writing(changes):
        raise ReplyRefused("no")
    (journal.root / "b.txt").write_text("b\n")  # the very same, and somebody else's
    assert journal.restore() == RestoreResult(restored=("a.txt",))
    assert (journal.root / "b.txt").exists()


def test_what_is_no_longer_as_the_attempt_left_it_is_named(journal: Journal) -> None:
    wrote(journal, "one")
    assert journal.changed_since() == frozenset()
    (journal.root / "a.txt").write_text("mine\n")
    assert journal.changed_since() == {A}


def test_what_a_command_made_is_kept_by_its_call_until_it_is_set_aside(
    journal: Journal,
) -> None:
    wrote(journal, "one")
    made = {A: WrittenFile(b"formatted\n", 0o755)}
    journal.keep_command_writes(2, made)
    assert (journal.command_writes(2), journal.command_writes(1)) == (made, {})
    journal.set_calls_aside(since=3)
    assert journal.command_writes(2) == made
    journal.set_calls_aside(since=2)
    assert journal.command_writes(2) == {}
    assert [path.read_text() for path in journal.folder.glob("call-2-0.aside-*")] == [
        "formatted\n"
    ]


def test_a_copy_that_is_gone_is_told(journal: Journal) -> None:
    wrote(journal, "one")
    journal.keep_command_writes(0, {A: WrittenFile(b"formatted\n", 0o644)})
    (journal.folder / "call-0-0").unlink()
    with pytest.raises(BadInput, match="call-0-0 is gone"):
        journal.command_writes(0)


def test_content_that_is_not_what_was_there_is_not_put_back(journal: Journal) -> None:
    (journal.root / "a.txt").write_text("first\n")
    wrote(journal, "one")
    (journal.folder / "before-0").write_text("something else\n")
    with pytest.raises(BadInput, match="before-0 no longer holds"):
        journal.restore()
    assert (journal.root / "a.txt").read_text() == "one\n"


@each_row("path", ["../outside.txt", "/outside.txt"])
def test_a_journal_that_leads_out_of_the_project_is_refused(
    tmp_path: Path, path: str
) -> None:
    journal = journal_in(tmp_path)
    wrote(journal, "one")
    file = journal.folder / "changes.json"
    found = json.loads(file.read_text())
    found["files"][0]["path"] = path
    file.write_text(json.dumps(found))
    with pytest.raises(
        BadInput, match=r"changes\.json is damaged: .* is not in the project"
    ):
        journal.restore()
