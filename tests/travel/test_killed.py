"""kill -9 of a push, a pull, a run in its own tree or its landing, at points all over
it: the same command again, and everything is as without it.
"""

import os
import random
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from cdd_agent.cli.main import main
from cdd_agent.engine.whereabouts import Phase, load_whereabouts
from tests.crash.points import Death, Point, Watch
from tests.support.processes import PROCESSES, take_environment
from tests.support.projects import SLUG, Sandbox, Step, check
from tests.travel.copies import GOOD, REFERENCE, Copies, cdd, files, git, run, scripted

pytestmark = pytest.mark.crash
KILLS = int(os.environ.get("CDD_TEST_KILLS", "3"))
"""Of each command; at all of them, with a large number."""
SEED = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid.uuid4().hex
"""Which points: others in each run of the tests."""
_SECONDS = 60.0


@dataclass(frozen=True)
class Ended:
    points: int
    is_dead: bool


def do(sandbox: Sandbox, *words: str, at: int = 0) -> Ended:
    """A command of `cdd` in a process of its own, killed just before the point of this
    number.
    """
    report = sandbox.root.parent / "points"
    report.write_text("0")
    process = PROCESSES.Process(
        target=_carry_out, args=(sandbox.root, words, at, report, dict(os.environ))
    )
    process.start()
    process.join(_SECONDS)
    code = process.exitcode
    assert code is not None, "it hangs"
    assert code <= 0, f"exit code {code}"
    inside = [
        one
        for one in psutil.process_iter(["cwd"])
        if (one.info["cwd"] or "").startswith(str(sandbox.root.parent))
    ]
    psutil.wait_procs(inside, _SECONDS)  # its git goes on
    return Ended(int(report.read_text()), code < 0)


def _carry_out(
    root: Path,
    words: tuple[str, ...],
    at: int,
    report: Path,
    environment: dict[str, str],
) -> None:
    take_environment(environment)
    count = 0

    def reached(point: Point) -> None:
        nonlocal count
        count = point.number
        if point.number == at:
            watch.die(Death.KILL)

    watch = Watch(root, reached)
    watch.begin()
    code = main([words[0], SLUG, *words[1:], "-C", str(root)])
    watch.reached = lambda point: None
    report.write_text(str(count))
    os._exit(code)


@dataclass(frozen=True)
class Template:
    """Copies at rest, to be copied."""

    copies: Copies

    def __call__(self, folder: Path) -> Copies:
        """In the same place: that is part of who a copy is."""
        shutil.rmtree(self.copies.folder, ignore_errors=True)
        shutil.copytree(folder, self.copies.folder, symlinks=True)
        return self.copies


def sample(points: int) -> list[int]:
    """Some of them, the first and the last included."""
    assert points > 20
    between = range(2, points)
    return [
        1,
        *sorted(random.Random(SEED).sample(between, min(KILLS - 2, len(between)))),
        points,
    ]


@pytest.mark.xdist_group("kills")
def test_a_killed_push_is_done_by_the_next_one(begun: Copies, tmp_path: Path) -> None:
    copies = begun
    saved = tmp_path / "saved"
    shutil.copytree(copies.folder, saved, symlinks=True)
    fresh = Template(copies)
    points = do(copies.first, "push").points
    for at in sample(points):
        fresh(saved)
        first, second = copies.first, Sandbox(copies.folder / "second")
        before = files(first.root)
        assert do(first, "push", at=at).is_dead
        known = load_whereabouts(first.root / ".cdd" / "runs" / SLUG)
        if known is None:  # it may go on here: then it is not there
            assert git(copies.remote, "for-each-ref", REFERENCE) == "", (
                f"point {at}: it is in two places"
            )
        else:
            assert known.phase in (Phase.LEAVING, Phase.AWAY)
            assert run(first, *GOOD[1:]) == 2
        assert cdd(first, "push", SLUG) == 0, f"point {at}"
        assert files(first.root) == before
        assert cdd(second, "pull", SLUG) == 0, f"point {at}"
        assert files(second.root) == before
        assert cdd(first, "pull", SLUG) == 2


@pytest.mark.xdist_group("kills")
def test_a_killed_pull_is_done_by_the_next_one(begun: Copies, tmp_path: Path) -> None:
    copies = begun
    first = copies.first
    (first.root / "README").write_text("changed by hand\n")
    assert cdd(first, "push", SLUG) == 0
    saved = tmp_path / "saved"
    shutil.copytree(copies.folder, saved, symlinks=True)
    fresh = Template(copies)
    points = do(Sandbox(copies.folder / "second"), "pull").points
    for at in sample(points):
        fresh(saved)
        second = Sandbox(copies.folder / "second")
        assert do(second, "pull", at=at).is_dead
        known = load_whereabouts(second.root / ".cdd" / "runs" / SLUG)
        assert known is None or known.phase in (Phase.ARRIVING, Phase.HERE)
        if known is not None and known.phase is Phase.ARRIVING:
            assert cdd(second, "exec", SLUG) == 2
        assert cdd(second, "pull", SLUG) == 0, f"point {at}"
        assert files(second.root) == files(first.root), f"point {at}"
        assert cdd(first, "pull", SLUG) == 2
    assert run(Sandbox(copies.folder / "second"), *GOOD[1:]) == 0


@pytest.mark.xdist_group("kills")
def test_a_killed_run_in_its_own_tree_and_a_killed_landing_are_done_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.org")
    copies = Copies.made(tmp_path.resolve() / "copies", Step("a.txt", check("a.txt")))
    first, fresh = copies.first, Template(copies)
    script = first.root / scripted(first, GOOD[0]).removeprefix("script:")
    execute = ("exec", "--worktree", "--model", f"script:{script}")
    saved, ready = tmp_path / "saved", tmp_path / "ready"
    shutil.copytree(copies.folder, saved, symlinks=True)
    points = do(first, *execute).points
    shutil.copytree(copies.folder, ready, symlinks=True)
    before, head = files(first.root), git(first.root, "rev-parse", "HEAD")
    for at in sample(points):
        fresh(saved)
        assert do(first, *execute, at=at).is_dead
        assert files(first.root) == before, f"point {at}"
        assert do(first, *execute).points, f"point {at}"
        assert files(first.root) == before, f"point {at}"
        assert git(first.root, "rev-parse", "HEAD") == head

    fresh(ready)
    points = do(first, "land").points
    after, landed = files(first.root), git(first.root, "rev-parse", "HEAD")
    for at in sample(points):
        fresh(ready)
        assert do(first, "land", at=at).is_dead
        assert git(first.root, "rev-parse", "HEAD") in (head, landed), f"point {at}"
        # 2: that was the last point
        assert cdd(first, "land", SLUG) in (0, 2), f"point {at}"
        assert files(first.root) == after, f"point {at}"
        assert git(first.root, "rev-parse", "HEAD") == landed
        assert git(first.root, "branch", "--list", "cdd/*") == ""
        assert git(first.root, "worktree", "list").count("\n") == 0, f"point {at}"
        assert not (first.root / ".cdd" / "runs" / SLUG / "landing").exists()
