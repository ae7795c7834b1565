"""One attempt at one step: ask the model, judge its reply, apply it, check it. It becomes true as a whole, or is
put back by whoever called it (`engine.py`)."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from cdd_agent.actions.changes import ChangeSet
from cdd_agent.actions.edits import Edit, ReplyRefused
from cdd_agent.actions.judging import Terms, change_set
from cdd_agent.actions.replies import parse_reply
from cdd_agent.errors import BadInput, NotApproved
from cdd_agent.events import (
    ChangesApplied,
    ChangesProposed,
    CheckpointStarted,
    Choice,
    CommandOutput,
    CommandProposed,
    Event,
    Notice,
    ReplyDelayed,
    ReplyDelta,
    ReplyFinished,
    ReplyRestarted,
    ReplyStarted,
    TestsFinished,
    TestsStarted,
    Tone,
)
from cdd_agent.execution.asked import Asked
from cdd_agent.execution.baseline import Taken, is_of_use, take_baseline
from cdd_agent.execution.checks import Check, check_for, project_check
from cdd_agent.execution.frontend import Frontend
from cdd_agent.execution.history import History
from cdd_agent.execution.prompt import Prompt
from cdd_agent.execution.record import Attempt, RunRecord
from cdd_agent.execution.verify import Before, Verdict, Work, useful_end, verify
from cdd_agent.llm.budget import estimated_prompt
from cdd_agent.llm.port import Done, Model, StartedAgain, StopReason, TextDelta, ToolCall, Waiting
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.status import Verification
from cdd_agent.workspace.commands import CommandRefused, CommandRunner
from cdd_agent.workspace.process import OutputChunk


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended. `verification` is None when it failed; `detail` is then what the model should see."""

    changes: ChangeSet
    verification: Verification | None
    error: str = ""
    detail: str = ""
    unseen: frozenset[str] = frozenset()


@dataclass(frozen=True)
class StepRunner:
    """Makes attempts at steps. `model` is called only when a reply is needed that was not saved before."""

    root: Path
    model: Callable[[], Model]
    frontend: Frontend
    test_command: str | None
    test_timeout: float
    protected: Callable[[Path], bool]
    commands: CommandRunner

    def check_commands(self, plan: ImplementationPlan) -> None:
        """Raises `BadInput` for a check that cannot be run, before anything else is."""
        problems: list[BadInput] = []
        for step in plan.steps:
            if step.verify is None and self.test_command is None:
                continue  # what the project holds is looked at when the step runs: it may have changed by then
            try:
                check_for(step, self.test_command, self.commands)
            except BadInput as error:
                problems.append(BadInput(f"Step {step.number}: {error.message}", hint=error.hint))
        if problems:
            raise BadInput("\n".join(problem.message for problem in problems), hint=problems[0].hint)

    async def baseline(
        self, step: PlanStep, left: Sequence[PlanStep], already: tuple[tuple[int, int], ...], record: RunRecord
    ) -> AsyncGenerator[Event, None]:
        """Take and save the baseline before `step`, if one of the steps that are left will be compared with it.

        `already` are the steps, with their attempts, whose work is there.
        """
        if not is_of_use(left, self.test_command, self.commands):
            return
        check = project_check(self.test_command, self.commands)
        taken = take_baseline(step.number, check, self.commands, self.test_timeout, record.folder)
        async with aclosing(taken) as items:
            async for item in items:
                if isinstance(item, Taken):
                    record.save_baseline(item.baseline.model_copy(update={"already": already}), item.output)
                else:
                    yield item

    async def attempt(
        self, step: PlanStep, prompt: Prompt, attempt: Attempt, before: Before, history: History
    ) -> AsyncGenerator[Event | Outcome, None]:
        """Yield what happens, then one `Outcome`.

        Raises `ModelError` when no reply came, `BudgetExhausted`, `NotApproved`, `GitUnusable` when no checkpoint can
        be taken, or `BadInput` when the disk or the check's command refuses.
        """
        check = check_for(step, self.test_command, self.commands)
        async for event in self._permitted(step, check):
            yield event
        changes = ChangeSet(())
        try:
            async with aclosing(self._reply(step, prompt, attempt)) as events:
                async for event in events:
                    yield event
            edits = _usable(step, attempt.reply or "")
            changes = change_set(self.root, edits, _terms(step, attempt), self.protected)
            for note in changes.notes:
                yield Notice(f"{note}.")
            async for event in self._approved(step, changes):
                yield event
            yield CheckpointStarted(step.number)
            await history.before(attempt, changes.touched)
            if unseen := history.unseen():
                text = f"In no checkpoint, because it could not be read: {', '.join(unseen)}"
                yield Notice(text, Tone.WARNING)
            for event in self._apply(step, changes, attempt):
                yield event
        except ReplyRefused as refusal:
            detail = "\n".join(filter(None, (refusal.message, refusal.hint)))
            yield Outcome(ChangeSet(()), None, f"The reply was not used. {detail}", detail, refusal.unseen)
            return
        async with aclosing(self._verified(step, check, changes, attempt, before, bool(edits))) as items:
            async for item in items:
                if isinstance(item, Outcome):
                    await history.after(attempt)
                yield item

    async def _verified(
        self, step: PlanStep, check: Check | None, changes: ChangeSet, attempt: Attempt, before: Before, has_edits: bool
    ) -> AsyncGenerator[Event | Outcome, None]:
        """Run the step's check over what was written, if there is one and something to be checked."""
        if check is None:
            try:
                check = check_for(step, self.test_command, self.commands)  # the step may have brought the first tests
            except BadInput as error:  # or settings that nobody can read
                yield Outcome(changes, None, error.message, error.message)
                return
        if check is None or not (step.verify or has_edits):
            reason = "nothing to check" if check else "no check was asked for" if step.verify else "no tests were found"
            yield TestsFinished(step.number, Verification.NONE, reason, 0.0)
            yield Outcome(changes, Verification.NONE)
            return
        yield TestsStarted(step.number, check.shown)
        work = Work(changes, Asked.by(step, attempt.guidance), has_own_check=step.verify is not None)
        async with aclosing(verify(check, self.commands, self.test_timeout, attempt.folder, before, work)) as output:
            async for item in output:
                if isinstance(item, OutputChunk):
                    yield CommandOutput(step.number, item.text)
                    continue
                attempt.save_output(item.output)
                if item.tests is not None:
                    attempt.save_tests(item.tests)
                yield TestsFinished(step.number, item.verification, item.reason, item.seconds, item.notes)
                yield _judged(changes, item)

    async def _permitted(self, step: PlanStep, check: Check | None) -> AsyncGenerator[Event, None]:
        """A check that a person must agree to is asked about before anything is done, or paid for."""
        if check is None or not self.commands.must_ask(check.command):
            return
        yield CommandProposed(check.shown, check.command.objection)
        try:
            await self.commands.ask(check.command)
        except CommandRefused as refusal:
            why = f"The check of step {step.number}, `{check.shown}`, was not approved; nothing was written"
            raise NotApproved(why) from refusal

    async def _reply(self, step: PlanStep, prompt: Prompt, attempt: Attempt) -> AsyncGenerator[Event, None]:
        """Ask the model and save the reply before anything is done with it; a saved one is not asked for again."""
        if attempt.reply is not None:
            yield ReplyStarted(step.number, "", saved=True)
            return
        model = self.model()
        attempt.save_request(prompt.text, prompt.shown)
        yield ReplyStarted(step.number, model.name, prompt_tokens=estimated_prompt(prompt.request))
        pieces: list[str] = []
        async with aclosing(model.stream(prompt.request)) as stream:
            async for item in stream:
                match item:
                    case TextDelta(text=text):
                        pieces.append(text)
                        yield ReplyDelta(step.number, text)
                    case Waiting(seconds=seconds, reason=reason):
                        yield ReplyDelayed(step.number, seconds, reason)
                    case StartedAgain():
                        pieces.clear()
                        yield ReplyRestarted(step.number)
                    case ToolCall():  # none was offered
                        continue
                    case Done():
                        yield ReplyFinished(step.number, item.usage)
                        if item.stop_reason is not StopReason.STOP:
                            attempt.save_partial("".join(pieces))
                            raise ReplyRefused(_STOPPED[item.stop_reason])
        attempt.save_reply("".join(pieces))

    async def _approved(self, step: PlanStep, changes: ChangeSet) -> AsyncGenerator[Event, None]:
        """Ask for a person's yes, if there is something to say yes to. Raises `NotApproved`."""
        if not changes.changes:
            return
        proposed = ChangesProposed(step.number, changes.created, changes.modified, changes.deleted)
        yield proposed
        if await self.frontend.approve(proposed) is not Choice.YES:
            raise NotApproved(f"The changes of step {step.number} were not approved; nothing was written")

    def _apply(self, step: PlanStep, changes: ChangeSet, attempt: Attempt) -> Iterator[Event]:
        if not changes.changes:
            return
        attempt.journal(changes)
        try:
            changes.apply(self.root)  # the answer may have taken hours: each file is looked at once more
        except ReplyRefused:
            attempt.put_back()
            raise
        declared = {file.path.removeprefix("./") for file in step.files_affected}
        undeclared = tuple(path for path in changes.touched if declared and path not in declared)
        yield ChangesApplied(step.number, changes.created, changes.modified, undeclared, changes.deleted)


_STOPPED = {
    StopReason.LENGTH: "The reply was cut by the model's length limit; nothing of it was used.",
    StopReason.REFUSED: "The provider's content filter stopped the reply; nothing of it was used.",
}


def _terms(step: PlanStep, attempt: Attempt) -> Terms:
    """What the model knew when it wrote the reply, and what the step and its guidance ask for."""
    shown, asked = attempt.shown, Asked.by(step, attempt.guidance)
    return Terms(shown.files if shown else {}, frozenset(asked.notes), asked.to_shorten)


def _usable(step: PlanStep, text: str) -> tuple[Edit, ...]:
    """The reply's edits, if it is one that this kind of step can do something with."""
    if not text.strip():
        raise ReplyRefused("The model sent an empty reply.")
    edits = parse_reply(text).edits
    if step.files_affected and not edits:
        raise ReplyRefused(
            "The reply gives no file, and this step names files.",
            hint="Each new file is needed as a code block whose info string is `language:path`, each change as a "
            "search/replace block below the file's path.",
        )
    return edits


def _judged(changes: ChangeSet, verdict: Verdict) -> Outcome:
    if verdict.verification is not None:
        return Outcome(changes, verdict.verification)
    parts = (verdict.reason, verdict.advice, useful_end(verdict.output))
    return Outcome(changes, None, verdict.reason, "\n\n".join(filter(None, parts)))
