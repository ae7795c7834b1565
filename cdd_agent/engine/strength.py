"""Measures a ticket's tests: tries small faults in changed lines, and counts those that
the steps' checks notice.

Everything runs in a private tree. Plan, state and the user's files are only read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from time import monotonic

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.dialogue.redacted_events import RedactedEvents
from cdd_agent.engine.private_tree import PrivateTree, private_tree
from cdd_agent.engine.project_digest import digest_project
from cdd_agent.engine.saved_faults import SavedFaults
from cdd_agent.engine.step_faults import StepFaults, find_step_faults, read_text_of
from cdd_agent.engine.strength_summary import StrengthSettings, StrengthSummary
from cdd_agent.engine.verify import Subject, permit_checks
from cdd_agent.errors import BadInput
from cdd_agent.events.stream import Emit
from cdd_agent.events.strength_events import (
    FaultTried,
    StrengthFinished,
    StrengthStarted,
)
from cdd_agent.files.atomic import NotWritten
from cdd_agent.files.charsets import Charsets
from cdd_agent.files.text import encode_file
from cdd_agent.process.policy import CommandRunner
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.threads import in_thread
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import CheckRun, run_check
from cdd_agent.verification.checks import checks_for
from cdd_agent.verification.strength.fault import Fault
from cdd_agent.verification.strength.score import (
    FaultResult,
    TriedFault,
    has_passed,
    judge_fault,
    limit_with_fault,
)

_PATIENCE = 10.0
"""Seconds to wait for a reading thread after Ctrl+C."""


class StrengthMeter(Struct, frozen=True):
    """Tries faults with completed steps' checks."""

    commands: CommandRunner
    """For the project; faults are tried in a copy."""
    settings: StrengthSettings
    limit: float
    """Seconds for a check without a fault."""
    emit: Emit
    most_faults: int
    most_seconds: float
    """For a step's faults. The fault that is being tried then is the last."""

    async def measure(self, subject: Subject) -> StrengthFinished:
        """Try faults without saved results; emit and return the scores. If cancelled,
        emits the scores so far.

        Raises `BadInput` if no step is completed, `NotApproved` if the user refuses a
        check, and `GitUnusable`.
        """
        subject.require_completed()
        state, record = subject.state, subject.record
        project = await in_thread(
            partial(digest_project, record.root, self.settings.tickets_dir),
            name="digest",
            patience=_PATIENCE,
        )
        faults = await in_thread(
            partial(find_step_faults, state, record, self.most_faults),
            name="faults",
            patience=_PATIENCE,
        )
        emit = RedactedEvents(record.redactor, self.emit).emit
        saved = SavedFaults.load(record, project)
        summary = StrengthSummary(subject.plan, state, saved, self.settings)
        measuring = _Measuring(replace(self, emit=emit), subject, summary, faults)
        try:
            await measuring.run()
        except asyncio.CancelledError:
            emit(measuring.summarise(was_stopped=True))
            raise
        finished = measuring.summarise()
        emit(finished)
        return finished


class _Measuring(Struct, frozen=True):
    meter: StrengthMeter
    subject: Subject
    summary: StrengthSummary
    faults: Mapping[int, StepFaults]
    problems: dict[int, str] = field(default_factory=dict)
    """Step number → why its faults cannot be tried."""
    clean: dict[str, CheckRun] = field(default_factory=dict)
    """Command → run without a fault."""

    async def run(self) -> None:
        meter, subject = self.meter, self.subject
        total = sum(len(self._chosen(step)) for step in subject.completed)
        waiting = [step for step in subject.completed if self._untried(step)]
        untried = sum(len(self._untried(step)) for step in waiting)
        slug = subject.state.ticket_slug
        meter.emit(StrengthStarted(slug, total, total - untried))
        if not waiting:
            return
        checks: list[Check] = []
        for step in waiting:
            checks += self._checks(step, meter.commands)
        await permit_checks(checks, meter.commands, meter.emit)
        self.summary.saved.rewrite()
        root, env = meter.commands.root, meter.commands.env
        async with private_tree(root, subject.files, env) as tree:
            commands = tree.commands(meter.commands)
            for step in waiting:
                await self._measure_step(step, tree, commands)

    def summarise(self, *, was_stopped: bool = False) -> StrengthFinished:
        summary, subject = self.summary, self.subject
        steps = [
            summary.summarise_step(
                step, len(self._untried(step)), self.problems.get(step.number, "")
            )
            for step in subject.completed
        ]
        return StrengthFinished(
            subject.state.ticket_slug,
            tuple(steps),
            summary.summarise_criteria(subject.criteria),
            summary.settings.threshold,
            was_stopped,
        )

    def _chosen(self, step: PlanStep) -> Sequence[Fault]:
        return self.faults.get(step.number, StepFaults()).faults

    def _untried(self, step: PlanStep) -> list[Fault]:
        results = self.summary.results_of(step)
        return [fault for fault in self._chosen(step) if fault not in results]

    def _checks(self, step: PlanStep, commands: CommandRunner) -> tuple[Check, ...]:
        return checks_for(step, self.meter.settings.test_command, commands)

    async def _measure_step(
        self, step: PlanStep, tree: PrivateTree, commands: CommandRunner
    ) -> None:
        checks = self._checks(step, commands)
        problem = await self._find_problem(checks, tree, commands)
        if problem:
            self.problems[step.number] = problem
            return
        end = monotonic() + self.meter.most_seconds
        tried: list[TriedFault] = []
        for fault in self._untried(step):
            if monotonic() >= end:
                break
            text = self.faults[step.number].texts[fault.path]
            one = await self._try_fault(fault, text, checks, tree, commands)
            tried.append(one)
            self.summary.saved.add(self.summary.identify(step), one)
            self._report(step, one)
        if any(one.result is FaultResult.NOTICED for one in tried):
            await self._check_again(step, tried, checks, tree, commands)

    async def _find_problem(
        self, checks: Sequence[Check], tree: PrivateTree, commands: CommandRunner
    ) -> str:
        """Return why faults cannot be tried; empty if all checks pass without a
        fault.
        """
        if not checks:
            return "it has no check"
        for check in checks:
            if check.shown not in self.clean:
                limit = self.meter.limit
                run = await run_check(check, commands, limit, tree.folder)
                self.clean[check.shown] = run
            run = self.clean[check.shown]
            if not has_passed(run):
                why = run.unusable or run.problem or f"exit code {run.return_code}"
                return f"`{check.shown}` does not pass without a fault ({why})"
        return ""

    async def _check_again(
        self,
        step: PlanStep,
        tried: Sequence[TriedFault],
        checks: Sequence[Check],
        tree: PrivateTree,
        commands: CommandRunner,
    ) -> None:
        """Repeat the checks without a fault. If one fails, earlier failures had other
        reasons, so new results are dropped.
        """
        self.clean.clear()
        if await self._find_problem(checks, tree, commands):
            faults = [one.fault for one in tried]
            self.summary.saved.drop(self.summary.identify(step), faults)
            self.problems[step.number] = (
                "its checks no longer pass on the unchanged code, so the results"
                " are not used"
            )

    async def _try_fault(
        self,
        fault: Fault,
        text: str,
        checks: Sequence[Check],
        tree: PrivateTree,
        commands: CommandRunner,
    ) -> TriedFault:
        path = PurePosixPath(fault.path)
        place = tree.root / path
        charsets = Charsets(tree.root)
        current = read_text_of(tree.root, path, charsets)
        if current is None or current.text != text:
            raise BadInput(
                f"{fault.path} changed while the measurement started",
                hint="Run it again.",
                refusal=Refusal.TREE_DIFFERS,
            )
        result, seconds, timed_out = FaultResult.NOT_NOTICED, 0.0, False
        original = place.read_bytes()
        with_fault = encode_file(path, fault.apply(text), current, charsets)
        _write(place, with_fault)
        try:
            for check in checks:
                limit = limit_with_fault(self.clean[check.shown])
                run = await run_check(check, commands, limit, tree.folder)
                result = judge_fault(run)
                seconds, timed_out = seconds + run.seconds, run.timed_out
                if result is not FaultResult.NOT_NOTICED:
                    break
        finally:
            _write(place, original)
        return TriedFault(fault, result, timed_out, round(seconds, 2))

    def _report(self, step: PlanStep, one: TriedFault) -> None:
        results = self.summary.results_of(step)
        chosen = self._chosen(step)
        judged = [results[fault] for fault in chosen if fault in results]
        fault = one.fault
        self.meter.emit(
            FaultTried(
                step.number,
                fault.path,
                fault.line,
                fault.words,
                one.result.value,
                len(judged),
                len(chosen),
                sum(other.result is FaultResult.NOTICED for other in judged),
                label=step.label,
            )
        )


def _write(place: Path, data: bytes) -> None:
    """Raises `BadInput`."""
    try:
        place.write_bytes(data)
    except OSError as error:
        raise NotWritten(place, error) from error
