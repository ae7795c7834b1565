"""The files that go with a line because it mentions them."""

import time
import unicodedata
from pathlib import Path
from typing import Literal

import pytest

from cdd_agent.agents.attachments import attach_files, report_missing, without_files
from cdd_agent.agents.mention_completion import complete_mention, files_to_mention
from cdd_agent.events.notices import NoticeKind
from tests.support.tables import each_row

ROOM = 100_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("print('```')\n")
    (tmp_path / "my notes.md").write_text("Remember.\n")
    (tmp_path / "README").write_text("Read me.\n")
    (tmp_path / "data.bin").write_bytes(b"\0\1\2")
    (tmp_path / "latin.txt").write_bytes("Größe\n".encode("latin-1"))
    (tmp_path / "big.txt").write_text("x" * 100_001)
    (tmp_path / ".env").write_text("KEY=value\n")
    return tmp_path


def warnings(root: Path, line: str) -> str:
    """The warnings about a line; nothing of it may be sent."""
    sent = attach_files(root, line, ROOM)
    assert sent.text == line
    assert {notice.kind for notice in sent.notices} == {NoticeKind.NOT_SENT}
    return "\n".join(notice.text for notice in sent.notices)


@each_row(
    "line",
    [
        "explain @src/app.py",
        "@src/app.py: explain it",
        "is (@src/app.py) right?",
        "what about @src/app.py?",
        "look at @src/app.py.",
        'see @"src/app.py"',
        "`@src/app.py`",
        "@src/app.py and again @src/app.py",
    ],
)
def test_a_mentioned_file_is_attached(root: Path, line: str) -> None:
    mentions = attach_files(root, line, ROOM)
    assert mentions.text.startswith(f"{line}\n\n# ")
    assert mentions.text.count("src/app.py:\n````py\nprint('```')\n````") == 1
    (sent,) = mentions.notices
    assert sent.kind is NoticeKind.SENT
    assert "src/app.py" in sent.text


@each_row(
    ("line", "content"), [('@"my notes.md"', "Remember."), ("@README", "Read me.")]
)
def test_names_with_and_without_spaces_are_read(
    root: Path, line: str, content: str
) -> None:
    assert content in attach_files(root, line, ROOM).text


@each_row("line", ["what is in @src/", "what is in @src"])
def test_a_mentioned_folder_is_attached_as_a_listing(root: Path, line: str) -> None:
    assert "```\napp.py\n```" in attach_files(root, line, ROOM).text


def test_an_empty_folder_is_reported_as_empty(root: Path) -> None:
    (root / "empty").mkdir()
    (notice,) = attach_files(root, "look at @empty/", 1_000).notices
    assert notice.text == "Sent with your message: empty/ (empty)."


@each_row("line", ["mail me@example.com", "thanks @someone!", "@"])
def test_a_line_without_mentions_is_sent_unchanged(root: Path, line: str) -> None:
    sent = attach_files(root, line, ROOM)
    assert sent.text == line
    assert sent.notices == ()


@each_row(
    ("mention", "heading", "lines"),
    [
        ("@ten.txt:9", "line 9", " 9  row 9\n"),
        ("@ten.txt:9-10", "lines 9 to 10", " 9  row 9\n10  row 10\n"),
        ("@ten.txt#L9-L99", "lines 9 to 10", " 9  row 9\n10  row 10\n"),
        ("@ten.txt:1-2", "lines 1 to 2", "1  row 1\n2  row 2\n"),
    ],
)
def test_a_range_sends_these_lines_with_their_numbers(
    root: Path, mention: str, heading: str, lines: str
) -> None:
    rows = [f"row {number}\n" for number in range(1, 11)]
    (root / "ten.txt").write_text("".join(rows))
    sent = attach_files(root, f"see {mention}, please", ROOM)
    assert sent.text.endswith(
        f"ten.txt, {heading}, each with its number:\n```txt\n{lines}```"
    )
    (notice,) = sent.notices
    assert notice.kind is NoticeKind.SENT
    assert f"({heading})" in notice.text


def test_the_line_is_shown_without_its_files(root: Path) -> None:
    sent = attach_files(root, "see @src/app.py", ROOM)
    assert without_files(sent.text) == "see @src/app.py"


def test_only_missing_files_are_reported_without_sending(root: Path) -> None:
    (missing,) = report_missing(root, "see @src/app.py and @src/nothing.py")
    assert "src/nothing.py does not exist" in missing.text


@each_row(
    ("line", "reason"),
    [
        ("@src/nothing.py", "src/nothing.py does not exist"),
        ("@src/(auth)/page.tsx", "src/(auth)/page.tsx does not exist"),
        ("@src/app.py:0", "lines 0 to 0 are not a range"),
        ("@src/app.py:5-3", "lines 5 to 3 are not a range"),
        ("@src/app.py:2", "src/app.py has only 1 line"),
        ("@src:3", "src is a folder and has no lines"),
        ("@src/App.py", "Did you mean src/app.py?"),
        ('@"no such file"', "no such file does not exist"),
        ("@data.bin", "binary"),
        ("@big.txt", "big.txt is too big for one message (100,001 bytes)"),
        ("@../outside.txt", "leaves the project"),
        ("@/etc/passwd", "is absolute"),
        ("@~/notes.txt", "is absolute"),
        ("@.env", "suggests secrets"),
        ("@.git/config", "belongs to git"),
    ],
)
def test_a_file_that_cannot_be_attached_is_reported(
    root: Path, line: str, reason: str
) -> None:
    assert reason in warnings(root, line)


def test_a_link_out_of_the_project_is_not_followed(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.txt"
    outside.write_text("the key")
    (root / "link.txt").symlink_to(outside)
    assert "through a link" in warnings(root, "@link.txt")


@each_row("there", ["NFC", "NFD"])
@each_row("typed", ["NFC", "NFD"])
def test_a_mention_means_the_file_in_whichever_normal_form_it_is_typed(
    tmp_path: Path, typed: Literal["NFC", "NFD"], there: Literal["NFC", "NFD"]
) -> None:
    name = unicodedata.normalize(there, "größe.txt")
    (tmp_path / name).write_text("all of it\n")
    text = attach_files(
        tmp_path, unicodedata.normalize(typed, "look at @größe.txt"), 1000
    )
    assert "all of it" in text.text
    found = complete_mention(
        files_to_mention(tmp_path), unicodedata.normalize(typed, "look at @grö")
    )
    assert [completion.line for completion in found] == [f"look at @{name}"]


def test_the_encoding_of_a_file_is_named(root: Path) -> None:
    text = attach_files(root, "@latin.txt", ROOM).text
    assert "latin.txt (in cp1252, guessed):\n```txt\nGröße\n" in text


def test_all_attached_files_share_one_limit(root: Path) -> None:
    (root / "one.txt").write_text("1" * 60)
    (root / "two.txt").write_text("2" * 60)
    mentions = attach_files(root, "@one.txt @two.txt", 100)
    assert "1" * 60 in mentions.text
    assert "2" * 60 not in mentions.text
    assert [notice.kind for notice in mentions.notices] == [
        NoticeKind.SENT,
        NoticeKind.NOT_SENT,
    ]
    assert "two.txt" in mentions.notices[1].text


@each_row(
    ("line", "found"),
    [
        ("explain @sr", ["explain @src/"]),
        ("explain @src/", ["explain @src/app.py"]),
        ("explain @src/A", ["explain @src/app.py"]),
        ("explain @src/app.py", []),
        ("@ap", ["@src/app.py"]),
        ("@my", ['@"my notes.md"']),
        ('@"my no', ['@"my notes.md"']),
        ("@.e", []),
        ("@.g", ["@.gitignore"]),
        ("@../", []),
        ("@/etc/", []),
        ("mail me@sr", []),
        ("@src/app.py and", []),
        ("@nothing", []),
        ("@ignored", []),
    ],
)
def test_mentions_are_completed(root: Path, line: str, found: list[str]) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".gitignore").write_text("ignored*\n")
    (root / "ignored.txt").touch()
    index = files_to_mention(root)
    index.build()
    assert [offer.line for offer in complete_mention(index, line)] == found


def test_many_missing_files_are_reported_briefly_and_quickly(root: Path) -> None:
    for number in range(2_000):
        (root / f"file-{number}.txt").touch()
    pasted = "\n".join(
        f"@cached\nimport x from '@scope/part-{number}'" for number in range(200)
    )
    begun = time.process_time()
    mentions = attach_files(root, f"{pasted}\n@src/app.py", 10_000)
    assert time.process_time() - begun < 5
    kinds = [notice.kind for notice in mentions.notices]
    assert kinds == [NoticeKind.SENT] + [NoticeKind.NOT_SENT] * 4
    assert "197" in mentions.notices[-1].text


def test_completion_is_fast_in_a_large_project(root: Path) -> None:
    for number in range(60):
        folder = root / f"folder-{number}"
        folder.mkdir()
        for file in range(100):
            (folder / f"file-{file}.txt").touch()
    index = files_to_mention(root)
    index.build()
    begun = time.process_time()
    assert complete_mention(index, "@zzz") == []
    assert time.process_time() - begun < 2
