"""Parts of proposed changes: any of them can be taken, and what is left out is as it
was, to the byte.
"""

import re
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.changes.accepted_changes import accepted_changes
from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.changes.file_diff import LeftOut
from cdd_agent.changes.model import ReplyRefused
from cdd_agent.changes.review import FileReview, Review, proposal_digest
from cdd_agent.errors import BadInput
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.text import TextNotHeld, lines_of
from tests.support.encoded_files import ENCODED, Encoded
from tests.support.tables import each_row

ENDS = st.sampled_from([b"\n", b"\r\n", b"\r", b""])
LINES = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"b", b"", b"\xff\xfe", b"caf\xc3\xa9", b"\x0c", b"{"]),
        ENDS,
    )
)


def change(
    path: str, before: bytes | None, after: bytes | None, like: str | None = None
) -> FileChange:
    return FileChange(
        PurePosixPath(path), before, after, PurePosixPath(like) if like else None
    )


def text(lines: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(line + end for line, end in lines)


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A file, and what somebody has made of it in some places."""
    before = draw(
        st.lists(
            st.sampled_from([b"a\n", b"b\r\n", b"\n", b"\xff\n", b"c\n"]),
            min_size=1,
            max_size=60,
        )
    )
    after = list(before)
    for place in sorted(
        draw(st.sets(st.integers(0, len(before) - 1), max_size=6)), reverse=True
    ):
        after[place : place + draw(st.integers(0, 2))] = draw(
            st.lists(st.sampled_from([b"new\n", b"a\n"]), max_size=2)
        )
    end = draw(st.sampled_from([b"", b"no end", b"no end\n"]))
    return b"".join(before) + draw(st.sampled_from([b"", b"no end"])), b"".join(
        after
    ) + end


@given(files=edited(), data=st.data())
def test_any_hunks_that_are_taken_are_in_the_file_and_the_others_are_not(
    files: tuple[bytes, bytes], data: st.DataObject
) -> None:
    before, after = files
    review = FileReview.compare(change("a.txt", before, after))
    left_out = (
        data.draw(st.sets(st.sampled_from(range(len(review.hunks)))))
        if review.hunks
        else set()
    )
    old, new = (re.findall(rb"[^\n]*\n|[^\n]+", content) for content in files)
    expected, at, at_new = list[bytes](), 0, 0
    for place, hunk in enumerate(review.hunks):
        # between hunks nothing is different
        assert old[at : hunk.old[0]] == new[at_new : hunk.new[0]]
        expected += old[at : hunk.old[0]]
        expected += (
            old[slice(*hunk.old)] if place in left_out else new[slice(*hunk.new)]
        )
        at, at_new = hunk.old[1], hunk.new[1]
    expected += old[at:]
    result = review.leave(left_out).result
    assert result == b"".join(expected)
    if not left_out:
        assert result == after
    if len(left_out) == len(review.hunks):
        assert result == before
        assert review.leave(left_out).changes == () or not review.hunks


@given(files=edited(), data=st.data())
def test_what_is_left_out_can_be_taken_after_all_by_proposing_the_rest_again(
    files: tuple[bytes, bytes], data: st.DataObject
) -> None:
    """Taken in two goes, in any order, it is the whole."""
    before, after = files
    review = FileReview.compare(change("a.txt", before, after))
    left_out = (
        data.draw(st.sets(st.sampled_from(range(len(review.hunks)))))
        if review.hunks
        else set()
    )
    first = review.leave(left_out).result
    second = FileReview.compare(change("a.txt", first, after))
    assert second.result == after
    assert review.leave(left_out).accept(left_out).result == after


@given(st.one_of(st.none(), LINES.map(text)), st.one_of(st.none(), LINES.map(text)))
def test_a_file_that_comes_or_goes_is_taken_or_left_as_a_whole(
    before: bytes | None, after: bytes | None
) -> None:
    if before == after:
        return
    review = FileReview.compare(change("a.txt", before, after))
    assert review.changes == (review.change,)
    if before is None or after is None:
        assert len(review.hunks) == 1
    left = review.leave(range(len(review.hunks)))
    assert (left.result, left.changes) == (before, ())


def test_a_file_is_shown_with_the_lines_that_its_parts_are_about() -> None:
    before = b"".join(b"line %d\n" % number for number in range(1, 31))
    after = (
        before.replace(b"line 5\n", b"five\n")
        .replace(b"line 20\nline 21\n", b"")
        .replace(b"line 30\n", b"line 30")
    )
    review = FileReview.compare(change("a.txt", before, after))
    assert [hunk.where for hunk in review.hunks] == ["line 5", "lines 20-21", "line 30"]
    assert (review.added, review.removed) == (2, 4)
    assert review.diff().splitlines()[:2] == ["--- a.txt", "+++ a.txt"]
    assert review.diff([2]).splitlines()[-2:] == [
        "+line 30",
        "\\ No newline at end of file",
    ]


def test_a_new_name_and_the_old_one_are_one_change() -> None:
    changes = ChangeSet(
        (
            change("b.sh", None, b"two\n", "a.sh"),
            change("a.sh", b"one\n", None),
            change("c", b"", b"x"),
        )
    )
    review = Review.from_changes(1, changes)
    assert [(file.verb, file.name) for file in review.files] == [
        ("rename", "a.sh → b.sh"),
        ("change", "c"),
    ]
    assert review.files[0].diff().splitlines() == [
        "--- a.sh",
        "+++ b.sh",
        "@@ -1 +1 @@",
        "-one",
        "+two",
    ]
    assert {
        c.path.name
        for c in accepted_changes(review, Path(), lambda place: False).changes
    } == {"a.sh", "b.sh", "c"}
    left = review.with_file(0, review.files[0].leave([0], "no"))
    assert [
        c.path.name for c in accepted_changes(left, Path(), lambda place: False).changes
    ] == ["c"]
    assert left.left_out == (LeftOut("a.sh → b.sh", "", "no"),)


def test_what_is_taken_is_judged_as_a_whole(tmp_path: Path) -> None:
    before = b"def f():\n    return 1\n" + b"\n" * 9 + b"x = 1\n"
    after = b"if 1:\n  def f():\n    return 1\n" + b"\n" * 9 + b"x = 2\n"
    (tmp_path / "a.py").write_bytes(before)
    review = Review.from_changes(1, ChangeSet((change("a.py", before, after),)))
    assert (
        accepted_changes(review, tmp_path, lambda place: False).changes[0].after
        == after
    )
    wrong = review.with_file(0, review.files[0].edit(b"def f(:\n"))
    with pytest.raises(ReplyRefused, match=r"a\.py"):
        accepted_changes(wrong, tmp_path, lambda place: False)


def test_an_edited_result_has_parts_of_its_own_and_may_be_no_change_at_all() -> None:
    file = FileReview.compare(change("a.txt", b"one\n", b"two\n")).leave([0])
    three = file.edit(b"three\r\n")
    assert (three.result, three.is_edited, dict(three.left_out)) == (
        b"three\r\n",
        True,
        {},
    )
    back = three.edit(b"one\n")
    assert (back.changes, back.hunks) == ((), ())
    assert not file.edit(b"one\n").is_edited  # as it was left


def test_a_file_that_is_too_large_to_be_compared_is_one_part() -> None:
    file = FileReview.compare(change("a.txt", b"x\n" * 20_000, b"y\n" * 20_000))
    assert file.is_whole
    assert "40,000 bytes" in file.diff()
    assert file.leave([0]).changes == ()


def test_an_answer_is_to_certain_changes_only() -> None:
    first = ChangeSet((change("a", b"1", b"2"),))
    others = [
        change("a", b"1", b"3"),
        change("a", b"0", b"2"),
        change("b", b"1", b"2"),
        change("a", None, b"2"),
    ]
    assert proposal_digest(first) == proposal_digest(
        ChangeSet((change("a", b"1", b"2"),), ("a note",))
    )
    assert (
        len(
            {proposal_digest(ChangeSet((other,))) for other in others}
            | {proposal_digest(first)}
        )
        == 5
    )


def test_a_broken_file_may_be_renamed(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_bytes(b"{\n")
    proposal = ChangeSet(
        (
            change("old.json", b"{\n", None),
            change("new.json", None, b"{\n", like="old.json"),
        )
    )
    review = Review.from_changes("1", proposal)
    changes = accepted_changes(review, tmp_path, lambda place: False).changes
    assert set(changes) == set(proposal.changes)


@each_row("encoded", ENCODED)
def test_hunks_of_a_file_in_any_encoding(tmp_path: Path, encoded: Encoded) -> None:
    encoded.write(tmp_path)
    charsets = Charsets(tmp_path)
    first, last = lines_of(encoded.text)[-5:][0::4]
    changed = encoded.text.replace(first, f"{first}{first}").replace(last, "")
    long = replace(encoded, text=encoded.text + "# x\n" * 9 + encoded.text)
    after = replace(long, text=long.text.replace(encoded.text, changed, 1))
    proposed = change(encoded.path, long.data, after.data)
    review = FileReview.compare(proposed, charsets=charsets)
    assert [line for line in review.diff().split("\n") if line.startswith(("+", "-"))][
        2:
    ] == [
        f"+{first[:-1]}",
        f"-{last[:-1]}",
    ]
    taken_apart = (review.leave([part]).result for part in range(len(review.hunks)))
    for result in (review.result, *taken_apart):
        assert result is not None
        assert result.decode(encoded.codec).encode(encoded.codec) == result


@each_row("encoded", ENCODED)
def test_the_editor_gets_utf8_and_the_file_keeps_its_encoding(
    tmp_path: Path, encoded: Encoded
) -> None:
    encoded.write(tmp_path)
    before = replace(encoded, text=encoded.text.replace("return", "pass; return"))
    proposed = change(encoded.path, before.data, encoded.data)
    review = FileReview.compare(proposed, charsets=Charsets(tmp_path))
    copy = review.copy_for_editor
    assert copy is not None
    assert copy.decode("utf-8-sig") == encoded.text
    assert review.edit_copy(copy) == review
    edited = review.edit_copy(copy + encoded.word.encode())
    assert edited.result == encoded.data + encoded.word.encode(encoded.codec)


def test_an_edit_that_the_encoding_cannot_hold_is_refused() -> None:
    review = FileReview.compare(
        change("a.txt", "schön\n".encode("cp1252"), b"sch\xf6ner\n")
    )
    with pytest.raises(TextNotHeld, match=r"a\.txt"):
        review.edit_copy("schöner 😀\n".encode())
    with pytest.raises(BadInput, match=r"a\.txt as UTF-8"):
        review.edit_copy(b"sch\xf6nst\n")


def test_a_change_of_the_encoding_is_one_part() -> None:
    text = "schön\n" + "x\n" * 20 + "größer\n"
    after = text.replace("x", "y", 1).encode()
    review = FileReview.compare(change("a.txt", text.encode("utf-16"), after))
    assert review.is_whole
    assert review.leave([0]).result == text.encode("utf-16")
