"""One attempt at a step: ask the model, apply its reply, run the checks. The caller
(`engine.py`) restores an attempt that does not complete the step; `step_check.py`
judges it.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.changes.model import ReplyFault, ReplyRefused
from cdd_agent.context.finder import CodeFinder
from cdd_agent.dialogue.calls import finished_rounds
from cdd_agent.dialogue.code_search import search_in_thread
from cdd_agent.dialogue.limits import Used
from cdd_agent.dialogue.token_budget import describe_left_out, tokens_for_answers
from cdd_agent.dialogue.turns import Added, Dialogue, ToolCalls, definitions
from cdd_agent.engine.approval import Approval, ChangesRefused
from cdd_agent.engine.attempt import Attempt, AttemptOutcome
from cdd_agent.engine.ledger import Ledger
from cdd_agent.engine.prompt import StepPrompt
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.steering import Steering
from cdd_agent.engine.step_check import StepChecker, usable_reply
from cdd_agent.engine.step_tools import StepTools
from cdd_agent.engine.transaction import StepTransaction
from cdd_agent.engine.tree_comparison import TreeComparison
from cdd_agent.errors import BadInput, NotApproved
from cdd_agent.events.dialogue_events import PromptMade, ReplyStarted
from cdd_agent.events.notices import Notice, NoticeKind, Tone
from cdd_agent.events.question_events import CommandProposed
from cdd_agent.events.run_events import BaselineStarted
from cdd_agent.events.step_events import ChangesApplied, GuidanceTaken
from cdd_agent.events.stream import Emit, ignore_event
from cdd_agent.files.charsets import Charsets
from cdd_agent.frontend import Frontend, Nobody
from cdd_agent.llm.port import (
    ContextTooLong,
    Message,
    Model,
    PicturesRefused,
    PromptShare,
    Request,
    RequestRejected,
)
from cdd_agent.llm.token_estimates import estimate_prompt
from cdd_agent.process.policy import CommandRefused, CommandRunner
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.declared_files import declare_files
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.verification.baseline import (
    AlreadyOver,
    Baseline,
    as_event,
    is_of_use,
)
from cdd_agent.verification.before import Before
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import run_check
from cdd_agent.verification.checks import (
    check_problems,
    checks_for,
    project_checks,
    unused_runners,
)

MakePrompt = Callable[[int | None, int], StepPrompt]
"""Takes the model's window and the reserve for tools and their answers (0 without
tools), in tokens.
"""


class _NoRoomForTools(RequestRejected):
    """The step does not fit into the window together with the tools."""

    refusal = Refusal.WINDOW_TOO_SMALL


class StepRunner(Struct, frozen=True):
    """Makes attempts at steps. `model` is called only without a saved reply."""

    root: Path
    model: Callable[[], Model]
    approval: Approval
    test_command: str | None
    test_timeout: float
    protected: Callable[[Path], bool]
    commands: CommandRunner
    tool_calls: ToolCalls = "auto"
    code: CodeFinder | None = None
    """Finds code for prompts and for the model's searches."""
    emit: Emit = ignore_event
    steering: Steering = field(default_factory=Steering)
    user: Frontend = field(default_factory=Nobody)
    """Answers whether a step may remove tests that its plan does not name."""

    def check_commands(self, plan: ImplementationPlan) -> None:
        """Raise `BadInput` for checks that cannot run. The project is searched for
        tests only when needed.
        """
        messages: list[str] = []
        hints: list[str] = []
        for step in plan.steps:
            for error in self._check_problems(step):
                messages.append(f"Step {step.label}: {error.message}")
                hints.append(error.hint)
        if messages:
            raise BadInput(
                "\n".join(messages), hint=hints[0], refusal=Refusal.CHECK_UNUSABLE
            )

    def _check_problems(self, step: PlanStep) -> list[BadInput]:
        if step.checks is not None:
            return check_problems(step, self.test_command, self.commands)
        if self.test_command is None:
            return []
        try:
            project_checks(self.test_command, self.commands)
        except BadInput as error:
            return [error]
        return []

    def _project_checks_without(self, results: Before) -> list[Check]:
        checks = list(project_checks(self.test_command, self.commands))
        if results.baseline is not None:
            checks = [check for check in checks if check.shown not in results.runs]
        for note in unused_runners(self.test_command, self.root):
            self.emit(Notice(f"{note}.", Tone.WARNING))
        return checks

    async def complete_baseline(
        self,
        steps: Sequence[PlanStep],
        remaining: Sequence[PlanStep],
        results: Before,
        already: AlreadyOver,
        record: RunRecord,
    ) -> None:
        """Run the checks that have no `results` from before `steps`, and save theirs.

        The project's checks run only if one of the `remaining` steps is compared with
        them. A step's own check runs only if it just runs tests: an exit code could not
        excuse a step, and other programs might change files. `already` are steps whose
        files are there. A check that needs approval is left out. Raises `BadInput`.
        """
        first, label = steps[0].number, steps[0].label
        baseline = results.baseline or Baseline(step=first)
        project: list[Check] = []
        if self._needs_project_checks(results.baseline, steps, remaining):
            project = self._project_checks_without(results)
            baseline = replace(baseline, has_project_checks=True)
            if not project:
                record.save_baseline(baseline)
        comparison = TreeComparison(self.commands, self.test_timeout, self.emit)
        own_checks = self._own_checks(steps)
        for check in [*project, *(each for each in own_checks if each.only_runs_tests)]:
            if baseline.has(check.shown):
                continue
            is_known = check.shown in results.runs or baseline.knows(check)
            if check not in project and is_known:
                continue
            self.emit(BaselineStarted(first, check.shown))
            run = await run_check(
                check, self.commands, self.test_timeout, record.folder
            )
            await comparison.expect_files_for(
                check.shown, partial(self._judge_again, check.shown, steps), run
            )
            baseline = baseline.add(first, run, already)
            record.save_baseline_output(run)
            # after an interruption all project checks run again
            if check not in project[:-1]:
                record.save_baseline(baseline)
            is_own = check not in project
            self.emit(as_event(baseline.runs[-1], label, is_own=is_own))
        for check in own_checks if comparison.is_needed else ():
            if not check.asks_for_report:
                again = partial(self._judge_again, check.shown, steps)
                await comparison.expect_files_for(check.shown, again)

    def _judge_again(
        self, command: str, steps: Sequence[PlanStep], commands: CommandRunner
    ) -> Check | None:
        checks = [*project_checks(self.test_command, commands)]
        for step in steps:
            checks += checks_for(step, self.test_command, commands)
        return next((check for check in checks if check.shown == command), None)

    def _needs_project_checks(
        self,
        baseline: Baseline | None,
        steps: Sequence[PlanStep],
        remaining: Sequence[PlanStep],
    ) -> bool:
        """True if the project's checks were not searched for and now matter: a step
        without its own check may have been added.
        """
        if baseline is None:
            return is_of_use(remaining, self.test_command, self.commands)
        has_no_own_check = any(step.checks is None for step in steps)
        return has_no_own_check and not baseline.has_project_checks

    def _own_checks(self, steps: Sequence[PlanStep]) -> list[Check]:
        """Return checks that the steps name and that can run before them: their files
        exist, and they need no approval.
        """
        checks = []
        for step in steps:
            if step.checks is None:
                continue
            declared = declare_files(self.root, step)
            unwritten = {file.path for file in declared.files if not file.exists}
            for check in checks_for(step, self.test_command, self.commands):
                if check.names_any(unwritten):
                    continue
                if not self.commands.must_ask(check.command):
                    checks.append(check)
        return checks

    async def attempt(
        self,
        step: PlanStep,
        plan: ImplementationPlan,
        prompt: MakePrompt,
        attempt: Attempt,
        before: Before,
        ledger: Ledger,
        earlier: Sequence[Attempt] = (),
    ) -> AttemptOutcome:
        """Make an attempt. `before` are the results from before the step; changes of
        `earlier` attempts may still be in the tree.

        Raises `ModelError`, `BudgetExhausted`, `NotApproved`, `GitUnusable` if no
        checkpoint can be taken, and `BadInput` if the disk or a check refuses.
        """
        checks = checks_for(step, self.test_command, self.commands)
        await self._permit(step, checks)
        clock = self.commands.clock
        declared = declare_files(self.root, step)
        transaction = StepTransaction(
            self.root,
            step,
            declared,
            attempt,
            ledger,
            self.approval,
            self.protected,
            clock,
            self.emit,
        )
        try:
            await self._reply(plan, prompt, transaction)
            reply = await asyncio.to_thread(usable_reply, transaction)
            for doubt in reply.doubts:
                self.emit(Notice(f"{doubt}.", Tone.WARNING, kind=NoticeKind.FILE_NOTE))
            await transaction.change(reply.edits)
        except ReplyRefused as refusal:
            if transaction.is_begun:
                await transaction.save_diff()
            return _refused(transaction, refusal)
        await transaction.begin()
        await self._report_changes(transaction)
        checker = StepChecker(
            self.root,
            self.commands,
            self.test_command,
            self.test_timeout,
            self.emit,
            self.user,
        )
        outcome = await checker.check(
            transaction, checks, before, (*earlier, attempt), reply
        )
        if outcome.verification is not None:
            return outcome
        # blocks read as explanations, or changes that the user left out, may be why the
        # step failed
        more = [f"{doubt}." for doubt in reply.doubts]
        if transaction.told:
            more.append(transaction.told)
        return replace(outcome, detail="\n\n".join((outcome.detail, *more)))

    async def _report_changes(self, transaction: StepTransaction) -> None:
        step, changes = transaction.step, transaction.changes
        if not changes.changes:
            return
        declared = transaction.declared
        undeclared = tuple(
            path for path in changes.touched if declared and not declared.covers(path)
        )
        files = await asyncio.to_thread(changes.files, Charsets(transaction.root))
        self.emit(
            ChangesApplied(
                step.number,
                changes.created,
                changes.modified,
                undeclared,
                changes.deleted,
                files,
                changes.renamed,
            )
        )

    async def _permit(self, step: PlanStep, checks: Sequence[Check]) -> None:
        """Ask about checks that need approval, before anything is written or paid for.
        Raises `NotApproved`.
        """
        for check in checks:
            if not self.commands.must_ask(check.command):
                continue
            self.emit(CommandProposed(check.shown, check.command.objection))
            try:
                await self.commands.ask(check.command)
            except CommandRefused as refusal:
                why = (
                    f"You did not approve the check of step {step.label},"
                    f" `{check.shown}`. Nothing was written"
                )
                raise NotApproved(why) from refusal

    async def _reply(
        self,
        plan: ImplementationPlan,
        prompt: MakePrompt,
        transaction: StepTransaction,
    ) -> None:
        """Ask the model, unless a reply is saved, and save the reply."""
        attempt = transaction.attempt
        tools = StepTools(transaction, self.commands, self.code)
        try:
            await tools.reapply(attempt.dialogue)
        except ReplyRefused as refusal:
            tools.discard_dialogue()
            self.emit(
                Notice(
                    f"The saved tool calls cannot be applied again: {refusal.message}",
                    Tone.WARNING,
                )
            )
        if attempt.reply is not None:
            self.emit(ReplyStarted(transaction.step.number, "", saved=True))
            return
        model = self.model()
        if self.tool_calls == "on" or (self.tool_calls == "auto" and model.calls_tools):
            offered, now = tools.offered(plan.steps), self.commands.clock.now
            try:
                dialogue = Dialogue(
                    model,
                    offered,
                    "on",
                    clock=now,
                    on_answer=tools.receive_answer,
                    emit=tools.emit,
                )
                await self._take_turn(dialogue, prompt, tools)
                return
            except RequestRejected as error:
                was_used = bool(attempt.dialogue)
                if was_used:  # the server would refuse it again
                    attempt.drop_dialogue()
                if (
                    was_used
                    or self.tool_calls == "on"
                    or isinstance(error, ContextTooLong | PicturesRefused)
                ):
                    raise
                why = _why_without_tools(error)
            words = f"{why}. Continuing without tools."
            self.emit(Notice(words, Tone.WARNING, kind=NoticeKind.NO_TOOLS))
        tools.discard_dialogue()
        await self._take_turn(Dialogue(model, emit=self.emit), prompt, tools)

    async def _take_turn(
        self, dialogue: Dialogue, make: MakePrompt, tools: StepTools
    ) -> None:
        """Take or continue the model's turn. Saves each complete message and the
        answers to its calls.

        Raises `ContextTooLong`, or `_NoRoomForTools` if the model has tools.
        """
        attempt, step = tools.transaction.attempt, tools.transaction.step
        spoken = attempt.dialogue or await self._request(dialogue, make, tools)

        def keep(added: Added) -> None:
            nonlocal spoken
            spoken += added.messages
            if any(each.tool_calls or each.role == "tool" for each in added.messages):
                attempt.save_dialogue(spoken, added.used.seconds)

        def keep_part(part: Added) -> None:
            if part.is_reply:
                attempt.save_reply(part.messages[-1].content)
            else:
                attempt.save_dialogue((*spoken, *part.messages), part.used.seconds)

        def take_guidance() -> tuple[str, ...]:
            words = tuple(map(attempt.add_words, self.steering.take()))
            for text in words:
                self.emit(GuidanceTaken(step.number, text, label=step.label))
            return words

        used = Used(finished_rounds(spoken), attempt.dialogue_seconds)
        with self.steering.heard() if dialogue.tools else nullcontext():
            turn = await dialogue.turn(
                spoken,
                keep=keep,
                keep_part=keep_part,
                step=step.number,
                used=used,
                take_guidance=take_guidance,
            )
        if turn.problem:
            attempt.save_partial(spoken[-1].content)
            raise ReplyRefused(
                f"{turn.problem} Nothing of it was used.",
                fault=ReplyFault.UNFINISHED,
                detail=f"{turn.problem[:1].lower()}{turn.problem[1:]}",
            )

    async def _request(
        self, dialogue: Dialogue, make: MakePrompt, tools: StepTools
    ) -> tuple[Message, ...]:
        transaction, attempt = tools.transaction, tools.transaction.attempt
        window = dialogue.model.window
        tools_share: tuple[PromptShare, ...] = ()
        if dialogue.tools:
            size = estimate_prompt(Request((), definitions(dialogue.tools)))
            tools_share = (PromptShare("the tools", size),)
            try:
                prompt = await self._made(
                    lambda: make(window, size + tokens_for_answers(window))
                )
            except ContextTooLong as error:
                text = (
                    "There is no room for tools in the model's window of"
                    f" {window:,} tokens"
                )
                raise _NoRoomForTools(text, hint=error.hint) from error
        else:
            prompt = await self._made(lambda: make(window, 0))
        for note in prompt.notes:
            self.emit(Notice(note, Tone.WARNING, kind=NoticeKind.NOT_SENT))
        if prompt.left_out:
            words = describe_left_out(prompt.left_out)
            self.emit(Notice(words, Tone.WARNING, kind=NoticeKind.NOT_SENT))
        if prompt.context is not None:
            attempt.save_context(prompt.context)
        shares = (*tools_share, *prompt.shares)
        step = transaction.step
        self.emit(
            PromptMade(step.number, shares, prompt.left_out, window, label=step.label)
        )
        attempt.save_request(prompt.text, prompt.shown)
        transaction.show(prompt.shown)
        return prompt.request.messages

    async def _made(self, make: Callable[[], StepPrompt]) -> StepPrompt:
        return await search_in_thread(
            make, self.emit, "Looking for code about this step …"
        )


def _why_without_tools(error: RequestRejected) -> str:
    if isinstance(error, _NoRoomForTools):
        return error.message
    if re.search("tool|function", error.message, re.IGNORECASE):
        return "The server does not support tools"
    return "The server refused a request with tools"


def _refused(transaction: StepTransaction, refusal: ReplyRefused) -> AttemptOutcome:
    changes, by_user = transaction.changes, transaction.told
    if isinstance(refusal, ChangesRefused):
        why = f"You rejected its changes: {refusal.reason}".removesuffix(": ")
        return AttemptOutcome(
            changes, None, why, by_user, refusal=refusal.refusal, is_by_person=True
        )
    detail = "\n".join(part for part in (refusal.message, refusal.hint) if part)
    if by_user:
        detail = f"{detail}\n\n{by_user}"
    return AttemptOutcome(
        changes,
        None,
        refusal.for_user,
        detail,
        refusal.unseen,
        refusal.lines,
        refusal=refusal.refusal,
    )
