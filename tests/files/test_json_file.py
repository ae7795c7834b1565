"""Values with a file of their own: read back as they were, or told; what must not be
used again is kept.
"""

import os
import re
from pathlib import Path

import pytest

from cdd_agent.engine.attempt import AttemptFailure, Shown
from cdd_agent.errors import BadInput
from cdd_agent.files.json_file import as_json, choose_aside_name, set_aside
from tests.support.tables import each_row


def test_what_was_saved_is_read_back(tmp_path: Path) -> None:
    shown = Shown(step="1f", files={"a.txt": "2e", "naïve.txt": None})
    shown.save(tmp_path / "attempt" / "shown.json")
    assert Shown.load(tmp_path / "attempt" / "shown.json") == shown
    assert Shown.load(tmp_path / "none.json") is None


@each_row(
    "text", ["", "{", "[]", '{"step": "1"}', '{"step": "1", "files": {}, "more": 1}']
)
def test_what_is_damaged_is_told_and_stays(tmp_path: Path, text: str) -> None:
    file = tmp_path / "shown.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=re.escape(f"{file} is damaged")):
        Shown.load(file)
    assert file.read_text() == text


def test_half_of_a_character_in_a_models_words_is_no_reason_not_to_save_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "failure.json").write_bytes(
        as_json(AttemptFailure(detail="half \ud83d"))
    )
    assert AttemptFailure.load(tmp_path / "failure.json") == AttemptFailure(
        detail="half ?"
    )


def test_what_is_set_aside_stays_so_after_a_cut_of_power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, synced, fsync = tmp_path / "reply.md", list[list[str]](), os.fsync
    file.write_text("one")

    def noted(descriptor: int) -> None:
        assert os.path.samestat(os.fstat(descriptor), tmp_path.stat())
        synced.append([path.name for path in tmp_path.iterdir()])
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    aside = set_aside(file)
    assert synced == [[aside.name]]


def test_what_is_set_aside_keeps_its_content_and_its_ending(tmp_path: Path) -> None:
    file = tmp_path / "reply.md"
    for text in ("one", "two"):
        file.write_text(text)
        aside = set_aside(file)
        assert re.fullmatch(r"reply\.aside-\d{8}T\d{12}\.md", aside.name)
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["one", "two"]
    assert not choose_aside_name(file).exists()
    with pytest.raises(BadInput, match="could not be renamed"):
        set_aside(file)
