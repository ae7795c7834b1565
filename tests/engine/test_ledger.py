"""The ledger of a step's files: they are as before after a kill at any moment, and no
edit of anyone else is lost.
"""

import asyncio
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.changes.build import change_set
from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.changes.model import ReplyRefused
from cdd_agent.changes.parse import parse_reply
from cdd_agent.changes.policy import EditPolicy
from cdd_agent.engine import ledger_file
from cdd_agent.engine.attempt import Attempt
from cdd_agent.engine.ledger import Ledger
from cdd_agent.engine.ledger_entries import commands_to_redo
from cdd_agent.engine.ledger_file import EntryKind, LedgerEntry
from cdd_agent.engine.ledger_undo import enter_undo
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.restoring import Restorer
from cdd_agent.errors import BadInput
from cdd_agent.git.diff import Change, TreeEntry
from cdd_agent.git.restore import CheckpointGone, RestoreResult
from cdd_agent.text.redaction import Redactor
from tests.git.repositories import git
from tests.support.fake_checkpoints import FakeCheckpoints
from tests.support.tables import each_row

DELETE = "*** Begin Patch\n*** Delete File: old.txt\n*** End Patch\n"
MOVE = (
    "*** Begin Patch\n*** Update File: old.txt\n*** Move to: new.txt\n*** End Patch\n"
)
LINES = "one\ntwo\nthree\nfour\nfive\nsix\n"
NOTHING = RestoreResult()


class Work:
    """One attempt at a step of a run, in a project."""

    def __init__(self, root: Path, number: int = 1, declared: Sequence[str] = ()):
        self.root = root
        self.declared = declared
        record = RunRecord.of(root, "x", Redactor())
        record.prepare()
        self.ledger = Ledger(record, (".cdd",), open_checkpoints=FakeCheckpoints.open)
        self.attempt: Attempt = record.attempt(1, number)

    async def begin(self) -> None:
        await self.ledger.begin(self.attempt, self.declared)

    def prepare(self, reply: str, call: int | None = None) -> ChangeSet:
        """The changes of a reply, which are entered and not written yet."""
        edits = parse_reply(reply).edits
        changes = change_set(self.root, edits, EditPolicy(seen=None))
        with self.ledger.writing(self.attempt, changes, (), call):
            return changes

    def write(self, path: str, text: str, call: int | None = None) -> None:
        self.prepare(f"```text:{path}\n{text}\n```", call).apply(self.root)

    async def command(
        self,
        act: Callable[[], object] | str,
        call: int | None = 0,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> LedgerEntry:
        """A command of a tool's call, or without `call` a check. A text is Python."""
        states = self.ledger.start(self.attempt, "make", self.declared, call=call)
        meanwhile()
        if isinstance(act, str):
            exec(act, {"os": os, "root": self.root, "Path": Path})
        else:
            act()
        owns = self.declared.__contains__
        return await self.ledger.enter_after_command(
            self.attempt, states, owns, "make", call=call
        )

    def restore(self) -> RestoreResult:
        """As the next process does after a kill."""
        return Restorer(self.root, [self.attempt]).restore()

    def put(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def text(self, path: str) -> str | None:
        place = self.root / path
        return place.read_text() if place.is_file() else None

    @property
    def entries(self) -> list[LedgerEntry]:
        return list(self.attempt.entries)

    @property
    def kept(self) -> dict[str, str]:
        """What was saved before it was discarded."""
        folder = self.attempt.kept
        return {
            path.relative_to(folder).as_posix(): path.read_text()
            for path in folder.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path, declared=("made.txt",))


def paths(entry: LedgerEntry) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return (
        tuple(change.path for change in entry.changes),
        tuple(change.path for change in entry.others),
    )


# --- Before anything is written -------------------------------------------------------


def test_all_that_is_needed_to_go_back_is_saved_before_anything_is_written(
    work: Work,
) -> None:
    work.put("a.txt", "first\n")
    found: list[list[EntryKind]] = []
    edits = parse_reply("```text:a.txt\none\n```\n\n```text:b.txt\nnew\n```").edits
    changes = change_set(work.root, edits, EditPolicy(seen=None))
    with work.ledger.writing(work.attempt, changes, ()):
        found.append([entry.kind for entry in work.entries])
        assert (work.text("a.txt"), work.text("b.txt")) == ("first\n", None)
        # a kill before the first byte
        assert work.restore() == NOTHING
        changes.apply(work.root)
        # and after the last one
        assert work.restore() == RestoreResult(restored=("a.txt", "b.txt"))
    assert found == [[EntryKind.REPLY]]
    assert (work.text("a.txt"), work.text("b.txt")) == ("first\n", None)


@each_row("reply", [DELETE, MOVE])
@each_row("is_killed", ["before", "between", "after"])
def test_after_a_kill_a_deleted_file_comes_back_as_it_was(
    tmp_path: Path, reply: str, is_killed: str
) -> None:
    work = Work(tmp_path)
    old, new = work.root / "old.txt", work.root / "new.txt"
    old.write_bytes(b"\xffold\r\n")
    old.chmod(0o750)
    changes = work.prepare(reply)
    if is_killed == "after":
        changes.apply(work.root)
    elif is_killed == "between" and reply == MOVE:
        new.write_bytes(b"\xffold\r\n")
        new.chmod(0o750)  # it has them from its first moment
    for _ in range(2):
        work.restore()
        assert old.read_bytes() == b"\xffold\r\n"
        assert stat.S_IMODE(old.stat().st_mode) == 0o750
        assert not new.exists()


@each_row("folder", ["deep/er", "there"])
def test_what_a_killed_write_left_goes_again(tmp_path: Path, folder: str) -> None:
    """Its temporary file, and the folders that it made."""
    work = Work(tmp_path)
    (work.root / "there").mkdir()
    (work.root / "there/mine.txt").write_text("mine\n")
    work.prepare(f"```text:{folder}/a.txt\nnew\n```")
    (work.root / folder).mkdir(parents=True, exist_ok=True)
    leftover = f".cdd-{'0' * 12}-{os.getpid()}-{'0' * 8}.tmp"
    (work.root / folder / leftover).write_text("ne")
    assert work.restore() == NOTHING
    assert [path.name for path in (work.root / "there").iterdir()] == ["mine.txt"]
    assert not (work.root / "deep").exists()


def test_a_refused_change_is_withdrawn_and_what_was_written_before_it_is_not(
    work: Work,
) -> None:
    work.write("a.txt", "one")
    edits = parse_reply("```text:b.txt\nb\n```").edits
    changes = change_set(work.root, edits, EditPolicy(seen=None))
    with pytest.raises(ReplyRefused), work.ledger.writing(work.attempt, changes, ()):
        raise ReplyRefused("no")
    work.put("b.txt", "b\n")  # the very same, and of the user
    assert [entry.kind for entry in work.entries] == [
        EntryKind.REPLY,
        EntryKind.REPLY,
        EntryKind.WITHDRAWN,
    ]
    assert work.restore() == RestoreResult(restored=("a.txt",))
    assert work.text("b.txt") == "b\n"


# --- Restoring ------------------------------------------------------------------------


@each_row("now", ["first\n", "one\n", "two\n", "formatted\n"])
async def test_whatever_the_attempt_made_of_a_file_what_was_there_first_comes_back(
    tmp_path: Path, now: str
) -> None:
    work = Work(tmp_path)
    work.put("a.txt", "first\n")
    await work.begin()
    work.write("a.txt", "one", call=0)
    work.write("a.txt", "two", call=1)
    await work.command(lambda: work.put("a.txt", "formatted\n"), call=2)
    work.put("a.txt", now)  # as a kill may have left it
    restored = () if now == "first\n" else ("a.txt",)
    assert work.restore() == RestoreResult(restored=restored)
    assert work.text("a.txt") == "first\n"
    assert work.restore() == NOTHING
    assert work.ledger.net([work.attempt]).changes == ()


async def test_modes_and_links_are_restored_with_the_contents(work: Work) -> None:
    root = work.root
    work.put("private.txt", "p\n")
    work.put("run.sh", "#!/bin/sh\n")
    for name, mode in (("private.txt", 0o600), ("run.sh", 0o755)):
        (root / name).chmod(mode)
    (root / "link").symlink_to("run.sh")
    work.declared = ("private.txt", "run.sh", "link", "new-link")
    await work.begin()
    entry = await work.command(
        "(root / 'private.txt').chmod(0o640); (root / 'run.sh').chmod(0o644);"
        "(root / 'link').unlink(); (root / 'link').symlink_to('elsewhere');"
        "(root / 'new-link').symlink_to('run.sh')"
    )
    assert paths(entry) == (("link", "new-link", "private.txt", "run.sh"), ())
    assert work.restore().restored == ("link", "new-link", "private.txt", "run.sh")
    assert stat.S_IMODE((root / "private.txt").stat().st_mode) == 0o600
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o755
    assert (root / "link").readlink() == Path("run.sh")
    assert not os.path.lexists(root / "new-link")


def test_a_file_behind_a_link_to_a_folder_is_restored(work: Work) -> None:
    (work.root / "real").mkdir()
    work.put("real/a.txt", "mine\n")
    (work.root / "link").symlink_to("real")
    work.write("link/a.txt", "new")
    assert work.restore() == RestoreResult(restored=("real/a.txt",))
    assert work.text("link/a.txt") == "mine\n"


@each_row("leads_to", ["..", "elsewhere"])
def test_a_link_that_came_later_is_not_followed(tmp_path: Path, leads_to: str) -> None:
    work = Work(tmp_path)
    (work.root / "sub").mkdir()
    work.write("sub/a.txt", "new")
    (work.root / "sub").rename(work.root / "elsewhere")
    (work.root / "sub").symlink_to(leads_to)
    assert work.restore() == NOTHING
    assert work.text("elsewhere/a.txt") == "new\n"


async def test_a_file_that_the_user_made_in_its_place_stays(work: Work) -> None:
    work.put("old.txt", "old\n")
    work.prepare(DELETE).apply(work.root)
    work.put("old.txt", "mine\n")
    assert work.restore() == RestoreResult(kept=("old.txt",))
    assert work.text("old.txt") == "mine\n"
    # reported again until the attempt continues: a kill may have come in between
    assert work.restore() == RestoreResult(kept=("old.txt",))
    await work.begin()
    assert work.restore() == NOTHING


def test_a_folder_of_the_user_in_the_way_stays(work: Work) -> None:
    work.put("old.txt", "old\n")
    work.prepare(DELETE).apply(work.root)
    work.put("old.txt/mine.txt", "mine\n")
    assert work.restore() == RestoreResult(kept=("old.txt",))
    assert work.text("old.txt/mine.txt") == "mine\n"


async def test_a_folder_of_the_step_in_the_way_goes_first(tmp_path: Path) -> None:
    """Whoever caused the two changes: a reply deletes, a command creates."""
    work = Work(tmp_path, declared=("old.txt/x.txt",))
    work.put("old.txt", "old\n")
    await work.begin()
    work.prepare(DELETE).apply(work.root)
    await work.command(lambda: work.put("old.txt/x.txt", "x\n"))
    assert work.restore() == RestoreResult(restored=("old.txt", "old.txt/x.txt"))
    assert work.text("old.txt") == "old\n"


async def test_a_later_edit_is_merged_where_that_is_clean(work: Work) -> None:
    work.put("a.txt", LINES)
    work.write("a.txt", LINES.replace("one", "ONE").strip())
    work.put("a.txt", LINES.replace("one", "ONE").replace("six", "mine"))
    for _ in range(2):
        assert work.restore() == RestoreResult(merged=("a.txt",))
        assert work.text("a.txt") == LINES.replace("six", "mine")
    await work.begin()
    assert work.restore() == NOTHING
    (last,) = [entry for entry in work.entries if entry.kind is EntryKind.RESTORED]
    assert last.merged == ("a.txt",)


@each_row(
    "mine",
    [LINES.replace("one", "mine"), LINES.replace("one\ntwo", "one"), "\0binary", ""],
    ids=["the same line", "next to it", "binary", "emptied"],
)
def test_a_later_edit_that_cannot_be_merged_stays(tmp_path: Path, mine: str) -> None:
    work = Work(tmp_path)
    work.put("a.txt", LINES)
    work.write("a.txt", LINES.replace("one", "ONE").strip())
    work.put("a.txt", mine)
    assert work.restore() == RestoreResult(kept=("a.txt",))
    assert work.text("a.txt") == mine


async def test_nothing_is_merged_that_a_killed_command_may_have_made(
    work: Work,
) -> None:
    work.put("a.txt", LINES)
    await work.begin()
    work.write("a.txt", LINES.replace("one", "ONE").strip())
    work.ledger.start(work.attempt, "make", ())
    work.put("a.txt", LINES.replace("one", "ONE").replace("six", "half a wo"))
    for _ in range(2):
        assert work.restore() == RestoreResult(kept=("a.txt",))
        assert (work.text("a.txt") or "").endswith("half a wo\n")


def test_what_only_commands_made_is_saved_before_it_is_discarded(work: Work) -> None:
    async def told(text: str, number: int) -> None:
        again = Work(work.root, number, declared=("deep/made.txt",))
        await again.begin()
        again.write("a.txt", "a reply's")
        await again.command(lambda: again.put("deep/made.txt", text), call=None)
        again.restore()

    for number, text in enumerate(("first\n", "second\n", "first\n"), 1):
        asyncio.run(told(text, number))
    assert work.kept == {"deep/made.txt": "first\n", "deep/made.txt.1": "second\n"}


# --- Contents that are gone -----------------------------------------------------------


@each_row("harm", ["removed", "changed", "emptied", "all removed"])
def test_without_a_content_nothing_is_restored(tmp_path: Path, harm: str) -> None:
    work = Work(tmp_path)
    work.put("a.txt", "first a\n")
    work.put("b.txt", "first b\n")
    work.write("a.txt", "one")
    work.write("b.txt", "one")
    for place in work.attempt.versions.folder.iterdir():
        is_needed = place.read_text() == "first b\n"
        if harm == "all removed" or (is_needed and harm == "removed"):
            place.unlink()
        elif is_needed:
            place.write_text("" if harm == "emptied" else "other b\n")
    with pytest.raises(CheckpointGone):
        work.restore()
    assert (work.text("a.txt"), work.text("b.txt")) == ("one\n", "one\n")
    assert [entry.kind for entry in work.entries] == [EntryKind.REPLY, EntryKind.REPLY]


def test_a_content_that_is_not_needed_may_be_gone(work: Work) -> None:
    """Of a new file nothing is needed, and of a restored one no more."""
    work.put("a.txt", "first\n")
    work.write("b.txt", "new")
    work.write("a.txt", "one")
    work.put("a.txt", "first\n")
    for place in work.attempt.versions.folder.iterdir():
        place.unlink()
    assert work.restore() == RestoreResult(restored=("b.txt",))


# --- Commands and checks --------------------------------------------------------------


@each_row("call", [0, None], ids=["command", "check"])
async def test_a_change_is_the_steps_on_paths_that_it_declares_or_wrote(
    tmp_path: Path, call: int | None
) -> None:
    work = Work(tmp_path, declared=("made.txt", "gone.txt"))
    for path in ("gone.txt", "old.txt", "same.txt"):
        work.put(path, "old\n")
    await work.begin()
    work.write("written.txt", "w")
    entry = await work.command(
        "for name in ('made.txt', 'written.txt', 'old.txt', 'beside.txt', 'same.txt'):"
        "\n    (root / name).write_text('old\\n' if name == 'same.txt' else 'new\\n')"
        "\n(root / 'gone.txt').unlink()",
        call=call,
    )
    assert entry.kind is (EntryKind.CHECK if call is None else EntryKind.COMMAND)
    assert paths(entry) == (
        ("gone.txt", "made.txt", "written.txt"),
        ("beside.txt", "old.txt"),
    )
    assert work.ledger.others([work.attempt]) == ("beside.txt", "old.txt")
    # of the others only those that are still so
    work.put("old.txt", "mine\n")
    assert work.ledger.others([work.attempt]) == ("beside.txt",)

    assert work.restore().restored == ("gone.txt", "made.txt", "written.txt")

    assert (work.text("made.txt"), work.text("written.txt")) == (None, None)
    assert work.text("gone.txt") == "old\n"
    assert (work.text("beside.txt"), work.text("old.txt")) == ("new\n", "mine\n")


async def test_a_new_file_in_a_declared_folder_is_the_steps(work: Work) -> None:
    """It could not be looked at before: nobody knew of it."""
    await work.begin()
    states = work.ledger.start(work.attempt, "make gen", ())
    for path in ("gen/a.py", "gen/deep/b.py", "other/c.py"):
        work.put(path, "x\n")
    entry = await work.ledger.enter_after_command(
        work.attempt, states, lambda path: path.startswith("gen/"), "make gen", call=0
    )
    assert paths(entry) == (("gen/a.py", "gen/deep/b.py"), ("other/c.py",))
    assert work.restore().restored == ("gen/a.py", "gen/deep/b.py")
    assert not (work.root / "gen").exists()


async def test_anothers_change_is_named_also_where_the_step_writes_the_file_later(
    work: Work,
) -> None:
    work.put("old.txt", "old\n")
    await work.begin()
    await work.command(lambda: work.put("old.txt", "by a command\n"))
    work.write("old.txt", "by a reply")
    assert work.ledger.others([work.attempt]) == ()

    work.restore()

    assert work.text("old.txt") == "by a command\n"
    assert work.ledger.others([work.attempt]) == ("old.txt",)


async def test_anothers_change_is_named_also_where_an_earlier_attempt_wrote_the_file(
    tmp_path: Path,
) -> None:
    first, second = Work(tmp_path), Work(tmp_path, 2)
    first.put("old.txt", "old\n")
    await first.begin()
    first.write("old.txt", "by a reply")
    first.restore()
    await second.begin()
    await second.command(lambda: second.put("old.txt", "by a check\n"), call=None)

    Restorer(second.root, [first.attempt, second.attempt]).restore()

    assert second.text("old.txt") == "by a check\n"
    both = [first.attempt, second.attempt]
    assert second.ledger.others(both) == ("old.txt",)


async def test_an_edit_before_a_command_starts_is_the_users(tmp_path: Path) -> None:
    """The states at its start count, and not the last look at the project."""
    work = Work(tmp_path, declared=("made.txt",))
    await work.begin()
    work.write("a.txt", "one", call=0)
    work.put("a.txt", "mine\n")
    work.put("made.txt", "mine\n")
    entry = await work.command("None", call=1)
    assert paths(entry) == ((), ())
    entry = await work.command(lambda: work.put("made.txt", "by command\n"), call=2)
    assert paths(entry) == (("made.txt",), ())
    assert work.restore() == RestoreResult(restored=("made.txt",), kept=("a.txt",))
    assert (work.text("made.txt"), work.text("a.txt")) == ("mine\n", "mine\n")


async def test_a_commands_content_is_saved_also_if_a_killed_call_was_to_replace_it(
    work: Work,
) -> None:
    await work.begin()
    await work.command(lambda: work.put("made.txt", "by a command\n"))
    # entered, and the kill comes before the file is written
    work.prepare("```text:made.txt\nby a call\n```", call=1)
    assert work.restore() == RestoreResult(restored=("made.txt",))
    assert work.kept == {"made.txt": "by a command\n"}


async def test_an_edit_of_a_steps_file_while_a_check_runs_is_kept_aside(
    tmp_path: Path,
) -> None:
    """It cannot be told from the check's own change."""
    work = Work(tmp_path)
    await work.begin()
    work.write("a.txt", "one")
    await work.command("None", None, meanwhile=lambda: work.put("a.txt", "mine\n"))
    assert work.restore() == RestoreResult(restored=("a.txt",))
    assert work.text("a.txt") is None
    assert work.kept == {"a.txt": "mine\n"}


async def test_in_a_tree_of_its_own_all_changes_are_the_steps(tmp_path: Path) -> None:
    work = Work(tmp_path)
    record = work.ledger.record
    work.attempt = Attempt(tmp_path, work.attempt.folder, side=record.folder / "side-1")
    await work.begin()
    entry = await work.command(lambda: work.put("anything.txt", "x\n"))
    assert paths(entry) == (("anything.txt",), ())


REPLACED = ("made.txt",)


@each_row(
    "act",
    [
        "(root / 'made.txt').write_text('x' * 200)",
        "(root / 'made.txt').unlink(); os.mkfifo(root / 'made.txt')",
    ],
)
async def test_what_cannot_be_saved_of_a_steps_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    monkeypatch.setattr("cdd_agent.engine.saved_contents.LARGEST_SAVED", 100)
    work = Work(tmp_path, declared=REPLACED)
    work.put("made.txt", "old\n")
    await work.begin()
    entry = await work.command(act)
    assert paths(entry) == ((), REPLACED)
    assert work.restore() == NOTHING
    assert work.ledger.others([work.attempt]) == REPLACED
    assert await work.ledger.versions([work.attempt], lambda path: True) == ()
    (tmp_path / "made.txt").unlink()
    assert work.ledger.others([work.attempt]) == ()


@pytest.mark.skipif(sys.platform != "linux", reason="names are texts there")
async def test_a_name_that_is_no_text_is_named_and_kept(work: Work) -> None:
    await work.begin()
    name = os.fsdecode(b"caf\xe9.txt")
    entry = await work.command(lambda: work.put(name, "x\n"))
    assert paths(entry) == ((), (name,))
    assert work.restore() == NOTHING
    assert work.ledger.others([work.attempt]) == (name,)


async def test_a_check_that_removes_the_record_is_reported(work: Work) -> None:
    await work.begin()
    with pytest.raises(BadInput, match=r"ledger\.jsonl was deleted while the step ran"):
        await work.command(work.attempt.ledger.path.unlink)


async def test_a_ledger_is_read_no_more_often_for_more_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for number in (2, 20):
        names = tuple(f"{place}.txt" for place in range(number))
        work = Work(tmp_path / str(number), declared=names)
        await work.begin()
        read = Mock(wraps=ledger_file.read_ledger)
        monkeypatch.setattr(ledger_file, "read_ledger", read)

        def write(work: Work = work, names: Sequence[str] = names) -> None:
            for name in names:
                work.put(name, "x\n")

        entry = await work.command(write)
        assert len(entry.changes) == number
        enter_undo(Restorer(work.root, [work.attempt]), work.attempt.ledger, "1")
        counts.append(read.call_count)
        monkeypatch.undo()
    assert counts[0] == counts[1]


async def test_secrets_in_commands_are_not_entered(work: Work) -> None:
    await work.begin()
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    states = work.ledger.start(work.attempt, f"curl -H {secret}", ())
    await work.ledger.enter_after_command(
        work.attempt, states, bool, f"curl -H {secret}"
    )
    assert secret not in work.attempt.ledger.path.read_text()


async def test_after_a_kill_what_changed_beside_the_step_is_found(work: Work) -> None:
    await work.begin()
    work.write("a.txt", "one")
    work.ledger.start(work.attempt, "make", work.declared)
    work.put("beside.txt", "x\n")
    assert await work.ledger.enter_after_kill(work.attempt) == ("beside.txt",)
    assert work.restore() == RestoreResult(restored=("a.txt",))
    assert work.text("beside.txt") == "x\n"


# --- Continuing -----------------------------------------------------------------------


async def restored_after_commands(root: Path) -> Work:
    """An attempt that was interrupted after two commands, and continues."""
    work = Work(root, declared=("made.txt",))
    await work.begin()
    work.write("a.txt", "go", call=0)
    await work.command(lambda: work.put("a.txt", "formatted\n"), call=1)
    await work.command(
        lambda: [work.put("made.txt", "m\n"), work.put("beside.txt", "x\n")], call=2
    )
    work.restore()
    assert (work.text("a.txt"), work.text("made.txt")) == (None, None)
    await work.begin()
    return work


async def test_what_commands_made_is_made_again_without_them(tmp_path: Path) -> None:
    work = await restored_after_commands(tmp_path)
    work.put("beside.txt", "mine\n")
    commands = commands_to_redo(work.attempt)
    assert sorted(commands) == [1, 2]
    work.write("a.txt", "go", call=0)
    made = [work.ledger.redo_command(work.attempt, commands[n]) for n in (1, 2)]
    assert [change.path for one in made for change in one] == ["a.txt", "made.txt"]
    assert (work.text("a.txt"), work.text("made.txt")) == ("formatted\n", "m\n")
    assert work.text("beside.txt") == "mine\n"
    # it is the step's, as before
    assert work.ledger.net([work.attempt]).files.created == ("a.txt", "made.txt")
    assert work.restore().restored == ("a.txt", "made.txt")


async def test_what_a_command_made_of_another_content_is_not_made_again(
    tmp_path: Path,
) -> None:
    work = await restored_after_commands(tmp_path)
    work.put("made.txt", "mine\n")
    commands = commands_to_redo(work.attempt)
    with pytest.raises(ReplyRefused, match=r"made\.txt was changed"):
        work.ledger.redo_command(work.attempt, commands[2])
    assert work.text("made.txt") == "mine\n"


async def test_a_command_whose_contents_are_gone_is_not_made_again(
    tmp_path: Path,
) -> None:
    work = await restored_after_commands(tmp_path)
    command = commands_to_redo(work.attempt)[2]
    for place in work.attempt.versions.folder.iterdir():
        place.unlink()
    count = len(work.entries)
    with pytest.raises(ReplyRefused):
        work.ledger.redo_command(work.attempt, command)
    assert (work.text("made.txt"), len(work.entries)) == (None, count)


async def test_a_new_file_is_private_only_if_git_ignores_it(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    git(root, "init", "--quiet")
    (root / ".gitignore").write_text("local/\n")
    (root / "local").mkdir()
    (root / "local" / "old.txt").write_text("old\n")
    record = RunRecord.of(root, "x", Redactor())
    record.prepare()
    attempt = record.attempt(1, 1)
    paths = ("new.txt", "local/new.txt", "local/old.txt")
    await Ledger(record, (".cdd",)).begin(attempt, paths)
    (begin,) = attempt.entries
    assert begin.private == ("local/new.txt", "local/old.txt")


async def test_dropped_calls_are_not_made_again(tmp_path: Path) -> None:
    work = await restored_after_commands(tmp_path)
    work.ledger.drop_calls(work.attempt, 3)
    assert sorted(commands_to_redo(work.attempt)) == [1, 2]
    work.ledger.drop_calls(work.attempt, 2)
    assert sorted(commands_to_redo(work.attempt)) == [1]
    # another round gets the number
    await work.command(lambda: work.put("made.txt", "2nd\n"), call=2)
    assert sorted(commands_to_redo(work.attempt)) == [1, 2]
    dropped = [entry.call for entry in work.entries if entry.kind is EntryKind.DROPPED]
    assert dropped == [2]


# --- What others read -----------------------------------------------------------------


async def test_a_restored_attempt_is_in_no_view_of_the_step(tmp_path: Path) -> None:
    """Neither in the diff, nor among the versions that are compared, nor in what the
    files were afterwards.
    """
    first, second = Work(tmp_path, 1), Work(tmp_path, 2)
    first.put("test_a.py", "def test_a(): ...\n")
    await first.begin()
    first.write("test_a.py", "pass")
    first.write("other.txt", "x")
    await first.command("None", call=None)
    first.restore()
    assert await first.ledger.files_after(first.attempt, ("other.txt",)) == {
        "other.txt": None
    }
    await second.begin()
    second.write("b.txt", "b")
    attempts = [first.attempt, second.attempt]
    assert second.ledger.net(attempts).paths == {"b.txt"}
    versions = await second.ledger.versions(attempts, lambda path: True)
    assert [(one.path, one.before, one.after) for one in versions] == [
        ("b.txt", None, b"b\n")
    ]
    diff = await second.ledger.diff(attempts)
    assert "+b\n" in diff
    assert "test_a" not in diff


@each_row("is_before", [True, False])
async def test_a_diff_writes_nothing_through_a_link_of_the_ledger(
    work: Work, tmp_path_factory: pytest.TempPathFactory, is_before: bool
) -> None:
    """A ledger may come with a repository, or from another computer."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "keys").write_text("mine\n")
    store = work.attempt.versions
    link = TreeEntry("120000", store.put(os.fsencode(outside)))
    plain = TreeEntry("100644", store.put(b"evil\n"))
    pairs = [("x", link, plain), ("x/keys", plain, link)]
    if not is_before:
        pairs = [(path, after, before) for path, before, after in pairs]
    changes = tuple(Change(*pair) for pair in pairs)
    work.attempt.ledger.append(LedgerEntry(EntryKind.REPLY, 1, changes=changes))
    with pytest.raises(BadInput):
        await work.ledger.diff([work.attempt])
    assert (outside / "keys").read_text() == "mine\n"


# --- A property -----------------------------------------------------------------------

FILES = ("declared.txt", "written.txt", "beside.txt")
ACTS = st.lists(
    st.tuples(
        st.sampled_from(
            ("reply", "tool", "command", "check", "edit", "restore", "next")
        ),
        st.sampled_from(FILES),
    ),
    max_size=12,
)


@given(ACTS)
def test_restoring_leads_to_the_users_version_whatever_happened(
    acts: list[tuple[str, str]],
) -> None:
    """The model: for each file the stack of its versions. Restoring takes the step's
    versions off the top.
    """
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_play(Path(folder).resolve(), acts))


async def _play(root: Path, acts: list[tuple[str, str]]) -> None:
    work = Work(root, declared=("declared.txt",))
    work.put("declared.txt", "first\n")
    work.put("beside.txt", "first\n")
    # the text of each version, and True if it is the user's
    stacks = {path: [(work.text(path), True)] for path in FILES}
    attempts, written = [work.attempt], set(work.declared)
    await work.begin()

    def is_written(path: str, text: str) -> None:
        if (now := work.text(path)) != stacks[path][-1][0]:
            stacks[path].append((now, True))
        stacks[path].append((text, False))
        written.add(path)

    def restore() -> None:
        edited = {path for path in FILES if work.text(path) != stacks[path][-1][0]}
        result = Restorer(root, attempts).restore()
        for path in FILES:
            if path in edited:
                stacks[path].append((work.text(path), True))
            while not stacks[path][-1][1]:
                stacks[path].pop()
            assert work.text(path) == stacks[path][-1][0], path
            assert path not in edited or path not in result.restored
        assert Restorer(root, attempts).restore().restored == ()
        assert work.ledger.net(attempts).changes == ()

    for number, (act, path) in enumerate([*acts, ("restore", "")]):
        text = f"{act} {number}\n"
        match act:
            case "edit":
                work.put(path, text)
            case "reply" | "tool":
                call = number if act == "tool" else None
                is_written(path, text)
                work.write(path, text.strip(), call)
            case "command" | "check":
                call = number if act == "command" else None
                if path in written:
                    is_written(path, text)
                await work.command(partial(work.put, path, text), call)
            case _:
                restore()
                if act == "next":
                    work = Work(root, work.attempt.number + 1, work.declared)
                    attempts.append(work.attempt)
                    written = set(work.declared)
                await work.begin()
