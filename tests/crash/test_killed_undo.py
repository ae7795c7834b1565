"""Kill an undo wherever it changes the world, type it again, and it is as if nothing
had happened.
"""

import json
import os
import signal
from pathlib import Path

import pytest

if os.name != "posix":
    pytest.skip("a process ends itself by SIGKILL there", allow_module_level=True)

from cdd_agent.errors import ExitCode
from tests.crash import views
from tests.crash.matrix import Run
from tests.crash.points import Point
from tests.crash.test_kill_matrix import SEED, Measure, sample, uninterrupted

pytestmark = pytest.mark.crash

__all__ = ["uninterrupted"]
STEP, PLACES = 3, 3


def test_an_undo_that_is_killed_anywhere_is_brought_to_its_end(
    uninterrupted: Measure, tmp_path: Path
) -> None:
    done = uninterrupted("ten-steps").project
    whole = Run("ten-steps", done, folder(tmp_path, "whole"))
    assert whole.go(undo=STEP, points=tmp_path / "points.json") == ExitCode.DONE, (
        whole.words
    )
    ending = views.ending(whole.root)
    assert ending.tree != views.ending(done).tree
    points = [
        Point.from_json(entry)
        for entry in json.loads((tmp_path / "points.json").read_text())["points"]
    ]

    for point in sample(points, min(PLACES, len(points)), SEED):
        run = Run("ten-steps", done, folder(tmp_path, str(point.number)))
        assert (
            run.go(undo=STEP, kill_at=point.number, death=point.death)
            == -signal.SIGKILL
        ), run.words
        again = run.go(undo=STEP)

        if again == ExitCode.BAD_INPUT:  # it was over, but for what comes after
            assert f"Step {STEP} " in run.words
        else:
            assert again == ExitCode.DONE, f"killed at {point}: {run.words}"
        now = views.ending(run.root)
        assert (now.tree, now.state, now.git) == (
            ending.tree,
            ending.state,
            ending.git,
        ), f"killed at {point}"
        assert now.strays == [], f"killed at {point}"


def folder(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name
