"""Kill an undo or a redo wherever it changes the world, type it again, and it is as if
nothing had happened.
"""

import json
import os
import signal
from collections.abc import Sequence
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
PLACES = 3
STEPS = {"ten-steps": 3, "with-tools": 1, "committed": 1}
"""The step to undo: one whose files steps after it changed too; one with files of
commands and of a check that formats; one with files of a submodule.
"""


@pytest.mark.parametrize("story", STEPS)
def test_an_undo_that_is_killed_anywhere_is_brought_to_its_end(
    story: str,
    uninterrupted: Measure,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    done = uninterrupted(story).project
    command = ("undo", "--step", str(STEPS[story]))
    whole, points = measure(story, done, tmp_path, command)
    ending = views.ending(whole.root)
    assert ending.tree != views.ending(done).tree

    for point in choose(points, request):
        run = killed_and_typed_again(story, done, tmp_path, command, point)
        expect_ending(run, ending, point)


@pytest.mark.parametrize("story", STEPS)
def test_a_redo_that_is_killed_anywhere_is_brought_to_its_end(
    story: str,
    uninterrupted: Measure,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    done = uninterrupted(story).project
    undone = Run(story, done, folder(tmp_path, "undone"))
    code = undone.go(command=("undo", "--step", str(STEPS[story])))
    assert code == ExitCode.DONE, undone.words
    whole, points = measure(story, undone.root, tmp_path, ("redo",))
    ending = views.ending(whole.root)
    assert ending.tree == views.ending(done).tree

    for point in choose(points, request):
        run = killed_and_typed_again(story, undone.root, tmp_path, ("redo",), point)
        expect_ending(run, ending, point)


def measure(
    story: str, start: Path, tmp_path: Path, command: tuple[str, ...]
) -> tuple[Run, list[Point]]:
    """Return a run that nobody killed, with its points."""
    whole = Run(story, start, folder(tmp_path, "whole"))
    notes = tmp_path / "points.json"
    assert whole.go(command=command, points=notes) == ExitCode.DONE, whole.words
    points = json.loads(notes.read_text())["points"]
    return whole, [Point.from_json(entry) for entry in points]


def choose(points: Sequence[Point], request: pytest.FixtureRequest) -> Sequence[Point]:
    if request.config.getoption("--all-kill-points", default=False):
        return points
    return sample(points, min(PLACES, len(points)), SEED)


def killed_and_typed_again(
    story: str, start: Path, tmp_path: Path, command: tuple[str, ...], point: Point
) -> Run:
    run = Run(story, start, folder(tmp_path, str(point.number)))
    code = run.go(command=command, kill_at=point.number, death=point.death)
    assert code == -signal.SIGKILL, run.words

    again = run.go(command=command)

    if again == ExitCode.BAD_INPUT:  # it was over, but for what comes after
        assert f"Step {STEPS[story]} " in run.words
    else:
        assert again == ExitCode.DONE, f"killed at {point}: {run.words}"
    return run


def expect_ending(run: Run, ending: views.Ending, point: Point) -> None:
    now = views.ending(run.root)
    assert now.tree == ending.tree, f"killed at {point}"
    assert now.state == ending.state, f"killed at {point}"
    assert now.git == ending.git, f"killed at {point}"
    assert now.strays == [], f"killed at {point}"


def folder(tmp_path: Path, name: str) -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name
