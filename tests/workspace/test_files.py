"""Files are written whole or not at all."""

from pathlib import Path

import pytest

from cdd_agent.errors import BadInput
from cdd_agent.workspace.files import digest, read_bytes, write_atomic


def test_a_new_file_gets_its_folders_and_an_ordinary_mode(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a" / "b" / "c.txt", b"hello")

    assert (tmp_path / "a/b/c.txt").read_bytes() == b"hello"
    assert (tmp_path / "a/b/c.txt").stat().st_mode & 0o600 == 0o600
    assert (tmp_path / "a/b/c.txt").stat().st_mode & 0o111 == 0


def test_a_replaced_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    script, link = tmp_path / "run.sh", tmp_path / "link.sh"
    script.write_text("old")
    script.chmod(0o755)
    link.symlink_to(script)

    write_atomic(link, b"new")

    assert link.is_symlink()
    assert script.read_text() == "new"
    assert script.stat().st_mode & 0o777 == 0o755


def test_a_write_that_fails_leaves_the_old_content_and_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "kept").touch()

    with pytest.raises(BadInput, match="folder could not be written"):
        write_atomic(tmp_path / "folder", b"x")

    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_reading_tells_missing_from_unreadable(tmp_path: Path) -> None:
    assert read_bytes(tmp_path / "nothing") is None
    assert digest(None) is None
    with pytest.raises(BadInput, match="could not be read"):
        read_bytes(tmp_path)
