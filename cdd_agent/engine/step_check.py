"""The second half of an attempt at a step: is its reply of use, and was what it made
seen to work?
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.edits.formats.known import KnownNames
from cdd_agent.edits.model import Reply, ReplyRefused
from cdd_agent.edits.parse import parse_reply
from cdd_agent.engine.attempt import Attempt, AttemptOutcome
from cdd_agent.engine.step_tools import refused_calls
from cdd_agent.engine.test_leave import TestLeave
from cdd_agent.engine.transaction import StepTransaction
from cdd_agent.errors import BadInput
from cdd_agent.events import (
    CommandOutput,
    Emit,
    TestsFinished,
    TestsStarted,
)
from cdd_agent.frontend import Frontend, Nobody
from cdd_agent.llm.pictures import is_picture
from cdd_agent.process.policy import CommandRunner
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.before import Before
from cdd_agent.verification.checks import Check, check_for
from cdd_agent.verification.failures import failed_tests
from cdd_agent.verification.lost_tests import Comparison, compare_tests
from cdd_agent.verification.outcomes import Result
from cdd_agent.verification.permissions import Permissions
from cdd_agent.verification.targets import Assignment
from cdd_agent.verification.testcode import Place, is_data, place_of
from cdd_agent.verification.verdict import (
    NOTHING_DONE,
    Verdict,
    Work,
    judge_unchecked,
    judge_with_leave,
    useful_end,
    verify,
)


def usable_reply(transaction: StepTransaction) -> Reply:
    """The saved reply, if it is one that this kind of step can do something with; it
    may have acted by tools. Raises `ReplyRefused`.
    """
    text = transaction.attempt.reply or ""
    if not text.strip():
        raise ReplyRefused("The model sent an empty reply.")
    step = transaction.step
    declared = transaction.declared
    words = "\n".join(
        filter(
            None,
            (
                step.title,
                step.description,
                step.check_lines,
                transaction.attempt.all_guidance,
            ),
        )
    )
    reply = parse_reply(text, KnownNames.of(transaction.root, declared.paths, words))
    has_acted = reply.changes_files or transaction.changes.changes
    written = transaction.changes.touched
    unclear = [
        doubt
        for doubt in reply.doubts
        if not has_acted or (doubt.is_asked and doubt.path not in written)
    ]
    if unclear:
        hint = (
            "Give a file in a code block whose info string is `language:path`. Write no"
            " file's name just above a "
        )
        hint += "block that is none."
        raise ReplyRefused("\n".join(f"{doubt}." for doubt in unclear), hint=hint)
    if not has_acted and _needs_files(transaction):
        hint = (
            "Each new file is needed as a code block whose info string is"
            " `language:path`, each change as a "
        )
        hint += "search/replace block below the file's path."
        if transaction.call_by_call:
            hint = (
                "Make each new file by a call of `create_file`, and each change by a"
                " call of `edit_file`."
            )
        if refused := refused_calls(transaction.attempt.dialogue):
            hint = "\n".join((hint, NOTHING_DONE, *(f"- {call}" for call in refused)))
        raise ReplyRefused(
            "The reply gives no file, and this step names files.", hint=hint
        )
    return reply


def _needs_files(transaction: StepTransaction) -> bool:
    """True if the step declares files that a reply can change: no reply changes a
    picture.
    """
    places = transaction.declared.places
    return any(not is_picture(transaction.root, path) for path in places)


class StepChecker(Struct, frozen=True):
    """Checks what an attempt at a step did, and judges it."""

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
        check: Check | None,
        before: Before,
        attempts: Sequence[Attempt],
        reply: Reply,
    ) -> AttemptOutcome:
        """Run the step's check, if there is one and the attempt did something.

        Takes the attempt's last checkpoint when the check is over. `attempts` are all
        attempts at this step that may have left something.
        """
        step, attempt, history = (
            transaction.step,
            transaction.attempt,
            transaction.history,
        )
        changes = transaction.changes

        async def is_something() -> bool:
            """Edits, also such as were there already, or what commands did."""
            return bool(
                reply.changes_files
                or changes.changes
                or (await history.net([attempt])).changes
            )

        async def tests() -> Comparison:
            """Compare the tests before the step with those after it. Data that only
            the check changed does not count: tests tidy up.
            """
            await history.after(attempt)
            versions = await history.versions(
                attempts, lambda path: place_of(path) is not Place.NONE
            )
            known = {*changes.touched, *await history.by_commands(attempts)}
            looked_at = tuple(
                file
                for file in versions
                if not is_data(file.path) or file.path in known
            )
            return await asyncio.to_thread(compare_tests, looked_at)

        if check is None:
            try:
                # the step may have brought the first tests
                check = check_for(step, self.test_command, self.commands)
            except BadInput as error:  # or settings that nobody can read
                await history.after(attempt)
                return AttemptOutcome(changes, None, error.message, error.message)
        guidance = attempt.all_guidance
        assignment = Assignment(self.root, step, before.agenda, guidance, changes)
        leave = TestLeave(step, attempt, self.user, self.commands.clock, self.emit)
        permissions = Permissions.of_step(step, transaction.declared, guidance)
        work = Work(changes, permissions, step.checks is not None, assignment)
        if check is None or not (step.checks is not None or await is_something()):
            reason = (
                "nothing to check"
                if check
                else "no check was asked for"
                if step.checks is not None
                else "no tests were found"
            )
            work = replace(work, tests=await tests())
            refused = () if await is_something() else refused_calls(attempt.dialogue)
            work = replace(work, refused=refused)
            verdict = await judge_with_leave(
                partial(judge_unchecked, reason), work, leave.allow
            )
        else:
            self.emit(TestsStarted(step.number, check.shown))
            verdict = await verify(
                check,
                self.commands,
                self.test_timeout,
                attempt.folder,
                before,
                work,
                tests,
                lambda chunk: self.emit(CommandOutput(step.number, chunk.text)),
                leave.allow,
            )
            attempt.save_output(verdict.output)
            if verdict.tests is not None:
                attempt.save_tests(verdict.tests, before.reference)
        self.emit(_tested(step, check, verdict))
        if verdict.verification is not None:
            return AttemptOutcome(
                changes, verdict.verification, verdict.reason, evidence=verdict.evidence
            )
        detail = "\n\n".join(
            filter(None, (verdict.reason, verdict.advice, useful_end(verdict.output)))
        )
        return AttemptOutcome(
            changes,
            None,
            ". ".join(filter(None, (verdict.reason, leave.hint))),
            detail,
            unseen=verdict.to_show,
            evidence=verdict.evidence,
        )


def _tested(step: PlanStep, check: Check | None, verdict: Verdict) -> TestsFinished:
    tests = verdict.tests
    passed, failed, skipped = (
        tests.count(result) if tests else None
        for result in (Result.PASSED, Result.FAILED, Result.SKIPPED)
    )
    return TestsFinished(
        step.number,
        verdict.verification,
        verdict.reason,
        verdict.seconds,
        verdict.notes,
        check.shown if check else "",
        passed,
        failed,
        skipped,
        failed_tests(tests, verdict.counted) if tests else (),
        verdict.evidence,
    )
