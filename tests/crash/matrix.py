"""Kill a run at a point, look at what is left, run it again: what must hold then, in
one place.
"""

import json
import multiprocessing.process
import os
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from cdd_agent.errors import ExitCode
from tests.crash import driver, views
from tests.crash.points import Death, Point
from tests.crash.story import STORIES, git
from tests.support.processes import PROCESSES
from tests.support.projects import SLUG

_SECONDS = 120.0
"""Within which a run, and what it started, has to be over."""

Calls = tuple[tuple[int, int], ...]
"""What the model was asked, and a person: steps, each with the number of its attempt.
"""


@dataclass(frozen=True)
class Uninterrupted:
    """A run that nobody killed: where it began, its points, what it left, and what each
    file held on the way.
    """

    story: str
    start: Path
    points: tuple[Point, ...]
    versions: Mapping[str, frozenset[str]]
    ending: views.Ending
    calls: Calls

    @staticmethod
    def measure(story: str, folder: Path) -> None:
        """Do the run in `folder`, for any process to `load`. Raises `AssertionError`
        when it fails.
        """
        start = folder / "start"
        STORIES[story].write(start)
        run = Run(story, start, folder)
        code = run.go(points=folder / "points.json")
        assert code == ExitCode.DONE, (
            f"the run that nobody killed ended with {code}:\n{run.words}"
        )

    @property
    def project(self) -> Path:
        """As the run left it."""
        return _root(self.start.parent)

    @classmethod
    def load(cls, story: str, folder: Path) -> "Uninterrupted":
        notes = json.loads((folder / "points.json").read_text())
        root = _root(folder)
        versions = {
            path: frozenset(digests) for path, digests in notes["versions"].items()
        }
        for path, digest in views.contents(root).items():
            versions[path] = versions.get(path, frozenset()) | {digest}
        points = tuple(Point.from_json(entry) for entry in notes["points"])
        return cls(
            story,
            folder / "start",
            points,
            versions,
            views.ending(root),
            _calls(folder / "calls"),
        )

    def broken_rules(
        self, deaths: Sequence[tuple[int, Death]], folder: Path
    ) -> Iterator[str]:
        """Kill a run at these points, one process after the other, then let it end.
        Yields in what way that is not as if nothing had happened, up to where it makes
        no sense to go on.

        A later death may come too late: its process is over before.
        """
        run, cut, was_cut = Run(self.story, self.start, folder), 0, False
        is_waiting = False
        for place, (number, death) in enumerate(deaths):
            code, broken = run.resumed(kill_at=number, death=death)
            yield from broken
            is_waiting = was_cut and run.is_waiting
            if is_waiting:
                break
            lost = len(run.calls) - views.saved_answers(run.root)
            cut += views.cut_commands(run.root)
            if code != -signal.SIGKILL and not (place and code == ExitCode.DONE):
                yield f"a process that was to be killed ended with {code}:\n{run.words}"
                return
            if torn := list(self._torn(run.root)):
                yield from torn
                return
            if views.was_cut(run.root):
                was_cut = True
                self._remove_generated(run.root)
        if not is_waiting:
            code, broken = run.resumed()
            yield from broken
            is_waiting = was_cut and run.is_waiting
        if is_waiting:
            # what a command made of the step's files before it was cut looks like an
            # edit of the user, who looks at it
            views.restore_kept_files(run.root)
            code, broken = run.resumed()
            yield from broken
        if code != ExitCode.DONE:
            yield f"the last process ended with {code}:\n{run.words}"
            return
        # the model calls a command again that was cut
        yield from self._calls_too_many(run.calls, at_most=lost + cut)
        yield from self._differences(views.ending(run.root))

    def _remove_generated(self, root: Path) -> None:
        """Remove declared files that a command made before it was cut, as a user does
        who looks: a run would leave them, because they could be the user's.
        """
        for path in STORIES[self.story].generated:
            if not views.is_in_ledger(root, path):
                (root / path).unlink(missing_ok=True)

    def _torn(self, root: Path) -> Iterator[str]:
        """Faults of the disk right after a death."""
        try:
            views.state(root)
        except ValueError as error:
            yield f"the state cannot be read: {error}"
        for path, digest in views.contents(root).items():
            if digest not in self.versions.get(path, frozenset()):
                yield (
                    f"{path} holds what no step wrote:"
                    f" {(root / path).read_bytes()[:80]!r}"
                )
        for question in views.never_changed(root):
            if git(root, *question.split()) != self.ending.git[question]:
                yield f"`git {question}` says something else right after the death"

    def _calls_too_many(self, calls: Calls, *, at_most: int) -> Iterator[str]:
        """Yield which answers were asked for in vain, or were not asked for."""
        if set(calls) != set(self.calls):
            yield f"the model was asked {sorted(set(calls))}, not {self.calls}"
        if (repeated := Counter(calls) - Counter(self.calls)).total() > at_most:
            yield f"the model was asked more than once: {dict(repeated)}"

    def _differences(self, now: views.Ending) -> Iterator[str]:
        for what in ("tree", "state", "git"):
            expected, found = (getattr(ending, what) for ending in (self.ending, now))
            for key in sorted(expected.keys() | found.keys()):
                if expected.get(key) != found.get(key):
                    yield (
                        f"in the end, {what}: {key} is {found.get(key)!r}, not"
                        f" {expected.get(key)!r}"
                    )
        yield from (f"left behind: {path}" for path in now.strays)


@dataclass(frozen=True)
class Run:
    """A copy of the project, and the processes that work on it one after the other."""

    story: str
    start: Path
    folder: Path

    def __post_init__(self) -> None:
        shutil.copytree(self.start, self.root, symlinks=True)
        (self.folder / "home").mkdir()

    @property
    def root(self) -> Path:
        return _root(self.folder)

    @property
    def calls(self) -> Calls:
        return _calls(self.folder / "calls")

    @property
    def words(self) -> str:
        """The end of what the processes said."""
        return "".join(output.read_text() for output in self._outputs)[-3000:]

    @property
    def is_waiting(self) -> bool:
        """True if the last process said that the user has to look at files."""
        return '"kind": "not_approved"' in self._outputs[-1].read_text()

    @property
    def _outputs(self) -> list[Path]:
        return sorted(self.folder.glob("output-*"))

    def resumed(
        self, *, kill_at: int = 0, death: Death = Death.KILL
    ) -> tuple[int, list[str]]:
        """One more process. Returns its exit code, and what it asked the model in
        vain.
        """
        done, paid, before = (
            views.completed(self.root),
            views.saved_replies(self.root),
            len(self.calls),
        )
        code = self.go(kill_at=kill_at, death=death)
        calls = self.calls[before:]
        again = [
            f"the model was asked again for completed step {step}"
            for step, _ in calls
            if step in done
        ]
        in_vain = [
            f"the model was asked again for the saved reply {call}"
            for call in calls
            if call in paid
        ]
        return code, again + in_vain

    def go(
        self,
        *,
        kill_at: int = 0,
        death: Death = Death.KILL,
        points: Path | None = None,
        command: tuple[str, ...] = ("exec",),
        slug: str = SLUG,
    ) -> int:
        """Start a process and wait for its end, and for that of what it started.
        Returns its exit code.
        """
        orders = driver.Orders(
            self.story,
            self.root,
            self.folder / "calls",
            kill_at,
            death,
            points,
            command,
            slug,
        )
        arguments = (
            orders,
            self.folder / f"output-{len(self._outputs)}",
            self.folder / "home",
            dict(os.environ),
        )
        process = PROCESSES.Process(target=driver.run_as_process, args=arguments)
        process.start()
        process.join(_SECONDS)
        with _ended(process):
            code = process.exitcode
        assert code is not None, f"still running after {_SECONDS:g} s:\n{self.words}"
        if code < 0:
            psutil.wait_procs(_at_work_in(self.root), _SECONDS)
        return code


@contextmanager
def _ended(process: multiprocessing.process.BaseProcess) -> Iterator[None]:
    try:
        yield
    finally:
        if process.is_alive():
            process.kill()
            process.join()
        process.close()


def _at_work_in(root: Path) -> list[psutil.Process]:
    """Processes that a killed run started and left behind."""
    return [
        one
        for one in psutil.process_iter(["cwd"])
        if one.info["cwd"] and Path(one.info["cwd"]).is_relative_to(root)
    ]


def _root(folder: Path) -> Path:
    return folder / "project"


def _calls(file: Path) -> Calls:
    lines = file.read_text().splitlines() if file.exists() else []
    return tuple((int(step), int(attempt)) for step, attempt in map(str.split, lines))
