"""The verdict on a step: what the results of its checks mean.

A check may report on each test. Then no test that passed before may fail, be gone or
be skipped. New tests and those that the step is about must pass. Any other command
passes by its exit code. All checks must pass.
"""

import asyncio
import re
from collections.abc import (
    Awaitable,
    Callable,
    Container,
    Iterable,
    Iterator,
    Sequence,
)

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.edits.changes import ChangeSet
from cdd_agent.events.question_events import LostTest
from cdd_agent.process.run import CommandResult
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.plan import PlanStep
from cdd_agent.tickets.status import Evidence, Verification
from cdd_agent.verification.before import Before
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import Ran
from cdd_agent.verification.harness import changes_of_harness, conftests, first_settings
from cdd_agent.verification.lost_tests import Comparison, Weakening
from cdd_agent.verification.outcomes import Difference, Result, SuiteRun, merge_runs
from cdd_agent.verification.permissions import REMOVES_TESTS, Permissions
from cdd_agent.verification.targets import Assignment, Targets
from cdd_agent.verification.test_id import TestId

_END_LINES, _END_CHARACTERS = 80, 6000
_NAMED, _LISTED = 3, 20
"""Tests that are named in a line, and in a list."""


class Work(Struct, frozen=True):
    """The changes of a step, and what its plan lets it change."""

    changes: ChangeSet = field(default_factory=lambda: ChangeSet(()))
    permissions: Permissions = field(default_factory=Permissions)
    has_own_check: bool = False
    assignment: Assignment | None = None
    """None if the step is about no particular test."""
    tests: Comparison = field(default_factory=Comparison)
    """The changes of existing tests, by their text."""
    refused: tuple[str, ...] = ()
    """The calls that were refused or failed, with their reasons, if nothing was
    changed.
    """


AskForLeave = Callable[[Sequence[LostTest]], Awaitable[frozenset[str]]]
"""Asks the user whether the step may lose tests. Returns the ids of all tests that it
may lose; none if the user refuses.
"""


class _Objection(Struct, frozen=True):
    """A reason why a step does not pass: a line for the user, and advice for the
    model.
    """

    reason: str
    advice: str = ""
    lost: tuple[LostTest, ...] = ()
    """Tests that the step may not remove, skip or weaken."""


class CheckResult(Struct, frozen=True):
    """The judged run of one check."""

    check: Check
    ran: Ran
    verification: Verification | None
    """None if the check failed."""
    reason: str
    """The result in one line."""
    counted: tuple[str, ...] = ()
    """The failed tests that count."""
    targets: Targets = field(default_factory=Targets)
    """The failed tests that matter to the step."""
    objections: tuple[_Objection, ...] = ()

    @property
    def tests(self) -> SuiteRun | None:
        return self.ran.tests


class Verdict(Struct, frozen=True):
    """The verdict on a step. `verification` is None if the step failed."""

    verification: Verification | None
    reason: str
    """The result of the checks in one line."""
    advice: str = ""
    """Advice for the model, in addition to the output."""
    notes: tuple[str, ...] = ()
    """Remarks for the user, also if the step passed."""
    checks: tuple[CheckResult, ...] = ()
    """The checks that ran, in order. Only the last one can have failed."""
    not_run: tuple[Check, ...] = ()
    """The checks after the failed one."""
    to_show: frozenset[str] = frozenset()
    """Files that the model must see to restore the tests in them."""
    evidence: Evidence | None = None
    needs_leave: tuple[LostTest, ...] = ()
    """Tests that the step removes or weakens. Empty if something else is wrong, or if
    the plan says which tests the step may remove.
    """

    @property
    def runs(self) -> tuple[SuiteRun, ...]:
        """The tests of each check that reports them."""
        return tuple(one.tests for one in self.checks if one.tests is not None)

    @property
    def useful_output(self) -> str:
        """The output of the failed check, as the model should see it. The output of all
        checks if none failed by itself. Each is named if there are several checks.
        """
        shown = [one for one in self.checks if one.objections] or list(self.checks)
        outputs = [(one.check, useful_end(one.ran.output)) for one in shown]
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
    """Judge a step. If nothing but leave is missing, `ask` for it and judge again."""
    verdict = await asyncio.to_thread(judge_work, work)
    if not verdict.needs_leave:
        return verdict
    allowed = await ask(verdict.needs_leave)
    if not allowed:
        return verdict
    permissions = replace(work.permissions, allowed=allowed)
    work = replace(work, permissions=permissions)
    verdict = await asyncio.to_thread(judge_work, work)
    tests = "a test" if len(allowed) == 1 else f"{len(allowed)} tests"
    reason = f"{verdict.reason}; {tests} removed or weakened, allowed by the user"
    evidence = verdict.evidence or Evidence(reason)
    return replace(verdict, reason=reason, evidence=replace(evidence, reason=reason))


def judge_check(check: Check, ran: Ran, before: Before, work: Work) -> CheckResult:
    """Judge the result of one check. A check that timed out or was cut short has
    failed.
    """
    tests = ran.tests
    if tests is None:
        return _judge_exit(check, ran, before)
    old_failures = before.reference.old_failures(tests)
    new_failures = before.reference.new_failures(tests)
    targets = Targets()
    if work.assignment is not None:
        targets = work.assignment.find_targets(
            old_failures, new_failures, before.reference
        )
    failures: Sequence[str] = (*new_failures, *targets.due)
    baseline = before.baseline.tests if before.baseline else None
    compares_all = baseline and tests.selection.is_no_narrower(baseline)
    if work.has_own_check and not compares_all:
        # the check names some tests: the step is about these
        failures = tests.having(Result.FAILED)
    counted = _without(targets.excused, failures)
    objections = tuple(_about_tests(check, ran.result, tests, targets, counted))
    verification: Verification | None = Verification.PASSED
    reason = f"`{check.shown}` passed"
    if objections:
        verification, reason = None, objections[0].reason
    elif old_failures or targets.excused:
        verification = Verification.BASELINE
        reason = f"`{check.shown}`: {tests.count(Result.PASSED)} passed"
        if old_failures:
            reason += f", {len(old_failures)} failed {_as(before)}"
        new = _without(old_failures, targets.excused)
        if new:
            reason += f", {len(new)} new may fail yet"
    elif not tests.count(Result.PASSED):
        verification = Verification.NONE
        reason = f"`{check.shown}` {_nothing_ran(tests)}"
    return CheckResult(check, ran, verification, reason, counted, targets, objections)


def _judge_exit(check: Check, ran: Ran, before: Before) -> CheckResult:
    """Judge a run that does not report on its tests, by its exit code."""
    objections = tuple(_about_exit(check, ran, before))
    if objections:
        return CheckResult(
            check, ran, None, objections[0].reason, objections=objections
        )
    reason = f"`{check.shown}` passed"
    if ran.unread:
        reason += f", {_BY_EXIT_CODE}: {ran.unread}"
    return CheckResult(check, ran, Verification.PASSED, reason)


def judge(
    results: Sequence[CheckResult],
    before: Before,
    work: Work,
    not_run: Sequence[Check] = (),
) -> Verdict:
    """Return the verdict on a step whose checks have these results. A test is gone or
    skipped only if none of the checks ran it.
    """
    runs = [one.tests for one in results if one.tests is not None]
    seen = before.reference.compare(
        *runs, written=work.changes.touched, tables=work.tests.tables
    )
    harness = _changes_of_harness(results, work)
    objections = [
        *(objection for one in results for objection in one.objections),
        *_about_missing(results, seen, work),
        *_about_test_files(work, seen),
        *_about_harness(harness, before, work),
    ]
    reason = "; ".join(one.reason for one in results)
    verification = None if objections else _weakest_proof(results)
    if objections:
        reason = objections[0].reason
        if not_run:
            reason += f"; not run: {', '.join(f'`{one.shown}`' for one in not_run)}"
    settings = dict.fromkeys((*harness, *conftests(work.changes.changes)))
    evidence = Evidence(reason)
    if runs:
        evidence = before.reference.evidence(merge_runs(runs), reason)
    return Verdict(
        verification,
        reason,
        advice="\n\n".join(
            objection.advice for objection in objections if objection.advice
        ),
        notes=(
            *_notes(seen, work, results, settings),
            *_notes_on_test_files(work),
        ),
        checks=tuple(results),
        not_run=tuple(not_run),
        to_show=frozenset(work.tests.contents),
        evidence=evidence,
        needs_leave=_needing_leave(objections, work.permissions),
    )


def _weakest_proof(results: Sequence[CheckResult]) -> Verification:
    """Return how a step whose checks have passed is verified. A check that ran no test
    proves nothing: the step is unverified unless tests of another check have passed.
    """
    proofs = {one.verification for one in results}
    if Verification.BASELINE in proofs:
        return Verification.BASELINE
    any_passed = any(one.tests and one.tests.count(Result.PASSED) for one in results)
    if Verification.NONE in proofs and not any_passed:
        return Verification.NONE
    return Verification.PASSED


def _without(excluded: Container[str], tests: Iterable[str]) -> tuple[str, ...]:
    return tuple(test for test in tests if test not in excluded)


def _needing_leave(
    objections: Sequence[_Objection], permissions: Permissions
) -> tuple[LostTest, ...]:
    """Return the lost tests if there is no other objection, and no field about them."""
    if permissions.removes is not None:
        return ()
    lost: dict[str, LostTest] = {}
    for objection in objections:
        if not objection.lost:
            return ()
        lost |= {item.test: item for item in objection.lost}
    return tuple(lost.values())


def _lost(tests: Iterable[str], how: str) -> tuple[LostTest, ...]:
    return tuple(LostTest(test, how) for test in tests)


def judge_unchecked(reason: str, work: Work) -> Verdict:
    """Judge a step for which no check ran."""
    objections = [*_about_test_files(work, Difference())]
    if work.refused:
        why = f"nothing was done: {work.refused[0]}"
        objections.append(_Objection(why, f"{NOTHING_DONE}\n{_as_list(work.refused)}"))
    return Verdict(
        None if objections else Verification.NONE,
        objections[0].reason if objections else reason,
        advice="\n\n".join(objection.advice for objection in objections),
        notes=tuple(_notes_on_test_files(work)),
        to_show=frozenset(work.tests.contents),
        evidence=Evidence(objections[0].reason if objections else reason),
        needs_leave=_needing_leave(objections, work.permissions),
    )


def _about_exit(check: Check, ran: Ran, before: Before) -> Iterator[_Objection]:
    """Judge a run without results of single tests, by its exit code."""
    result, baseline = ran.result, before.baseline
    asked = check.invocation.selection if check.invocation else None
    has_reported = any(
        asked in known.seen_by for known in before.reference.tests.values()
    )
    if result.timed_out:
        yield _Objection(_too_slow(check, result))
    elif result.return_code:
        failed_before = (
            baseline and baseline.command == check.shown and baseline.return_code
        )
        yield _Objection(
            f"{_failed(check, result)}{f', {_as(before)}' if failed_before else ''}"
        )
    elif check.always_reports or (check.asks_for_report and has_reported):
        yield _Objection(
            f"`{check.shown}` ended with exit code 0, but left no report of its tests",
            _CUT_SHORT,
        )


def _about_tests(
    check: Check,
    result: CommandResult,
    tests: SuiteRun,
    targets: Targets,
    counted: Sequence[str],
) -> Iterator[_Objection]:
    """Object to tests that failed. If none did, object to an end of the run that does
    not agree with them.
    """
    code = result.return_code
    others = [test for test in tests.having(Result.FAILED) if test not in counted]
    if result.timed_out:
        yield _Objection(_too_slow(check, result))
    elif counted:
        reason = f"{_failed(check, result)}: {_in_a_line(counted)}"
        if due := [test for test in counted if test in targets.due]:
            which = (
                "which" if len(due) == len(counted) else f"of which {_in_a_line(due)}"
            )
            reason += (
                f", {which} failed before too and this step has to fix:"
                f" {targets.due[due[0]]}"
            )
        yield _Objection(reason, _to_fix(tests, targets, counted, len(others)))
    elif not tests.is_finished:
        yield _Objection(
            f"`{check.shown}` was ended in the middle of a test (exit code {code})",
            _CUT_SHORT,
        )
    elif not check.came_to_its_end(result):
        yield _Objection(_failed(check, result))
    elif code == 0 and others:
        yield _Objection(
            f"`{check.shown}` ended with exit code 0, but {_in_a_line(others)} failed",
            _DISAGREE,
        )
    elif code and not others and not check.says_nothing_ran(result):
        yield _Objection(
            f"`{check.shown}` ended with exit code {code}, but no test failed",
            _DISAGREE,
        )
    elif not (tests.count(Result.PASSED) or others or check.found) and (
        check.always_reports or tests.results
    ):
        yield _Objection(f"`{check.shown}` {_nothing_ran(tests)} (exit code {code})")


def _about_missing(
    results: Sequence[CheckResult], seen: Difference, work: Work
) -> Iterator[_Objection]:
    """Object to tests that are gone or skipped. A test that passes under another name,
    or as a part of another test, is not gone.
    """
    reporting = [one for one in results if one.tests is not None]
    passed: set[TestId] = set()
    for one in reporting:
        if one.tests:
            tests = one.tests.having(Result.PASSED)
            passed.update(TestId.parse(test).function for test in tests)
    moved = [
        before
        for before, now in work.tests.moved.items()
        if now in passed or any(test.ends_with(now) for test in passed)
    ]
    gone = []
    for name in seen.gone:
        test = TestId.parse(name)
        is_allowed = work.permissions.may_remove(test)
        if not is_allowed and not _is_declared(test, moved):
            gone.append(name)
    skipped = []
    for name in seen.skipped:
        if not work.permissions.may_remove(TestId.parse(name)):
            skipped.append(name)
    find, skip = "the checks no longer find", "the checks skip"
    if len(reporting) == 1:
        command = reporting[0].check.shown
        find, skip = f"`{command}` no longer finds", f"`{command}` skips"
    if gone:
        advice = f"{_GONE}\n{_as_list(gone)}{_contents(work, work.tests.removed)}"
        reason = f"{find} {_in_a_line(gone)}"
        yield _Objection(reason, advice, _lost(gone, "is not found any more"))
    if skipped:
        yield _Objection(
            f"{skip} {_in_a_line(skipped)}",
            f"{_SKIPPED}\n{_as_list(skipped)}",
            _lost(skipped, Weakening.SKIPPED),
        )


def _is_declared(test: TestId, declared: Iterable[TestId]) -> bool:
    """True if a test of a run is one of these, as files declare them."""
    return any(test.function == one or test.function.ends_with(one) for one in declared)


def _about_test_files(work: Work, seen: Difference) -> Iterator[_Objection]:
    """Object to tests that the step removed or weakened, by the text of their files.
    `_about_missing` names those that the run missed.
    """
    missed = [TestId.parse(test) for test in (*seen.gone, *seen.skipped)]
    removed = []
    for test in work.tests.removed:
        is_missed = any(_is_declared(one, [test]) for one in missed)
        if not is_missed and not work.permissions.may_remove(test):
            removed.append(str(test))
    weakened = []
    for test, how in work.tests.weakened.items():
        is_missed = any(_is_declared(one, [test]) for one in missed)
        only_rows = how is Weakening.FEWER_ROWS
        is_allowed = work.permissions.may_remove(test, only_rows=only_rows)
        if not is_missed and not is_allowed:
            weakened.append(LostTest(str(test), how))
    previous = _contents(work, (*work.tests.removed, *work.tests.weakened))
    if removed:
        advice = f"{_REMOVED}\n{_as_list(removed)}"
        if not weakened:
            advice += previous
        reason = f"tests are removed, and {_UNNAMED}: {_in_a_line(removed)}"
        yield _Objection(reason, advice, _lost(removed, "is removed"))
    if weakened:
        names = [f"{item.test} ({item.how})" for item in weakened]
        advice = f"{_WEAKENED}\n{_as_list(names)}{previous}"
        reason = f"tests are weakened, and {_UNNAMED}: {_in_a_line(names)}"
        yield _Objection(reason, advice, tuple(weakened))


def _changes_of_harness(results: Sequence[CheckResult], work: Work) -> tuple[str, ...]:
    """Return the files among the changes that decide how one of the checks runs
    tests.
    """
    changes = work.changes.changes
    paths: dict[str, None] = {}
    for one in results:
        check = one.check
        changed = changes_of_harness(changes, check.invocation, check.script)
        paths.update(dict.fromkeys(changed))
    return tuple(paths)


def _about_harness(
    harness: Sequence[str], before: Before, work: Work
) -> Iterator[_Objection]:
    """Object to changes of how tests are run in files that the step does not name. The
    first settings of a project without tests hide none.
    """
    free: tuple[str, ...] = ()
    if before.is_without_tests:
        free = first_settings(work.changes.changes)
    steering = []
    for path in harness:
        is_named = work.permissions.names_file(path)
        if path not in free and not is_named:
            steering.append(path)
    if steering:
        reason = (
            "the reply changes how tests are run, and the step does not name"
            f" {_in_a_line(steering)}"
        )
        yield _Objection(reason, f"{_HARNESS}\n{_as_list(steering)}")


def _contents(work: Work, lost: Sequence[TestId]) -> str:
    """Return the previous content of test files that a command changed: they will not
    be restored. Files that do not fit are left out.
    """
    shown, room = "", _END_CHARACTERS
    for path, text in work.tests.contents.items():
        is_lost = path not in work.changes.touched and any(
            test.file == path for test in lost
        )
        if is_lost and len(text) <= room:
            room -= len(text)
            shown += f"\n\n{path} was:\n{fenced(text, '')}"
    return shown


def _notes(
    seen: Difference,
    work: Work,
    results: Sequence[CheckResult],
    settings: Iterable[str],
) -> Iterator[str]:
    """Yield notes on allowed changes and on failures that are not the step's fault."""
    counted = {test for one in results for test in one.counted}
    excused: dict[str, str] = {}
    later: dict[str, PlanStep] = {}
    for one in results:
        excused.update(one.targets.excused)
        later.update(one.targets.later)
    yield from _notes_on_leave(seen, work.permissions)
    for until in sorted(set(excused.values())):
        tests = [test for test, label in excused.items() if label == until]
        which = f"may fail until step {until}" if until else "may fail in this step"
        yield f"{which}, as the plan says: {_in_a_line(tests)}"
    others = _without((*counted, *excused), seen.old_failures)
    for step in sorted(set(later.values()), key=lambda step: step.number):
        tests = [test for test in others if later.get(test) == step]
        if tests:
            names = _in_a_line(tests)
            yield f"failed before too, and left to step {step.label}: {names}"
    others = _without(later, others)
    if others:
        yield f"failed before too: {_in_a_line(others)}"
    changed = list(settings)
    if changed:
        yield f"how tests are run was changed: {_in_a_line(changed)}"


def _notes_on_leave(seen: Difference, permissions: Permissions) -> Iterator[str]:
    for tests, what in ((seen.gone, "no longer there"), (seen.skipped, "skipped")):
        by_plan = []
        for name in tests:
            test = TestId.parse(name)
            if permissions.may_remove(test) and not permissions.is_allowed(test):
                by_plan.append(name)
        if by_plan:
            yield f"{what}, as the plan says: {_in_a_line(by_plan)}"


def _notes_on_test_files(work: Work) -> Iterator[str]:
    """Yield notes on changes of tests that are no objections."""
    allowed = sorted(work.permissions.allowed)
    if allowed:
        yield f"removed or weakened, allowed by the user: {_in_a_line(allowed)}"
    moved = []
    for old, new in work.tests.moved.items():
        if not work.permissions.may_remove(old):
            moved.append(f"{old} → {new}")
    if moved:
        names = _in_a_line(moved)
        yield f"tests have another name or place, or are a part of others: {names}"
    changed = []
    for test in work.tests.changed:
        if not work.permissions.names_file(test.file):
            changed.append(str(test))
    if changed:
        yield (
            "existing tests are changed, and the step does not name their files:"
            f" {_in_a_line(changed)}"
        )


# words

_BY_EXIT_CODE = "by its exit code alone, as its tests left no report that can be used"
_CUT_SHORT = (
    "The tests did not come to their end: something ended them, such as `os._exit`,"
    " `sys.exit` or `process.exit`."
)
_DISAGREE = (
    "The exit code and the tests have to agree: something beside the tests decides"
    " about one of them."
)
_UNNAMED = f"the step's `{REMOVES_TESTS}` does not name them"
_LEAVE = f"""\
A step may remove, skip or weaken only tests that its plan names under \
`{REMOVES_TESTS}`."""
_GONE = f"""\
These tests ran before and have to run now. {_LEAVE} Restore them:"""
_SKIPPED = f"""\
These tests are skipped or expected to fail, so they prove nothing. {_LEAVE} Make them \
run and pass:"""
_REMOVED = f"""\
These tests existed before the step, and are gone. {_LEAVE} Restore them, and make the \
code right instead:"""
_WEAKENED = f"""\
These tests prove less than before the step. {_LEAVE} Restore them, and make the code \
right instead:"""
NOTHING_DONE = """\
Nothing was changed, and these calls were refused or failed. Do what the step asks by \
calls that can be made, or by
files in the reply. If nothing has to be changed, say so in words, and call nothing \
that changes something:"""
_HARNESS = """\
Only a step that names such a file may change there how tests are run (settings, \
hooks, what is collected). Leave these
as they were; what tests share can be fixtures:"""


def _failed(check: Check, result: CommandResult) -> str:
    return f"`{check.shown}` failed (exit code {result.return_code})"


def _too_slow(check: Check, result: CommandResult) -> str:
    return f"`{check.shown}` was still running after {result.limit:g} s and was ended"


def _as(before: Before) -> str:
    return f"as before step {before.baseline_label}"


def _nothing_ran(tests: SuiteRun) -> str:
    skipped = tests.count(Result.SKIPPED)
    return (
        f"ran no test: {skipped} skipped or expected to fail"
        if skipped
        else "found no tests"
    )


def _to_fix(
    tests: SuiteRun, targets: Targets, counted: Sequence[str], others: int
) -> str:
    """List the tests that must pass. If others fail too, the output may be about those,
    so the texts of these failures are added.
    """
    due = targets.due
    named = [
        (
            f"{test} (failed before too; it is for this step to fix: {due[test]})"
            if test in due
            else test
        )
        for test in counted
    ]
    have_to = f"These tests have to pass:\n{_as_list(named)}"
    if not others:
        return have_to
    words = "\n\n".join(
        f"{test}:\n{tests.texts.get(test, '')}" for test in counted[:_LISTED]
    )[:_END_CHARACTERS]
    return (
        f"{have_to}\n\nFailures that were there before do not count"
        f" ({others}).\n\n{words}"
    )


def _in_a_line(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _as_list(names: Sequence[str]) -> str:
    more = [f"- and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return "\n".join([*(f"- {name}" for name in names[:_LISTED]), *more])


def useful_end(output: str) -> str:
    """Return the part of a failed check's output that shows the reason: pytest's
    failures, else the end.
    """
    failures = re.search(r"^=+ (FAILURES|ERRORS) =+$", output, re.MULTILINE)
    lines = (output[failures.start() :] if failures else output).strip().splitlines()
    cut = (
        [*lines[:20], "…", *lines[20 - _END_LINES :]]
        if failures and len(lines) > _END_LINES
        else lines[-_END_LINES:]
    )
    text = "\n".join(cut)
    return text if len(text) <= _END_CHARACTERS else "…" + text[-_END_CHARACTERS:]
