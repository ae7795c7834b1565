"""The text of a file in its own encoding, and its bytes again."""

import codecs
import time
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.files.charsets import NOTHING_DECLARED, Charsets
from cdd_agent.files.text import (
    UTF_8,
    FileText,
    Origin,
    TextNotHeld,
    decode_file,
    decode_versions,
    encode_file,
    in_normal_form,
    lines_of,
    normalize,
)
from tests.support.tables import each_row

NOTHING = NOTHING_DECLARED
FILE = PurePosixPath("a.txt")


def read(data: bytes, name: str = "a.txt", charsets: Charsets = NOTHING) -> FileText:
    return decode_file(PurePosixPath(name), data, charsets)


def with_line(data: bytes, line: str, charsets: Charsets = NOTHING) -> bytes:
    before = decode_file(FILE, data, charsets)
    return encode_file(FILE, before.text + line, before, charsets)


PYTHON = "# -*- coding: {} -*-\nname = 'Müller'\n"
NAMED: tuple[tuple[str, str, str, Origin], ...] = (
    ("a.txt", "Müller\n", "utf-8", Origin.UTF_8),
    ("a.txt", "Müller\n", "utf-8-sig", Origin.MARK),
    ("a.txt", "Müller\n", "utf-16", Origin.MARK),
    ("a.txt", "Müller\n", "utf-32", Origin.MARK),
    ("a.py", PYTHON.format("latin-1"), "latin-1", Origin.CODING_LINE),
    ("a.py", PYTHON.format("cp1252"), "cp1252", Origin.CODING_LINE),
    (
        "a.py",
        "#!/usr/bin/python\n" + PYTHON.format("koi8-r").replace("ü", "ю"),
        "koi8-r",
        Origin.CODING_LINE,
    ),
    ("a.c", "/* -*- mode: c; coding: gbk -*- */\n// 中文\n", "gbk", Origin.CODING_LINE),
    (
        "a.c",
        "// vim: set fileencoding=euc-jp :\n// 日本\n",
        "euc-jp",
        Origin.CODING_LINE,
    ),
    (
        "a.xml",
        '<?xml version="1.0" encoding="ISO-8859-1"?>\n<a>ü</a>\n',
        "latin-1",
        Origin.CODING_LINE,
    ),
    ("a.css", '@charset "iso-8859-15";\n/* € */\n', "iso-8859-15", Origin.CODING_LINE),
    (
        "a.html",
        '<html><meta charset="windows-1251"><p>Мир\n',
        "cp1251",
        Origin.CODING_LINE,
    ),
    (
        "a.html",
        '<meta http-equiv=x content="text/html; charset=shift_jis">日本\n',
        "shift_jis",
        Origin.CODING_LINE,
    ),
    (
        "fr.po",
        '"Content-Type: text/plain; charset=ISO-8859-15\\n"\n\nmsgstr "Œuvre"\n',
        "iso-8859-15",
        Origin.CODING_LINE,
    ),
    ("a.txt", "日本語\n", "iso2022_jp", Origin.GUESS),
)


@each_row("name, text, codec, origin", NAMED)
def test_what_names_an_encoding_is_believed(
    name: str, text: str, codec: str, origin: Origin
) -> None:
    data = text.encode(codec)
    found = read(data, name)
    assert (found.text, found.encoding.origin) == (text, origin)
    assert encode_file(PurePosixPath(name), found.text, found, NOTHING) == data


@each_row(
    "text, codec",
    [
        (PYTHON.format("latin-1"), "utf-8"),  # then the bytes are Latin-1 all the same
        (PYTHON.format("ascii"), "utf-8"),
        (PYTHON.format("no-such"), "utf-8"),
        (PYTHON.format("rot13"), "utf-8"),
        (PYTHON.format("utf-8"), "cp1252"),
    ],
)
def test_a_wrong_name_loses_no_byte(text: str, codec: str) -> None:
    data = text.encode(codec)
    found = read(data, "a.py")
    assert encode_file(PurePosixPath("a.py"), found.text, found, NOTHING) == data


REMARK = "# Text is converted, encoding: {}\nMüller → x!\n"
NOT_NAMED: tuple[tuple[str, str], ...] = (
    ("a.md", REMARK.format("latin-1")),
    ("a.sh", "#!/bin/sh\n" + REMARK.format("latin-1")),
    ("a.yaml", REMARK.format("ascii")),
    ("a.py", "import x  # encoding: latin-1\n# Müller\n"),
    ("a.py", "import x\n# encoding: ascii\n# Müller →\n"),
    ("a.py", REMARK.format("utf-16-le")),
    ("a.xml", '<?xml version="1.0" encoding="UTF-16LE"?>\n<a>ü</a>\n'),
    ("a.html", '<meta charset="utf-16be"><p>ü\n'),
)


@each_row("name, text", NOT_NAMED)
def test_what_only_speaks_of_an_encoding_is_utf_8(name: str, text: str) -> None:
    path = PurePosixPath(name)
    assert encode_file(path, text, None, NOTHING) == text.encode()
    found = read(text.encode(), name)
    assert (found.text, found.encoding.origin) == (text, Origin.UTF_8)


def test_a_comment_names_the_encoding_of_a_script() -> None:
    text = "#!/usr/bin/env ruby\n# encoding: cp1252\np 'Müller'\n"
    assert read(text.encode("cp1252"), "run").text == text
    assert read(text.encode("cp1252"), "run").encoding.origin is Origin.CODING_LINE


def declaring(root: Path, files: dict[str, str]) -> Charsets:
    for name, text in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return Charsets(root)


TOP = "root = true\n"
DECLARED: tuple[tuple[dict[str, str], str, str], ...] = (
    ({".editorconfig": TOP + "[*]\ncharset = latin1\n"}, "a/b.txt", "latin1"),
    (
        {".editorconfig": TOP + "[*.{csv,txt}]\ncharset=cp1252 # old\n"},
        "b.txt",
        "cp1252",
    ),
    ({".editorconfig": TOP + "[*.csv]\ncharset = latin1\n"}, "b.txt", ""),
    ({".editorconfig": TOP + "[a/**.txt]\ncharset = latin1\n"}, "a/b.txt", "latin1"),
    ({".editorconfig": TOP + "[/a/*.txt]\ncharset = latin1\n"}, "c/a/b.txt", ""),
    (
        {".editorconfig": TOP + "[*]\ncharset=latin1\n[b.txt]\ncharset=utf-8\n"},
        "b.txt",
        "utf-8",
    ),
    (
        {
            ".editorconfig": TOP + "[*]\ncharset=latin1\n",
            "a/.editorconfig": "[*.txt]\ncharset=utf-16le\n",
        },
        "a/b.txt",
        "utf-16le",
    ),
    (
        {".editorconfig": TOP + "[*]\ncharset=latin1\n", "a/.editorconfig": TOP},
        "a/b.txt",
        "",
    ),
    (
        {
            ".editorconfig": TOP + "[*]\ncharset=latin1\n",
            "a/.editorconfig": "[*]\ncharset=unset\n",
        },
        "a/b.txt",
        "",
    ),
    (
        {".editorconfig": TOP, ".gitattributes": "*.txt text encoding=cp1251\n"},
        "a/b.txt",
        "cp1251",
    ),
    (
        {
            ".editorconfig": TOP,
            ".gitattributes": "*.rc working-tree-encoding=UTF-16LE\n",
        },
        "a/b.rc",
        "UTF-16LE",
    ),
    (
        {
            ".editorconfig": TOP,
            ".gitattributes": "*.txt encoding=a\nb.txt encoding=b\n",
        },
        "a/b.txt",
        "b",
    ),
    ({".editorconfig": TOP, ".gitattributes": "# *.txt encoding=a\n"}, "b.txt", ""),
    ({".editorconfig": TOP + "[" + "{a,b}" * 20 + "]\ncharset=latin1\n"}, "b.txt", ""),
    (
        {".editorconfig": TOP + "[*]\nnonsense\n\n= 3\ncharset = latin1"},
        "b.txt",
        "latin1",
    ),
)


@each_row("files, name, charset", DECLARED)
def test_declared_charsets(
    tmp_path: Path, files: dict[str, str], name: str, charset: str
) -> None:
    assert declaring(tmp_path, files).declared(PurePosixPath(name)) == charset


SLOW = {
    "commas": (".editorconfig", "[{" + "," * 60_000 + "]\ncharset = latin1\n"),
    "alternatives": (
        ".editorconfig",
        "".join(f"[{n}{'{a,b}' * 6}]\ncharset = latin1\n" for n in range(3_000)),
    ),
    "brackets": (".editorconfig", "[" + "[[:" * 30_000 + "]\ncharset = latin1\n"),
    "stars": (".editorconfig", "[" + "*a" * 400 + "]\ncharset = latin1\n"),
    "attributes": (
        ".gitattributes",
        "".join(f"{n}{'{a,b}' * 6}*.t encoding=latin1\n" for n in range(3_000)),
    ),
}


@each_row(("name", "content"), SLOW.values(), ids=SLOW.keys())
def test_no_declaration_takes_long(tmp_path: Path, name: str, content: str) -> None:
    charsets = declaring(tmp_path, {".editorconfig": TOP, name: content})
    begun = time.process_time()
    for number in range(50):
        assert charsets.declared(PurePosixPath(f"{'a' * 200}{number}.txt")) == ""
    assert time.process_time() - begun < 5


def test_a_declared_charset_is_that_of_the_file_and_of_new_ones(tmp_path: Path) -> None:
    charsets = declaring(
        tmp_path, {".editorconfig": TOP + "[*.txt]\ncharset = windows-1252\n"}
    )
    found = decode_file(FILE, "10 €\n".encode("cp1252"), charsets)
    assert (found.text, found.encoding.origin) == ("10 €\n", Origin.DECLARED)
    assert encode_file(FILE, "ü", None, charsets) == b"\xfc"
    ascii_file = decode_file(FILE, b"a\n", charsets)
    assert encode_file(FILE, "ü\n", ascii_file, charsets) == b"\xfc\n"
    with pytest.raises(TextNotHeld, match=r"line 2: .*cp1252, has no '文' \(U\+6587\)"):
        encode_file(FILE, "ü\n文\n", found, charsets)


@each_row(
    "charset, data",
    [
        ("utf-8-bom", codecs.BOM_UTF8 + "ü".encode()),
        ("utf-16le", "ü".encode("utf-16-le")),
        ("utf-16", codecs.BOM_UTF16_LE + "ü".encode("utf-16-le")),
        ("utf-8", "ü".encode()),
        ("no-such", "ü".encode()),
        ("unicode_escape", "ü".encode()),
    ],
)
def test_a_new_file_has_the_declared_charset(
    tmp_path: Path, charset: str, data: bytes
) -> None:
    charsets = declaring(
        tmp_path, {".editorconfig": TOP + f"[*]\ncharset = {charset}\n"}
    )
    assert encode_file(FILE, "ü", None, charsets) == data
    assert decode_file(FILE, data, charsets).text == "ü"


@each_row("text", ["Müller geht!\n", "Müller geht\n"])
@each_row("charset", ["utf-16le", "utf-16", "utf-16be", "utf-32"])
def test_a_file_without_nulls_is_not_utf_16(
    tmp_path: Path, charset: str, text: str
) -> None:
    charsets = declaring(
        tmp_path, {".editorconfig": TOP + f"[*]\ncharset = {charset}\n"}
    )
    assert read(text.encode(), charsets=charsets).text == text
    assert with_line(text.encode(), "é\n", charsets) == f"{text}é\n".encode()


def test_a_script_begins_without_a_mark(tmp_path: Path) -> None:
    charsets = declaring(
        tmp_path, {".editorconfig": TOP + "[*]\ncharset = utf-8-bom\n"}
    )
    script = "#!/bin/sh\necho ü\n"
    assert encode_file(FILE, script, None, charsets) == script.encode()


LATIN = "name;amount\nMüller;3\n"
RUSSIAN = "# Привет, мир. Это комментарий\nx = 1\n"
CHINESE = "# 中文注释，你好\nx = 1\n"
JAPANESE = "# 日本語のコメントです。\nx = 1\n"
KOREAN = "# 한국어 주석입니다\nx = 1\n"
GUESSED: tuple[tuple[str, str, str, bool], ...] = (
    # text, encoding, line that comes, whether it is taken
    (LATIN, "cp1252", "Schröder;7\n", True),
    (LATIN, "cp1252", "Müller;7\n", True),
    (LATIN, "cp1252", "Schröder;7 €\n", False),  # Latin-1 has none, Latin-9 another
    (LATIN, "cp1252", "文\n", False),
    (LATIN + "3 €\n", "cp1252", "7 €\n", True),
    (LATIN, "latin-1", "Größe\n", True),
    (LATIN, "cp850", "Schröder\n", False),
    (LATIN, "mac-roman", "Schröder\n", False),
    ("“Hello”\n", "cp1252", "“again”\n", True),
    (RUSSIAN, "cp1251", "# мир Привет\n", True),
    (RUSSIAN, "cp1251", "# щ\n", False),
    (RUSSIAN, "koi8-r", "# мир\n", True),
    (CHINESE, "gbk", "# 中文\n", True),
    (CHINESE, "gbk", "# 添加\n", False),
    (JAPANESE, "cp932", "# 日本語\n", True),
    (JAPANESE, "cp932", "x = 2\n", True),
    (JAPANESE, "euc_jp", "# 日本語\n", True),
    (KOREAN, "cp949", "# 한국어\n", True),
)


@each_row("text, codec, line, is_taken", GUESSED)
def test_a_guess_is_used_where_all_that_fits_agrees(
    text: str, codec: str, line: str, is_taken: bool
) -> None:
    data = text.encode(codec)
    if is_taken:
        assert with_line(data, line) == data + line.encode(codec)
        return
    with pytest.raises(TextNotHeld):
        with_line(data, line)


@each_row(
    "text, codec",
    [
        (LATIN, "cp1252"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (CHINESE, "gbk"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (KOREAN, "cp949"),
        ("“Hello” — it’s a naïve café\n", "cp1252"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy\n", "cp1250"),
    ],
)
def test_the_likeliest_encoding_is_shown(text: str, codec: str) -> None:
    found = read(text.encode(codec))
    assert found.shown == text
    assert found.encoding.shown_name.endswith("guessed")


def test_what_fits_no_encoding_keeps_its_bytes() -> None:
    data = "Grüße aus München: ".encode() + b"\xff\x81\n"
    found = read(data)
    assert found.shown == "Grüße aus München: \ufffd\ufffd\n"
    assert found.encoding.shown_name == "unknown encoding"
    assert with_line(data, "plain ü\n") == data + "plain ü\n".encode()
    with pytest.raises(TextNotHeld, match=r"no encoding that is known"):
        with_line(data, "é\n")


@each_row(
    "before, after, is_taken",
    [
        (PYTHON.format("latin-1"), PYTHON.format("latin-1") + "b = 'ö'\n", True),
        (PYTHON.format("latin-1"), PYTHON.format("iso-8859-1"), True),
        (PYTHON.format("latin-1"), "name = 'Müller'\n", False),
        (PYTHON.format("latin-1"), PYTHON.format("utf-8"), False),
        (PYTHON.format("latin-1"), "name = 'Mueller'\n", True),
    ],
)
def test_a_coding_line_that_would_be_wrong_is_refused(
    before: str, after: str, is_taken: bool
) -> None:
    path = PurePosixPath("a.py")
    found = read(before.encode("latin-1"), "a.py")
    if is_taken:
        assert encode_file(path, after, found, NOTHING) == after.encode("latin-1")
        return
    with pytest.raises(TextNotHeld, match=r"coding line makes it utf-8"):
        encode_file(path, after, found, NOTHING)


def test_a_coding_line_of_a_new_file_counts() -> None:
    text = PYTHON.format("latin-1")
    path = PurePosixPath("a.py")
    assert encode_file(path, text, None, NOTHING) == text.encode("latin-1")


@each_row(
    "text, line_end",
    [
        ("a\r\nb\r\nc\n", "\r\n"),
        ("a\nb\r\nc\n", "\n"),
        ("a\rb\r", "\r"),
        ("a", "\n"),
        ("", "\n"),
        ("a\r\nb\n", "\n"),
    ],
)
def test_line_ends(text: str, line_end: str) -> None:
    assert read(text.encode()).line_end == line_end


@each_row(
    "text, new, expected",
    [
        ("Mu\u0308ller", "Schröder", "Schro\u0308der"),
        ("Müller", "Schro\u0308der", "Schröder"),
        ("plain", "Schro\u0308der", "Schro\u0308der"),
        ("Müller Mu\u0308ller", "Schro\u0308der", "Schro\u0308der"),
        ("Müller", "\u212b", "\u212b"),  # the Ångström sign is not the letter
    ],
)
def test_new_text_has_the_normal_form_of_the_file(
    text: str, new: str, expected: str
) -> None:
    assert in_normal_form(new, read(text.encode()).normal_form) == expected


def test_endless_accents_do_not_take_long() -> None:
    accents = "\u0301\u0323" * 500_000
    begun = time.process_time()
    for text in (f"e{accents}", "é" * 50 + f"e{accents}"):
        before = FileText(text, UTF_8)
        assert before.normal_form is None
        assert in_normal_form(text, "NFC") == text
        assert normalize("NFC", text) == text
    assert time.process_time() - begun < 5
    # as many as a letter can have in earnest
    assert normalize("NFC", "e" + accents[:190]) != "e" + accents[:190]


def test_a_part_of_a_file_may_end_within_a_character() -> None:
    whole = ("日本語のテキスト" * 20).encode()
    for length in range(1, 40):
        found = decode_file(FILE, whole[:length], NOTHING, is_cut=True)
        assert found.encoding.origin is Origin.UTF_8
        assert whole.decode().startswith(found.text)


@each_row(
    "data, is_binary",
    [
        (b"a\0b", True),
        (b"\x89PNG\r\n\x1a\n\0\0", True),
        ("a".encode("utf-16"), False),
        (b"a" * 9_000 + b"\0", False),
        (b"", False),
    ],
)
def test_binary_files(data: bytes, is_binary: bool) -> None:
    assert read(data).is_binary is is_binary


@given(st.binary(max_size=300))
def test_any_bytes_come_back(data: bytes) -> None:
    found = read(data)
    assert encode_file(FILE, found.text, found, NOTHING) == data


@given(
    st.text(alphabet=st.characters(codec="cp1252"), max_size=60),
    st.sampled_from(["cp1252", "utf-8", "utf-16", "utf-8-sig"]),
    st.text(max_size=10),
)
def test_a_line_that_is_taken_changes_nothing_else(
    text: str, codec: str, line: str
) -> None:
    data = text.encode(codec)
    before = read(data)
    try:
        after = encode_file(FILE, before.text + line, before, NOTHING)
    except TextNotHeld:
        return
    assert after.startswith(data)
    again = read(after)
    assert encode_file(FILE, again.text, again, NOTHING) == after
    if before.encoding.origin is not Origin.NONE:
        assert again.encoding.origin is not Origin.NONE


@each_row(
    "before, after, codecs",
    [
        (
            "Grüße €\n".encode("cp1252"),
            "Grüße\n".encode("cp1252"),
            ("cp1252", "cp1252"),
        ),
        ("Grüße\n".encode("cp1252"), "Grüße\n".encode(), ("cp1252", "utf-8")),
        ("Grüße\n".encode(), "Grüße\n".encode("cp1252"), ("utf-8", "cp1252")),
        (b"plain\n", "Grüße\n".encode("cp1252"), ("ascii", "cp1252")),
        (
            "Привет, мир\n".encode("cp1251"),
            "Мир\n".encode("cp1251"),
            ("cp1251", "cp1251"),
        ),
        (
            "Příliš žluťoučký kůň, Dvořák\n".encode("cp1250"),
            "café\n".encode("cp1250"),  # alone, it would be read as cp1252
            ("cp1250", "cp1250"),
        ),
        (None, "日本\n".encode("utf-16"), (None, "utf-16-le")),
        ("日本\n".encode("utf-16"), None, ("utf-16-le", None)),
    ],
)
def test_two_versions_of_a_file(
    before: bytes | None, after: bytes | None, codecs: tuple[str | None, str | None]
) -> None:
    versions = decode_versions(FILE, before, after, NOTHING)
    assert tuple(text and text.encoding.codec for text in versions) == codecs


@given(st.text())
def test_lines_are_the_text(text: str) -> None:
    lines = lines_of(text)
    assert "".join(lines) == text
    assert all(line.endswith("\n") for line in lines[:-1])
    assert len(lines) == text.count("\n") + (not text.endswith("\n") and bool(text))
