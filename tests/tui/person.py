"""A person in front of the shell: types, waits, and reads what is on the screen."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import Any

from textual import events
from textual.pilot import Pilot

from cdd_agent.events.notices import Notice
from cdd_agent.events.stream import Emit, Event
from cdd_agent.frontend import REST, Frontend
from cdd_agent.session.session import FindServers, Session
from cdd_agent.tui.answering import KeyClock
from cdd_agent.tui.app import Shell
from cdd_agent.tui.quiet_enter import QUIET
from cdd_agent.tui.transcript.widget import Transcript
from cdd_agent.tui.widgets.bars import ActivityBar
from cdd_agent.tui.widgets.prompt import Prompt
from cdd_agent.tui.widgets.prompt_frame import PromptFrame
from cdd_agent.tui.widgets.status_line import StatusLine
from cdd_agent.tui.widgets.steps import StepList
from cdd_agent.wiring.root import Wiring
from tests.support.projects import Sandbox
from tests.support.time_of_loops import leap

PATIENCE = 180.0
"""Seconds that something may take; a test that waits longer fails."""


@dataclass
class FingerTime:
    """The time between keys: it passes only when a test says so."""

    now: float = 1000.0
    _sleepers: list[tuple[float, asyncio.Future[None]]] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        wakes = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, wakes))
        await wakes

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        for until, wakes in self._sleepers:
            if until <= self.now and not wakes.done():
                wakes.set_result(None)

    @property
    def clock(self) -> KeyClock:
        return KeyClock(lambda: self.now, lambda event: self.now, self.sleep)


def shell(
    sandbox: Sandbox,
    first: str = "",
    *,
    opening: tuple[Notice, ...] = (Notice("Welcome."),),
    find_servers: FindServers | None = None,
    time: FingerTime | None = None,
    helps_to_begin: bool = False,
) -> Shell:
    def open_session(
        frontend: Frontend, emit: Emit
    ) -> tuple[Session, tuple[Notice, ...]]:
        sandbox.frontend = frontend
        if find_servers is not None:
            return (
                Wiring(sandbox.project, frontend, emit, find_servers).session,
                opening,
            )
        return sandbox.session(emit), opening

    return Shell(
        sandbox.root,
        open_session,
        first,
        (time or FingerTime()).clock,
        helps_to_begin=helps_to_begin,
    )


async def open_at_once(pilot: Pilot[Any]) -> None:
    """Skip the quiet moment after which the shell opens its session."""
    await pilot.pause()
    leap(1)


async def opened(app: Shell, pilot: Pilot[Any]) -> None:
    """Wait until the session is there, and the first line, if any, is carried out."""
    await open_at_once(pilot)
    end = monotonic() + PATIENCE
    while app.session is None or list(app.workers):
        assert monotonic() < end, "the session is not opened"
        await pilot.pause(0.01)


FACTS = re.compile(
    r"\s+(\d+[smh]( \d+✓)?( \+\d+)?( \d+✗)?( ↻\d+)?|↻\d+|← .*)?("
    r" ?~?(\$[\d.]+|[\d.]+[kM]? tok))?$"
)
"""The facts beside a step's title."""


@dataclass
class Person:
    app: Shell
    pilot: Pilot[None]
    time: FingerTime
    shown: list[Event] = field(default_factory=list)
    """The events that the shell was given to show."""

    async def say(self, line: str) -> None:
        """Send a line, and wait until the shell has done what it says."""
        await self.begin(line)
        await self.until(lambda: not self.is_waiting)

    async def begin(self, line: str) -> None:
        """Send a line, and come back when the shell is at it. The user has read what
        Enter does with an empty line.
        """
        self.write(line)
        if not line:
            self.time.pass_by(QUIET)
        await self.press("enter")

    def write(self, text: str) -> None:
        """Type a text at once; it replaces what is selected."""
        area = self.prompt.area
        area.replace(text, *area.selection, maintain_selection_offset=False)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    def at_once(self, *keys: str) -> None:
        """Press keys so fast that the first of them has had no effect when the last one
        comes.
        """
        for key in keys:
            self.app.post_message(events.Key(key, key if len(key) == 1 else None))

    async def rest(self, seconds: float = REST) -> None:
        """Keep the fingers off the keys."""
        self.time.pass_by(seconds)
        await self.pilot.pause()

    async def type(self, text: str, gap: float = 0.1) -> None:
        """Type at ten keys a second, or at another speed."""
        for character in text:
            self.time.pass_by(gap)
            await self.press("enter" if character == "\n" else character)

    async def until_asked(self) -> None:
        """Wait for a question, and until it is on the screen."""
        await self.until(
            lambda: (
                self.app.asking.open is not None and self.app.asking.open.seen_at < inf
            )
        )

    async def answer(self, key: str) -> None:
        """Read the question, and answer it by a key."""
        await self.until_asked()
        asked = self.app.asking.open
        await self.rest()
        await self.press(key)
        await self.rest()
        await self.until(lambda: self.app.asking.open is not asked)

    async def until(self, come: Callable[[], object]) -> None:
        end = monotonic() + PATIENCE
        while not come():
            assert monotonic() < end, (
                f"waited in vain; the screen shows:\n{self.screen}"
            )
            await self.pilot.pause(0.01)
        await self.pilot.pause()

    async def until_told(self, text: str) -> None:
        await self.until(lambda: text in self.told)

    @property
    def is_waiting(self) -> bool:
        return self.app.session is None or any(
            worker.group in ("turn", "open") for worker in self.app.workers
        )

    @property
    def prompt(self) -> Prompt:
        return self.app.query_one(Prompt)

    @property
    def told(self) -> str:
        """The transcript's text."""
        return self.app.query_one(Transcript).plain_text()

    @property
    def title(self) -> str:
        """The status line."""
        return self.app.query_one(StatusLine).render().plain

    @property
    def mode(self) -> str:
        """The approval mode that the prompt's frame shows."""
        title = self.app.query_one(PromptFrame).border_title
        return str(title).partition("[")[0]

    @property
    def activity(self) -> str:
        return self.app.query_one(ActivityBar).render().plain

    @property
    def step_list(self) -> StepList:
        return self.app.query_one(StepList)

    @property
    def steps(self) -> list[str]:
        """The visible rows of the list of steps, without what is beside a title; none
        when it is hidden.
        """
        if not self.step_list.display:
            return []
        rows = (
            self.step_list.render_line(y).text.rstrip()
            for y in range(self.step_list.size.height)
        )
        return [FACTS.sub("", row) for row in rows]

    @property
    def screen(self) -> str:
        return "\n".join(
            strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()
        )


@asynccontextmanager
async def person_at(
    sandbox: Sandbox,
    first: str = "",
    size: tuple[int, int] = (80, 24),
    *,
    faults: bool = False,
    notifications: bool = False,
    **more: Any,
) -> AsyncGenerator[Person, None]:
    """The shell, opened in a project, and somebody in front of it. It has no `faults`
    of its own unless these are expected. Only with `notifications` are these drawn.
    """
    time = FingerTime()
    app = shell(sandbox, first, time=time, **more)
    shown: list[Event] = []

    def show(event: Event) -> None:
        shown.append(event)
        Shell.show(app, event)

    app.show = show  # type: ignore[method-assign]
    async with app.run_test(size=size, notifications=notifications) as pilot:
        await open_at_once(pilot)
        person = Person(app, pilot, time, shown)
        await person.until(lambda: not person.is_waiting)
        yield person
        assert faults or app.faults.count == 0, person.told
