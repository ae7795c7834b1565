"""Count the bytes that the shell sends to the terminal while a reply streams, against a
Log that receives the same at the same pace.

The window has 120 columns and 40 rows. The pieces arrive as from a model: 4 characters,
50 times a second.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Textual reads them when it is imported
os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}

from textual import events, messages
from textual.app import App, ComposeResult
from textual.driver import Driver
from textual.geometry import Size
from textual.widgets import Log

from benchmarks.transcript import SECTION
from cdd_agent.events.dialogue_events import ReplyDelta, ReplyStarted
from cdd_agent.events.step_summary import StepSummary
from cdd_agent.events.stream import Emit
from cdd_agent.frontend import Frontend
from cdd_agent.session.open_project import open_project
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tui.app import Shell
from cdd_agent.wiring.root import Wiring

SIZE = Size(120, 40)
PIECE, PAUSE, PIECES = 4, 0.02, 600
TEXT = (SECTION * 4)[: PIECE * PIECES]
TITLES = (
    "Create the user model",
    "Hash passwords",
    "Registration endpoint",
    "Login",
    "OAuth",
    "Middleware",
    "Tests",
)


class Line(Driver):
    """A terminal with synchronized output that counts the received bytes."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        self.sent = 0

    def write(self, data: str) -> None:
        self.sent += len(data.encode())

    def start_application_mode(self) -> None:
        self.process_message(messages.TerminalSupportsSynchronizedOutput())
        self.process_message(events.Resize(SIZE, SIZE))

    def disable_input(self) -> None:
        pass

    def stop_application_mode(self) -> None:
        pass


class OneLog(App[None]):
    def compose(self) -> ComposeResult:
        yield Log()


async def bytes_sent(
    app: App[Any], begin: Callable[[], None], write: Callable[[str], object], text: str
) -> int:
    """Return the bytes from the first piece until everything is drawn."""
    sent = 0

    async def stream(_: object) -> None:
        nonlocal sent
        line = app._driver
        assert isinstance(line, Line)
        await asyncio.sleep(1)
        begin()
        await asyncio.sleep(0.5)
        before = line.sent
        for start in range(0, len(text), PIECE):
            write(text[start : start + PIECE])
            await asyncio.sleep(PAUSE)
        await asyncio.sleep(0.2)
        sent = line.sent - before
        app.exit()

    app.driver_class = Line
    await app.run_async(auto_pilot=stream)
    return sent


async def of_the_shell(root: Path, text: str, *, has_plan: bool) -> int:
    def session(frontend: Frontend, emit: Emit) -> Any:
        return Wiring(open_project(root, {}), frontend, emit).session, ()

    def begin() -> None:
        if has_plan:
            steps = tuple(
                StepSummary(number, title, StepStatus.PENDING, depends_on=())
                for number, title in enumerate(TITLES, 1)
            )
            shell.home.steps.show(steps)
        shell.receive(ReplyStarted(1, "a/model"))

    shell = Shell(root, session)
    return await bytes_sent(
        shell, begin, lambda piece: shell.receive(ReplyDelta(1, piece)), text
    )


async def of_a_log(text: str) -> int:
    app = OneLog()
    return await bytes_sent(
        app, lambda: None, lambda piece: app.query_one(Log).write(piece), text
    )


async def main() -> None:
    print(f"{'bytes a character':<28}{'Log':>8}{'shell':>8}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        log = await of_a_log(TEXT)
        for name, has_plan in (("a reply", False), ("beside a plan of 7 steps", True)):
            shell = await of_the_shell(Path(folder), TEXT, has_plan=has_plan)
            each = f"{log / len(TEXT):>8.1f}{shell / len(TEXT):>8.1f}"
            print(f"{name:<28}{each}{shell / log:>8.2f}")
        waiting = await of_the_shell(Path(folder), "", has_plan=False)
        print(f"{'waiting, bytes in 0.2 s':<28}{waiting:>8}")


if __name__ == "__main__":
    asyncio.run(main())
