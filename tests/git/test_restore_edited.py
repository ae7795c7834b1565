"""Later edits of the user when files are restored: merged, kept, and never lost."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdd_agent.files.atomic import NotWritten
from cdd_agent.git.diff import Change
from cdd_agent.git.merge import LARGEST_MERGED, merge_texts
from cdd_agent.git.restore import Contents, RestoreResult, find_edited, held, restore
from tests.git.checkpoints import opened, state, write
from tests.support.examples import count_examples

BEFORE = b"one\ntwo\nthree\nfour\nfive\nsix\n"
AFTER = BEFORE.replace(b"two", b"TWO")
FORMS = {
    "plain": lambda text: text,
    "windows": lambda text: text.replace(b"\n", b"\r\n"),
    "no end": lambda text: text.removesuffix(b"\n"),
    "latin": lambda text: text.replace(b"three", b"dr\xe9i"),
    "mixed ends": lambda text: text.replace(b"e\n", b"e\r\n"),
}
EDITS = {
    "far away": lambda text: text.replace(b"six", b"6"),
    "added": lambda text: text + b"seven\n",
    "removed": lambda text: text.replace(b"five\n", b""),
}
# what is now in the file, in which nothing of the change can be told from the edit
CONFLICTS = {
    "same line": AFTER.replace(b"TWO", b"2"),
    "next line": AFTER.replace(b"three", b"3"),
    "binary": AFTER.replace(b"six", b"\0"),
    "utf-16": AFTER.decode().replace("six", "6").encode("utf-16"),
    "emptied": b"",
}


def change_of(
    before: bytes | None, after: bytes | None, modes: tuple[int, int] = (0o644, 0o644)
) -> Change:
    return Change(
        "file",
        None if before is None else held(before, modes[0]),
        None if after is None else held(after, modes[1]),
    )


def contents_of(*texts: bytes) -> Contents:
    return Contents({held(text, 0).content: text for text in texts})


def test_an_edit_elsewhere_in_the_file_stays(tmp_path: Path) -> None:
    wrong = []
    for form, in_form in FORMS.items():
        for edit, edited in EDITS.items():
            before, after = in_form(BEFORE), in_form(AFTER)
            contents = contents_of(before, after)
            undo, redo = change_of(before, after), change_of(after, before)
            file = tmp_path / "file"
            file.write_bytes(in_form(edited(AFTER)))

            undone = restore(tmp_path, [undo], contents, should_merge=True)
            then = file.read_bytes()
            repeated = restore(tmp_path, [undo], contents, should_merge=True)
            redone = restore(tmp_path, [redo], contents, should_merge=True)
            done = RestoreResult(merged=("file",))
            if (undone, then, repeated, redone, file.read_bytes()) != (
                *(done, in_form(edited(BEFORE)), RestoreResult(), done),
                in_form(edited(AFTER)),
            ):
                wrong.append((form, edit))
    assert wrong == []


def test_an_edit_of_the_same_lines_is_kept(tmp_path: Path) -> None:
    contents = contents_of(BEFORE, AFTER)
    for name, now in CONFLICTS.items():
        (tmp_path / "file").write_bytes(now)
        found = restore(
            tmp_path, [change_of(BEFORE, AFTER)], contents, should_merge=True
        )
        assert found == RestoreResult(kept=("file",)), name
        assert (tmp_path / "file").read_bytes() == now, name
    assert sorted(tmp_path.iterdir()) == [tmp_path / "file"]


@pytest.mark.parametrize("kind", ["created", "deleted", "link", "folder", "gone"])
def test_only_files_that_are_there_before_after_and_now_are_merged(
    tmp_path: Path, kind: str
) -> None:
    place = tmp_path / "file"
    change = {
        "created": change_of(None, AFTER),
        "deleted": change_of(BEFORE, None),
    }.get(kind, change_of(BEFORE, AFTER))
    if kind == "link":
        place.symlink_to("elsewhere")
        (tmp_path / "elsewhere").write_bytes(AFTER + b"seven\n")
    elif kind == "folder":
        place.mkdir()
        (place / "mine").touch()
    elif kind != "gone":
        place.write_bytes(AFTER + b"seven\n")
    was = state(tmp_path)
    contents = contents_of(BEFORE, AFTER)

    assert find_edited(tmp_path, [change]) == []
    assert restore(tmp_path, [change], contents, should_merge=True).merged == ()
    assert state(tmp_path) == was


@pytest.mark.skipif(os.name == "nt", reason="no file says there that it can be run")
def test_the_permissions_of_a_merged_file_are_undone_unless_the_user_changed_them(
    tmp_path: Path,
) -> None:
    place = tmp_path / "file"
    contents = contents_of(BEFORE, AFTER)
    # before, after, now, and what is expected
    for modes in [
        (0o644, 0o755, 0o755, 0o644),
        (0o755, 0o644, 0o644, 0o755),
        (0o644, 0o644, 0o755, 0o755),
        (0o644, 0o644, 0o600, 0o600),
        (0o600, 0o644, 0o644, 0o600),
    ]:
        place.write_bytes(AFTER + b"seven\n")
        place.chmod(modes[2])
        change = change_of(BEFORE, AFTER, modes[:2])
        found = restore(tmp_path, [change], contents, should_merge=True)
        assert found.merged == ("file",), modes
        assert place.stat().st_mode & 0o777 == modes[3], modes


@pytest.mark.skipif(os.name == "nt", reason="no file says there that it can be run")
def test_a_change_of_permissions_alone_is_undone_in_an_edited_file(
    tmp_path: Path,
) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"edited\n")
    place.chmod(0o755)
    change = change_of(BEFORE, BEFORE, (0o644, 0o755))

    found = restore(tmp_path, [change], contents_of(BEFORE), should_merge=True)
    assert found.merged == ("file",)
    assert (place.read_bytes(), place.stat().st_mode & 0o777) == (b"edited\n", 0o644)


LINES = st.lists(st.sampled_from([b"a\n", b"b\r\n", b"c", b"\xff\n"]), max_size=6)


@settings(max_examples=count_examples(40), deadline=None)
@given(LINES, LINES, LINES)
def test_a_merge_has_no_marks_and_nothing_of_its_own(
    current: list[bytes], base: list[bytes], other: list[bytes]
) -> None:
    texts = [b"".join(lines) for lines in (current, base, other)]
    merged = merge_texts(texts[0], texts[1], texts[2])
    if merged is None:
        return
    assert b"<<<<<<<" not in merged
    lines = {line for text in texts for line in text.splitlines(keepends=True)}
    assert lines.issuperset(merged.splitlines(keepends=True))


def test_a_long_text_is_not_merged() -> None:
    long = b"x\n" * (LARGEST_MERGED // 2)
    assert merge_texts(long + b"y\n", long, b"z\n" + long) is None


def test_without_git_an_edited_file_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert merge_texts(AFTER + b"seven\n", AFTER, BEFORE) is None


# What is discarded


async def test_what_is_discarded_is_saved_first(project: Path, tmp_path: Path) -> None:
    names = ("changed", "deep/er/changed", "removed", "run.sh", "merged")
    write(project, dict.fromkeys(names, "1\n2\n3\n4\n5\n"))
    write(project, {"replaced": "1\n", "mode": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, dict.fromkeys(names, "1!\n2\n3\n4\n5\n"))
    write(project, {"removed": None, "created": "new\n", "replaced": None})
    (project / "replaced").symlink_to("../../outside")
    for name in ("run.sh", "mode"):
        (project / name).chmod(0o755)
    after = await checkpoints.take("after")
    write(project, {"merged": "1!\n2\n3\n4\n5!\n"})
    kept = tmp_path / "kept"
    changes = await checkpoints.changes(before, after)

    assert (await checkpoints.restore(changes, kept)).merged == ("merged",)
    files = {name: content for name, (_, content) in state(kept).items()}
    assert files == {
        **dict.fromkeys(("changed", "deep/er/changed", "run.sh"), b"1!\n2\n3\n4\n5\n"),
        "created": b"new\n",
        "merged": b"1!\n2\n3\n4\n5!\n",
        "replaced": b"../../outside",
    }
    modes = {place.stat().st_mode & 0o077 for place in kept.rglob("*.*")}
    assert modes == {0}


async def test_what_is_saved_is_never_overwritten(
    project: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    long = "n" * 250
    for number in (1, 2, 2, 3):
        write(project, {"a.txt": f"{number}\n", long: f"{number}\n"})
        after = await checkpoints.take("after")
        await checkpoints.restore(await checkpoints.changes(before, after), kept)
    write(project, {"a.txt/b": "below\n"})
    after = await checkpoints.take("after")
    await checkpoints.restore(await checkpoints.changes(before, after), kept)

    assert {name: content for name, (_, content) in state(kept).items()} == {
        "a.txt": b"1\n",
        "a.txt.1": b"2\n",
        "a.txt.2": b"3\n",
        long: b"1\n",
        f"{long[:200]}.1": b"2\n",
        f"{long[:200]}.2": b"3\n",
        "a.txt.3/b": b"below\n",
    }


async def test_nothing_is_discarded_where_it_cannot_be_saved(
    project: Path, tmp_path: Path
) -> None:
    write(project, {"a.txt": "1\n"})
    checkpoints = await opened(project)
    before = await checkpoints.take("before")
    write(project, {"a.txt": "2\n", "created": "2\n"})
    changes = await checkpoints.changes(before, await checkpoints.take("after"))
    (tmp_path / "kept").write_text("a file")
    was = state(project)

    with pytest.raises(NotWritten):
        await checkpoints.restore(changes, tmp_path / "kept")
    assert state(project) == was
    shutil.copy(tmp_path / "kept", tmp_path / "still a file")
