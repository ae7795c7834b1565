"""One run of `cdd exec` as a process of its own, which can end itself at any of its
points.

python -m tests.crash.driver STORY ROOT                     carry the plan out (ROOT is
made if it is not there) python -m tests.crash.driver STORY ROOT --kill-at 17        end
by SIGKILL just before the seventeenth point python -m tests.crash.driver STORY ROOT
--points FILE       write down the points on the way, and what files held
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cdd_agent.cli import working
from cdd_agent.cli.main import main as cdd
from cdd_agent.wiring import root as wiring
from tests.crash.points import Death, Point, Watch
from tests.crash.story import STORIES, Reviewer, Story, Storyteller
from tests.crash.views import contents
from tests.support.processes import take_environment
from tests.support.projects import SLUG

SETTINGS = ("CDD_", "HIVE_", "GIT_", "XDG_")
"""How the names of variables begin that would say something to a run."""


@dataclass(frozen=True)
class Orders:
    """A driver's orders. `kill_at` 0: go on to the end. `calls` is where the model
    writes its calls down.
    """

    story: str
    root: Path
    calls: Path
    kill_at: int = 0
    death: Death = Death.KILL
    points: Path | None = None
    command: tuple[str, ...] = ("exec",)
    """The command and its options, before the ticket."""
    slug: str = SLUG


@dataclass
class Notes:
    """The points of a run, and every content that each file of the project had at one
    of them.
    """

    root: Path
    points: list[Point] = field(default_factory=list)
    versions: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def take(self, point: Point) -> None:
        self.points.append(point)
        for path, digest in contents(self.root).items():
            self.versions[path].add(digest)

    def to_json(self) -> str:
        versions = {path: sorted(digests) for path, digests in self.versions.items()}
        return json.dumps(
            {"points": [asdict(point) for point in self.points], "versions": versions}
        )


def drive(orders: Orders) -> int:
    """Run the plan as `cdd exec` does, with the story's model. Returns the exit code,
    if it comes to that.
    """
    root, notes = orders.root.resolve(), Notes(orders.root.resolve())

    def reached(point: Point) -> None:
        if orders.points is not None:
            notes.take(point)
        if point.number == orders.kill_at:
            watch.die(orders.death)

    model = Storyteller(STORIES[orders.story], orders.calls)
    wiring.make_model = lambda config, root, *, watched: model
    if STORIES[orders.story].is_reviewed:
        working.Nobody = lambda: Reviewer(orders.calls)  # type: ignore[assignment, misc]
    watch = Watch(root, reached)
    watch.begin()
    try:
        return cdd([*orders.command, orders.slug, "--json", "-C", str(root)])
    finally:
        if orders.points is not None:
            orders.points.write_text(notes.to_json())


def run_as_process(
    orders: Orders, output: Path, home: Path, outside: Mapping[str, str]
) -> None:
    """The target of a forked process: its words go to a file, and its settings are
    nobody's. What it was forked from has the environment of whichever test was first;
    `outside` is that of this one.
    """
    with output.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    take_environment(
        {
            name: value
            for name, value in outside.items()
            if not name.startswith(SETTINGS)
        }
    )
    os.environ |= {
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "CDD_TRUST": "1",
    }
    code = drive(orders)
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)


def main() -> int:
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("story", choices=STORIES)
    words.add_argument("root", type=Path)
    words.add_argument("--kill-at", type=int, default=0)
    words.add_argument("--death", type=Death, default=Death.KILL, choices=list(Death))
    words.add_argument("--points", type=Path)
    given = words.parse_args()
    story: Story = STORIES[given.story]
    if not given.root.exists():
        story.write(given.root)
    calls = given.root.with_name(f"{given.root.name}.calls")
    return drive(
        Orders(given.story, given.root, calls, given.kill_at, given.death, given.points)
    )


if __name__ == "__main__":
    sys.exit(main())
