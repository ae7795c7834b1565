"""The folder of a ticket's runs: private, ignored by git, and never emptied by starting
over.
"""

import os
import stat
from pathlib import Path

import pytest

from cdd_agent.engine.attempt import AttemptFailure
from cdd_agent.engine.record import GoingBack, RunRecord
from cdd_agent.errors import BadInput
from cdd_agent.text.redaction import Redactor


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    record = RunRecord.of(tmp_path, "feature-login", Redactor())
    record.prepare()
    return record


def test_it_is_private_and_ignored_by_git(record: RunRecord) -> None:
    assert record.slug == "feature-login"
    assert stat.S_IMODE(record.folder.stat().st_mode) == 0o700
    assert "runs/\n" in (record.root / ".cdd/.gitignore").read_text()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / ".cdd").write_text("a file")
    with pytest.raises(BadInput, match="could not be created"):
        RunRecord.of(tmp_path, "feature-login", Redactor()).prepare()


def test_what_a_killed_run_left_half_done_is_removed_and_nothing_else(
    record: RunRecord,
) -> None:
    attempt = record.attempt(2, 1)
    attempt.begin("guidance")
    notes = record.folder / "checkpoints.git/notes/step-02/attempt-1"
    stores = (attempt.versions.folder, attempt.private.folder, notes)
    for folder in (record.root / ".cdd", record.folder, attempt.folder, *stores):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f".cdd-{'0' * 12}-{os.getpid()}-{'0' * 8}.tmp").touch()
        (folder / "check-1a2b3c4d").mkdir()
    record.tidy()
    left = {
        path.name for path in (record.root / ".cdd").rglob("*") if not path.is_dir()
    }
    assert left == {".gitignore", "guidance.md"}
    assert not list((record.root / ".cdd").rglob("check-*"))


def test_an_undo_that_is_under_way_is_known_until_it_is_settled(
    record: RunRecord,
) -> None:
    going = GoingBack(id="1", steps=(2, 3), again=True)
    record.save_going_back(going)
    assert record.going_back == going
    record.settle_going_back()
    assert record.going_back is None


def test_starting_over_sets_everything_aside_but_what_is_not_the_runs(
    record: RunRecord,
) -> None:
    record.attempt(1, 1).save_failure(AttemptFailure(detail="no"))
    for name in ("lock", "holder.json", "socrates.json", "state.json"):
        (record.folder / name).touch()
    (record.folder / "checkpoints.git").mkdir()
    first = record.start_over()
    assert {path.name for path in first.iterdir()} == {"state.json", "step-01"}
    assert record.attempt(1, 1).failure is None
    second = record.start_over()
    kept = {
        "lock",
        "holder.json",
        "socrates.json",
        "checkpoints.git",
        first.name,
        second.name,
    }
    assert {path.name for path in record.folder.iterdir()} == kept
