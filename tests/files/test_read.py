"""Files of a project that can be read, and others."""

import os
import socket
import subprocess
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cdd_agent.errors import ExitCode
from cdd_agent.files.paths import PathRefused
from cdd_agent.files.read import (
    LARGEST_DECODED,
    SourceMissing,
    SourceUnreadable,
    locate,
    read_source,
)
from cdd_agent.files.text import BYTES_ARE_SHOWN, lines_of
from tests.support.encoded_files import ENCODED, Encoded
from tests.support.tables import each_row


def test_a_file_is_its_text(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\r\ny = 'gr\xc3\xbc\xc3\x9fe'")

    source = read_source(tmp_path, "a.py")

    assert (source.path, source.text, source.size) == (
        PurePosixPath("a.py"),
        "x = 1\r\ny = 'grüße'",
        20,
    )
    assert not source.cut
    assert not source.note
    assert source.as_text() == source.text


@each_row(
    ("data", "start", "end", "text"),
    [
        (b"1\n2\n3\n", 1, 1, "1\n"),
        (b"1\n2\n3\n", 2, None, "2\n3\n"),
        (b"1\n2\n3\n", 2, 99, "2\n3\n"),
        (b"1\n2\n3", 3, 3, "3"),
        (b"1\n\n\n4\n", 2, 3, "\n\n"),
        (b"1\r\n2\r\n", 2, 2, "2\r\n"),
        (b"1\x0c2\xe2\x80\xa83\n4\n", 2, 2, "4\n"),
        (b"1\r2\r\n3\r", 2, 3, "2\r\n3\r"),
        (b"x" * 65_535 + b"\r\n2\n", 2, 2, "2\n"),
        (b"\xef\xbb\xbf1\n2\n", 1, 1, "1\n"),
        (b"\xef\xbb\xbf1\n2\n", None, None, "1\n2\n"),
        (b"", None, None, ""),
        (b"", 1, 5, ""),
        (b"a" * 200_000 + b"\n2\n", 2, 2, "2\n"),
    ],
)
def test_lines_are_counted_from_one_and_both_ends_are_included(
    tmp_path: Path, data: bytes, start: int | None, end: int | None, text: str
) -> None:
    (tmp_path / "a").write_bytes(data)
    source = read_source(tmp_path, "a", start, end)
    assert (source.text, source.cut) == (text, False)


@each_row(
    ("start", "end", "message"),
    [
        (4, None, "a has only 3 lines"),
        (9, 12, "a has only 3 lines"),
        (0, 2, "lines 0 to 2 are not a range"),
        (3, 2, "lines 3 to 2 are not a range"),
        (-1, None, "not a range"),
    ],
)
def test_lines_that_are_not_there_are_an_error(
    tmp_path: Path, start: int, end: int | None, message: str
) -> None:
    for data in (b"1\n2\n3\n", b"1\n2\n3"):
        (tmp_path / "a").write_bytes(data)
        with pytest.raises(SourceUnreadable, match=message):
            read_source(tmp_path, "a", start, end)


def test_a_long_file_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("äöü\n" * 100_000)

    source = read_source(tmp_path, "a")

    assert source.cut
    assert source.text == ("äöü\n" * 25_000)
    last = source.as_text().splitlines()[-1]
    assert last.startswith("… ")
    assert {"100,000", "700,000"} <= set(last.split())
    assert read_source(tmp_path, "a", 2, 3).text == "äöü\näöü\n"
    assert read_source(tmp_path, "a", 2, 3, limit=5).cut


@each_row("text", ["x" * 100, "é" * 100, "日" * 100, "😀" * 100])
@each_row("limit", [1, 99, 100, 101])
def test_a_cut_never_breaks_a_character(tmp_path: Path, text: str, limit: int) -> None:
    (tmp_path / "a").write_text(text)
    source = read_source(tmp_path, "a", limit=limit)
    assert (source.text, source.cut, source.replaced) == (
        text[:limit],
        limit < 100,
        False,
    )


def test_ten_gigabytes_are_not_read(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.write(b"line\n" * 100_000)
        file.truncate(10_000_000_000)
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(10_000_000_000)

    source = read_source(tmp_path, "big")
    assert source.cut
    assert source.size == 10_000_000_000
    assert " 10,000,000,000 " in source.as_text()
    with pytest.raises(SourceUnreadable, match="too far"):
        read_source(tmp_path, "big", 200_000)
    with pytest.raises(SourceUnreadable, match="binary file of 10,000,000,000 bytes"):
        read_source(tmp_path, "hole")


def test_one_endless_line_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 3_000_000)
    assert len(read_source(tmp_path, "a", 1, 1).text) == 100_000
    with pytest.raises(SourceUnreadable, match=r"1 line$"):
        read_source(tmp_path, "a", 2)


@each_row(
    ("data", "text", "note"),
    [
        (b"caf\xe9\n", "café\n", "in cp1252, guessed"),
        (b"cut short \xe2\x82", "cut short â‚", "in cp1252, guessed"),
        ("genuine \ufffd".encode(), "genuine \ufffd", ""),
        (
            "schön ".encode() + b"\xed\xa0\x80",
            "schön \ufffd\ufffd\ufffd",
            f"in unknown encoding; {BYTES_ARE_SHOWN}",
        ),
        (b"\x1b[31mred\x07", "\x1b[31mred\x07", ""),
        ("text\n".encode("utf-16"), "text\n", "in utf-16-le"),
    ],
)
def test_what_is_not_utf8_is_decoded_and_said(
    tmp_path: Path, data: bytes, text: str, note: str
) -> None:
    (tmp_path / "a").write_bytes(data)
    source = read_source(tmp_path, "a")
    assert (source.text, source.note) == (text, note)
    assert source.replaced is (BYTES_ARE_SHOWN in note)


@each_row("encoded", ENCODED)
def test_lines_of_a_file_in_any_encoding(tmp_path: Path, encoded: Encoded) -> None:
    encoded.write(tmp_path)
    source = read_source(tmp_path, encoded.path)
    assert (source.text, source.encoding_note) == (encoded.text, encoded.note)
    lines = lines_of(encoded.text)
    for start in range(1, len(lines) + 1):
        source = read_source(tmp_path, encoded.path, start, start + 1)
        assert source.text == "".join(lines[start - 1 : start + 1])


@each_row("encoded", ENCODED[2:5])
def test_lines_far_into_a_large_file_in_any_encoding(
    tmp_path: Path, encoded: Encoded
) -> None:
    large = encoded.of_length(LARGEST_DECODED)
    large.write(tmp_path)
    count = len(lines_of(large.text))
    first = read_source(tmp_path, large.path, 1, 1)
    assert first.text == lines_of(large.text)[0]
    source = read_source(tmp_path, large.path, count - 1, count)
    assert source.text == "".join(lines_of(large.text)[-2:])
    assert source.encoding_note == encoded.note
    with pytest.raises(SourceUnreadable, match=f"has only {count} lines"):
        read_source(tmp_path, large.path, count + 1)


def test_bytes_behind_the_part_that_is_decoded_at_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * LARGEST_DECODED + b"\ncaf\xe9\n")
    source = read_source(tmp_path, "a", 2)
    assert (source.text, source.replaced) == ("caf\ufffd\n", True)


@each_row(
    "data",
    [
        b"\x89PNG\r\n\0\0",
        b"a" * 7_000 + b"\0",
        b"a\n" * 10_000 + b"\0",
    ],
)
def test_a_binary_file_is_an_error_with_its_size(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(
        SourceUnreadable, match=f"binary file of {len(data):,} bytes"
    ) as caught:
        read_source(tmp_path, "a.png")
    assert caught.value.exit_code is ExitCode.FAILED


def test_a_key_in_another_encoding_is_a_secret(tmp_path: Path) -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{'A' * 64}\n-----END PRIVATE KEY-----\n"
    for codec in ("utf-16", "utf-16-be", "utf-32", "utf-8-sig"):
        (tmp_path / "notes.txt").write_bytes(f"a note\n{key}".encode(codec))
        with pytest.raises(SourceUnreadable, match=r"private key|binary"):
            read_source(tmp_path, "notes.txt")


# Folders


def test_a_folder_is_what_is_directly_in_it(tmp_path: Path) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    for name in (
        "src/b.py",
        "src/a.py",
        "src/deep/c.py",
        "src/x.log",
        "src/two\nlines",
    ):
        (tmp_path / name).touch()
    (tmp_path / "src" / "link").symlink_to("a.py")
    (tmp_path / ".gitignore").write_text("*.log\n")

    assert read_source(tmp_path, "src").text.splitlines() == [
        "a.py",
        "b.py",
        "deep/",
        "link (link)",
        "two␊lines",
    ]
    assert read_source(tmp_path, "./src/").text == read_source(tmp_path, "src").text


@each_row("text", [".", "./", "./.", ".\\"])
def test_the_project_itself_is_a_folder(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.py").touch()
    source = read_source(tmp_path, text)
    assert (str(source.path), source.text) == (".", "a.py\n")


def test_an_empty_folder_and_a_large_one_say_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "large").mkdir()
    for number in range(1_200):
        (tmp_path / "large" / f"{number:04}").touch()

    assert read_source(tmp_path, "empty").text.startswith("(empty")
    source = read_source(tmp_path, "large")
    assert source.cut
    *_, entry, last = source.as_text().splitlines()
    assert (entry, last[0]) == ("0999", "…")
    assert " 1,000 " in last


# What is not there, or not a file


def test_a_missing_file_is_an_error_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "src" / "app").mkdir(parents=True)
    for name in ("src/app/models.py", "src/app/views.py", "README.md"):
        (tmp_path / name).touch()

    def hint(text: str) -> str:
        with pytest.raises(SourceMissing, match="does not exist") as caught:
            read_source(tmp_path, text)
        return caught.value.hint

    assert "src/app/models.py" in hint("models.py")
    assert "src/app/models.py" in hint("src/app/model.py")
    assert "README.md" in hint("readme.md")
    assert hint("README.md/x") == ""
    assert hint("something/else.txt") == ""


@pytest.mark.parametrize("name", ["pipe", "socket", "device", "link"])
def test_what_is_no_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)
        server.bind("socket")  # its whole path may be too long
        if name == "device":
            made = subprocess.run(
                ["mknod", str(tmp_path / "device"), "c", "1", "5"],
                capture_output=True,
                check=False,
            )
            if made.returncode:
                pytest.skip("only root makes devices")
        with pytest.raises(SourceUnreadable, match=r"it is a (pipe|socket|device)$"):
            read_source(tmp_path, name)


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="nothing is closed to root"
)
def test_what_may_not_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").touch(mode=0)
    (tmp_path / "folder").mkdir(mode=0)
    for name in ("a", "folder", "folder/x"):
        with pytest.raises(SourceUnreadable, match=r"could not be read|cannot be read"):
            read_source(tmp_path, name)


# Outside, and secrets


@each_row(
    "text",
    [
        "/etc/passwd",
        "../x",
        "a/../../x",
        "~/x",
        "C:\\x",
        "",
        " ",
        "a\0b",
        "a\nb",
        "\ud800",
        "x" * 300,
    ],
)
def test_what_is_outside_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(PathRefused):
        read_source(tmp_path, text)


def test_a_link_is_read_where_it_leads_if_that_is_inside(tmp_path: Path) -> None:
    root = tmp_path / "app"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("inside")
    (tmp_path / "outside").write_text("outside")
    (root / "a").symlink_to("src/a.py")
    (root / "out").symlink_to("../outside")
    (root / "up").symlink_to("..")
    (root / "here").symlink_to("src")

    assert read_source(root, "a").text == "inside"
    assert read_source(root, "here/a.py").text == "inside"
    assert read_source(root, "here").text == "a.py\n"
    for text in ("out", "up/outside", "up"):
        with pytest.raises(PathRefused, match="link"):
            read_source(root, text)


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises((PathRefused, SourceUnreadable)):
        read_source(tmp_path, "a")


@each_row(
    "text", [".git", ".git/config", "sub/.git/config", ".GIT/config", "link/config"]
)
def test_what_belongs_to_git_is_not_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("[remote]")
    (tmp_path / "link").symlink_to(".git")
    with pytest.raises(SourceUnreadable, match="git"):
        read_source(tmp_path, text)


def test_a_file_that_holds_secrets_by_its_name_or_its_links_is_not_shown(
    tmp_path: Path,
) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "notes.txt").symlink_to(".env")
    (tmp_path / "id_rsa").symlink_to("plain")
    (tmp_path / "plain").write_text("plain")

    for name in (".env", "notes.txt", "id_rsa"):
        with pytest.raises(SourceUnreadable, match="secrets"):
            read_source(tmp_path, name)


def test_a_place_in_the_project_may_be_one_that_is_not_there(tmp_path: Path) -> None:
    assert locate(tmp_path, "not/there.py") == PurePosixPath("not/there.py")
    assert locate(tmp_path, ".") == PurePosixPath()


TEXTS = st.one_of(
    st.binary(max_size=120),
    st.lists(st.sampled_from([b"\r", b"\n", b"\xe9", b"a"]), max_size=12).map(b"".join),
)


@given(data=TEXTS, codec=st.sampled_from(["", "utf-16", "utf-8-sig"]))
def test_the_lines_of_any_file_are_its_text(data: bytes, codec: str) -> None:
    if codec:
        data = data.decode("latin-1").encode(codec)
    with TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "a").write_bytes(data)
        try:
            whole = read_source(root, "a")
        except SourceUnreadable:
            assume(False)
        count = len(lines_of(whole.text))
        lines = [read_source(root, "a", n, n).text for n in range(1, count + 1)]
    assert lines == lines_of(whole.text)
