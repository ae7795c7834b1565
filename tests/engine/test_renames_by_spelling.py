"""A file that gets another spelling of its name goes back and forth with its step, on
every kind of disk and after a kill at any moment.
"""

import os
import stat
import unicodedata
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from cdd_agent.engine.ledger_entries import reverse
from cdd_agent.engine.ledger_undo import carry_out_redo, carry_out_undo, enter_undo
from cdd_agent.engine.restoring import Restorer
from cdd_agent.git.restore import RestoreResult
from tests.changes.applying import tree
from tests.engine.test_ledger import Work
from tests.support.insensitive_disk import DISKS
from tests.support.tables import each_row

OLD, NEW = "one\ntwo\n", "one\n2\n"
NAMES = {
    "another case": ("readme.md", "README.md"),
    "another case in a folder": ("docs/readme.md", "docs/Readme.md"),
    "composed": tuple(
        unicodedata.normalize(form, "größe.txt") for form in ("NFD", "NFC")
    ),
}


def move(old: str, new: str) -> str:
    return (
        f"*** Begin Patch\n*** Update File: {old}\n*** Move to: {new}\n*** End Patch\n"
    )


def move_and_change(old: str, new: str) -> str:
    return (
        f"*** Begin Patch\n*** Update File: {old}\n*** Move to: {new}\n@@\n one\n-two\n"
        "+2\n*** End Patch\n"
    )


REPLIES: dict[str, tuple[Callable[[str, str], str], str]] = {
    "moved": (move, OLD),
    "moved and changed": (move_and_change, NEW),
}


def put(root: Path, name: str, text: str = OLD) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    (root / name).chmod(0o755)


def files(place: Path) -> dict[str, str]:
    assert not list(place.rglob(".cdd-*.tmp"))
    return tree(place)


def rows(test: Any) -> Any:
    test = each_row("disk", DISKS.values(), ids=DISKS)(test)
    test = each_row("names", NAMES.values(), ids=NAMES)(test)
    return each_row(("reply", "text"), REPLIES.values(), ids=REPLIES)(test)


@rows
def test_it_is_undone_and_redone(
    tmp_path: Path,
    reply: Callable[[str, str], str],
    text: str,
    names: tuple[str, str],
    disk: type[Path],
) -> None:
    old, new = names
    put(tmp_path, old)
    work = Work(disk(tmp_path))
    work.prepare(reply(old, new)).apply(work.root)
    assert files(tmp_path) == {new: text}

    restorer = Restorer(work.root, [work.attempt])
    ledger = work.attempt.ledger
    result = carry_out_undo(restorer, enter_undo(restorer, ledger, "1"))
    assert result == RestoreResult(restored=tuple(sorted(names)))
    assert files(tmp_path) == {old: OLD}
    assert stat.S_IMODE((tmp_path / old).stat().st_mode) == 0o755

    assert not carry_out_redo(restorer, ledger, "1").kept
    assert files(tmp_path) == {new: text}
    assert stat.S_IMODE((tmp_path / new).stat().st_mode) == 0o755


@rows
def test_an_attempt_that_failed_is_restored_and_can_be_reinstated(
    tmp_path: Path,
    reply: Callable[[str, str], str],
    text: str,
    names: tuple[str, str],
    disk: type[Path],
) -> None:
    old, new = names
    put(tmp_path, old)
    work = Work(disk(tmp_path))
    work.prepare(reply(old, new)).apply(work.root)
    restorer = Restorer(work.root, [work.attempt])
    restored = restorer.plan_undo().changes
    assert not work.restore().kept
    assert files(tmp_path) == {old: OLD}
    assert not restorer.reinstate(reverse(restored)).kept
    assert files(tmp_path) == {new: text}


class Killed(BaseException):
    """The process ends here: nothing that it would do afterwards is done."""


def dying(disk: type[Path], moment: int) -> type[Path]:
    """Return a disk that kills the process at the access of this number."""
    accesses = count()

    class DyingPath(disk):  # type: ignore[misc, valid-type]
        def __fspath__(self) -> str:
            if next(accesses) >= moment:
                raise Killed
            return os.fspath(super().__fspath__())

    return DyingPath


@each_row("disk", DISKS.values(), ids=DISKS)
@each_row(("reply", "text"), REPLIES.values(), ids=REPLIES, is_sparse=True)
def test_after_a_kill_at_any_moment_the_file_has_its_old_name_and_content(
    tmp_path: Path,
    reply: Callable[[str, str], str],
    text: str,
    disk: type[Path],
) -> None:
    old, new = "readme.md", "README.md"
    for moment in count():
        place = tmp_path / str(moment)
        put(place, old)
        work = Work(disk(place))
        changes = work.prepare(reply(old, new))
        try:
            changes.apply(dying(disk, moment)(place))
        except Killed:
            work.restore()
            # the write of a process that still runs is let be
            there = {
                name: content
                for name, content in tree(place).items()
                if not name.startswith(".cdd-")
            }
            assert there == {old: OLD}, moment
            assert stat.S_IMODE((place / old).stat().st_mode) == 0o755
            continue
        assert files(place) == {new: text}
        break


@each_row("disk", DISKS.values(), ids=DISKS)
def test_a_later_edit_under_the_new_name_is_not_lost(
    tmp_path: Path, disk: type[Path]
) -> None:
    put(tmp_path, "readme.md")
    work = Work(disk(tmp_path))
    work.prepare(move("readme.md", "README.md")).apply(work.root)
    put(tmp_path, "README.md", "edited\n")
    result = work.restore()
    assert "README.md" in result.kept
    assert files(tmp_path)["README.md"] == "edited\n"


@each_row("disk", DISKS.values(), ids=DISKS)
@each_row("names", NAMES.values(), ids=NAMES)
async def test_a_command_that_renames_is_undone(
    tmp_path: Path, names: tuple[str, str], disk: type[Path]
) -> None:
    old, new = names
    put(tmp_path, old)
    work = Work(disk(tmp_path), declared=names)
    await work.begin()

    def rename() -> None:
        (tmp_path / old).rename(tmp_path / new)

    entry = await work.command(rename)
    assert {change.path for change in entry.changes} == {old, new}
    assert not work.restore().kept
    assert files(tmp_path) == {old: OLD}


def test_the_fake_disks_do_what_their_names_say(tmp_path: Path) -> None:
    """Real disks are tried by hand. The docstrings of the fake say what they do."""
    found = {}
    for name, disk in DISKS.items():
        place = tmp_path / name
        put(place, "readme.md")
        root = disk(place)
        is_found = (root / "README.md").exists()
        if is_found:
            (root / "readme.md").rename(root / "README.md")
        found[name] = is_found, [entry.name for entry in place.iterdir()]
    assert found == {
        "tells names apart": (False, ["readme.md"]),
        "does not, as macOS": (True, ["README.md"]),
        "does not, under Linux": (True, ["readme.md"]),
    }
