"""Files that a line mentions."""

import time
import unicodedata
from pathlib import Path
from typing import Literal

import pytest

from cdd_agent.agents.mention_completion import complete_mention, files_to_mention
from cdd_agent.agents.mentions import with_mentions
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


def told(root: Path, line: str) -> str:
    return "\n".join(notice.text for notice in with_mentions(root, line, ROOM).notices)


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
    mentions = with_mentions(root, line, ROOM)
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
    assert content in with_mentions(root, line, ROOM).text


@each_row("line", ["what is in @src/", "what is in @src"])
def test_a_mentioned_folder_is_attached_as_a_listing(root: Path, line: str) -> None:
    assert "```\napp.py\n```" in with_mentions(root, line, ROOM).text


@each_row(
    "line",
    [
        "mail me@example.com",
        "use @property here",
        "@dataclass(frozen=True)",
        '@app.get("/users")',
        "@pytest.fixture",
        "@",
        "a @ b",
        "@@",
        "thanks @someone!",
        "user@src/app.py",
    ],
)
def test_text_that_is_no_mention_is_left_unchanged(root: Path, line: str) -> None:
    mentions = with_mentions(root, line, ROOM)
    assert mentions.text == line
    assert mentions.notices == ()


@each_row(
    ("line", "reason"),
    [
        ("@src/nothing.py", "src/nothing.py does not exist"),
        ("@src/App.py", "Did you mean src/app.py?"),
        ('@"no such file"', "no such file does not exist"),
        ("@data.bin", "binary"),
        ("@big.txt", "big.txt is too big to go with a message (100,001 bytes)"),
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
    assert reason in told(root, line)
    assert {notice.kind for notice in with_mentions(root, line, ROOM).notices} == {
        NoticeKind.NOT_SENT
    }
    assert with_mentions(root, line, ROOM).text == line


def test_a_link_out_of_the_project_is_not_followed(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.txt"
    outside.write_text("the key")
    (root / "link.txt").symlink_to(outside)
    assert "through a link" in told(root, "@link.txt")


@each_row("there", ["NFC", "NFD"])
@each_row("typed", ["NFC", "NFD"])
def test_a_mention_means_the_file_in_whichever_normal_form_it_is_typed(
    tmp_path: Path, typed: Literal["NFC", "NFD"], there: Literal["NFC", "NFD"]
) -> None:
    name = unicodedata.normalize(there, "größe.txt")
    (tmp_path / name).write_text("all of it\n")
    text = with_mentions(
        tmp_path, unicodedata.normalize(typed, "look at @größe.txt"), 1000
    )
    assert "all of it" in text.text
    found = complete_mention(
        files_to_mention(tmp_path), unicodedata.normalize(typed, "look at @grö")
    )
    assert [completion.line for completion in found] == [f"look at @{name}"]


def test_the_encoding_of_a_file_is_named(root: Path) -> None:
    text = with_mentions(root, "@latin.txt", ROOM).text
    assert "latin.txt (in cp1252, guessed):\n```txt\nGröße\n" in text


def test_all_attached_files_share_one_limit(root: Path) -> None:
    (root / "one.txt").write_text("1" * 60)
    (root / "two.txt").write_text("2" * 60)
    mentions = with_mentions(root, "@one.txt @two.txt", 100)
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
    mentions = with_mentions(root, f"{pasted}\n@src/app.py", 10_000)
    assert time.process_time() - begun < 5
    assert [notice.kind for notice in mentions.notices][-2:] == [
        NoticeKind.SENT,
        NoticeKind.NOT_SENT,
    ]
    assert "197" in mentions.notices[-1].text
    assert len(mentions.notices) == 5


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
