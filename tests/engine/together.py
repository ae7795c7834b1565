"""A project under git, and a model that is asked for several steps at once."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cdd_agent.events.step_summary import StepFinished
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import (
    FREE,
    ConnectionFailed,
    Done,
    OnEvent,
    Price,
    Request,
    TextDelta,
    ToolCall,
    Usage,
)
from tests.support.fake_programs import FakePrograms
from tests.support.listening import collect, told_to
from tests.support.projects import Sandbox
from tests.travel.copies import git

_STEP = re.compile(r"^# Step (\d+) of \d+:", re.MULTILINE)


@dataclass
class Together:
    """A model whose answer depends on the step; it answers when so many are asked at
    once, or were.
    """

    answers: Mapping[int, str | Sequence[str] | Callable[[str], str]]
    at_once: int = 1
    asked: list[int] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    most: int = 0
    """Calls that were under way together."""
    name: str = "together"
    window: int | None = None
    sees: bool | None = True
    calls_tools: bool = False
    breaks: set[int] = field(default_factory=set)
    """Steps whose next reply breaks off."""
    after: Mapping[int, int] = field(default_factory=dict)
    """Steps whose answers come only when another one is completed."""
    _now: int = 0
    _met: asyncio.Event = field(default_factory=asyncio.Event)
    _completed: dict[int, asyncio.Event] = field(
        default_factory=lambda: defaultdict(asyncio.Event)
    )

    @property
    def price(self) -> Price:
        return FREE

    async def check(self, *, connect: bool) -> None:
        """It can always be asked."""

    def warm_up(self) -> None:
        """Nothing is slow here."""

    def let_go(self) -> None:
        """Answer whoever waits."""
        self._met.set()

    def listen(self, event: Event) -> None:
        if isinstance(event, StepFinished):
            self._completed[event.step].set()

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        prompt = "\n\n".join(message.content for message in request.messages)
        step = int(_STEP.findall(prompt)[-1])
        before = self.asked.count(step)
        self.asked.append(step)
        self.prompts.append(prompt)
        self._now += 1
        self.most = max(self.most, self._now)
        if self.most >= self.at_once:
            self._met.set()
        try:
            await self._met.wait()
            if step in self.after:
                await self._completed[self.after[step]].wait()
            answer = self.answers[step]
            if callable(answer):
                answer = answer(prompt)
            elif not isinstance(answer, str):
                answer = answer[min(before, len(answer) - 1)]
            if step in self.breaks:
                self.breaks.discard(step)
                on_event(TextDelta(answer[:20]))
                raise ConnectionFailed("It broke off.")
            on_event(TextDelta(answer))
            return Done(usage=Usage(len(prompt.split()), len(answer.split())))
        finally:
            self._now -= 1


@dataclass
class WithTools(Together):
    """It makes the calls of a step in rounds, before it answers."""

    rounds: Mapping[int, Sequence[ToolCall]] = field(default_factory=dict)
    calls_tools: bool = True

    async def reply(self, request: Request, on_event: OnEvent) -> Done:
        prompt = "\n\n".join(message.content for message in request.messages)
        step = int(_STEP.findall(prompt)[-1])
        done = sum(bool(message.tool_calls) for message in request.messages)
        if done < len(rounds := self.rounds.get(step, ())):
            self.asked.append(step)
            on_event(rounds[done])
            return Done()
        return await super().reply(request, on_event)


def project_in(folder: Path, **files: str) -> Sandbox:
    """Three steps run at once there. Files by name, without `.txt`."""
    root = folder.resolve() / "project"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=main")
    for name, text in files.items():
        (root / f"{name}.txt").write_text(text)
    (root / "README").write_text("words\n")
    (root / ".gitignore").write_text("__pycache__/\n.cdd/\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A project")
    return Sandbox(
        root, flags={"jobs": 3, "max_attempts": 2}, run_program=FakePrograms()
    )


async def carried_out(
    sandbox: Sandbox, model: Together, attempts: int = 2
) -> list[Event]:
    sandbox.real_model = model
    engine = sandbox.engine()
    try:
        with engine.recording(), told_to(model.listen):
            return [
                *await collect(engine.recover()),
                *await collect(engine.run_all(attempts=attempts)),
            ]
    finally:
        engine.close()
