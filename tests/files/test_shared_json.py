"""A small file that several processes change."""

from pathlib import Path

import pytest
from filelock import FileLock

from cdd_agent.errors import BadInput
from cdd_agent.files import shared_json
from cdd_agent.files.shared_json import change_json, read_json


def test_what_is_changed_is_there_and_after_an_error_it_is_as_before(
    tmp_path: Path,
) -> None:
    place = tmp_path / "values.json"
    with change_json(place) as value:
        value["a"] = 1
    with pytest.raises(ZeroDivisionError), change_json(place) as value:
        value["a"] = 1 / 0
    with change_json(place) as value:
        value["b"] = 2
    assert read_json(place) == {"a": 1, "b": 2}


def test_a_file_that_somebody_keeps_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process does that was stopped by Ctrl+Z in just that moment."""
    monkeypatch.setattr(shared_json, "_PATIENCE", 0.1)
    place = tmp_path / "values.json"
    with (
        FileLock(place.with_suffix(".lock")),
        pytest.raises(BadInput, match=r"values\.json") as refused,
        change_json(place),
    ):
        pass
    assert "Ctrl+Z" in refused.value.hint


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(BadInput, match="could not be locked"),
        change_json(tmp_path / "file" / "values.json"),
    ):
        pass
