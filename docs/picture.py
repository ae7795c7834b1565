"""Makes the pictures of the documentation, from runs of the shell with scripted models.
Run with `make picture`.

`shell.svg`, in the README, is the demo up to its third step, which fails at first.
Those of the tutorial are made where it shows them: what it says to type is typed, line
by line.
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

_DOCS = Path(__file__).parent
_TYPED_OR_SHOWN = re.compile(
    r"^❯ (?P<line>.+)$|^!\[[^]]*\]\((?P<picture>tutorial/[\w-]+\.svg)\)$", re.MULTILINE
)


@dataclass
class Person:
    """Somebody in front of the shell."""

    shell: Shell
    pilot: Pilot[Any]

    async def say(self, line: str) -> None:
        # what is typed replaces a suggested line
        self.shell.home.prompt.replace("")
        self.shell.post_message(Prompt.Submitted(line))
        await self.pilot.pause(0.2)
        await self.wait()

    async def wait(self) -> None:
        """Until the shell is at rest."""
        while self.shell.session is None or list(self.shell.workers):
            await self.pilot.pause(0.1)
        await self.pilot.pause(0.5)

    def save(self, name: str) -> None:
        (_DOCS / name).write_text(
            self.shell.export_screenshot(title="cdd"), encoding="utf-8"
        )


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


async def draw_demo(root: Path) -> None:
    async with person_in(root, (130, 40)) as person:
        for line in (f"/exec {SLUG}", "continue", "continue", "continue"):
            await person.say(line)
        person.save("shell.svg")


async def draw_tutorial(root: Path) -> None:
    tutorial = (_DOCS / "tutorial.md").read_text(encoding="utf-8")
    shutil.copy(_DOCS / "tutorial/script.yaml", root.parent)
    async with person_in(root, (116, 36), "script:../script.yaml") as person:
        for found in _TYPED_OR_SHOWN.finditer(tutorial):
            if found["line"]:
                await person.say(found["line"])
            else:
                person.save(found["picture"])


def main() -> None:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = (
        "1"  # what happens to be installed here is of no interest
    )
    with tempfile.TemporaryDirectory() as folder:
        sample = shutil.move(copy_sample(), Path(folder) / "tally")
        asyncio.run(draw_demo(sample))
        project = Path(folder) / "reading-time"
        project.mkdir()
        subprocess.run(
            ["git", "init", "--quiet", "--initial-branch=main"], cwd=project, check=True
        )
        asyncio.run(draw_tutorial(project))


if __name__ == "__main__":
    main()
