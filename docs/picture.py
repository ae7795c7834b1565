"""Makes `shell.svg`, the picture in the README: the demo in the shell, up to its third step, which fails at first.

Run with `make picture`.
"""

import asyncio
import shutil
from pathlib import Path

from cdd_agent.demo.sample import SLUG, copy_sample
from cdd_agent.events import Notice
from cdd_agent.execution.frontend import Frontend
from cdd_agent.session import Session
from cdd_agent.tui.app import Shell
from cdd_agent.tui.widgets.prompt import Prompt
from cdd_agent.wiring import open_project, open_session

_SIZE = (130, 40)


async def draw(root: Path) -> str:
    def opened(frontend: Frontend) -> tuple[Session, tuple[Notice, ...]]:
        return open_session(open_project(root, {}), frontend), ()

    shell = Shell(root, opened, f"/exec {SLUG}")
    async with shell.run_test(size=_SIZE) as pilot:
        while shell.session is None or list(shell.workers):
            await pilot.pause(0.05)
        for _ in range(3):
            shell.post_message(Prompt.Submitted("continue"))
            await pilot.pause(0.2)
            while list(shell.workers):
                await pilot.pause(0.1)
        await pilot.pause(0.5)
        return shell.export_screenshot(title="cdd")


def main() -> None:
    sample = copy_sample()
    root = sample.with_name("tally")
    sample.rename(root)
    try:
        picture = asyncio.run(draw(root))
    finally:
        shutil.rmtree(root)
    Path(__file__).with_name("shell.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
