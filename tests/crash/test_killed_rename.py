"""Kill the first run of a renamed ticket wherever it changes the world, start it again,
and the run has the new name, as a whole.
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
from tests.crash.story import git
from tests.crash.test_kill_matrix import SEED, Measure, sample, uninterrupted
from tests.support.projects import SLUG

pytestmark = pytest.mark.crash

__all__ = ["uninterrupted"]
NEW, PLACES = "feature-renamed", 6


@pytest.mark.parametrize("story", ["ten-steps", "without-git"])
def test_a_rename_that_is_killed_anywhere_is_brought_to_its_end(
    story: str,
    uninterrupted: Measure,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    done = uninterrupted(story).project
    whole = renamed(story, done, tmp_path / "whole")
    assert whole.go(points=tmp_path / "points.json", slug=NEW) == ExitCode.DONE, (
        whole.words
    )
    expected = names_of(whole.root)
    assert expected == (NEW, NEW, [NEW], {NEW})
    points = [
        Point.from_json(entry)
        for entry in json.loads((tmp_path / "points.json").read_text())["points"]
    ]
    every = request.config.getoption("--all-kill-points", default=False)

    for point in points if every else sample(points, PLACES, SEED):
        run = renamed(story, done, tmp_path / str(point.number))
        code = run.go(kill_at=point.number, death=point.death, slug=NEW)
        assert code == -signal.SIGKILL, run.words

        assert run.go(slug=NEW) == ExitCode.DONE, f"killed at {point}: {run.words}"

        assert names_of(run.root) == expected, f"killed at {point}"
        assert run.calls == (), f"killed at {point}: the model was asked"
        assert run.go(command=("undo", "--step", "1"), slug=NEW) == ExitCode.DONE, (
            f"killed at {point}: {run.words}"
        )


def renamed(story: str, done: Path, folder: Path) -> Run:
    folder.mkdir()
    run = Run(story, done, folder)
    tickets = run.root / "tickets"
    (tickets / SLUG).rename(tickets / NEW)
    return run


def names_of(root: Path) -> tuple[str, str, list[str], set[str]]:
    """The slug in the state and in its copy, the records, and the beginnings of the
    names of the checkpoints.
    """
    runs = root / ".cdd/runs"
    state = json.loads((root / "tickets" / NEW / "execution-state.json").read_text())
    copy = json.loads((runs / NEW / "state.json").read_text())
    records = [path.parent.name for path in runs.glob("*/events.jsonl")]
    where = root if (root / ".git").exists() else runs / NEW / "checkpoints.git"
    references = git(where, "for-each-ref", "--format=%(refname)", "refs/cdd")
    assert views.strays(root) == []
    return (
        state["ticket_slug"],
        copy["ticket_slug"],
        records,
        {name.split("/")[3] for name in references.split()},
    )
