"""The file of a ledger: only appended to, and readable after a kill at any moment."""

import json
import os
import re
import stat
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cdd_agent.engine.ledger_file import (
    EntryKind,
    LedgerEntry,
    LedgerFile,
    LedgerTooNew,
)
from cdd_agent.files.atomic import NotWritten
from cdd_agent.files.json_file import Damaged
from cdd_agent.git.checkpoint import Checkpoint
from cdd_agent.git.diff import Change, TreeEntry
from tests.support.tables import each_row

PLAIN, LINK = TreeEntry("100644", "1" * 40), TreeEntry("120000", "2" * 40)
PRIVATE = TreeEntry("100644", "1" * 40, 0o600)
ALL = (
    LedgerEntry(
        EntryKind.BEGIN, 1, tree=Checkpoint("step-01/attempt-1/before", "3" * 40)
    ),
    LedgerEntry(EntryKind.REPLY, 1, changes=(Change("a.txt", None, PLAIN),)),
    LedgerEntry(
        EntryKind.TOOL, 1, call=0, changes=(Change("deep/b.txt", PLAIN, PRIVATE),)
    ),
    LedgerEntry(EntryKind.WITHDRAWN, 1),
    LedgerEntry(EntryKind.STARTED, 1, by="make gen", call=1),
    LedgerEntry(
        EntryKind.COMMAND,
        1,
        by="make gen",
        call=1,
        changes=(Change("link", LINK, None),),
        others=(Change("né\n\ud83d", None, PLAIN), Change("caf\udce9", None, PLAIN)),
        ignored=("x.log",),
    ),
    LedgerEntry(EntryKind.CHECK, 1, by="python -m pytest; make lint"),
    LedgerEntry(EntryKind.DROPPED, 1, call=1),
    LedgerEntry(EntryKind.FOUND, 1),
    LedgerEntry(EntryKind.STARTED, 1),
    LedgerEntry(EntryKind.RESTORED, 1, kept=("a.txt",), merged=("b.txt",)),
    LedgerEntry(EntryKind.UNDONE, by="20261126T221500123456", kept=("a.txt",)),
    LedgerEntry(EntryKind.REDONE, by="20261126T221500123456"),
)


@pytest.fixture
def ledger(tmp_path: Path) -> LedgerFile:
    return LedgerFile(tmp_path / "step-01" / "ledger.jsonl")


def written(ledger: LedgerFile, *texts: str) -> LedgerFile:
    """A file with a header and these lines."""
    ledger.path.parent.mkdir(parents=True, exist_ok=True)
    ledger.path.write_text("".join(f"{text}\n" for text in ('{"ledger":1}', *texts)))
    return ledger


def line(**fields: Any) -> str:
    return json.dumps({"kind": "reply", **fields})


def test_what_was_appended_is_read(ledger: LedgerFile) -> None:
    assert {entry.kind for entry in ALL} == set(EntryKind)
    assert ledger.entries() == ()
    appended = [ledger.append(entry) for entry in ALL]
    found = ledger.entries()
    # half of a character, which JSON cannot have, becomes a question mark
    assert [one.path for one in found[5].others] == ["né\n?", "caf\udce9"]
    assert [*found[:5], *found[6:]] == [*appended[:5], *appended[6:]]
    # the contents of tree entries compare without their permissions
    assert found[2].changes[0].after is not None
    assert found[2].changes[0].after.permissions == 0o600
    assert ledger.path.stat().st_mode & 0o777 == 0o600
    lines = ledger.path.read_text().splitlines()
    assert json.loads(lines[0]) == {"ledger": 1}
    assert len(lines) == 1 + len(ALL)


def test_steps_are_in_order_also_if_the_clock_was_set_back(tmp_path: Path) -> None:
    first = LedgerFile(tmp_path / "step-01" / "ledger.jsonl")
    second = LedgerFile(tmp_path / "step-02" / "ledger.jsonl")
    first.append(LedgerEntry(EntryKind.BEGIN, 1, at="29991231T235959999999"))
    first.append(LedgerEntry(EntryKind.REPLY, 1))
    second.append(LedgerEntry(EntryKind.BEGIN, 1))
    second.append(LedgerEntry(EntryKind.REPLY, 1))
    first.append(LedgerEntry(EntryKind.RESTORED, 1))
    second.append(LedgerEntry(EntryKind.UNDONE, by="x"))
    found = [*first.entries(), *second.entries()]
    assert [entry.kind for entry in sorted(found, key=lambda entry: entry.at)] == [
        *(EntryKind.BEGIN, EntryKind.REPLY),
        *(EntryKind.BEGIN, EntryKind.REPLY),
        *(EntryKind.RESTORED, EntryKind.UNDONE),
    ]
    assert found[3].at < found[2].at


def test_each_entry_has_its_time_and_keeps_it(ledger: LedgerFile) -> None:
    times = [ledger.append(entry).at for entry in ALL]
    assert all(first <= second for first, second in pairwise(times))
    assert ledger.append(LedgerEntry(EntryKind.STARTED, 1, at=times[0])).at == times[0]


@each_row("size", [1, 5, 2_000, 70_000, 200_000])
def test_a_line_that_a_kill_tore_does_not_count_and_is_cut(
    tmp_path: Path, size: int
) -> None:
    """Wherever it was torn, also in the first line."""
    ledger = LedgerFile(tmp_path / "ledger.jsonl")
    long = LedgerEntry(EntryKind.COMMAND, 1, by="x" * size)
    for first in (ledger.append(ALL[0]), None):
        if first is None:
            ledger.path.unlink()
        ledger.append(long)
        whole = ledger.path.read_bytes()
        start = whole.rstrip(b"\n").rfind(b"\n") + 1
        for end in {start, start + 1, (start + len(whole)) // 2, len(whole) - 1}:
            ledger.path.write_bytes(whole[:end])
            known = (first,) if first else ()
            assert ledger.entries() == known
            added = ledger.append(ALL[1])
            assert ledger.entries() == (*known, added)


def test_a_torn_header_is_written_again(ledger: LedgerFile) -> None:
    ledger.path.parent.mkdir()
    ledger.path.write_text('{"led')
    assert ledger.entries() == ()
    added = ledger.append(ALL[0])
    assert ledger.entries() == (added,)


@each_row(
    "text",
    [
        pytest.param("{", id="half of an object"),
        pytest.param("", id="an empty line"),
        pytest.param("\x00" * 40, id="zeros, as after a power cut"),
        pytest.param("[" * 100_000, id="nested too deeply"),
        pytest.param('{"kind": "unheard of"}', id="a kind of no version"),
        pytest.param('{"attempt": 1}', id="no kind"),
        pytest.param('{"kind": "check", "attempt": "x"}', id="a wrong type"),
    ],
)
def test_a_damaged_line_is_named_by_its_number(tmp_path: Path, text: str) -> None:
    ledger = written(LedgerFile(tmp_path / "l.jsonl"), line(), text, line())
    with pytest.raises(Damaged, match=r"l\.jsonl is damaged: line 3: ") as caught:
        ledger.entries()
    assert caught.value.path == ledger.path


@each_row("field", ["changes", "others"])
@each_row(
    "path",
    [
        *("../outside.txt", "/outside.txt", "a/../../b", "..", "a/.."),
        *(".git/hooks/pre-commit", "lib/.GIT/config", ".cdd/runs/x/state.json"),
        *("", ".", "a\0b"),
    ],
)
def test_a_path_of_no_file_of_the_project_is_refused(
    tmp_path: Path, field: str, path: str
) -> None:
    change = {"path": path, "before": None, "after": None}
    ledger = written(LedgerFile(tmp_path / "l"), line(**{field: [change]}))
    with pytest.raises(Damaged, match=r"line 2: .* is no file of the project"):
        ledger.entries()


@each_row("text", ["--output=/tmp/x", "", "HEAD", "3" * 39, "3" * 40 + ":x"])
@each_row("field", ["id", "inner"])
def test_an_id_that_git_would_take_for_an_option_is_refused(
    tmp_path: Path, field: str, text: str
) -> None:
    ids = {"id": "3" * 40, field: {"lib": text} if field == "inner" else text}
    ledger = written(LedgerFile(tmp_path / "l"), line(tree={"name": "a/b", **ids}))
    with pytest.raises(Damaged, match=r"line 2: .* is not the id of a tree"):
        ledger.entries()


def test_a_path_that_only_looks_so_is_read(ledger: LedgerFile) -> None:
    paths = ("..a", "a..b/c", ".hidden", "a b", "C:x")
    changes = [{"path": path, "before": None, "after": None} for path in paths]
    (entry,) = written(ledger, line(changes=changes)).entries()
    assert tuple(change.path for change in entry.changes) == paths


def test_fields_that_this_version_does_not_know_are_ignored(
    ledger: LedgerFile,
) -> None:
    change = {"path": "a", "before": None, "after": None, "renamed": "b"}
    text = line(attempt=2, reviewer="someone", changes=[change])
    written(ledger, text)
    assert ledger.entries() == (
        LedgerEntry(EntryKind.REPLY, 2, changes=(Change("a", None, None),)),
    )


@each_row(
    "header",
    ['{"ledger":2}', '{"ledger":10}', '{"ledger":2,"program":"9.1","of":["x"]}'],
)
def test_a_newer_version_is_refused_by_its_number(tmp_path: Path, header: str) -> None:
    """Whatever its other lines are; nothing is appended to it by reading it."""
    ledger = LedgerFile(tmp_path / "ledger.jsonl")
    ledger.path.write_text(f"{header}\nin another form\n")
    number = str(json.loads(header)["ledger"])
    with pytest.raises(LedgerTooNew, match=rf"version {number} .* reads version 1"):
        ledger.entries()


@each_row("header", ["x", "{}", "[1]", '{"ledger":"1"}', line()])
def test_a_file_that_names_no_version_is_damaged(tmp_path: Path, header: str) -> None:
    ledger = LedgerFile(tmp_path / "ledger.jsonl")
    ledger.path.write_text(f"{header}\n{line()}\n")
    with pytest.raises(Damaged, match="line 1 does not name its version"):
        ledger.entries()


def test_an_entry_survives_a_power_cut_before_its_writing_is_reported(
    ledger: LedgerFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is synced after each entry, and the folder once the file is new."""
    synced: list[tuple[int, int]] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        found = os.fstat(descriptor)
        size = 0 if stat.S_ISDIR(found.st_mode) else found.st_size
        synced.append((found.st_ino, size))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    ledger.append(ALL[0])
    first = ledger.path.stat()
    ledger.append(ALL[1])
    second = ledger.path.stat()
    assert synced == [
        (first.st_ino, first.st_size),
        (ledger.path.parent.stat().st_ino, 0),
        (first.st_ino, second.st_size),
    ]


def test_a_disk_that_refuses_is_reported(tmp_path: Path) -> None:
    (tmp_path / "step-01").write_text("a file in the place of the folder")
    with pytest.raises(NotWritten, match=r"ledger\.jsonl could not be written"):
        LedgerFile(tmp_path / "step-01" / "ledger.jsonl").append(ALL[0])


RECORDS = Path(__file__).parents[2] / "docs" / "reference" / "records.md"


def test_the_page_about_the_ledger_has_each_field() -> None:
    page = RECORDS.read_text("utf-8")
    section = page.partition("\n## Ledger\n")[2].partition("\n## ")[0]
    fields = section.partition("<!-- generated")[0]
    documented = re.findall(r"^\| `(\w+)` \|", fields, re.MULTILINE)
    assert documented == list(LedgerEntry.__struct_fields__)


def test_the_example_on_the_page_is_a_ledger(tmp_path: Path) -> None:
    page = RECORDS.read_text("utf-8")
    (tmp_path / "ledger.jsonl").write_text(page.split("```json\n")[1].split("```")[0])
    kinds = [entry.kind for entry in LedgerFile(tmp_path / "ledger.jsonl").entries()]
    assert kinds[0] is EntryKind.BEGIN
    assert kinds[-1] is EntryKind.UNDONE


@each_row("kind", ["pipe", "folder", "link"])
def test_what_is_no_file_in_its_place_is_damage(tmp_path: Path, kind: str) -> None:
    ledger = LedgerFile(tmp_path / "ledger.jsonl")
    if kind == "pipe":
        os.mkfifo(ledger.path)
    elif kind == "folder":
        ledger.path.mkdir()
    else:
        ledger.path.symlink_to("elsewhere")
    with pytest.raises(Damaged, match=r"ledger\.jsonl is damaged"):
        ledger.entries()


def test_an_empty_file_is_an_empty_ledger(tmp_path: Path) -> None:
    ledger = LedgerFile(tmp_path / "ledger.jsonl")
    ledger.path.touch()
    assert ledger.entries() == ()
