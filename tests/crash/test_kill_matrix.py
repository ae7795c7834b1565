"""Kill a run wherever it changes the world, start it again, and it ends as if nothing
had happened.

The points are measured, not listed, by the first test that needs them. Each place of
the matrix has one point of a sample that is another one in each run of the tests, or
with `--all-kill-points` its share of all. A failure names its point by number and kind;
to kill there by hand: `python -m tests.crash.driver --help`.
"""

import json
import os
import random
import shutil
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from filelock import FileLock

from tests.crash.points import Death, Point

if os.name != "posix":
    pytest.skip("a process ends itself by SIGKILL there", allow_module_level=True)

from tests.crash import views
from tests.crash.matrix import Uninterrupted
from tests.crash.story import ASKED
from tests.crash.views import NEVER_CHANGED, git_view
from tests.support.projects import SLUG

pytestmark = pytest.mark.crash

PLACES = {
    "ten-steps": 8,
    "without-git": 2,
    "with-tools": 4,
    "reviewed": 4,
    "side-by-side": 4,
    "committed": 4,
}
SEED = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
"""Which sample: the same for all workers of a run."""
MOST_BEFORE_SAVED = 4
"""Points from the middle of an answer until it has its name on the disk."""
TWICE = 5
"""At each fifth point the run is killed a second time, when it goes on."""

Measure = Callable[[str], Uninterrupted]


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """A story's run without a death, done once for all workers."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    known: dict[str, Uninterrupted] = {}

    def measured(story: str) -> Uninterrupted:
        if story not in known:
            folder = shared / f"uninterrupted-{story}"
            with FileLock(shared / f"{story}.lock"):
                if not (folder / "measured").exists():
                    # of a worker whose run failed
                    shutil.rmtree(folder, ignore_errors=True)
                    folder.mkdir()
                    Uninterrupted.measure(story, folder)
                    (folder / "measured").touch()
            known[story] = Uninterrupted.load(story, folder)
        return known[story]

    return measured


@pytest.mark.parametrize(
    ("story", "place"),
    [
        pytest.param(story, place, id=f"{story}-{place}")
        for story, places in PLACES.items()
        for place in range(places)
    ],
)
def test_a_run_that_is_killed_anywhere_ends_as_if_nothing_had_happened(
    story: str,
    place: int,
    uninterrupted: Measure,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    whole = uninterrupted(story)
    every = request.config.getoption("--all-kill-points", default=False)
    points = (
        whole.points[place :: PLACES[story]]
        if every
        else [sample(whole.points, PLACES[story], SEED)[place]]
    )
    failures = []
    for point in points:
        folder = tmp_path / str(point.number)
        folder.mkdir()
        deaths = [(point.number, point.death)]
        if point.number % TWICE == 0:
            deaths.append((1 + point.number // TWICE % 60, Death.KILL))
        if broken := list(whole.broken_rules(deaths, folder)):
            failures.append(
                "\n  ".join(
                    [f"killed at {point}, {', '.join(map(str, deaths))}:", *broken]
                )
            )
        else:
            shutil.rmtree(folder)
    if failures:
        pytest.fail(
            f"{len(failures)} of {len(points)} points\n" + "\n".join(failures),
            pytrace=False,
        )


def test_the_sample_has_as_many_kinds_of_points_as_it_has_room_for(
    uninterrupted: Measure,
) -> None:
    for story, places in PLACES.items():
        points = uninterrupted(story).points
        chosen = sample(points, places, SEED)
        assert len(set(chosen)) == len(chosen) == places
        kinds = {point.kind for point in points}
        assert len({point.kind for point in chosen}) == min(places, len(kinds))
        assert {point.kind for point in sample(points, len(kinds) + 3, SEED)} == kinds


def test_an_uninterrupted_run_asks_once_for_each_attempt_and_leaves_nothing_behind(
    uninterrupted: Measure,
) -> None:
    whole = uninterrupted("ten-steps")
    assert whole.calls == (
        (1, 1),
        (2, 1),
        (3, 1),
        (3, 2),
        *((step, 1) for step in range(4, 11)),
    )
    assert whole.ending.strays == []


def test_an_answer_is_saved_before_anything_else_is_done(
    uninterrupted: Measure,
) -> None:
    """So only a death in the middle of an answer costs another one."""
    for story in ("ten-steps", "with-tools", "reviewed", "committed"):
        whole = uninterrupted(story)
        assert views.saved_answers(whole.project) == len(whole.calls), story
        heard = [point for point in whole.points if point.kind == "model_halfway"]
        for point in heard:
            then = whole.points[point.number :]
            saved = next(each for each in then if each.kind == "rename")
            assert Path(saved.path).name in ("reply.md", "dialogue.json"), point
            assert saved.number - point.number <= MOST_BEFORE_SAVED, point


def test_the_matrix_has_each_kind_of_point_of_the_ledger(
    uninterrupted: Measure,
) -> None:
    """A kill comes before each of these, and after it."""
    paths = {
        story: [point.path for point in uninterrupted(story).points]
        for story in ("with-tools", "committed")
    }
    run = f".cdd/runs/{SLUG}"
    for story, expected in {
        "with-tools": ("step-01/ledger.jsonl", "versions/", "contents/", "kept/b.txt"),
        "committed": ("step-02/ledger.jsonl", "versions/"),
    }.items():
        for part in expected:
            assert any(path.startswith(f"{run}/{part}") for path in paths[story]), (
                story,
                part,
            )
    kinds = {
        json.loads(line).get("kind")
        for ledger in uninterrupted("with-tools").project.rglob("ledger.jsonl")
        for line in ledger.read_bytes().splitlines()
    }
    expected_kinds = {"begin", "reply", "tool", "started", "command", "check"}
    assert expected_kinds | {"restored"} <= kinds


def test_a_person_is_asked_once_about_each_change(uninterrupted: Measure) -> None:
    whole = uninterrupted("reviewed")
    asked = Counter(step - ASKED for step, _ in whole.calls if step > ASKED)
    assert asked == {1: 1, 2: 2, 3: 4}
    root = whole.project
    assert (root / "old.txt").read_text().splitlines()[1:28:13] == [
        "good",
        "line 15",
        "better",
    ]
    assert (root / "a.txt").read_text() == "good, by hand\n"
    assert (root / "b.txt").read_text() == "good\n"
    assert not any(
        (root / name).exists() for name in ("gone.txt", "unwanted.txt", "c.txt")
    )


def test_a_run_leaves_branch_index_and_stash_alone(uninterrupted: Measure) -> None:
    whole = uninterrupted("ten-steps")
    before = git_view(whole.start)
    assert {question: whole.ending.git[question] for question in NEVER_CHANGED} == {
        question: before[question] for question in NEVER_CHANGED
    }


def sample(points: Sequence[Point], size: int, seed: str) -> list[Point]:
    """One of each kind, as far as there is room, and the rest from all the others."""
    chance = random.Random(seed)
    alike: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        alike[point.kind].append(point)
    chosen = [chance.choice(group) for group in alike.values()]
    if len(chosen) > size:
        return chance.sample(chosen, size)
    others = [point for point in points if point not in chosen]
    return chosen + chance.sample(others, size - len(chosen))
