"""The second half of an attempt: read the reply, run the checks, judge the changes."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.changes.change_set import ChangeSet
from cdd_agent.changes.formats.project_names import ProjectNames
from cdd_agent.changes.model import EditProblem, Reply, ReplyFault, ReplyRefused
from cdd_agent.changes.parse import parse_reply
from cdd_agent.engine.attempt import Attempt, AttemptOutcome
from cdd_agent.engine.ledger_entries import changed_by_commands
from cdd_agent.engine.step_tools import has_acted, refused_calls
from cdd_agent.engine.test_leave import TestLeave
from cdd_agent.engine.transaction import StepTransaction
from cdd_agent.errors import BadInput, CddError, CheckUnusable
from cdd_agent.events.step_events import CommandOutput, TestsFinished, TestsStarted
from cdd_agent.events.stream import Emit
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.hidden_from_models import HiddenFiles
from cdd_agent.frontend import Frontend, Nobody
from cdd_agent.llm.pictures import is_picture
from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import OutputChunk
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.before import Before
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import run_check
from cdd_agent.verification.checks import checks_for
from cdd_agent.verification.detection import why_no_check
from cdd_agent.verification.facts import Work
from cdd_agent.verification.failures import failed_tests
from cdd_agent.verification.lost_tests import Comparison, compare_tests
from cdd_agent.verification.outcomes import Result
from cdd_agent.verification.permissions import Permissions
from cdd_agent.verification.rule_words import NOTHING_DONE
from cdd_agent.verification.targets import Assignment
from cdd_agent.verification.testcode.test_files import (
    LikelihoodOfTests,
    is_data,
    place_of,
)
from cdd_agent.verification.verdict import (
    CheckResult,
    Verdict,
    judge,
    judge_check,
    judge_with_leave,
)

_HOW_TO_MAKE_USABLE = (
    "Install the program, or set `test_command` in .cdd/config.yaml or the"
    " step's `**Verify:**` to a command that runs the tests once and exits. Then"
    " run the step again: it continues with its saved reply, and the model is"
    " not called."
)


def usable_reply(transaction: StepTransaction) -> Reply:
    """Return the saved reply if the step can use it. Raises `ReplyRefused`.

    If tools changed files, the reply need not change any.
    """
    text = transaction.attempt.reply or ""
    if not text.strip():
        raise ReplyRefused("The model sent an empty reply.", fault=ReplyFault.EMPTY)
    step = transaction.step
    declared = transaction.declared
    texts = (
        step.title,
        step.description,
        step.check_lines,
        transaction.attempt.all_guidance,
    )
    words = "\n".join(text for text in texts if text)
    project_names = ProjectNames.collect(
        transaction.root,
        declared.paths,
        words,
        has_tools=transaction.call_by_call,
    )
    reply = parse_reply(text, project_names)
    has_acted = bool(reply.changes_files or transaction.changes.changes)
    written = transaction.changes.touched
    unclear = [
        doubt
        for doubt in reply.doubts
        if not has_acted or (doubt.is_requested and doubt.path not in written)
    ]
    if unclear:
        hint = (
            "Give a file in a code block whose info string is `language:path`. Write no"
            " file's name just above a block that is none."
        )
        problems = tuple(EditProblem(doubt.path, f"{doubt}.") for doubt in unclear)
        raise ReplyRefused(
            "\n".join(f"{doubt}." for doubt in unclear), hint=hint, problems=problems
        )
    if has_acted or not _needs_files(transaction):
        return reply
    raise ReplyRefused(
        "The reply gives no file, and this step names files.",
        hint=_hint_on_files(transaction),
        fault=ReplyFault.NO_FILES,
    )


def _hint_on_files(transaction: StepTransaction) -> str:
    hint = (
        "Each new file is needed as a code block whose info string is"
        " `language:path`, each change as a search/replace block below the file's path."
    )
    if transaction.call_by_call:
        hint = (
            "Make each new file by a call of `create_file`, and each change by a"
            " call of `edit_file`."
        )
    refused = refused_calls(transaction.attempt.dialogue)
    if refused:
        hint = "\n".join((hint, NOTHING_DONE, *(f"- {call}" for call in refused)))
    return hint


def _needs_files(transaction: StepTransaction) -> bool:
    places = transaction.declared.places
    return any(not is_picture(transaction.root, path) for path in places)


class StepChecker(Struct, frozen=True):
    """Checks and judges an attempt."""

    root: Path
    commands: CommandRunner
    test_command: str | None
    test_timeout: float
    emit: Emit
    user: Frontend = field(default_factory=Nobody)
    """Answers whether the step may remove tests that its plan does not name."""

    async def check(
        self,
        transaction: StepTransaction,
        checks: Sequence[Check],
        before: Before,
        attempts: Sequence[Attempt],
        reply: Reply,
    ) -> AttemptOutcome:
        """Run checks in order while they pass. Nothing runs without checks, or if
        nothing changed and the plan names no check.

        `attempts` are those at this step whose changes may remain.
        """
        step, attempt = transaction.step, transaction.attempt
        changes = transaction.changes
        if not checks:
            try:
                # the step may have created the first tests
                checks = checks_for(step, self.test_command, self.commands)
            except BadInput as error:  # or unreadable settings
                await transaction.save_diff()
                return AttemptOutcome(changes, None, error.message, error.message)
        guidance = attempt.all_guidance
        work = Work(
            changes,
            permissions=Permissions.of_step(step, transaction.declared, guidance),
            has_own_check=bool(step.checks),
            needs_no_check=step.checks == (),
            assignment=Assignment(self.root, step, before.agenda, guidance, changes),
        )
        leave = TestLeave(step, attempt, self.user, self.commands.clock, self.emit)
        by_commands = changed_by_commands([attempt])
        has_changes = any((reply.changes_files, changes.changes, by_commands))
        is_due = step.checks is not None or has_changes
        if checks and is_due:
            results = await self._run_checks(transaction, checks, before, work)
            not_run = checks[len(results) :]
            why_unchecked = ""
        else:
            results, not_run = [], ()
            why_unchecked = await asyncio.to_thread(
                _why_unchecked, step, checks, self.root
            )
        has_run = bool(results) and has_acted(attempt.dialogue)
        if not has_changes and not has_run:
            work = replace(work, refused=refused_calls(attempt.dialogue))
        work = await _after_checks(transaction, attempts, work)
        verdict = await judge_with_leave(
            lambda work: judge(results, before, work, not_run, why_unchecked),
            work,
            leave.allow,
        )
        if verdict.is_unusable:
            raise CheckUnusable(verdict.reason, hint=_HOW_TO_MAKE_USABLE)
        if results:
            _save_results(attempt, verdict, before)
        self.emit(_steps_end(step, verdict))
        return _outcome(changes, verdict, leave.hint)

    async def _run_checks(
        self,
        transaction: StepTransaction,
        checks: Sequence[Check],
        before: Before,
        work: Work,
    ) -> list[CheckResult]:
        """Run checks until one fails, and enter their changes. Each but the last emits
        its end; the last ends with the verdict.
        """
        commands = "; ".join(check.shown for check in checks)
        states = transaction.start_command(commands)
        try:
            results = await self._run_each(transaction, checks, before, work)
        except BaseException:
            # the interruption's reason has priority
            with suppress(CddError):
                await transaction.take_over_from_check(states, commands)
            raise
        await transaction.take_over_from_check(states, commands)
        return results

    async def _run_each(
        self,
        transaction: StepTransaction,
        checks: Sequence[Check],
        before: Before,
        work: Work,
    ) -> list[CheckResult]:
        number = transaction.step.number

        def show(chunk: OutputChunk) -> None:
            self.emit(CommandOutput(number, chunk.text))

        results: list[CheckResult] = []
        for check in checks:
            if results:
                self.emit(finished_check(number, results[-1]))
            self.emit(TestsStarted(number, check.shown))
            run = await run_check(
                check,
                self.commands,
                self.test_timeout,
                transaction.attempt.folder,
                show,
            )
            result = await asyncio.to_thread(judge_check, check, run, before, work)
            results.append(result)
            if result.has_failed:
                break
        return results


async def _after_checks(
    transaction: StepTransaction, attempts: Sequence[Attempt], work: Work
) -> Work:
    tests = await _compare_tests(transaction, attempts)
    net = transaction.ledger.net(attempts)
    missing = [
        file.path
        for file in transaction.declared.files
        if file.file.is_created and not file.refusal and not file.exists
    ]
    return replace(
        work,
        tests=tests,
        # commands may change undeclared files
        changed=net.paths | changed_by_commands([transaction.attempt]),
        created=frozenset(net.files.created),
        missing=tuple(missing),
    )


async def _compare_tests(
    transaction: StepTransaction, attempts: Sequence[Attempt]
) -> Comparison:
    """Compare tests before and after the step. Data changed only by a check is
    excluded, because tests clean up.
    """
    await transaction.save_diff()
    versions = await transaction.ledger.versions(
        attempts, lambda path: place_of(path) is not LikelihoodOfTests.NONE
    )
    changed_paths = {*transaction.changes.touched, *changed_by_commands(attempts)}
    relevant = tuple(
        file
        for file in versions
        if not is_data(file.path) or file.path in changed_paths
    )
    charsets = Charsets(transaction.root)
    comparison = await asyncio.to_thread(compare_tests, relevant, charsets)
    hidden = HiddenFiles(transaction.root)
    shown = {
        path: text
        for path, text in comparison.contents.items()
        if not hidden.why(path, text.encode())
    }
    return replace(comparison, contents=shown)


def _why_unchecked(step: PlanStep, checks: Sequence[Check], root: Path) -> str:
    if checks:
        return "nothing to check"
    if step.checks is not None:
        return "the plan asks for no check"
    return why_no_check(root)


def _save_results(attempt: Attempt, verdict: Verdict, before: Before) -> None:
    outputs = [result.run.output for result in verdict.checks]
    if len(verdict.checks) + len(verdict.not_run) > 1:
        outputs = [
            f"$ {result.check.shown}\n{result.run.output}" for result in verdict.checks
        ]
    attempt.save_outputs(outputs)
    runs = [result.run for result in verdict.checks]
    attempt.save_checks(runs, before.reference)


def finished_check(step: int, result: CheckResult) -> TestsFinished:
    tests = result.run.tests
    event = TestsFinished(
        step,
        result.verification,
        result.reason,
        result.run.seconds,
        command=result.check.shown,
    )
    if tests is None:
        return event
    return replace(
        event,
        passed=tests.count(Result.PASSED),
        failed=tests.count(Result.FAILED),
        skipped=tests.count(Result.SKIPPED),
        failures=failed_tests(tests, result.counted),
    )


def _steps_end(step: PlanStep, verdict: Verdict) -> TestsFinished:
    event = TestsFinished(step.number, verdict.verification, verdict.reason, 0.0)
    if verdict.checks:
        event = finished_check(step.number, verdict.checks[-1])
    if verdict.verification is None:
        event = replace(event, verification=None, reason=verdict.reason)
    return replace(
        event,
        notes=verdict.notes,
        evidence=verdict.evidence,
        not_run=tuple(check.shown for check in verdict.not_run),
    )


def _outcome(changes: ChangeSet, verdict: Verdict, hint: str) -> AttemptOutcome:
    if verdict.verification is not None:
        return AttemptOutcome(
            changes, verdict.verification, verdict.reason, evidence=verdict.evidence
        )
    parts = (verdict.reason, verdict.advice, verdict.useful_output)
    return AttemptOutcome(
        changes,
        None,
        ". ".join(part for part in (verdict.reason, hint) if part),
        "\n\n".join(part for part in parts if part),
        unseen=verdict.to_show,
        evidence=verdict.evidence,
        refusal=verdict.refusal,
    )
