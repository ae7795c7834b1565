"""What a command made of files that git ignores: told, whether or not the folder
changed.
"""

import os
import subprocess
from pathlib import Path

import pytest

from cdd_agent.git import ignored_files
from cdd_agent.git.ignored_files import changed, read_ignored
from tests.support.tables import each_row

pytestmark = pytest.mark.story


@pytest.fixture
def root(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("out/\n*.log\n")
    (tmp_path / "out" / "deep").mkdir(parents=True)
    for name in ("a.log", "out/a.txt", "out/deep/b.txt"):
        (tmp_path / name).write_text("old\n")
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / "out" / "loop").symlink_to("../out")
    return tmp_path


@each_row(
    ("path", "named"),
    [
        ("a.log", ("a.log",)),
        ("new.log", ("new.log",)),
        ("out/a.txt", ("out/",)),
        ("out/deep/b.txt", ("out/",)),
        ("out/deep/new.txt", ("out/",)),
        ("covered.txt", ()),
    ],
)
async def test_what_was_written_is_named(
    root: Path, path: str, named: tuple[str, ...]
) -> None:
    before = await read_ignored(root)
    (root / path).write_text("new\n")
    assert changed(before, await read_ignored(root)) == named


async def test_of_a_large_folder_not_all_is_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ignored_files, "_MOST_ENTRIES", 2)
    before = await read_ignored(root)
    assert changed(before, await read_ignored(root)) == ()
    (root / "out" / "new.txt").write_text("new\n")
    assert changed(before, await read_ignored(root)) == ("out/",)
