"""A reply is judged as a whole before anything is written."""

import os
import re
from pathlib import Path, PurePosixPath

import pytest

from cdd_agent.changes.build import change_set
from cdd_agent.changes.change_set import ChangeSet, FileChange, build_changed_refusal
from cdd_agent.changes.model import ReplyRefused, WholeFile
from cdd_agent.changes.policy import EditPolicy
from cdd_agent.files.atomic import digest
from tests.support.tables import each_row

CHANGED = re.escape(build_changed_refusal(PurePosixPath("x")).message.removeprefix("x"))


def seen(root: Path, *paths: str) -> dict[str, str | None]:
    return {
        path: digest((root / path).read_bytes()) if (root / path).exists() else None
        for path in paths
    }


def changes(
    root: Path, *files: tuple[str, str], shown: tuple[str, ...] = ()
) -> ChangeSet:
    blocks = [WholeFile(path, content) for path, content in files]
    return change_set(
        root,
        blocks,
        EditPolicy(seen(root, *shown)),
        lambda place: place.name == "plan.md",
    )


def test_new_and_changed_files_are_told_apart_and_unchanged_ones_left_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "old.py").write_text("x = 1\n")
    (tmp_path / "same.py").write_text("y = 1\n")

    found = changes(
        tmp_path,
        ("a/new.py", "n\n"),
        ("old.py", "x = 2\n"),
        ("same.py", "y = 1\n"),
        shown=("old.py", "same.py"),
    )

    assert (found.created, found.modified) == (("a/new.py",), ("old.py",))
    assert not (tmp_path / "a").exists()
    found.apply(tmp_path)
    assert (tmp_path / "a/new.py").read_text() == "n\n"
    assert (tmp_path / "old.py").read_text() == "x = 2\n"


@each_row(
    "path",
    [
        "../x.py",
        "/etc/x",
        "C:\\x",
        ".git/hooks/pre-commit",
        "sub/.GIT/config",
        ".cdd/config.yaml",
        "tickets/feature-x/plan.md",
    ],
)
def test_nothing_outside_or_of_the_run_itself_is_written(
    tmp_path: Path, path: str
) -> None:
    with pytest.raises(ReplyRefused):
        changes(tmp_path, ("good.py", "x\n"), (path, "x\n"))
    assert list(tmp_path.iterdir()) == []


def test_every_reason_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    with pytest.raises(ReplyRefused) as caught:
        changes(tmp_path, ("dir", "x\n"), ("../y", "x\n"))
    assert {problem.path for problem in caught.value.problems} == {"dir", "../y"}
    assert "../y" in caught.value.message


def test_a_file_that_was_not_shown_is_not_replaced_but_asked_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text("precious\n")
    with pytest.raises(ReplyRefused, match="not shown") as caught:
        changes(tmp_path, ("a.py", "new\n"))
    assert caught.value.unseen == {"a.py"}


def test_a_file_that_changed_since_it_was_shown_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("old\n")
    shown = seen(tmp_path, "a.py")
    (tmp_path / "a.py").write_text("a person's edit\n")
    with pytest.raises(ReplyRefused, match=CHANGED):
        change_set(tmp_path, [WholeFile("a.py", "new\n")], EditPolicy(shown))


@each_row(
    "line",
    [
        "# ... rest of the code unchanged ...",
        "// ... existing code ...",
        "# rest of file remains the same",
        "/* ... other methods ... */",
        "<!-- rest of the page unchanged -->",
        "    # … (existing imports) …",
        "# existing functions stay here",
        "... rest of the file as before",
        "# ...",
        "# unchanged",
        "// same as above",
        "# rest of the file",
        "# ... code above stays",
        "# keep everything else as is",
    ],
)
def test_a_shortened_file_is_refused_with_the_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    with pytest.raises(ReplyRefused, match="line 2"):
        changes(tmp_path, ("a.py", f"one\n{line}\n"), shown=("a.py",))


@pytest.mark.parametrize(
    "line",
    [
        "x = ...",
        "# skip the rest of the line",
        "print('...')",
        "# the existing user wins",
        "# previous value",
        "# ... and so on",
    ],
)
def test_ordinary_lines_are_not_taken_for_something_left_out(
    tmp_path: Path, line: str
) -> None:
    (tmp_path / "a.py").write_text("one\n")
    assert changes(tmp_path, ("a.py", f"one\n{line}\n"), shown=("a.py",)).modified == (
        "a.py",
    )


def test_a_line_that_was_there_before_is_nothing_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("# ... existing code ...\n")
    assert changes(
        tmp_path, ("a.py", "# ... existing code ...\nx\n"), shown=("a.py",)
    ).modified


def test_a_file_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\n")
    with pytest.raises(ReplyRefused, match="emptied"):
        changes(tmp_path, ("a.py", ""), shown=("a.py",))


def test_line_ends_and_byte_order_mark_stay_as_the_file_has_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    changes(tmp_path, ("a.txt", "one\nthree\n"), shown=("a.txt",)).apply(tmp_path)
    assert (tmp_path / "a.txt").read_bytes() == b"\xef\xbb\xbfone\r\nthree\r\n"


def test_one_path_cannot_be_a_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ReplyRefused, match="both a file and a folder"):
        changes(tmp_path, ("a", "x\n"), ("a/b", "x\n"))
    (tmp_path / "f").write_text("x")
    with pytest.raises(ReplyRefused, match="f is a file"):
        changes(tmp_path, ("f/b", "x\n"))


def test_two_spellings_of_one_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReplyRefused, match="same file"):
        changes(tmp_path, ("Readme.md", "x\n"), ("README.md", "y\n"))


def test_prose_is_not_code(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\n")
    text = "# Existing data remains\n\n- other files stay\n"
    assert changes(tmp_path, ("a.md", text), shown=("a.md",)).modified


def test_where_one_file_was_changed_meanwhile_no_other_one_is_touched(
    tmp_path: Path,
) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_bytes(b"1")
    judged = ChangeSet(
        tuple(
            FileChange(PurePosixPath(name), b"1", b"2") for name in ("a.txt", "b.txt")
        )
    )
    (tmp_path / "b.txt").write_bytes(b"a person's edit")
    # one that is written and restored would be newer
    os.utime(tmp_path / "a.txt", ns=(1, 1))
    with pytest.raises(ReplyRefused, match=CHANGED):
        judged.apply(tmp_path)
    assert (tmp_path / "a.txt").stat().st_mtime_ns == 1
    assert (tmp_path / "b.txt").read_bytes() == b"a person's edit"


def test_where_one_is_changed_while_another_is_written_that_one_is_taken_back(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_bytes(b"1")
    (tmp_path / "b.txt").symlink_to("a.txt")  # so to write the one changes the other
    judged = ChangeSet(
        (
            FileChange(PurePosixPath("a.txt"), b"1", b"2"),
            FileChange(PurePosixPath("b.txt"), b"1", b"3"),
        )
    )
    with pytest.raises(ReplyRefused, match=CHANGED):
        judged.apply(tmp_path)
    assert (tmp_path / "a.txt").read_bytes() == b"1"


@each_row("target", ["file.txt", "nowhere.txt"])
def test_a_link_is_not_written_through(tmp_path: Path, target: str) -> None:
    (tmp_path / "file.txt").write_text("precious\n")
    (tmp_path / "link.txt").symlink_to(target)
    with pytest.raises(ReplyRefused, match=r"link\.txt is a link"):
        change_set(tmp_path, [WholeFile("link.txt", "new\n")], EditPolicy(seen=None))


def test_a_content_that_moved_is_a_rename_once() -> None:
    changes = ChangeSet(
        (
            FileChange(PurePosixPath("a-old"), b"a", None),
            FileChange(PurePosixPath("b-old"), b"a", None),
            FileChange(PurePosixPath("empty-old"), b"", None),
            FileChange(PurePosixPath("new"), None, b"a"),
            FileChange(PurePosixPath("empty"), None, b""),
            FileChange(PurePosixPath("other"), None, b"b"),
            FileChange(PurePosixPath("changed"), b"b", b"a"),
        )
    )
    assert changes.renamed == (("a-old", "new"),)
