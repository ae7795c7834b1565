"""Small real projects for tests: tickets, plans, and scripts of replies."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cdd_agent.engine.engine import Engine
from cdd_agent.engine.ledger import OpenCheckpoints
from cdd_agent.events.notices import Notice, NoticeKind
from cdd_agent.events.stream import Emit, Event
from cdd_agent.frontend import Frontend, Nobody
from cdd_agent.llm.local_servers import LocalServer
from cdd_agent.llm.port import Model, ModelError
from cdd_agent.llm.retrying import Clock
from cdd_agent.llm.scripted import ScriptedModel
from cdd_agent.llm.scripted_reply import ScriptedReply
from cdd_agent.process.policy import RunProgram
from cdd_agent.session.open_project import Project, open_project
from cdd_agent.session.session import FindServers, Session
from cdd_agent.wiring.root import Wiring
from tests.support.fake_checkpoints import FakeCheckpoints
from tests.support.fake_programs import FakePrograms
from tests.support.listening import collect, tell

SLUG = "feature-words"
SPEC = """\
title: Say words
type: feature
description: The files say the right words.
acceptance_criteria:
  - a.txt says good
technical_notes: Keep it short.
priority: high
"""


def says(path: str, text: str, words: str = "Here it is.") -> str:
    """Return a reply with one file."""
    return f"{words}\n\n```text:{path}\n{text}\n```\n"


def check(path: str, text: str = "good") -> str:
    """Return a check that passes if a file contains a text, and otherwise prints the
    content.
    """
    code = (
        f"t = open('{path}').read(); print('it says', t); raise SystemExit('{text}' not"
        " in t)"
    )
    return f'python -S -c "{code}"'  # importing site takes half of the start


def endless_check() -> str:
    """Return a check that writes `running` and waits. It passes at once if `running`
    exists.
    """
    code = (
        "import pathlib, time; running = pathlib.Path('running');"
        " running.exists() or (running.touch(), time.sleep(600))"
    )
    return f'python -c "{code}"'


def add_test(root: Path, path: str, text: str = "good") -> str:
    """Write a test of a file's text into a project, and return the check that runs it:
    unlike `check`, it reports its test.
    """
    name = f"test_{Path(path).stem}.py"
    code = f"def test_text():\n    assert {text!r} in open({path!r}).read()\n"
    (root / name).write_text(code)
    return f"pytest -q {name}"


@dataclass(frozen=True)
class Step:
    """A step of a test's plan."""

    path: str | None = "a.txt"
    verify: str | None = None
    depends: str = "None"
    description: str = "Make it."
    also: tuple[str, ...] = ()
    """More files, optionally with a note: `x.py (deleted)`."""
    checks: tuple[str, ...] = ()
    """Checks after `verify`."""
    label: str = ""
    """The number in its heading; empty: its index in the plan."""
    tested: str = ""
    """A text that the file must contain. `Sandbox.write` writes a test for it, which is
    the step's first check.
    """

    def markdown(self, number: int) -> str:
        lines = [
            f"### Step {self.label or number}: Make {self.path or 'up your mind'}",
            "",
            f"**Description:** {self.description}",
        ]
        lines += [f"**Dependencies:** {self.depends}"]
        checks = (self.verify, *self.checks) if self.verify else self.checks
        if self.tested:
            checks = (f"pytest {self.test_file}", *checks)
        lines += [f"**Verify:** `{command}`" for command in checks]
        lines += ["", "**Files Affected:**", f"- `{self.path}`"] if self.path else []
        lines += [f"- {file}" for file in self.also]
        return "\n".join(lines)

    @property
    def test_file(self) -> str:
        """Not named like the project's tests, so only the step's check runs it."""
        return re.sub(r"\W", "_", f"holds_{self.path}") + ".py"

    @property
    def test(self) -> str:
        """The id of the test."""
        return f"{self.test_file}::test_text"

    @property
    def test_code(self) -> str:
        return (
            "from pathlib import Path\n\n\ndef test_text():\n"
            f"    assert {self.tested!r} in Path({self.path!r}).read_text()\n"
        )


def plan(steps: Iterable[Step]) -> str:
    body = "\n\n".join(step.markdown(number) for number, step in enumerate(steps, 1))
    return (
        "# Implementation Plan: Say words\n\n"
        f"**Ticket:** `{SLUG}`\n\n"
        "## Implementation Steps\n\n"
        f"{body}\n"
    )


@dataclass
class FakeTime:
    """A clock on which waiting takes no time, and which records the waited seconds."""

    waited: float = 0.0

    async def sleep(self, seconds: float) -> None:
        self.waited += seconds
        await asyncio.sleep(0)

    @property
    def clock(self) -> Clock:
        noon = datetime(2026, 11, 21, 12, 0)
        return Clock(
            self.sleep,
            lambda: self.waited,
            lambda: noon + timedelta(seconds=self.waited),
            lambda: 0.5,
        )


async def no_servers() -> Sequence[LocalServer]:
    return ()


@dataclass
class Sandbox:
    """A project on disk, with its model."""

    root: Path
    model: ScriptedModel = field(default_factory=lambda: ScriptedModel([]))
    real_model: Model | None = None
    """Replaces `model` where a test needs a real connection."""
    frontend: Frontend = field(default_factory=Nobody)
    flags: dict[str, Any] = field(default_factory=dict)
    time: FakeTime | None = field(default_factory=FakeTime)
    """Records the waits before retries; None: waits take real time."""
    find_servers: FindServers = no_servers
    """Hides servers on this computer."""
    run_program: RunProgram | None = None
    """Answers commands and checks; None: real processes do."""
    slug: str = SLUG
    tickets: str = "tickets"
    """The folder of the ticket's folder."""
    open_checkpoints: OpenCheckpoints | None = None
    """Opens the checkpoints of runs; None: they are in git."""

    def write(self, *steps: Step, spec: str = SPEC) -> "Sandbox":
        self.ticket.mkdir(parents=True, exist_ok=True)
        (self.root / ".cdd").mkdir(exist_ok=True)
        (self.ticket / "spec.yaml").write_text(spec)
        (self.ticket / "plan.md").write_text(plan(steps))
        for step in steps:
            if step.tested:
                (self.root / step.test_file).write_text(step.test_code)
        return self

    def in_process(self) -> "Sandbox":
        """From now on commands and checkpoints start no process."""
        self.run_program = FakePrograms()
        self.open_checkpoints = FakeCheckpoints.open
        return self

    def at(self, root: Path) -> "Sandbox":
        """Return another project with the same flags, commands and checkpoints."""
        flags = dict(self.flags)
        return replace(self, root=root, flags=flags, model=ScriptedModel([]))

    def replies(self, *script: str | ModelError | ScriptedReply) -> "Sandbox":
        """Replace the model by one with this script. Earlier requests are forgotten."""
        self.model = ScriptedModel(script)
        return self

    @property
    def ticket(self) -> Path:
        return self.root / self.tickets / self.slug

    @property
    def project(self) -> Project:
        return open_project(self.root, self.flags)

    def engine(self, *, start_over: bool = False) -> Engine:
        wiring = self.wiring()
        ticket = wiring.project.tickets.find(self.slug)
        return wiring.engine(ticket, start_over=start_over)

    def wiring(self, emit: Emit = tell) -> Wiring:
        return Wiring(
            self.project,
            self.frontend,
            emit,
            self.find_servers,
            asked=self.asked,
            clock=self.clock,
            run_program=self.run_program,
            open_checkpoints=self.open_checkpoints,
        )

    def asked(self) -> Model:
        return self.real_model or self.model

    @property
    def clock(self) -> Clock | None:
        return self.time.clock if self.time else None

    def session(self, emit: Emit = tell) -> Session:
        return self.wiring(emit).session

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(
            (self.ticket / "execution-state.json").read_text()
        )
        return state

    def statuses(self) -> list[str]:
        return [step["status"] for step in self.state()["step_executions"].values()]

    def text(self, path: str) -> str:
        return (self.root / path).read_text()

    def prompt(self, number: int = -1) -> str:
        """Return a request to the model, all messages joined."""
        return "\n\n".join(
            message.content for message in self.model.requests[number].messages
        )


Begin = Callable[[Sandbox], Awaitable[object]]
"""Prepares a project for tests."""
Copied = Callable[[Begin], Awaitable[Sandbox]]
"""The fixture `copied`."""


def notice(events: Iterable[Event], kind: NoticeKind) -> str:
    """Return the words of the only notice of this kind. Tests assert that it exists,
    and perhaps a name or a number in it.
    """
    (text,) = [
        event.text
        for event in events
        if isinstance(event, Notice) and event.kind is kind
    ]
    return text


def noticed(events: Iterable[Event]) -> list[NoticeKind]:
    """Return the kinds of the notices, in order."""
    return [event.kind for event in events if isinstance(event, Notice) and event.kind]


async def run_all(
    sandbox: Sandbox, attempts: int = 1, *, start_over: bool = False
) -> list[Event]:
    """Carry a plan out as far as possible, and return the events."""
    engine = sandbox.engine(start_over=start_over)
    try:
        return [
            *await collect(engine.recover()),
            *await collect(engine.run_all(attempts=attempts)),
        ]
    finally:
        engine.close()
