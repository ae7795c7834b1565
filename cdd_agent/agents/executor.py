"""The Executor: turns the user's lines into calls of the engine."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial

from cdd_agent.agents.attachments import (
    report_missing,
)
from cdd_agent.agents.line_guesses import (
    FOR_THE_MODEL,
    cut_reason,
    guess_slash_command,
    is_instruction,
    is_question,
    is_unfinished,
    looks_like_shell_command,
    split_words,
    starts_with_skip,
)
from cdd_agent.agents.meaning import GUIDANCE, LineKind, Meaning
from cdd_agent.agents.questions import RunQuestions
from cdd_agent.agents.run_agent import RunAgent
from cdd_agent.agents.run_lines import RunLine, all_steps_over
from cdd_agent.agents.ticket_agent import AgentWord, word
from cdd_agent.engine.changed_since import add_changes
from cdd_agent.engine.engine import Engine
from cdd_agent.engine.lock import TicketLock
from cdd_agent.engine.retelling import LONGEST_TEXT
from cdd_agent.engine.run import SavedWork
from cdd_agent.engine.steering import Take
from cdd_agent.engine.whereabouts import how_to_hand_back
from cdd_agent.errors import CddError
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.shell_events import PersonSaid
from cdd_agent.events.step_events import UndoPreview
from cdd_agent.events.stream import Event
from cdd_agent.tickets.plan import NoSuchStep, PlanStep
from cdd_agent.tickets.status import RunStatus, StepStatus

_LONGEST_SLIP = 4_000
"""Characters above which a line is not checked for typing errors at each key."""
_LONGEST_SHOWN = 50
_SAVED = {
    SavedWork.REPLY: (
        "Type `continue` to apply its saved reply again without paying for it,"
        " or `retry` for a new reply."
    ),
    SavedWork.ROUNDS: (
        "Type `continue` to resume it without paying again for its saved calls,"
        " or `retry` for a new reply."
    ),
}


def _number_of_the_step(agent: "ExecutorAgent", *_: object) -> int:
    return agent._step.number


class ExecutorAgent(RunAgent):
    name = "executor"
    placeholder = "status, skip, close, or instructions for the step …"
    after_a_failure = "retry, skip, close, or what to do differently …"
    OTHERS = (
        ("`help`", "this"),
        (
            "a question, ending in `?`",
            "the model answers it; it can read files, but no step runs",
        ),
        (
            "a sentence",
            (
                "instructions for the next step: they are added to its prompt,"
                " and the step runs"
            ),
        ),
        (
            "`> shorter`",
            ("instructions, even if the text is short or looks like a command"),
        ),
    )
    NEAR = 0.7

    def __init__(
        self,
        engine: Engine,
        slash: Collection[str],
        keep_lease: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        *,
        is_visit: bool = False,
        own_tree: bool = False,
    ) -> None:
        """`keep_lease` surrounds each change of the run, and ensures that this copy of
        the project may make it. `is_visit`: the agent receives one line, and does not
        become active. `own_tree`: the run has a separate working tree.
        """
        self._engine = engine
        self.slash = slash
        self._keep_lease = keep_lease
        self.emit = engine.run.emit
        self._is_visit = is_visit
        self._has_left = False
        self._questions = RunQuestions(engine)
        self._saved_work = SavedWork.NONE
        self.ticket_slug = engine.run.ticket.slug
        self._own_tree = own_tree

    @property
    def is_done(self) -> bool:
        return self._has_left or self._engine.run.next_step is None

    @property
    def lock(self) -> TicketLock:
        return self._engine.run.lock

    def view(self) -> list[Event]:
        run = self._engine.run
        event = add_changes(run.opened(), run.ticket, run.plan, run.state, run.record)
        return [event]

    def close(self) -> None:
        self._engine.close()

    async def begin(self) -> None:
        with self._engine.recording():
            await self._engine.recover()
            run = self._engine.run
            opened, step = run.opened(), run.next_step
            self.emit(opened)
            if step is None:
                await self._engine.report_all_done()
                return
            if opened.resumed:
                tally, progress = opened.tally, ""
                if tally.over:
                    progress = f": {tally.over} of {tally.total} steps done"
                self.emit(Notice(f"Resuming{progress}.", kind=NoticeKind.RESUMED))
            if self._has_failed:
                error = (
                    run.state.step(step.number).error or "unknown reason"
                ).splitlines()[0]
                self.emit(
                    Notice(
                        f"Step {step.label} failed: {error}",
                        Tone.ERROR,
                        kind=NoticeKind.STEP_FAILED,
                    )
                )
            self._note_saved_work()
            self.emit(self._what_next())

    async def carry_out(self, meaning: Meaning) -> None:
        with self._engine.recording():
            self._engine.run.recorder.note(PersonSaid(meaning.line[:LONGEST_TEXT]))
            try:
                await meaning.act()
            except asyncio.CancelledError:
                self._report_stop()
                raise
            finally:
                self._note_saved_work()

    def _report_stop(self) -> None:
        self._note_saved_work()
        if self._saved_work is SavedWork.NONE:
            self.emit(Notice("Stopped. Type `continue` to resume.", Tone.WARNING))
            return
        text = f"Stopped step {self._step.label}. {_SAVED[self._saved_work]}"
        self.emit(
            Notice(
                text,
                Tone.WARNING,
                kind=NoticeKind.SAVED_WORK,
                step=self._step.number,
            )
        )

    def _note_saved_work(self) -> None:
        """Note the saved work of the next step now, because `meaning` must not read
        files.
        """
        step, self._saved_work = self._engine.run.next_step, SavedWork.NONE
        if step is not None:
            with suppress(CddError):  # the step itself reports the error
                self._saved_work = self._engine.run.find_saved_work(step)

    def take_up_plan(self) -> None:
        self._engine.reread(is_known=True)

    async def preview_undo(self, number: int) -> UndoPreview:
        return await self._engine.preview_undo(number)

    def steer(self, meaning: Meaning, take: Take) -> bool:
        """Pass guidance to the running step. If its model uses tools, it receives the
        guidance between two calls.
        """
        if meaning.name != GUIDANCE:
            return False
        text = meaning.line.strip().removeprefix(FOR_THE_MODEL).strip()
        return self._engine.runner.steering.say(text, take)

    def closing(self) -> list[Event]:
        if self._has_left:
            return []
        slug = self.ticket_slug
        text = f"All steps done. Review: `/diff {slug}`. Undo: `/undo {slug}`."
        text += f" Merge into your tree: `/land {slug}`." if self._own_tree else ""
        return [Notice(text, kind=NoticeKind.AGENT_LEFT), *self._lease_notices()]

    def _lease_notices(self) -> list[Event]:
        text = how_to_hand_back(self._engine.run.record.folder)
        return [Notice(text, kind=NoticeKind.LEASE)] if text else []

    @property
    def _exec(self) -> str:
        return f"`/exec {self.ticket_slug}{' --worktree' * self._own_tree}`"

    def read_word(self, text: str) -> Meaning | None:
        line = RunLine.parse(text)
        if line is None or text.endswith("?"):
            return None
        declaration = self.WORDS.get(line.typed)
        if declaration is None or not _accepts(declaration, line):
            return None
        number = self._engine.run.find_number(line.step) if line.step else None
        problem = self._find_problem(declaration, line, number)
        if problem is not None:
            return problem
        match declaration.names[0]:
            case "skip":
                reason = line.reason or "by the user"
                return self.meaning_of(declaration, reason, line.keeps)
            case "retry":
                return self.meaning_of(declaration, line.reason)
            case "undo" | "diff":
                return self.meaning_of(declaration, number)
            case _:
                return self.meaning_of(declaration)

    def _find_problem(
        self, declaration: AgentWord, line: RunLine, number: int | None
    ) -> Meaning | None:
        """Return an answer if the word does not apply to the named step. `number` is
        that step; None if it does not exist or none is named.
        """
        run = self._engine.run
        upcoming = run.next_step
        is_upcoming = upcoming is not None and upcoming.number == number
        if declaration.step == "next" and line.step and not is_upcoming:
            text = f"Step {line.step} is not the next one."
            if upcoming is not None:
                text = f"{text[:-1]}. The next step is {upcoming.label}."
            return self.nothing_for(text, "Nothing was done.")
        if line.step and number is None:
            error = NoSuchStep(line.step, run.plan)
            return self.nothing_for(f"{error}. {error.hint}", "Nothing was done.")
        if declaration.names[0] in ("retry", "skip") and upcoming is None:
            return self.nothing_for("All steps are done.")
        return None

    def _continue_hint(self) -> str:
        upcoming = self._engine.run.next_step
        if self._has_failed:
            return "Enter does nothing: the step failed. Type retry to run it again"
        if upcoming is None:
            return "Enter: run the new steps of the plan"
        is_under_way = (
            self._engine.run.state.step(upcoming.number).status
            is StepStatus.IN_PROGRESS
        )
        if is_under_way:
            return "Enter: run the step after this one"
        if self._saved_work is SavedWork.REPLY:
            return (
                f"Enter: apply the saved reply of step {upcoming.label} again · retry:"
                " new reply"
            )
        if self._saved_work is SavedWork.ROUNDS:
            return f"Enter: resume step {upcoming.label} · retry: new reply"
        return f"Enter: run step {upcoming.label}, {upcoming.title}"

    @word(
        *("continue", "c", "next", "n", ""),
        does="run the next step",
        hint=_continue_hint,
        step="next",
    )
    async def _continue(self) -> None:
        if self._has_failed:
            self.emit(self._what_next())
        else:
            await self._run()

    def _retry_hint(self, guidance: str) -> str:
        step = self._step
        if not self._engine.run.state.step(step.number).attempts:
            return "Enter does nothing: no step failed"
        how = "again, with these instructions" if guidance else "again"
        if self._saved_work is not SavedWork.NONE:
            how += ", with a new reply"
        return f"Enter: run step {step.label} {how}"

    @word(
        *("retry", "r"),
        does="run the failed or interrupted step again with a new reply; `retry"
        " because …` adds instructions",
        hint=_retry_hint,
        about=_number_of_the_step,
        step="next",
    )
    async def _retry(self, guidance: str) -> None:
        if self._engine.run.state.step(self._step.number).attempts:
            await self._run(guidance, asks_anew=not self._has_failed)
        else:
            self.report(
                Notice(
                    "There is nothing to retry: no step failed.",
                    kind=NoticeKind.NOT_DONE,
                ),
                self._what_next(),
            )

    @word(
        *("skip", "s"),
        does="skip the step and discard its changes; `skip keep` keeps them;"
        " `skip because …` records a reason",
        hint=lambda self, *_: (
            f"Enter: skip step {self._step.label}, {self._step.title}"
        ),
        about=_number_of_the_step,
        step="next",
    )
    async def _skip(self, reason: str, keep: bool) -> None:
        async with self._keep_lease():
            await self._engine.skip(self._step, reason, keep=keep)
        self.emit(await self._after_a_step())

    @word(
        *("status", "st"),
        does="show the plan and its progress",
        hint="Enter: show the plan and its progress",
    )
    async def _status(self) -> None:
        self.emit(self._engine.run.opened())
        if self._engine.run.next_step is not None:
            self.emit(self._what_next())
            return
        await self._engine.report_end()
        is_done = self._engine.run.summary().status is RunStatus.COMPLETED
        if self._is_visit and is_done:
            self.emit(self._all_steps_over())

    @word(
        "all",
        does="run all remaining steps; stop at the first failure",
        hint=lambda self: (
            "Enter does nothing: the step failed. Type retry or skip"
            if self._has_failed
            else "Enter: run all remaining steps"
        ),
    )
    async def _all(self) -> None:
        if not self._has_failed:
            self._engine.reread()
            async with self._keep_lease():
                await self._engine.run_all()
        if self._has_failed:
            self.emit(self._what_next())

    @word(
        "undo",
        typed="`undo`, `undo 3`",
        does="undo the last step, or step 3 and all later steps; your own edits stay",
        hint=lambda self, step: f"Enter: undo {self._name_undone(step)}",
        about=lambda self, step: step or self._last_ended,
        step="any",
    )
    async def _undo(self, step: int | None) -> None:
        async with self._keep_lease():
            await self._engine.undo(step)
        if self._engine.run.next_step is not None:
            self.emit(self._what_next())

    @word(
        "redo",
        does="reverse the last undo",
        hint="Enter: redo the steps that were undone last",
    )
    async def _redo(self) -> None:
        async with self._keep_lease():
            await self._engine.redo()
        if self._engine.run.next_step is not None:
            self.emit(self._what_next())

    @word(
        "ask",
        does="ask you before files change, from now on",
        hint=lambda self: (
            "Enter does nothing: cdd already asks before it changes files"
            if self._engine.asks_before_edits
            else "Enter: cdd asks before it changes files from now on"
        ),
    )
    async def _ask_before_edits(self) -> None:
        if self._engine.asks_before_edits:
            self.emit(Notice("cdd already asks before it changes files."))
        else:
            self._engine.ask_before_edits()

    @word(
        "diff",
        typed="`diff`, `diff 3`",
        does="show the changes of the last step, or of step 3",
        hint=lambda self, step: f"Enter: show the changes of {self._in_words(step)}",
        about=lambda _, step: step,
        step="any",
    )
    async def _diff(self, step: int | None) -> None:
        await self._engine.diff(step)

    @word(
        "close",
        does="return to chat; the run is saved",
        hint="Enter: return to chat; the run is saved",
    )
    async def _leave(self) -> None:
        self._has_left = True
        self.report(
            Notice(
                f"Left {self.ticket_slug}. Type {self._exec} to resume.",
                kind=NoticeKind.AGENT_LEFT,
            ),
            *self._lease_notices(),
        )

    def doubt(self, text: str) -> str:
        """Return why a text may not be guidance, so that no step starts; empty for a
        sentence.
        """
        upcoming = self._engine.run.next_step
        if upcoming is None:
            return ""
        if text.endswith("?"):
            is_one_word = len(split_words(text[:_LONGEST_SLIP])) == 1
            return self._slip_of(text) if is_one_word else ""
        if starts_with_skip(text):
            return self._slip_of(text) or (
                f"To skip step {upcoming.label}, type `skip` or `skip because …`."
            )
        return "" if len(text) > _LONGEST_SLIP else self._doubt_guidance(text)

    def _doubt_guidance(self, text: str) -> str:
        if looks_like_shell_command(text):
            return _suggest_shell_command(text)
        if (slash := guess_slash_command(text, self.slash)) is not None:
            return f"Use `/{slash}` for that."
        if slip := self._slip_of(text):
            return slip
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if len(lines) > 1 and any(self.is_command(line) for line in lines):
            return "One of these lines is a command. Send the lines one by one."
        if is_question(text):
            return "A question? End it with `?`."
        if len(lines) == 1 and is_unfinished(text):
            return "This looks unfinished."
        return (
            ""
            if is_instruction(text, self.names)
            else "Not a command, and too short to be instructions."
        )

    def _slip_of(self, text: str) -> str:
        if len(text) > _LONGEST_SLIP:
            return ""
        return super().doubt(text) or super().doubt(cut_reason(text))

    def read_text(self, text: str) -> Meaning:
        upcoming = self._engine.run.next_step
        if upcoming is None:
            return self.nothing_for("All steps are done.")
        if text.endswith("?"):
            return Meaning(
                LineKind.TEXT,
                "question",
                "Enter: ask the model; no step runs",
                partial(self._questions.answer, upcoming, text),
            )
        is_under_way = (
            self._engine.run.state.step(upcoming.number).status
            is StepStatus.IN_PROGRESS
        )
        then = (
            "sent between two calls of its model, or else queued"
            if is_under_way
            else "and run it"
        )
        act = partial(self._guide, upcoming, text)
        return Meaning(
            LineKind.TEXT,
            GUIDANCE,
            f"Enter: add instructions to step {upcoming.label}, {then}",
            act,
            about=upcoming.number,
        )

    @property
    def to_the_model(self) -> str:
        upcoming = self._engine.run.next_step
        return (
            f"send it to step {upcoming.label} anyway"
            if upcoming
            else "send it to a step"
        )

    async def _guide(self, step: PlanStep, guidance: str) -> None:
        """Run the step that the guidance was for, if it is still next after an edit of
        the plan.
        """
        self._engine.reread()
        upcoming = self._engine.run.next_step
        if upcoming is not None and (upcoming.number, upcoming.title) == (
            step.number,
            step.title,
        ):
            # Files that the guidance mentions are part of the step's prompt.
            root = self._engine.runner.root
            self.report(*await asyncio.to_thread(report_missing, root, guidance))
            await self._run(guidance)
            return
        text = (
            f"Your instructions were for step {step.label}, {step.title}, which is"
            " not the next step any more. No step ran."
        )
        self.emit(Notice(text, kind=NoticeKind.NOT_DONE))
        if upcoming is None:
            await self._engine.report_end()
        else:
            self.emit(self._what_next())

    async def _run(self, guidance: str = "", *, asks_anew: bool = False) -> None:
        self._engine.reread()
        step = self._engine.run.next_step
        if step is None:  # the plan was shortened
            await self._engine.report_end()
            return
        async with self._keep_lease():
            await self._engine.run_step(step, guidance=guidance, asks_anew=asks_anew)
        self.emit(await self._after_a_step())

    @property
    def _last_ended(self) -> int | None:
        ended = self._engine.run.state.ended_steps()
        return ended[-1].step_number if ended else None

    def _name_undone(self, number: int | None) -> str:
        if number is not None:
            return f"{self._in_words(number)} and all later steps"
        last = self._last_ended
        if last is None:
            return "the last step"
        title = self._engine.run.state.step(last).title or ""
        return f"{self._in_words(last)}, {title}".rstrip(", ")

    def _in_words(self, number: int | None) -> str:
        if number is None:
            return "the last step"
        return f"step {self._engine.run.plan.label_of(number)}"

    async def report_all_done(self) -> None:
        with self._engine.recording():
            run = self._engine.run
            await run.find_missing_work()
            summary = run.summary()
            is_done = summary.status is RunStatus.COMPLETED
            self.emit(self._all_steps_over() if is_done else summary)

    def _all_steps_over(self) -> Event:
        return all_steps_over(self.ticket_slug, has_own_tree=self._own_tree)

    @property
    def _has_failed(self) -> bool:
        step = self._engine.run.next_step
        return (
            step is not None
            and self._engine.run.state.step(step.number).status is StepStatus.FAILED
        )

    @property
    def _step(self) -> PlanStep:
        step = self._engine.run.next_step
        assert step is not None
        return step

    async def _after_a_step(self) -> Event:
        if self._engine.run.next_step is None:
            return await self._engine.ended()
        return self._what_next()

    def _what_next(self) -> Event:
        step = self._engine.run.next_step
        if step is None:
            return self._engine.run.summary()
        if self._has_failed and not self._is_visit:
            what = "Type `retry`, `skip` or `close`, or say what to do differently."
            return Notice(f"Step {step.label} failed. {what}")
        self._note_saved_work()
        how = "Type `continue`, `all`, `skip` or `close`, or add instructions."
        if self._is_visit:
            how = f"Type {self._exec} to resume."
        elif self._saved_work is not SavedWork.NONE:
            how = f"{_SAVED[self._saved_work]} Or type `all`, `skip` or `close`."
        text = f"Next: step {step.label}, {step.title.rstrip('.')}. {how}"
        return Notice(text, kind=NoticeKind.WHAT_NEXT)


def _accepts(declaration: AgentWord, line: RunLine) -> bool:
    if line.step and declaration.step is None:
        return False
    match declaration.names[0]:
        case "skip":
            return True
        case "retry":
            return not line.keeps
        case _:
            return not line.has_ending


def _suggest_shell_command(text: str) -> str:
    if len(text) > _LONGEST_SHOWN or "\n" in text:
        return "Shell command? Put `!` in front of it."
    return f"Shell command? Type `!{text}`."
