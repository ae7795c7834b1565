"""Judges a step by the first rule of `rules.py` that matches its checks and changes."""

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cdd_agent.events.question_events import LostTest
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import Evidence, Verification
from cdd_agent.verification.before import Before
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.facts import CheckFacts, StepFacts, Work
from cdd_agent.verification.harness import conftests
from cdd_agent.verification.outcomes import Difference, Result, SuiteRun, merge_runs
from cdd_agent.verification.permissions import Permissions
from cdd_agent.verification.rule_words import in_a_line, useful_end
from cdd_agent.verification.rules import (
    CHANGE_RULES,
    CHECK_RULES,
    RESULT_RULES,
    RuleResult,
    proof_of,
    reason_of,
)
from cdd_agent.verification.test_id import TestId

AskForLeave = Callable[[Sequence[LostTest]], Awaitable[frozenset[str]]]
"""Asks the user whether the step may lose tests. Returns the ids of all that it may
lose; none if refused.
"""


class CheckResult(Struct, frozen=True):
    facts: CheckFacts
    finding: RuleResult | None
    """By the first matching rule; None if the check passed."""
    refusal: Refusal | None = None

    @property
    def check(self) -> Check:
        return self.facts.check

    @property
    def run(self) -> CheckRun:
        return self.facts.run

    @property
    def has_failed(self) -> bool:
        return self.finding is not None and self.finding.verification is None

    @property
    def verification(self) -> Verification | None:
        """None if the check failed."""
        return None if self.has_failed else proof_of(self.facts)

    @property
    def reason(self) -> str:
        """The result in one line."""
        return self.finding.reason if self.finding else reason_of(self.facts)

    @property
    def counted(self) -> tuple[str, ...]:
        """The failed tests that make the step fail."""
        return self.facts.counted


class Verdict(Struct, frozen=True):
    """`verification` is None if the step failed."""

    verification: Verification | None
    reason: str
    """The checks' result in one line."""
    advice: str = ""
    """For the model, in addition to the output."""
    notes: tuple[str, ...] = ()
    """For the user, even if the step passed."""
    checks: tuple[CheckResult, ...] = ()
    """In order. Only the last can have failed."""
    not_run: tuple[Check, ...] = ()
    """The checks after the failed one."""
    to_show: frozenset[str] = frozenset()
    """Files that the model must see to restore their tests."""
    evidence: Evidence | None = None
    needs_leave: tuple[LostTest, ...] = ()
    """Lost or weakened tests. Empty if something else is wrong, or the plan says which
    tests the step may remove.
    """
    is_unusable: bool = False
    """True if no code change could make a check pass."""
    refusal: Refusal | None = None
    """None if the step passed."""

    @property
    def runs(self) -> tuple[SuiteRun, ...]:
        """The tests of each check that reports them."""
        return tuple(
            each.run.tests for each in self.checks if each.run.tests is not None
        )

    @property
    def useful_output(self) -> str:
        """The failed check's output for the model, or all outputs if none failed.
        Several are labelled.
        """
        shown = [each for each in self.checks if each.has_failed] or list(self.checks)
        outputs = [(each.check, useful_end(each.run.output)) for each in shown]
        if len(self.checks) + len(self.not_run) == 1:
            return outputs[0][1]
        return "\n\n".join(
            f"Output of `{check.shown}`:\n{output}"
            for check, output in outputs
            if output
        )


async def judge_with_leave(
    judge_work: Callable[[Work], Verdict], work: Work, ask: AskForLeave
) -> Verdict:
    """Judge a step. If only permission is missing, `ask` for it and judge again."""
    verdict = await asyncio.to_thread(judge_work, work)
    if not verdict.needs_leave:
        return verdict
    allowed = await ask(verdict.needs_leave)
    if not allowed:
        return verdict
    verdict = await asyncio.to_thread(judge_work, _with_leave(work, allowed))
    tests = "a test" if len(allowed) == 1 else f"{len(allowed)} tests"
    reason = f"{verdict.reason}; {tests} removed or weakened, allowed by the user"
    evidence = verdict.evidence or Evidence(reason)
    return replace(verdict, reason=reason, evidence=replace(evidence, reason=reason))


def _with_leave(work: Work, allowed: frozenset[str]) -> Work:
    return replace(work, permissions=replace(work.permissions, allowed=allowed))


def judge_check(check: Check, run: CheckRun, before: Before, work: Work) -> CheckResult:
    """Reads the files of failed tests."""
    facts = CheckFacts(check, run, before, work)
    for rule in CHECK_RULES:
        finding = rule.find(facts)
        if finding is not None:
            return CheckResult(facts, finding, rule.refusal)
    return CheckResult(facts, None)


def judge(
    results: Sequence[CheckResult],
    before: Before,
    work: Work,
    not_run: Sequence[Check] = (),
    why_unchecked: str = "",
) -> Verdict:
    """`why_unchecked` is the reason if no check ran."""
    checks = tuple(replace(each.facts, work=work) for each in results)
    step = StepFacts(checks, before, work, why_unchecked)
    finding, refusal = _find(results, step)
    reason = finding.reason
    if not_run and finding.verification is None:
        commands = ", ".join(f"`{check.shown}`" for check in not_run)
        reason += f"; not run: {commands}"
    needs_leave: tuple[LostTest, ...] = ()
    if finding.lost and work.permissions.removes is None:
        allowed = frozenset(item.test for item in finding.lost)
        with_leave = replace(step, work=_with_leave(work, allowed))
        if _find(results, with_leave)[0].verification is not None:
            needs_leave = finding.lost
    return Verdict(
        finding.verification,
        reason,
        advice=finding.advice,
        notes=(*_notes(step), *_notes_on_test_files(work)),
        checks=tuple(results),
        not_run=tuple(not_run),
        to_show=frozenset(work.tests.contents),
        evidence=_evidence(step, reason),
        needs_leave=needs_leave,
        is_unusable=finding.is_unusable,
        refusal=refusal if finding.verification is None else None,
    )


def _find(
    results: Sequence[CheckResult], step: StepFacts
) -> tuple[RuleResult, Refusal | None]:
    for rule in CHANGE_RULES:
        finding = rule.find(step)
        if finding is not None:
            return finding, rule.refusal
    for result in results:
        if result.finding is not None and result.has_failed:
            return result.finding, result.refusal
    for rule in RESULT_RULES:
        finding = rule.find(step)
        if finding is not None:
            return finding, rule.refusal
    raise AssertionError("the last rule matches every step")


def _evidence(step: StepFacts, reason: str) -> Evidence:
    if not step.runs:
        return Evidence(reason)
    run = merge_runs(step.runs)
    passed, failed = run.having(Result.PASSED), run.having(Result.FAILED)
    excused: dict[str, str] = {}
    for each in step.checks:
        excused.update(each.targets.excused)
    labels = {excused[test] for test in failed if test in excused}
    return Evidence(
        reason,
        passed=len(passed),
        fixed=sum(step.was_failing(test) for test in passed),
        new=sum(step.is_new(test) for test in passed),
        failed=len(failed),
        old_failures=sum(
            step.was_failing(test) and test not in excused for test in failed
        ),
        excused=sum(test in excused for test in failed),
        excused_until=labels.pop() if len(labels) == 1 else "",
    )


def _without(excluded: Container[str], tests: Iterable[str]) -> tuple[str, ...]:
    return tuple(test for test in tests if test not in excluded)


def _notes(step: StepFacts) -> Iterator[str]:
    seen, work = step.difference, step.work
    counted = {test for each in step.checks for test in each.counted}
    excused: dict[str, str] = {}
    later: dict[str, PlanStep] = {}
    for each in step.checks:
        excused.update(each.targets.excused)
        later.update(each.targets.later)
    yield from _notes_on_leave(seen, work.permissions)
    for until in sorted(set(excused.values())):
        tests = [test for test, label in excused.items() if label == until]
        which = f"may fail until step {until}" if until else "may fail in this step"
        yield f"{which}, as the plan says: {in_a_line(tests)}"
    others = _without((*counted, *excused), seen.old_failures)
    for taker in sorted(set(later.values()), key=lambda taker: taker.number):
        tests = [test for test in others if later.get(test) == taker]
        if tests:
            names = in_a_line(tests)
            yield f"failed before too, step {taker.label} fixes them: {names}"
    others = _without(later, others)
    if others:
        yield f"failed before too: {in_a_line(others)}"
    changed = list(dict.fromkeys((*step.harness, *conftests(work.changes.changes))))
    if changed:
        yield f"the way tests run was changed: {in_a_line(changed)}"


def _notes_on_leave(seen: Difference, permissions: Permissions) -> Iterator[str]:
    for tests, what in ((seen.gone, "removed"), (seen.skipped, "skipped")):
        by_plan = []
        for name in tests:
            test = TestId.parse(name)
            if permissions.may_remove(test) and not permissions.is_allowed(test):
                by_plan.append(name)
        if by_plan:
            yield f"{what}, as the plan says: {in_a_line(by_plan)}"


def _notes_on_test_files(work: Work) -> Iterator[str]:
    allowed = sorted(work.permissions.allowed)
    if allowed:
        yield f"removed or weakened, allowed by the user: {in_a_line(allowed)}"
    moved = []
    for old, new in work.tests.moved.items():
        if not work.permissions.may_remove(old):
            moved.append(f"{old} → {new}")
    if moved:
        names = in_a_line(moved)
        yield f"tests were renamed, moved or merged: {names}"
    changed = []
    for test in work.tests.changed:
        if not work.permissions.names_file(test.file):
            changed.append(str(test))
    if changed:
        yield (
            "existing tests are changed, and the step does not name their files:"
            f" {in_a_line(changed)}"
        )
