"""Verifies a ticket again: runs completed steps' checks on the current files, and finds
what no longer holds.

Checks run in a private tree, each distinct command once. Plan, state and record are
only read, without the ticket's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct, field

from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.engine.accepted import KnownTests
from cdd_agent.engine.lock import is_other_at_work
from cdd_agent.engine.missing_work import compare_files
from cdd_agent.engine.private_tree import PrivateTree, private_tree
from cdd_agent.engine.record import RunRecord
from cdd_agent.engine.step_check import finished_check
from cdd_agent.errors import BadInput, NotApproved
from cdd_agent.events.notices import Notice, Tone
from cdd_agent.events.question_events import CommandProposed
from cdd_agent.events.step_events import CommandOutput, TestsStarted
from cdd_agent.events.stream import Emit
from cdd_agent.events.verify_events import (
    StepResult,
    VerifiedCheck,
    VerifiedStep,
    VerifyFinished,
    VerifyStarted,
)
from cdd_agent.process.policy import CommandRefused, CommandRunner
from cdd_agent.process.run import OutputChunk
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import in_thread
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.served_criteria import edited_criteria
from cdd_agent.tickets.state import ExecutionState, completed_steps
from cdd_agent.tickets.status import MissingWork, StepStatus, Verification
from cdd_agent.verification.before import Before
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import run_check
from cdd_agent.verification.checks import checks_for
from cdd_agent.verification.facts import Work
from cdd_agent.verification.outcomes import Difference, Result
from cdd_agent.verification.test_id import TestId
from cdd_agent.verification.verdict import CheckResult, judge_check


class Subject(Struct, frozen=True):
    """The saved run to verify."""

    plan: ImplementationPlan
    state: ExecutionState
    record: RunRecord
    criteria: tuple[str, ...] = ()
    """From the current spec."""

    @property
    def completed(self) -> list[PlanStep]:
        return completed_steps(self.plan, self.state)

    def require_completed(self) -> list[PlanStep]:
        """Raises `BadInput` if there are none."""
        completed = self.completed
        if not completed:
            slug = self.state.ticket_slug
            raise BadInput(
                f"{slug} has no completed step",
                hint=f"Run its plan with `cdd exec {slug}`.",
                refusal=Refusal.NOTHING_TO_MOVE,
            )
        return completed

    def passed_tests(self, step: PlanStep) -> set[str]:
        entry = self.state.step(step.number)
        if not entry.attempts:
            return set()
        passed: set[str] = set()
        for run in self.record.attempt(entry.folder, entry.attempts).runs:
            passed.update(run.having(Result.PASSED))
        return passed

    @property
    def files(self) -> list[str]:
        """Files that the steps made."""
        names: dict[str, None] = {}
        for step in self.completed:
            entry = self.state.step(step.number)
            names.update(dict.fromkeys((*entry.files_created, *entry.files_modified)))
        return list(names)


async def permit_checks(
    checks: Iterable[Check], commands: CommandRunner, emit: Emit
) -> None:
    """Ask about each distinct check that needs approval. Raises `NotApproved` if one is
    refused.
    """
    for shown, check in {check.shown: check for check in checks}.items():
        if not commands.must_ask(check.command):
            continue
        emit(CommandProposed(shown, check.command.objection))
        try:
            await commands.ask(check.command)
        except CommandRefused as refusal:
            raise NotApproved(
                f"You did not approve `{shown}`, so nothing was verified"
            ) from refusal


class _PlannedCheck(Struct, frozen=True):
    check: Check
    steps: list[PlanStep] = field(default_factory=list)


class Verifier(Struct, frozen=True):
    """Runs completed steps' checks again."""

    commands: CommandRunner
    """For the project; `verify` uses a copy."""
    test_command: str | None
    limit: float
    """Seconds for a check."""
    emit: Emit

    async def verify(self, subject: Subject) -> VerifyFinished:
        """Verify the completed steps; emit and return the result.

        Raises `BadInput` if no step is completed, `NotApproved` if the user refuses a
        check, and `GitUnusable`.
        """
        slug, completed = subject.state.ticket_slug, subject.require_completed()
        if is_other_at_work(subject.record.folder):
            text = (
                f"Another process is working on {slug}. The current files are verified."
            )
            self.emit(Notice(text, Tone.WARNING))
        planned = self._plan_checks(completed, self.commands)
        checks = [each.check for each in planned.values()]
        await permit_checks(checks, self.commands, self.emit)
        self.emit(VerifyStarted(slug, tuple(planned)))
        before = KnownTests(subject.record).so_far(subject.state)
        root, env = self.commands.root, self.commands.env
        async with private_tree(root, subject.files, env) as tree:
            commands = tree.commands(self.commands)
            in_copy = self._plan_checks(completed, commands)
            runs = await self._run_checks(tree, in_copy, commands, before, subject)
        compare = partial(compare_files, subject.plan, subject.state, subject.record)
        files = await in_thread(compare, name="files")
        findings = _Findings(subject, in_copy, runs, before, files.missing)
        finished = findings.summarise(tree.missing)
        self.emit(finished)
        return finished

    def _plan_checks(
        self, steps: Sequence[PlanStep], commands: CommandRunner
    ) -> dict[str, _PlannedCheck]:
        """Return distinct checks by command, in step order. Raises `BadInput`."""
        planned: dict[str, _PlannedCheck] = {}
        for step in steps:
            for check in checks_for(step, self.test_command, commands):
                planned.setdefault(check.shown, _PlannedCheck(check)).steps.append(step)
        return planned

    async def _run_checks(
        self,
        tree: PrivateTree,
        planned: Mapping[str, _PlannedCheck],
        commands: CommandRunner,
        before: Before,
        subject: Subject,
    ) -> dict[str, CheckResult]:
        events = RedactedEvents(subject.record.redactor, self.emit)
        results: dict[str, CheckResult] = {}
        for shown, each in planned.items():
            number = each.steps[0].number

            def show(chunk: OutputChunk, number: int = number) -> None:
                events.emit(CommandOutput(number, chunk.text))

            events.emit(TestsStarted(number, shown))
            run = await run_check(each.check, commands, self.limit, tree.folder, show)
            judge = partial(judge_check, each.check, run, before, Work())
            results[shown] = await in_thread(judge, name="judge")
            events.emit(finished_check(number, results[shown]))
        return results


class _Findings(Struct, frozen=True):
    subject: Subject
    planned: Mapping[str, _PlannedCheck]
    results: Mapping[str, CheckResult]
    before: Before
    missing: Sequence[MissingWork]

    def summarise(self, not_copied: tuple[str, ...]) -> VerifyFinished:
        subject = self.subject
        difference = self._compare_tests()
        passed = {step.number: subject.passed_tests(step) for step in subject.completed}
        steps = tuple(
            self._verify_step(step, passed.get(step.number, set()), difference)
            for step in subject.plan.order()
        )
        passed_anywhere = set[str]().union(*passed.values())
        places = {place for test in passed_anywhere for place in _places(test)}
        checks = tuple(
            VerifiedCheck(
                shown,
                tuple(step.label for step in self.planned[shown].steps),
                result.has_failed,
                subject.record.redactor.redact(result.reason),
                result.run.seconds,
            )
            for shown, result in self.results.items()
        )
        has_failed = any(check.has_failed for check in checks)
        return VerifyFinished(
            subject.state.ticket_slug,
            steps,
            checks,
            other_failures=tuple(
                test for test in difference.new_failures if test not in places
            ),
            edited_criteria=edited_criteria(
                subject.plan, subject.state, subject.criteria
            ),
            missing=not_copied if has_failed else (),
        )

    def _compare_tests(self) -> Difference:
        runs = [each.run.tests for each in self.results.values() if each.run.tests]
        return self.before.reference.compare(*runs) if runs else Difference()

    def _verify_step(
        self, step: PlanStep, passed: set[str], difference: Difference
    ) -> VerifiedStep:
        entry = self.subject.state.step(step.number)
        verified = partial(VerifiedStep, step.number, step.title, label=step.label)
        if entry.status is StepStatus.SKIPPED:
            return verified(StepResult.SKIPPED)
        if entry.status is not StepStatus.COMPLETED:
            return verified(StepResult.OPEN)
        failed = _find_failed(passed, difference.new_failures)
        lost = tuple(
            test for test in (*difference.gone, *difference.skipped) if test in passed
        )
        checks = tuple(self._failed_checks(step, passed))
        missing = [work for work in self.missing if work.step == step.number]
        was_verified = entry.verification is not Verification.NONE
        has_lost_check = was_verified and not self._has_check(step, passed)
        result = StepResult.HOLDS
        if checks or failed or lost or missing or has_lost_check:
            result = StepResult.BROKEN
        elif not was_verified:
            result = StepResult.UNVERIFIED
        return verified(
            result,
            checks=checks,
            failed=failed,
            lost=lost,
            missing=missing[0] if missing else None,
            has_lost_check=has_lost_check,
        )

    def _has_check(self, step: PlanStep, passed: set[str]) -> bool:
        """True if a check of the step ran, with tests if any had `passed`. It may
        differ from the earlier check.
        """
        results = [
            self.results[shown]
            for shown, each in self.planned.items()
            if step in each.steps
        ]
        if not passed:
            return bool(results)
        return any(each.run.has_tests or each.has_failed for each in results)

    def _failed_checks(self, step: PlanStep, passed: set[str]) -> list[str]:
        """Return checks that fail for other reasons than single tests. Without reported
        tests, the exit code decides.
        """
        return [
            shown
            for shown, result in self.results.items()
            if step in self.planned[shown].steps
            and result.has_failed
            and (not result.counted or not passed)
        ]


def _places(test: str) -> set[str]:
    """Return a test with its class, file and folders: if it cannot be collected, one of
    these fails.
    """
    return {test, *TestId.parse(test).places()}


def _find_failed(passed: Iterable[str], failures: Sequence[str]) -> tuple[str, ...]:
    failed = set(failures)
    return tuple(sorted(test for test in passed if failed & _places(test)))
