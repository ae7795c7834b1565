"""The Executor in the shell: the words a person types, turned into calls of the engine."""

import re
from collections.abc import Awaitable, Callable
from functools import partial

from cdd_agent.agents.base import Meaning, ReadsWords
from cdd_agent.agents.questions import about_the_run
from cdd_agent.agents.words import (
    is_for_a_terminal,
    is_question,
    is_unfinished,
    says_something,
    slash_meant,
    without_its_reason,
    words_of,
)
from cdd_agent.dialogue.token_budget import Omitted
from cdd_agent.dialogue.turns import Dialogue
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.lock import TicketLock
from cdd_agent.errors import CddError
from cdd_agent.events import About, Event, Notice, QuestionAnswered, QuestionAsked, Tone
from cdd_agent.llm.port import Message
from cdd_agent.tickets.plan_step import PlanStep
from cdd_agent.tickets.status import StepStatus
from cdd_agent.tools.read_only import read_only_tools

_LINE = re.compile(
    r"(?P<word>[a-z]*)(?:\s+(?:step\s+)?(?P<step>\d{1,9}))?(?P<keep>\s+keep)?(?:\s+because\s+(?P<reason>.+))?",
    re.IGNORECASE | re.DOTALL,
)
_NAMES = {
    **dict.fromkeys(("", "continue", "c", "next", "n"), "continue"),
    **dict.fromkeys(("retry", "r"), "retry"),
    **dict.fromkeys(("skip", "s"), "skip"),
    **dict.fromkeys(("status", "st"), "status"),
    **{name: name for name in ("all", "undo", "redo", "diff")},
}
_OF_THE_STEP_TO_COME = ("continue", "retry", "skip")
_WITH_A_STEP = (*_OF_THE_STEP_TO_COME, "undo", "diff")
_LONGEST_SLIP = 4_000
"""Characters. What is longer was not typed by mistake, and is not read at every key."""
_REMEMBERED = 12
"""Questions and answers that the next question's prompt has."""


class ExecutorAgent(ReadsWords):
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
| `exit`, `quit` | leave; the state stays |
| `help` | this |
| a question, ending in `?` | the model answers it and can look, but no step runs |
| a sentence | guidance: it is added to the step's prompt, and the step runs; below the prompt it says so before Enter |
| `> shorter` | guidance, whatever it looks like; without the `>` a word or two run nothing |
"""

    WORDS = tuple(name for name in _NAMES if name)
    NEAR = 0.7

    def __init__(self, engine: Engine, *, is_visit: bool = False) -> None:
        """`is_visit`: it says one thing to the run, and does not become the active agent."""
        self._engine = engine
        self.emit = engine.emit
        self._is_visit = is_visit
        self._left = False
        self._asked: tuple[Message, ...] = ()
        self._left_out = Omitted()
        self.ticket_slug = engine.run.ticket.slug

    @property
    def done(self) -> bool:
        return self._left or self._engine.run.next_step is None

    @property
    def lock(self) -> TicketLock:
        return self._engine.run.lock

    def view(self) -> list[Event]:
        return [self._engine.run.opened()]

    def close(self) -> None:
        self._engine.close()

    async def begin(self) -> None:
        """Tell what a person sees first: the plan, what was found of an earlier run, and how to go on."""
        with self._engine.recording():
            await self._begin()

    async def _begin(self) -> None:
        await self._engine.recover()
        run = self._engine.run
        opened, step = run.opened(), run.next_step
        self.emit(opened)
        if opened.resumed and step is not None:
            done = run.state.done
            self.emit(
                Notice(
                    f"Going on: {done} of {len(opened.steps)} steps are done already." if done else "Going on.",
                    about=About.GOING_ON,
                )
            )
        if step is not None and self._has_failed():
            error = run.state.of(step.number).error or "it is not known why"
            self.emit(
                Notice(f"Step {step.number} failed: {error.splitlines()[0]}", Tone.ERROR, about=About.STEP_FAILED)
            )
        if step is None:
            self.emit(Notice("All steps are done already; nothing was run.", Tone.GOOD, about=About.ALL_DONE))
            self.emit(run.summary())
        else:
            self.emit(self._what_next())

    async def say(self, line: str) -> None:
        with self._engine.recording():
            await self.meaning(line).act()

    def closing(self) -> list[Event]:
        if self._left:
            return []
        slug = self.ticket_slug
        return [
            Notice(
                f"The Executor is closed. `/diff {slug}` shows what was done, `/undo {slug}` goes back.",
                about=About.AGENT_CLOSED,
            )
        ]

    def command(self, text: str) -> Meaning | None:
        said = None if text.endswith("?") else _LINE.fullmatch(text)
        name = _NAMES.get(said["word"].lower()) if said else None
        if said is None or name is None or (said["step"] and name not in _WITH_A_STEP):
            return None
        if name != "skip" and (said["keep"] or said["reason"]):
            return None
        number = int(said["step"]) if said["step"] else None
        now = self._engine.run.next_step
        if name in _OF_THE_STEP_TO_COME and number is not None and (now is None or now.number != number):
            is_next = f", step {now.number} is" if now else ""
            return self.nothing_for(f"Step {number} is not the next one{is_next}.", "Nothing was done.")
        known = {step.number for step in self._engine.run.plan.steps}
        if name in ("undo", "diff") and number is not None and number not in known:
            return self.nothing_for(f"There is no step {number}.", "Nothing was done.")
        is_under_way = now is not None and self._engine.run.state.of(now.number).status is StepStatus.IN_PROGRESS
        match name:
            case "continue" if is_under_way:
                return Meaning(name, "Enter runs the step after this one", self._continue)
            case "continue":
                what = f"runs step {now.number}: {now.title}" if now else "runs what is new in the plan"
                what = "does nothing: the step has failed; `retry` runs it again" if self._has_failed() else what
                return Meaning(name, f"Enter {what}", self._continue)
            case "all":
                what = "does nothing: the step has failed" if self._has_failed() else "runs all steps that are left"
                return Meaning(name, f"Enter {what}", self._all)
            case "retry" | "skip" if now is None:
                return self.nothing_for("All steps are done.")
            case "retry" if now is not None:
                has_begun = self._engine.run.state.of(now.number).attempts
                what = f"runs step {now.number} again: {now.title}" if has_begun else "does nothing: no step has failed"
                return Meaning(name, f"Enter {what}", self._retry, about=now.number)
            case "skip" if now is not None:
                keep, reason = bool(said["keep"]), said["reason"] or "skipped by the user"
                what = f"leaves out step {now.number}: {now.title}"
                return Meaning(name, f"Enter {what}", partial(self._skip, now, reason, keep=keep), about=now.number)
            case "undo":
                what = (
                    f"goes back to before step {number}" if number is not None else "goes back to before the last step"
                )
                act = partial(self._went_back, partial(self._engine.undo, number))
                return Meaning(name, f"Enter {what}", act, about=number)
            case "redo":
                return Meaning(name, "Enter undoes the last undo", partial(self._went_back, self._engine.redo))
            case "diff":
                what = "the last step" if number is None else f"step {number}"
                return Meaning(
                    name, f"Enter shows what {what} changed", partial(self._engine.diff, number), about=number
                )
            case _:
                return Meaning(name, "Enter shows where the run is", self._status)

    def leaving(self) -> Meaning:
        return Meaning("exit", "Enter leaves the run; its state stays", self._leave)

    def doubt(self, text: str) -> str:
        """A sentence is guidance. What may be anything else starts no step before the person was asked."""
        if self._engine.run.next_step is None or len(text) > _LONGEST_SLIP:
            return ""
        if text.endswith("?"):
            return super().doubt(text) if len(words_of(text)) == 1 else ""
        if is_for_a_terminal(text):
            return "For a terminal? `!` in front of it runs it."
        if (slash := slash_meant(text)) is not None:
            return f"`/{slash}` is a command of the shell."
        if near := super().doubt(text) or super().doubt(without_its_reason(text)):
            return near
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if len(lines) > 1 and any(self.is_command(line) for line in lines):
            return "One of these lines is a command: send them one by one."
        if is_question(text):
            return "A question ends in `?`."
        if len(lines) == 1 and is_unfinished(text):
            return "That looks unfinished."
        return "" if says_something(text, self.WORDS) else "Too little for guidance; `help` lists the commands."

    def words(self, text: str) -> Meaning:
        now = self._engine.run.next_step
        if now is None:
            return self.nothing_for("All steps are done.")
        if text.endswith("?"):
            return Meaning("question", "Enter asks the model; no step runs", partial(self._answer, now, text))
        act = partial(self._guide, now, text)
        return Meaning("guidance", f"Enter: guidance for step {now.number}, and the step runs", act, about=now.number)

    @property
    def to_the_model(self) -> str:
        now = self._engine.run.next_step
        return f"makes it guidance for step {now.number}, and runs the step" if now else "is for a step that is left"

    async def _continue(self) -> None:
        if self._has_failed():
            self.emit(self._what_next())
        else:
            await self._run()

    async def _retry(self) -> None:
        step = self._engine.run.next_step
        if step is None or not self._engine.run.state.of(step.number).attempts:
            self.emit(Notice("No step has failed.", about=About.NO_FAILURE))
            self.emit(self._what_next())
        else:
            await self._run()

    async def _guide(self, meant: PlanStep, guidance: str) -> None:
        """Run the step that the guidance was said for, if that is the next one also in a plan that was edited since."""
        self._engine.reread()
        now = self._engine.run.next_step
        if now is None or (now.number, now.title) != (meant.number, meant.title):
            self.emit(
                Notice(
                    f"That was said for step {meant.number}: {meant.title}. Nothing was run.",
                    about=About.MEANT_ANOTHER_STEP,
                )
            )
            self.emit(self._what_next())
        else:
            await self._run(guidance)

    async def _run(self, guidance: str = "") -> None:
        self._engine.reread()
        step = self._engine.run.next_step
        if step is None:  # the plan ends here by now
            self.emit(self._engine.run.summary())
            return
        await self._engine.run_step(step, guidance=guidance)
        self.emit(self._after_a_step())

    async def _all(self) -> None:
        if not self._has_failed():
            self._engine.reread()
            await self._engine.run_all()
        if self._has_failed():
            self.emit(self._what_next())

    async def _skip(self, step: PlanStep, reason: str, *, keep: bool) -> None:
        await self._engine.skip(step, reason, keep=keep)
        self.emit(self._after_a_step())

    async def _went_back(self, going: Callable[[], Awaitable[None]]) -> None:
        await going()
        if self._engine.run.next_step is not None:
            self.emit(self._what_next())

    async def _status(self) -> None:
        self.emit(self._engine.run.opened())
        self.emit(self._what_next())

    async def _answer(self, step: PlanStep, question: str) -> None:
        """By the run's own model, so within its budget; questions and answers of this visit are remembered."""
        self.emit(QuestionAsked(step.number, question))
        run, runner = self._engine.run, self._engine.runner
        asked = Message("user", run.record.redactor.redact(question))
        dialogue = Dialogue(runner.model(), read_only_tools(runner.root), runner.tool_calls, emit=self.emit)
        packed = about_the_run(runner.root, run.spec, run.plan, run.state, dialogue, (*self._asked, asked))
        for notice in self._left_out.news(packed.left_out):
            self.emit(notice)
        try:
            turn = await packed.dialogue.turn(packed.messages, step=step.number)
            self._asked = (*self._asked, asked, Message("assistant", turn.text or "…"))[-_REMEMBERED:]
            if turn.problem:
                self.emit(Notice(turn.problem, Tone.WARNING, about=About.REPLY_INCOMPLETE))
        except CddError:
            self.emit(QuestionAnswered(step.number))
            raise
        self.emit(QuestionAnswered(step.number))

    async def _leave(self) -> None:
        self._left = True
        self.emit(Notice(f"Left {self.ticket_slug}. `/exec {self.ticket_slug}` goes on from here.", about=About.LEFT))

    def _has_failed(self) -> bool:
        step = self._engine.run.next_step
        return step is not None and self._engine.run.state.of(step.number).status is StepStatus.FAILED

    def _after_a_step(self) -> Event:
        return self._what_next() if self._engine.run.next_step is not None else self._engine.run.ended()

    def _what_next(self) -> Event:
        step = self._engine.run.next_step
        if step is None:
            return self._engine.run.summary()
        if self._is_visit:
            return Notice(
                f"Next is step {step.number}: {step.title}. `/exec {self.ticket_slug}` goes on with it.",
                about=About.NEXT_STEP,
            )
        if self._has_failed():
            what = "`retry`, `skip`, `exit`, or say what to do differently."
            return Notice(f"Step {step.number} has failed: {what}")
        return Notice(
            f"Next is step {step.number}: {step.title}. `continue`, `all`, `skip`, `exit`, or say what matters for it.",
            about=About.NEXT_STEP,
        )
