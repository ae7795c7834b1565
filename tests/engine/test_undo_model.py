"""Whatever steps, their failed attempts and people did before: an undo makes every file
what a plain model says.

The model is a stack of versions a file, the newest on top, each of somebody. All files
are declared, so what a check makes of them is the step's. To restore a step takes its
versions off the top; an undo takes off all that the undone steps have there. What a
person wrote is taken off by nobody: what is below it stays, too, and is named. More
runs: `pytest --hypothesis-profile many`.

Any of this may be interrupted: stopped as by Escape, killed, or cut from power, and a
person may edit a file before it goes on. Then it ends as if nothing had happened, but
for what a check was doing that was killed.
"""

import asyncio
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st

from cdd_agent.engine.engine import Engine
from cdd_agent.engine.ledger_entries import was_cut
from cdd_agent.events.step_events import StepsRedone, StepsUndone
from cdd_agent.events.stream import Event
from cdd_agent.llm.port import ModelError, RateLimited
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import StepStatus
from tests.crash.points import Death
from tests.engine.dying import Do, Orders
from tests.support.fake_programs import FakePrograms
from tests.support.listening import collect, told_to
from tests.support.projects import Sandbox, Step, says

T = TypeVar("T")
RUNS = max(3, settings().max_examples // 25)
PATHS = ("a.txt", "b.txt", "deep/c.txt", "new.txt")
AT_FIRST = ("a.txt", "deep/c.txt")
PLAY = """\
import json, os, pathlib, sys
script = pathlib.Path(__file__).with_name("acts.json")
act, *others = json.loads(script.read_text())
script.write_text(json.dumps(others))
for path, text in act["makes"].items():
    if text is None:
        pathlib.Path(path).unlink(missing_ok=True)
    else:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        pathlib.Path(path).write_text(text)
sys.exit(act["code"])
"""

# What may happen


@dataclass(frozen=True)
class Attempt:
    """A reply that gives files, then a check that makes and removes some, too."""

    reply: frozenset[str]
    makes: frozenset[str]
    removes: frozenset[str]
    end: str


@dataclass(frozen=True)
class Run:
    """The next step, as far as the first of these attempts that does not fail."""

    attempts: tuple[Attempt, ...]


@dataclass(frozen=True)
class Skip:
    keep: bool


@dataclass(frozen=True)
class Edit:
    """By a person."""

    path: str


@dataclass(frozen=True)
class Undo:
    back: int
    """How many steps, or as many as there are."""


@dataclass(frozen=True)
class Redo:
    pass


@dataclass(frozen=True)
class Interrupted:
    """It dies at a point, or without a death is stopped at an event; what was begun is
    then brought to its end.
    """

    act: "Run | Skip | Undo | Redo"
    at: int
    death: Death | None
    edit: str | None
    """The file of a step that a person edits before that."""


Act = Run | Skip | Edit | Undo | Redo | Interrupted
FILE = st.sampled_from(PATHS)
ENDS = (
    "fails",
    "fails",
    "fails",
    "passes",
    "passes",
    "passes",
    "no answer",
    "refused",
    "come back later",
)
ATTEMPTS = st.builds(
    Attempt,
    st.frozensets(FILE, min_size=1, max_size=2),
    st.frozensets(FILE, max_size=2),
    st.frozensets(FILE, max_size=1),
    st.sampled_from(ENDS),
)
RUN = st.builds(Run, st.lists(ATTEMPTS, min_size=1, max_size=3).map(tuple))
SKIP = st.builds(Skip, st.booleans())
UNDO = st.builds(Undo, st.integers(1, 4))
ACT = RUN | RUN | st.builds(Edit, FILE) | SKIP | UNDO | st.just(Redo())
ACTS = st.lists(ACT, min_size=4, max_size=14)
WHOLE = ATTEMPTS.map(
    lambda attempt: replace(
        attempt, end="fails" if attempt.end == "fails" else "passes"
    )
)
ONE = st.builds(lambda attempt: Run((attempt,)), WHOLE)
POINTS = st.integers(1, 140)
DEATHS = st.builds(
    Interrupted,
    ONE | ONE | SKIP | UNDO | st.just(Redo()),
    POINTS,
    st.sampled_from(Death),
    st.none(),
)
EDITED = st.builds(Interrupted, ONE, POINTS, st.sampled_from(Death), FILE)
STOPPED = st.builds(Interrupted, ONE, st.integers(1, 9), st.none(), st.none() | FILE)
INTERRUPTED_ACTS = st.lists(ACT | DEATHS | EDITED | STOPPED, min_size=4, max_size=12)

# What must come of it

Tree = dict[str, str]


@dataclass(frozen=True)
class Version:
    text: str | None
    """None: there is no such file."""
    life: int | None = None
    """Of the step that it is of, from one undo to the next; None: a person's."""


@dataclass
class Life:
    """A step from its first attempt on, until it is undone."""

    step: int
    before: Tree
    edits: int
    """By people, until then."""
    touched: set[str] = field(default_factory=set)


@dataclass
class Undone:
    lives: dict[int, int]
    """By step."""
    taken: dict[str, tuple[int, list[Version]]]
    """The step that was taken off, and from where."""


@dataclass
class Model:
    stacks: dict[str, list[Version]]
    lives: list[Life] = field(default_factory=list)
    current: dict[int, int] = field(default_factory=dict)
    """The life of each step that has one."""
    undone: list[Undone] = field(default_factory=list)
    edits: int = 0

    @property
    def tree(self) -> Tree:
        return {
            path: stack[-1].text
            for path, stack in self.stacks.items()
            if stack[-1].text is not None
        }

    def life(self, step: int) -> Life:
        if step not in self.current:
            self.current[step] = len(self.lives)
            self.lives.append(Life(step, self.tree, self.edits))
        return self.lives[self.current[step]]

    def writes(self, step: int, path: str, text: str | None) -> None:
        self.life(step).touched.add(path)
        if self.stacks[path][-1].text != text:
            self.stacks[path].append(Version(text, self.current[step]))

    def edit(self, path: str, text: str | None) -> None:
        self.edits += 1
        self.stacks[path].append(Version(text))

    def restore(self, step: int) -> None:
        """Its last attempt is restored, if it had one since that was done last."""
        life = self.current.get(step)
        for stack in self.stacks.values():
            while life is not None and stack[-1].life == life:
                stack.pop()

    def found(self, path: str, text: str | None, *, reply: str) -> None:
        """A file after a kill in a check: as before, as the reply made it, or as the
        check did, which nobody can tell from an edit.
        """
        if text not in (self.stacks[path][-1].text, reply):
            self.edit(path, text)

    def undo(self, steps: tuple[int, ...], kept: set[str] | None) -> None:
        """`kept` is None where nobody heard of it: the process was over by then, but
        for that.
        """
        lives = {step: self.current.pop(step) for step in steps}
        undone = Undone(lives, {})
        for path, stack in self.stacks.items():
            taken: list[Version] = []
            while stack[-1].life in lives.values():
                taken.insert(0, stack.pop())
            undone.taken[path] = (len(stack), taken)
            below = [
                index
                for index, version in enumerate(stack)
                if version.life in lives.values()
            ]
            if below and stack[below[0] - 1].text != stack[-1].text:
                assert kept is None or path in kept, (
                    f"{path} is not as it was before, and nobody is told"
                )
        self.undone.append(undone)
        first = min(lives.values())
        assert (kept or set()) <= set().union(
            *(self.lives[life].touched for life in lives.values())
        )
        if self.edits == self.lives[first].edits:
            assert not kept
            assert self.tree == self.lives[first].before

    def redo(self, kept: set[str] | None) -> None:
        undone = self.undone.pop()
        self.current |= undone.lives
        for path, (place, taken) in undone.taken.items():
            stack = self.stacks[path]
            if taken and len(stack) > place and stack[-1].text != taken[-1].text:
                assert kept is None or path in kept
            stack[place:place] = taken


# How it is carried out


@dataclass
class Story:
    sandbox: Sandbox
    script: Path
    model: Model
    written: int = 0

    async def act(self, act: Act) -> None:
        match act:
            case Interrupted(Run()):
                await self.run_interrupted(act, act.act.attempts[0])
            case Interrupted(Skip()):
                await self.skip_killed(act, keep=act.act.keep)
            case Interrupted(Undo()):
                await self.undo_killed(act, act.act.back)
            case Interrupted(Redo()):
                await self.redo_killed(act)
            case Run():
                await self.run(act.attempts)
            case Skip():
                await self.skip(keep=act.keep)
            case Edit(path):
                text = self.text()
                self.put(path, text)
                self.model.edit(path, text)
            case Undo():
                await self.undo(act.back)
            case Redo():
                with self.engine() as engine:
                    for redone in of_type(StepsRedone, await collect(engine.redo())):
                        self.model.redo(set(redone.kept))
        assert self.on_disk() == self.model.tree

    async def run(self, attempts: tuple[Attempt, ...]) -> None:
        replies: list[str | ModelError] = []
        checks: list[dict[str, object]] = []
        effects: list[Callable[[int], None]] = []
        for attempt in attempts:
            self.plan_attempt(attempt, replies, checks, effects)
            if attempt.end not in ("fails", "refused"):
                break
        self.sandbox.replies(*replies)
        self.script.write_text(json.dumps(checks))
        with self.engine() as engine:
            step = engine.run.next_step
            if step is None:
                return
            self.model.undone.clear()
            await collect(engine.run_step(step, attempts=len(replies)))
        for effect in effects:
            self.model.life(step.number)
            self.model.restore(step.number)
            effect(step.number)

    def plan_attempt(
        self,
        attempt: Attempt,
        replies: list[str | ModelError],
        checks: list[dict[str, object]],
        effects: list[Callable[[int], None]],
    ) -> Tree:
        """Returns the files that its reply gives."""
        if attempt.end in ("no answer", "come back later"):
            later = RateLimited("later", retry_after=1e9)
            replies.append(
                later if attempt.end == "come back later" else ModelError("no")
            )
            effects.append(lambda _: None)
            return {}
        if attempt.end == "refused":
            replies.append(says("../out.txt", "x"))
            effects.append(lambda _: None)
            return {}
        reply = {path: self.text() for path in sorted(attempt.reply)}
        makes = {path: self.text() for path in sorted(attempt.makes)} | dict.fromkeys(
            sorted(attempt.removes)
        )
        replies.append(
            "".join(says(path, text.rstrip()) for path, text in reply.items())
        )
        checks.append({"makes": makes, "code": int(attempt.end == "fails")})

        def effect(step: int) -> None:
            before = {path: len(stack) for path, stack in self.model.stacks.items()}
            for path, text in reply.items():
                self.model.writes(step, path, text)
            for path, made in makes.items():
                self.model.writes(step, path, made)
            for path, size in before.items():
                stack = self.model.stacks[path]
                # a file that came and went within the attempt
                if stack[-1].text == stack[size - 1].text:
                    del stack[size:]

        effects.append(effect)
        return reply

    async def skip(self, *, keep: bool) -> None:
        with self.engine() as engine:
            step = engine.run.next_step
            if step is None:
                return
            self.model.undone.clear()
            await collect(engine.skip(step, "no", keep=keep))
        self.model.life(step.number)
        if not keep:
            self.model.restore(step.number)

    async def undo(self, back: int) -> None:
        with self.engine() as engine:
            known = engine.run.state.ended_steps()
            if not known:
                return
            number = known[-min(back, len(known))].step_number
            undone = of_type(StepsUndone, await collect(engine.undo(number)))
            event(f"undo of {len(undone[0].steps)} steps")
        self.model.undo(undone[0].steps, {*undone[0].kept, *undone[0].edited})

    async def run_interrupted(self, act: Interrupted, attempt: Attempt) -> None:
        """A step that ends as it would have, sooner or later."""
        replies: list[str | ModelError] = []
        checks: list[dict[str, object]] = []
        effects: list[Callable[[int], None]] = []
        reply = self.plan_attempt(attempt, replies, checks, effects)
        self.sandbox.replies(*replies)
        self.script.write_text(json.dumps(checks))
        with self.engine() as engine:
            step, before = engine.run.next_step, self.judged(engine)
            if step is not None and act.death is None:
                await stopped(engine, step, act.at)
        if step is None:
            return
        self.model.life(step.number)
        if act.death is not None:
            self.dies(act, "run", replies=tuple(map(str, replies)))
        with self.engine() as engine:
            is_over = self.judged(engine) - before != set()
            now = engine.run.state.step(step.number)
            is_cut = now.attempts > 0 and was_cut(
                engine.run.attempt(step.number, now.attempts)
            )
        event(
            "a step that was"
            f" {'stopped' if act.death is None else 'killed'}"
            f"{' too late' if is_over else ''}"
        )
        self.model.undone.clear()
        if is_over:
            self.model.restore(step.number)
            effects[0](step.number)
        else:
            self.model.restore(step.number)
            for path in PATHS if is_cut else ():
                found = self.on_disk().get(path)
                self.model.found(path, found, reply=reply.get(path, ""))
        if act.edit is not None:
            text = self.text()
            self.put(act.edit, text)
            self.model.edit(act.edit, text)
        if is_over:
            return
        with self.engine() as engine:
            await collect(engine.recover())
        assert self.on_disk() == self.model.tree, "the step was not restored"
        for _ in range(3):
            self.sandbox.replies(*replies)
            self.script.write_text(json.dumps(checks))
            with self.engine() as engine:
                await collect(engine.run_step(step))
                if self.judged(engine) - before:
                    break
        else:
            raise AssertionError("the step does not come to its end")
        self.model.restore(step.number)
        effects[0](step.number)

    async def skip_killed(self, act: Interrupted, *, keep: bool) -> None:
        with self.engine() as engine:
            step = engine.run.next_step
        if step is None:
            return
        self.dies(act, "skip keep" if keep else "skip")
        with self.engine() as engine:
            await collect(engine.recover())
            if engine.run.state.step(step.number).status is not StepStatus.SKIPPED:
                await collect(engine.skip(step, "no", keep=keep))
        self.model.undone.clear()
        self.model.life(step.number)
        if not keep:
            self.model.restore(step.number)

    async def undo_killed(self, act: Interrupted, back: int) -> None:
        with self.engine() as engine:
            known = engine.run.state.ended_steps()
            before = len(engine.run.state.undone)
        if not known:
            return
        self.dies(act, "undo", step=known[-min(back, len(known))].step_number)
        with self.engine() as engine:
            undone = of_type(StepsUndone, await collect(engine.recover()))
            state = engine.run.state
        if len(state.undone) > before:
            event(
                "an undo that was killed"
                if undone
                else "an undo that was killed too late"
            )
            kept = {*undone[0].kept, *undone[0].edited} if undone else None
            self.model.undo(
                tuple(step.step_number for step in state.undone[-1].steps), kept
            )

    async def redo_killed(self, act: Interrupted) -> None:
        with self.engine() as engine:
            before = len(engine.run.state.undone)
        self.dies(act, "redo")
        with self.engine() as engine:
            redone = of_type(StepsRedone, await collect(engine.recover()))
            if len(engine.run.state.undone) < before:
                event(
                    "a redo that was killed"
                    if redone
                    else "a redo that was killed too late"
                )
                self.model.redo(set(redone[0].kept) if redone else None)

    def dies(
        self, act: Interrupted, do: Do, *, replies: tuple[str, ...] = (), step: int = 0
    ) -> None:
        assert act.death is not None
        orders = Orders(
            self.sandbox.root, self.sandbox.flags, do, act.at, act.death, replies, step
        )
        orders.carried_out(self.script.with_name("output"))

    def judged(self, engine: Engine) -> set[tuple[int, int]]:
        """The attempts at steps of which it is known how they ended."""
        state = engine.run.state
        steps = [state.step(step.number) for step in engine.run.plan.steps]
        over = {
            (now.folder, now.attempts)
            for now in steps
            if now.status is StepStatus.COMPLETED
        }
        failed = [now for now in steps if now.status is StepStatus.FAILED]
        return over | {
            (now.folder, now.attempts)
            for now in failed
            if engine.run.record.attempt(now.folder, now.attempts).failure is not None
        }

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        engine = self.sandbox.engine()
        try:
            yield engine
        finally:
            engine.close()

    def text(self) -> str:
        """Of one size: what a check has written beyond what was there a played power
        cut would tear.
        """
        self.written += 1
        return f"{self.written:04}\n"

    def put(self, path: str, text: str) -> None:
        (self.sandbox.root / path).parent.mkdir(exist_ok=True)
        (self.sandbox.root / path).write_text(text)

    def on_disk(self) -> Tree:
        places = {path: self.sandbox.root / path for path in PATHS}
        return {
            path: place.read_text() for path, place in places.items() if place.is_file()
        }


async def stopped(engine: Engine, step: PlanStep, at: int) -> None:
    """Stopped as by Escape at an event of this number, if it comes to that."""
    count = 0

    def listen(_: Event) -> None:
        nonlocal count
        count += 1
        if count == at:
            task.cancel()

    with told_to(listen):
        task = asyncio.ensure_future(engine.run_step(step))
        await asyncio.wait([task])
    if not task.cancelled():
        task.result()


def of_type(kind: type[T], events: list[Event]) -> list[T]:
    return [each for each in events if isinstance(each, kind)]


def begun(folder: Path, *, in_git: bool, commit: str, dies: bool) -> Story:
    root, script = folder / "project", folder / "acts.json"
    root.mkdir()
    (folder / "play.py").write_text(PLAY)
    step = Step(
        PATHS[0], f"python -S {shlex.quote(str(folder / 'play.py'))}", also=PATHS[1:]
    )
    story = Story(
        Sandbox(
            root,
            flags={"commit": commit},
            run_program=None if dies else FakePrograms(),
        ).write(*[step] * 4),
        script,
        Model({}),
    )
    for path in PATHS:
        story.model.stacks[path] = [Version(story.text() if path in AT_FIRST else None)]
    for path, text in story.model.tree.items():
        story.put(path, text)
    if in_git:
        for words in (
            "init -q",
            "config user.name A",
            "config user.email a@localhost",
            "add .",
            "commit -qm start",
        ):
            subprocess.run(["git", *words.split()], cwd=root, check=True)
    return story


PLACES = pytest.mark.parametrize(
    ("in_git", "commit"),
    [(True, "off"), (True, "step"), (False, "off")],
    ids=["git", "commits", "no repository"],
)


def whatever_happens(
    possible: st.SearchStrategy[list[Act]],
    *,
    in_git: bool,
    commit: str,
    dies: bool = False,
) -> None:
    @settings(max_examples=RUNS, phases=(Phase.explicit, Phase.reuse, Phase.generate))
    @given(possible)
    def every_run(acts: list[Act]) -> None:
        async def tell(story: Story) -> None:
            for act in acts:
                await story.act(act)

        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(
                tell(
                    begun(
                        Path(folder).resolve(), in_git=in_git, commit=commit, dies=dies
                    )
                )
            )

    every_run()


@pytest.mark.story
@PLACES
def test_undo_and_redo_make_every_file_what_it_was(in_git: bool, commit: str) -> None:
    whatever_happens(ACTS, in_git=in_git, commit=commit)


@pytest.mark.crash
@pytest.mark.skipif(os.name != "posix", reason="a process ends itself by SIGKILL there")
@PLACES
def test_so_they_do_whenever_it_was_interrupted(in_git: bool, commit: str) -> None:
    whatever_happens(INTERRUPTED_ACTS, in_git=in_git, commit=commit, dies=True)
