"""Draw the pictures of README and tutorial, from scripted runs of the shell. Run it
with `make picture`.

`run.svg` in the README is a film of the demo, from `/exec` to the last step. The
pictures of the tutorial are taken where the tutorial shows them, after its lines.
"""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from textual.pilot import Pilot

from cdd_agent.demo.sample import SLUG, copy_sample
from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Emit
from cdd_agent.frontend import Frontend
from cdd_agent.session.open_project import accept_once, open_project
from cdd_agent.session.session import Session
from cdd_agent.tui.app import Shell
from cdd_agent.tui.widgets.prompt import Prompt
from cdd_agent.wiring.root import Wiring
from tools.film import Film, without_fonts

_DOCS = Path(__file__).parents[1] / "docs"
_TYPED_OR_SHOWN = re.compile(
    r"^❯ (?P<line>.+)$|^!\[[^]]*\]\((?P<picture>tutorial/[\w-]+\.svg)\)$", re.MULTILINE
)
_DEMO_LINES = (f"/exec {SLUG}", "continue", "all", "retry", "all")
_KEY = 0.05
"""Seconds between two keys."""
_FRAMES = 130
_SIZE = 112, 30
_COUNTING = frozenset({_SIZE[1] - 2})
"""The row that counts seconds while a step runs."""


@dataclass
class Person:
    """The user in front of the shell."""

    shell: Shell
    pilot: Pilot[Any]

    async def say(self, line: str) -> None:
        self.shell.home.prompt.replace("")
        self.shell.post_message(Prompt.Submitted(line))
        await self.pilot.pause(0.2)
        await self.wait()

    async def type(self, line: str, film: Film) -> None:
        """Type a line key by key into a film, and send it."""
        for length in range(len(line) + 1):
            self.shell.home.prompt.replace(line[:length])
            await self.pilot.pause(_KEY)
            film.add(self.picture(), monotonic())
        film.hold(0.6)
        await self.say(line)
        film.add(self.picture(), monotonic())
        film.hold(2)

    async def wait(self) -> None:
        """Wait until the shell is at rest."""
        while self.shell.session is None or list(self.shell.workers):
            await self.pilot.pause(0.1)
        await self.pilot.pause(0.5)

    def picture(self) -> str:
        return self.shell.export_screenshot(title="cdd")

    def save(self, name: str) -> None:
        (_DOCS / name).write_text(without_fonts(self.picture()), encoding="utf-8")

    async def record(self, film: Film) -> None:
        while True:
            film.add(self.picture(), monotonic())
            await asyncio.sleep(0.12)


@asynccontextmanager
async def person_in(
    root: Path, size: tuple[int, int], model: str | None = None
) -> AsyncIterator[Person]:
    def opened(frontend: Frontend, emit: Emit) -> tuple[Session, tuple[Notice, ...]]:
        flags = {"model": model} if model else {}
        project = open_project(root, flags, decide=accept_once)
        return Wiring(project, frontend, emit).session, ()

    shell = Shell(root, opened)
    async with shell.run_test(size=size) as pilot:
        person = Person(shell, pilot)
        await person.wait()
        yield person


async def film_demo(root: Path) -> Film:
    film = Film(_COUNTING)
    async with person_in(root, _SIZE) as person:
        film.add(person.picture(), monotonic())
        film.hold(1)
        camera = asyncio.create_task(person.record(film))
        for line in _DEMO_LINES:
            await person.type(line, film)
        camera.cancel()
    film.thin_out(_FRAMES)
    return film


async def draw_tutorial(root: Path) -> None:
    tutorial = (_DOCS / "tutorial.md").read_text(encoding="utf-8")
    shutil.copy(_DOCS / "tutorial/script.yaml", root.parent)
    async with person_in(root, (116, 36), "script:../script.yaml") as person:
        for match in _TYPED_OR_SHOWN.finditer(tutorial):
            if match["line"]:
                await person.say(match["line"])
            else:
                person.save(match["picture"])


def main() -> None:
    # plug-ins of this computer's pytest would change the pictures
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(shutil.move(copy_sample(), Path(folder) / "tally"))
        film = asyncio.run(film_demo(sample))
        (_DOCS / "run.svg").write_text(film.svg(), encoding="utf-8")
        print(f"run.svg: {len(film.frames)} frames, {sum(film.durations()):.0f} s")
        project = Path(folder) / "reading-time"
        project.mkdir()
        subprocess.run(
            ["git", "init", "--quiet", "--initial-branch=main"], cwd=project, check=True
        )
        asyncio.run(draw_tutorial(project))


if __name__ == "__main__":
    main()
