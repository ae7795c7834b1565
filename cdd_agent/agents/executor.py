"""The Executor in the shell: the words a person types, turned into calls of the engine."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing

from cdd_agent.actions.read_only_tools import read_only_tools
from cdd_agent.agents.questions import about_the_run
from cdd_agent.dialogue.room import LeftOut
from cdd_agent.dialogue.turns import Added, Dialogue, Turn
from cdd_agent.errors import CddError
from cdd_agent.events import Event, Notice, QuestionAnswered, QuestionAsked, Tone
from cdd_agent.execution.engine import Engine
from cdd_agent.execution.recording import Recorder
from cdd_agent.llm.port import Message
from cdd_agent.tickets.status import StepStatus

_WITH_STEP = re.compile(r"(?P<word>undo|diff)(?: (?:step )?(?P<step>\d{1,9}))?", re.IGNORECASE)
_SKIP = re.compile(r"(?:skip|s)(?P<keep> keep)?(?: because (?P<reason>.+))?", re.IGNORECASE | re.DOTALL)
_REMEMBERED = 12
"""Questions and answers that the next question's prompt has."""


class ExecutorAgent:
    """Carries out a ticket's plan as the person says; see `HELP` for the words."""

    name = "executor"
    HELP = """\
| typed | does |
|---|---|
| `continue`, `c`, `next`, `n`, Enter | run the next step |
| `retry`, `r` | the failed step again, from where it started |
| `skip`, `s` | leave the step out and discard what it left behind; `skip keep` keeps that; `skip because …` |
| `status`, `st` | where the run is |
| `all` | go on to the end, stopping at the first failure |
| `undo`, `undo 3` | go back to before the last step, or to before step 3; your own later edits stay |
| `redo` | undo the last undo |
| `diff`, `diff 3` | show what the last step, or step 3, changed |
| `exit` | leave; the state stays |
| a question, ending in `?` | the model answers it and can look, but no step runs |
| anything else | guidance: it is added to the step's prompt, and the step runs |
"""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._recorder = Recorder(engine)
        self._left = False
        self._asked: tuple[Message, ...] = ()
        self._left_out = LeftOut()
        self.ticket_slug = engine.run.ticket.slug

    @property
    def done(self) -> bool:
        return self._left or self._engine.run.next_step is None

    def news(self) -> list[Event]:
        return self._recorder.news()

    def view(self) -> list[Event]:
        return [self._engine.run.opened()]

    def close(self) -> None:
        self._engine.close()

    def opening(self) -> AsyncGenerator[Event, None]:
        """What a person sees first: the plan, what was found of an earlier run, and how to go on."""
        return self._recorder.recorded(self._opening())

    async def _opening(self) -> AsyncGenerator[Event, None]:
        async with aclosing(self._engine.recover()) as events:
            async for event in events:
                yield event
        opened = self._engine.run.opened()
        yield opened
        step, done = self._engine.run.next_step, self._engine.run.state.done
        if opened.resumed and step is not None:
            yield Notice(f"Going on: {done} of {len(opened.steps)} steps are done already." if done else "Going on.")
        if step is not None and self._has_failed():
            error = self._engine.run.state.of(step.number).error or "it is not known why"
            yield Notice(f"Step {step.number} failed: {error.splitlines()[0]}", Tone.ERROR)
        if step is None:
            yield Notice("All steps are done already; nothing was run.", Tone.GOOD)
            yield self._engine.run.summary()
        else:
            yield self._what_next()

    async def say(self, line: str) -> AsyncGenerator[Event, None]:
        text = line.strip()
        match text.lower():
            case "" | "continue" | "c" | "next" | "n":
                events = self._continue()
            case "retry" | "r":
                events = self._retry()
            case "all":
                events = self._all()
            case "status" | "st":
                events = self._status()
            case "exit":
                events = self._leave()
            case "redo":
                events = self._went_back(self._engine.redo())
            case _ if words := _WITH_STEP.fullmatch(text):
                number = int(words["step"]) if words["step"] else None
                is_diff = words["word"].lower() == "diff"
                events = self._engine.diff(number) if is_diff else self._went_back(self._engine.undo(number))
            case _ if text.endswith("?"):
                events = self._answer(text)
            case _ if skip := _SKIP.fullmatch(text):
                events = self._skip(skip)
            case _:
                events = self._run(guidance=text)
        async with aclosing(self._recorder.recorded(events)) as recorded:
            async for event in recorded:
                yield event
        if self.done and not self._left:
            slug = self.ticket_slug
            yield Notice(f"The Executor is closed. `/diff {slug}` shows what was done, `/undo {slug}` goes back.")

    async def _continue(self) -> AsyncGenerator[Event, None]:
        if self._has_failed():
            yield self._what_next()
            return
        async with aclosing(self._run()) as events:
            async for event in events:
                yield event

    async def _retry(self) -> AsyncGenerator[Event, None]:
        step = self._engine.run.next_step
        if step is None or not self._engine.run.state.of(step.number).attempts:
            yield Notice("No step has failed.")
            yield self._what_next()
            return
        async with aclosing(self._run()) as events:
            async for event in events:
                yield event

    async def _run(self, guidance: str = "") -> AsyncGenerator[Event, None]:
        for event in self._engine.reread():
            yield event
        step = self._engine.run.next_step
        if step is None:  # the plan ends here by now
            yield self._engine.run.summary()
            return
        async with aclosing(self._engine.run_step(step, guidance=guidance)) as events:
            async for event in events:
                yield event
        yield self._what_next() if self._engine.run.next_step else self._engine.run.summary()

    async def _all(self) -> AsyncGenerator[Event, None]:
        if self._has_failed():
            yield self._what_next()
            return
        for event in self._engine.reread():
            yield event
        async with aclosing(self._engine.run_all()) as events:
            async for event in events:
                yield event
        if self._has_failed():
            yield self._what_next()

    async def _skip(self, words: re.Match[str]) -> AsyncGenerator[Event, None]:
        step = self._engine.run.next_step
        if step is None:
            yield self._what_next()
            return
        reason = words["reason"] or "skipped by the user"
        async with aclosing(self._engine.skip(step, reason, keep=bool(words["keep"]))) as events:
            async for event in events:
                yield event
        yield self._what_next() if self._engine.run.next_step else self._engine.run.summary()

    async def _went_back(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        async with aclosing(events):
            async for event in events:
                yield event
        if self._engine.run.next_step is not None:
            yield self._what_next()

    async def _status(self) -> AsyncGenerator[Event, None]:
        yield self._engine.run.opened()
        yield self._what_next()

    async def _answer(self, question: str) -> AsyncGenerator[Event, None]:
        """By the run's own model, so within its budget; questions and answers of this visit are remembered."""
        step = self._engine.run.next_step
        if step is None:
            yield self._what_next()
            return
        yield QuestionAsked(step.number, question)
        asked = Message("user", self._engine.run.record.redactor.redact(question))
        runner = self._engine.runner
        dialogue = Dialogue(runner.model(), read_only_tools(runner.root), runner.tool_calls)
        run = self._engine.run
        packed = about_the_run(runner.root, run.spec, run.plan, run.state, dialogue, (*self._asked, asked))
        for notice in self._left_out.news(packed.left_out):
            yield notice
        try:
            async with aclosing(packed.dialogue.turn(packed.messages, step=step.number)) as items:
                async for item in items:
                    match item:
                        case Added():
                            pass
                        case Turn():
                            self._asked = (*self._asked, asked, Message("assistant", item.text or "…"))[-_REMEMBERED:]
                            if item.problem:
                                yield Notice(item.problem, Tone.WARNING)
                        case _:
                            yield item
        except CddError:
            yield QuestionAnswered(step.number)
            raise
        yield QuestionAnswered(step.number)

    async def _leave(self) -> AsyncGenerator[Event, None]:
        self._left = True
        yield Notice(f"Left {self.ticket_slug}. `/exec {self.ticket_slug}` goes on from here.")

    def _has_failed(self) -> bool:
        step = self._engine.run.next_step
        return step is not None and self._engine.run.state.of(step.number).status is StepStatus.FAILED

    def _what_next(self) -> Notice:
        step = self._engine.run.next_step
        if step is None:
            return Notice("All steps are done already.", Tone.GOOD)
        if self._has_failed():
            return Notice("`retry`, `skip`, or say what to do differently.")
        return Notice(
            f"Next is step {step.number}: {step.title}. `continue`, `all`, `skip`, or say what matters for it."
        )
