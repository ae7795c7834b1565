"""Whatever the form of an edit, only the edited lines of a file change: encoding, byte
order mark, line ends, normal form and bytes that are no text are kept.
"""

import codecs
import itertools
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdd_agent.changes.build import change_set, creation, edit
from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.changes.model import (
    Deletion,
    Edit,
    Renaming,
    Replacement,
    ReplyRefused,
    TextReplacement,
    WholeFile,
)
from cdd_agent.changes.policy import EditPolicy
from cdd_agent.files.charsets import NOTHING_DECLARED
from cdd_agent.files.text import FileText, decode_file, lines_of
from tests.support.examples import count_examples
from tests.support.tables import each_row

ANY = EditPolicy(seen=None, may_shrink=lambda path: True)
NAME = "a.txt"


def changes_of(root: Path, data: bytes, *edits: Edit, name: str = NAME) -> ChangeSet:
    (root / name).write_bytes(data)
    return change_set(root, edits, ANY)


def after(root: Path, data: bytes, *edits: Edit, name: str = NAME) -> bytes:
    """The file with the edits; unchanged, if they change nothing."""
    changes = changes_of(root, data, *edits, name=name).changes
    return data if not changes else changes[0].after or b""


# ------------------------------------------------------------------- the table

Form = Callable[[list[str], list[str]], Edit]


def as_block(old: list[str], new: list[str]) -> Edit:
    return Replacement(NAME, tuple(old), tuple(new))


def as_hunk(old: list[str], new: list[str]) -> Edit:
    return Replacement(NAME, ("first: 1", *old), ("first: 1", *new))


def as_action(old: list[str], new: list[str]) -> Edit:
    return TextReplacement(NAME, "\n".join(old), "\n".join(new))


def as_part_of_a_line(old: list[str], new: list[str]) -> Edit:
    return TextReplacement(NAME, "\n".join(old)[2:], "\n".join(new)[2:])


def as_whole_file(old: list[str], new: list[str]) -> Edit:
    return WholeFile(NAME, "".join(f"{line}\n" for line in ["first: 1", *new]))


FORMS: tuple[Form, ...] = (
    as_block,
    as_hunk,
    as_action,
    as_part_of_a_line,
    as_whole_file,
)


@dataclass(frozen=True)
class Kind:
    """A kind of file: its encoding, what names it, and a word that it has."""

    codec: str
    word: str
    mark: bytes = b""
    coding_line: str = "plain line"
    is_declared: bool = False


KINDS = (
    Kind("utf-8", "Müller"),
    Kind("utf-8", "Müller", codecs.BOM_UTF8),
    Kind("utf-16-le", "Müller", codecs.BOM_UTF16_LE),
    Kind("utf-16-be", "文字", codecs.BOM_UTF16_BE),
    Kind("utf-32-le", "Müller", codecs.BOM_UTF32_LE),
    Kind("latin-1", "Müller", coding_line="# coding: latin-1"),
    Kind("koi8-r", "Привет", coding_line="# coding: koi8-r"),
    Kind("cp1252", "Müller"),
    Kind("latin-1", "Müller", is_declared=True),
    Kind("gbk", "中文注释你好"),
    Kind("cp932", "日本語のコメント"),
    Kind("euc_kr", "한국어", coding_line="# coding: euc-kr"),
    Kind("ascii", "simple"),
)
LINE_ENDS = (("\n",), ("\r\n",), ("\r",), ("\n", "\r\n", "\n"), ("\r\n", "\r", "\n"))


def files() -> Iterator[tuple[Kind, tuple[str, ...], bool, str]]:
    for kind in KINDS:
        forms = ["NFC"]
        if kind.codec.startswith("utf") and kind.word == "Müller":
            forms = ["NFC", "NFD", "both"]
        yield from itertools.product([kind], LINE_ENDS, [True, False], forms)


def in_form(lines: list[str], form: str) -> list[str]:
    if form != "both":
        return [unicodedata.normalize(form, line) for line in lines]
    return [
        unicodedata.normalize("NFD" if place > 2 else "NFC", line)
        for place, line in enumerate(lines)
    ]


def joined(lines: list[str], ends: tuple[str, ...], *, is_ended: bool) -> str:
    all_ends = [ends[place % len(ends)] for place in range(len(lines))]
    if not is_ended:
        all_ends[-1] = ""
    return "".join(map("".join, zip(lines, all_ends, strict=True)))


@pytest.mark.long
def test_every_form_of_edit_keeps_what_it_does_not_change(tmp_path: Path) -> None:
    wrong: list[object] = []
    for kind, ends, is_ended, normal_form in files():
        declared = f"root = true\n[*]\ncharset = {kind.codec}\n"
        (tmp_path / ".editorconfig").write_text(declared if kind.is_declared else "")
        words = [kind.coding_line, f"of {kind.word}", "one", f"by {kind.word}", "end"]
        lines = ["first: 1", *in_form(words, normal_form)]
        data = kind.mark + joined(lines, ends, is_ended=is_ended).encode(kind.codec)
        for place, form in itertools.product((2, 5), FORMS):
            old_words = words[:]
            new_words = words[:]
            new_words[place - 1] = f"{words[place - 1]} {kind.word} x"
            new_lines = lines[:]
            new_form = "NFC" if normal_form == "both" else normal_form
            addition = unicodedata.normalize(new_form, f" {kind.word} x")
            new_lines[place] += addition
            text = joined(new_lines, ends, is_ended=is_ended)
            expected = kind.mark + text.encode(kind.codec)
            try:
                result = after(tmp_path, data, form(old_words, new_words))
            except ReplyRefused as refusal:
                wrong.append((kind, ends, is_ended, normal_form, place, form, refusal))
                continue
            if result != expected:
                wrong.append(
                    (kind, ends, is_ended, normal_form, place, form.__name__, result)
                )
    assert wrong == []


@each_row(
    "data, expected",
    [
        (b"first: 1\r\na\r\nb\r\n", b"first: 1\r\na\r\nx\r\nb\r\nc\r\n"),
        (b"first: 1\r\na\r\nb", b"first: 1\r\na\r\nx\r\nb\r\nc"),
        (b"first: 1\ra\rb\r", b"first: 1\ra\rx\rb\rc\r"),
        (b"first: 1\na\r\nb\r\n", b"first: 1\na\r\nx\r\nb\r\nc\r\n"),
        (b"first: 1\na\nb", b"first: 1\na\nx\nb\nc"),
    ],
)
def test_additional_lines_get_the_line_end_of_most(
    tmp_path: Path, data: bytes, expected: bytes
) -> None:
    for form in FORMS:
        change = form(["a", "b"], ["a", "x", "b", "c"])
        if form is not as_part_of_a_line:
            assert after(tmp_path, data, change) == expected, form.__name__


def test_a_whole_file_in_another_normal_form_changes_nothing(tmp_path: Path) -> None:
    mixed = "ü\nu\u0308 b\nu\u0308\n\u212b ü\n"
    for form in ("NFC", "NFD"):
        text = unicodedata.normalize(form, mixed)
        assert after(tmp_path, mixed.encode(), WholeFile(NAME, text)) == mixed.encode()


# ------------------------------------------------------------- what is not an edit


@each_row("kind", KINDS)
def test_a_deletion_that_shows_the_lines(tmp_path: Path, kind: Kind) -> None:
    text = f"{kind.coding_line}\r\nof {kind.word}\r\nplain\r\n"
    data = kind.mark + text.encode(kind.codec)
    shown = tuple(text.replace("\r", "").split("\n")[:-1])
    (change,) = changes_of(tmp_path, data, Deletion(NAME, shown)).changes
    assert (change.before, change.after) == (data, None)
    with pytest.raises(ReplyRefused):
        changes_of(tmp_path, data, Deletion(NAME, (*shown[:-1], "other")))


@each_row("kind", KINDS)
def test_a_renamed_file_keeps_its_encoding(tmp_path: Path, kind: Kind) -> None:
    data = kind.mark + f"{kind.coding_line}\r\n{kind.word}\r\nx".encode(kind.codec)
    move = Renaming(NAME, "b.txt")
    old, new = changes_of(tmp_path, data, move).changes
    assert (old.after, new.after) == (None, data)
    line = Replacement("b.txt", (kind.word,), (f"{kind.word} {kind.word}",))
    old, new = changes_of(tmp_path, data, move, line).changes
    word = kind.word.encode(kind.codec)
    assert new.after == data.replace(word, word + " ".encode(kind.codec) + word)


@each_row("kind", KINDS)
def test_a_file_that_is_deleted_and_given_again(tmp_path: Path, kind: Kind) -> None:
    text = f"{kind.coding_line}\r\n{kind.word}\r\nx"
    data = kind.mark + text.encode(kind.codec)
    again = WholeFile(NAME, f"{kind.coding_line}\n{kind.word}\nx y\n", must_be_new=True)
    assert after(tmp_path, data, Deletion(NAME), again) == kind.mark + (
        text + " y"
    ).encode(kind.codec)


@each_row(
    "charset, text, data",
    [
        ("", "Müller\n", "Müller\n".encode()),
        ("latin1", "Müller\n", b"M\xfcller\n"),
        ("utf-8-bom", "Müller\n", codecs.BOM_UTF8 + "Müller\n".encode()),
        ("utf-16le", "a", b"a\0"),
        ("", "# -*- coding: cp1252 -*-\n€\n", b"# -*- coding: cp1252 -*-\n\x80\n"),
    ],
)
def test_a_new_file_has_the_encoding_that_is_declared(
    tmp_path: Path, charset: str, text: str, data: bytes
) -> None:
    if charset:
        config = f"root = true\n[*]\ncharset = {charset}\n"
        (tmp_path / ".editorconfig").write_text(config)
    for edits in ([WholeFile(NAME, text)], [WholeFile(NAME, text, must_be_new=True)]):
        (change,) = change_set(tmp_path, edits, ANY).changes
        assert change.after == data
    (change,) = creation(tmp_path, NAME, text, lambda path: False).changes
    assert change.after == data


@each_row("charset", ["utf-8-bom", "utf-16le", "utf-16", "latin1"])
def test_an_ascii_file_stays_ascii(tmp_path: Path, charset: str) -> None:
    config = f"root = true\n[*]\ncharset = {charset}\n"
    (tmp_path / ".editorconfig").write_text(config)
    line = Replacement(NAME, ("one",), ("two",))
    assert after(tmp_path, b"one\nx\n", line) == b"two\nx\n"
    line = Replacement(NAME, ("one",), ("zwölf",))
    word = "zwölf".encode("latin-1" if charset == "latin1" else "utf-8")
    assert after(tmp_path, b"one\nx\n", line) == word + b"\nx\n"


# ------------------------------------------------------- what an encoding does not hold


@each_row("form", FORMS)
def test_text_that_the_encoding_does_not_hold_is_refused(
    tmp_path: Path, form: Form
) -> None:
    """A table of prices in cp1252, and a line with a euro sign, whose byte is another
    one in other encodings that fit the file.
    """
    data = "first: 1\nname;amount\nMüller;3\n".encode("cp1252")
    old, new = ["name;amount", "Müller;3"], ["name;amount", "Müller;7 €"]
    with pytest.raises(ReplyRefused, match=r"a\.txt, line 3: .*'€' \(U\+20AC\)"):
        changes_of(tmp_path, data, form(old, new))
    new = ["name;amount", "Müller;3 Schröder"]
    expected = data.replace(b"r;3", "r;3 Schröder".encode("cp1252"))
    assert after(tmp_path, data, form(old, new)) == expected
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_an_action_is_refused_alike(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes("Müller;3\n".encode("cp1252"))
    for find in ("3", ""):
        with pytest.raises(ReplyRefused) as refused:
            edit(tmp_path, NAME, find, "Müller;文\n", lambda path: False)
        assert refused.value.hint
    (change,) = edit(tmp_path, NAME, "3", "Größe", lambda path: False).changes
    assert change.after == "Müller;Größe\n".encode("cp1252")


DAMAGED = "first: 1\nGrüße aus München, größer \udcff\udc81 ab\nx \udcfe\nend\n"
"""UTF-8 with bytes that are none."""


@each_row("form", FORMS)
def test_bytes_that_are_no_text_are_kept_where_they_are_shown(
    tmp_path: Path, form: Form
) -> None:
    data = DAMAGED.encode("utf-8", "surrogateescape")
    shown = DAMAGED.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    old = shown.split("\n")[1:-1]
    for place, change in ((0, "ab c"), (2, "the end")):
        line = old[place].replace("ab", change) if place == 0 else change
        new = [*old[:place], line, *old[place + 1 :]]
        result = after(tmp_path, data, form(old, new))
        expected = (b"ab", b"ab c") if place == 0 else (b"end", b"the end")
        assert result == data.replace(*expected)
    # also where the file itself has the character
    for content in (data, data.replace(b"end", "\ufffd\nend".encode())):
        lines = content.decode("utf-8", "replace").split("\n")[1:-1]
        with pytest.raises(ReplyRefused, match=r"U\+FFFD"):
            changes_of(tmp_path, content, form(lines, [*lines, "\ufffd"]))


def test_a_file_that_is_no_text_is_replaced_by_text(tmp_path: Path) -> None:
    data = b"\x89PNG\r\n\x1a\n\0\0\xff"
    assert after(tmp_path, data, WholeFile(NAME, "wörter\n")) == "wörter\n".encode()


# ------------------------------------------------------------------ the rule itself


TEXTS = st.text(
    st.sampled_from('ab \r\n\n\n\t“”"-–\u00a0üÜe\u0301文中\ufffd'), max_size=60
)
CODECS = st.sampled_from(
    ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252", "latin-1", "gbk", "cp932"]
)
CONTENTS = st.binary(max_size=60) | st.builds(
    lambda text, codec: text.encode(codec, "replace"), TEXTS, CODECS
)


@settings(max_examples=count_examples(300), deadline=None)
@given(CONTENTS, st.data())
def test_only_the_edited_lines_differ(data: bytes, draw: st.DataObject) -> None:
    """Any file, any lines of it as they are shown, any new lines, in any form."""
    before = decode_file(PurePosixPath(NAME), data, NOTHING_DECLARED)
    lines = lines_of(before.text)
    if not lines:
        return
    shown = [line.rstrip("\r\n") for line in lines_of(before.shown)]
    first, last = sorted(draw.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    new = draw.draw(TEXTS).splitlines()[:3]
    find = [unicodedata.normalize("NFC", line) for line in shown[first : last + 1]]
    edits: list[Edit] = [
        Replacement(NAME, tuple(find), tuple(new)),
        TextReplacement(NAME, "\n".join(find), "\n".join(new)),
        WholeFile(NAME, "\n".join([*shown[:first], *new, *shown[last + 1 :]]) + "\n"),
    ]
    for change in edits:
        with tempfile.TemporaryDirectory() as folder:
            try:
                result = after(Path(folder), data, change)
            except ReplyRefused:
                continue
        # which of two equal lines stays in a whole file is open
        is_open = len({*shown, *new}) < len(shown) + len(new)
        if isinstance(change, WholeFile) and (before.is_binary or is_open):
            continue
        decode_file(PurePosixPath(NAME), result, NOTHING_DECLARED)
        head = lines[:first]
        is_unended = last == len(lines) - 1 and lines[-1] == lines[-1].rstrip("\r\n")
        if is_unended and head:
            # the line before may be the last one now
            head[-1] = head[-1].rstrip("\r\n")
        assert result.startswith(before.encoding.mark + encoded(head, before)), change
        assert result.endswith(encoded(lines[last + 1 :], before)), change


def encoded(lines: list[str], before: FileText) -> bytes:
    return "".join(lines).encode(before.encoding.codec, "surrogateescape")
