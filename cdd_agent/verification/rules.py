"""The rules that verify a step, in order. The first match wins.

Each rule has a line for the user and a text for the model. `seen` and `verdict` make a
row in docs/reference/verification.md.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from cdd_agent.events.question_events import LostTest
from cdd_agent.refusals.kinds import Refusal
from cdd_agent.tickets.status import Verification
from cdd_agent.verification import rule_words as words
from cdd_agent.verification.facts import CheckFacts, StepFacts
from cdd_agent.verification.harness import first_settings
from cdd_agent.verification.lost_tests import Weakening
from cdd_agent.verification.outcomes import Result
from cdd_agent.verification.test_id import TestId


class RuleResult(Struct, frozen=True):
    verification: Verification | None
    """None: the step failed."""
    reason: str
    """A line for the user."""
    advice: str = ""
    """For the model, in addition to the output."""
    lost: tuple[LostTest, ...] = ()
    """Tests that the step may not remove, skip or weaken."""
    is_unusable: bool = False
    """True if no code change could make the check pass."""


class CheckRule(Struct, frozen=True):
    seen: str
    verdict: str
    find: Callable[[CheckFacts], RuleResult | None]
    refusal: Refusal | None = None
    """None if the rule fails no step."""


class StepRule(Struct, frozen=True):
    seen: str
    verdict: str
    find: Callable[[StepFacts], RuleResult | None]
    refusal: Refusal | None = None
    """None if the rule fails no step."""


# --- Rules about the changes ----------------------------------------------------------


def find_missing_file(step: StepFacts) -> RuleResult | None:
    missing = step.work.missing
    if not missing:
        return None
    are = "is" if len(missing) == 1 else "are"
    reason = f"{words.in_a_line(missing)} {are} declared as new, but missing"
    return RuleResult(None, reason, f"{words.MISSING}\n{words.as_list(missing)}")


def find_lost_tests(step: StepFacts) -> RuleResult | None:
    """Tests that a run no longer finds or skips, or whose text is gone or weaker."""
    findings = [*_missed_in_runs(step), *_lost_in_files(step)]
    if not findings:
        return None
    advice = "\n\n".join(finding.advice for finding in findings)
    lost = {item.test: item for finding in findings for item in finding.lost}
    return RuleResult(None, findings[0].reason, advice, tuple(lost.values()))


def _missed_in_runs(step: StepFacts) -> Iterator[RuleResult]:
    """Yield tests that no check ran, except those that pass under another name or as
    part of another test.
    """
    work = step.work
    reporting = [each for each in step.checks if each.run.tests is not None]
    passed: set[TestId] = set()
    for each in reporting:
        tests = each.tests.having(Result.PASSED)
        passed.update(TestId.parse(test).function for test in tests)
    moved = [
        before
        for before, now in work.tests.moved.items()
        if now in passed or any(test.ends_with(now) for test in passed)
    ]
    gone = []
    for name in step.difference.gone:
        test = TestId.parse(name)
        if not work.permissions.may_remove(test) and not _is_declared(test, moved):
            gone.append(name)
    skipped = [
        name
        for name in step.difference.skipped
        if not work.permissions.may_remove(TestId.parse(name))
    ]
    find, skip = "the checks no longer find", "the checks skip"
    if len(reporting) == 1:
        command = reporting[0].run.command
        find, skip = f"`{command}` no longer finds", f"`{command}` skips"
    if gone:
        previous = words.contents(work, work.tests.removed)
        yield RuleResult(
            None,
            f"{find} {words.in_a_line(gone)}",
            f"{words.GONE}\n{words.as_list(gone)}{previous}",
            _lost(gone, "is no longer found"),
        )
    if skipped:
        yield RuleResult(
            None,
            f"{skip} {words.in_a_line(skipped)}",
            f"{words.SKIPPED}\n{words.as_list(skipped)}",
            _lost(skipped, Weakening.SKIPPED),
        )


def _is_declared(test: TestId, declared: Iterable[TestId]) -> bool:
    return any(test.function == one or test.function.ends_with(one) for one in declared)


def _lost(tests: Iterable[str], how: str) -> tuple[LostTest, ...]:
    return tuple(LostTest(test, how) for test in tests)


def _lost_in_files(step: StepFacts) -> Iterator[RuleResult]:
    """Yield tests whose text the step removed or weakened, except those in
    `_missed_in_runs`.
    """
    work = step.work
    missed = [
        TestId.parse(test) for test in (*step.difference.gone, *step.difference.skipped)
    ]
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
    previous = words.contents(work, (*work.tests.removed, *work.tests.weakened))
    if removed:
        advice = f"{words.REMOVED}\n{words.as_list(removed)}"
        if not weakened:
            advice += previous
        reason = f"tests are removed, and {words.UNNAMED}: {words.in_a_line(removed)}"
        yield RuleResult(None, reason, advice, _lost(removed, "is removed"))
    if weakened:
        names = [f"{item.test} ({item.how})" for item in weakened]
        advice = f"{words.WEAKENED}\n{words.as_list(names)}{previous}"
        reason = f"tests are weakened, and {words.UNNAMED}: {words.in_a_line(names)}"
        yield RuleResult(None, reason, advice, tuple(weakened))


def find_changed_harness(step: StepFacts) -> RuleResult | None:
    """Changes in how tests run, in files that the step does not name. A project without
    tests may add its first settings.
    """
    free: tuple[str, ...] = ()
    if step.before.is_without_tests:
        free = first_settings(step.work.changes.changes)
    steering = [
        path
        for path in step.harness
        if path not in free and not step.work.permissions.names_file(path)
    ]
    if not steering:
        return None
    reason = (
        "the reply changes how tests run, and the step does not name"
        f" {words.in_a_line(steering)}"
    )
    return RuleResult(None, reason, f"{words.HARNESS}\n{words.as_list(steering)}")


# --- Rules about one check ------------------------------------------------------------


def find_unusable_check(check: CheckFacts) -> RuleResult | None:
    why, missing = check.run.unusable, check.missing_program
    if not why and missing is not None:
        why = f"cannot run, {words.as_before(check.before)}: {missing.text}"
    if not why:
        return None
    return RuleResult(None, f"`{check.run.command}` {why}", is_unusable=True)


def find_due_failure(check: CheckFacts) -> RuleResult | None:
    if not check.due or check.run.timed_out:
        return None
    return _tests_failed(check)


def find_new_failure(check: CheckFacts) -> RuleResult | None:
    if not check.counted or check.run.timed_out:
        return None
    return _tests_failed(check)


def _tests_failed(check: CheckFacts) -> RuleResult:
    """List all failed tests that count, for the model to see at once."""
    counted, targets = check.counted, check.targets
    reason = f"{words.failed(check.run)}: {words.in_a_line(counted)}"
    due = [test for test in counted if test in targets.due]
    if due:
        which, it = "it", "it"
        if len(due) > 1:
            which, it = "they", "them"
        if len(due) < len(counted):
            which = words.in_a_line(due)
        reason += (
            f"; {which} failed before too, and this step has to fix {it}:"
            f" {targets.due[due[0]]}"
        )
    return RuleResult(None, reason, words.to_fix(check))


def find_known_reason(check: CheckFacts) -> RuleResult | None:
    statement = check.known_reason
    if statement is None or check.run.problem:
        return None
    reason = (
        f"`{check.run.command}` ended with exit code {check.run.return_code},"
        f" {words.as_before(check.before)}: {statement.text}"
    )
    return RuleResult(Verification.BASELINE, reason)


def find_failed_exit(check: CheckFacts) -> RuleResult | None:
    """Any other bad end: by exit code, or by a run that contradicts its own report."""
    run = check.run
    if run.timed_out:
        return RuleResult(None, f"`{run.command}` {run.problem}")
    is_cut_short = run.tests is not None and not run.tests.is_finished
    if run.problem and (is_cut_short or not run.return_code):
        return RuleResult(None, f"`{run.command}` {run.problem}", words.CUT_SHORT)
    if run.problem:
        return RuleResult(None, words.failed(run))
    if run.tests is None:
        return _failed_without_report(check)
    return _disagreement(check)


def _failed_without_report(check: CheckFacts) -> RuleResult | None:
    run, before = check.run, check.before
    if run.return_code:
        last = check.last_run
        was_so = last is not None and bool(last.return_code)
        also = f", {words.as_before(before)}" if was_so else ""
        why = f": {run.statements[0].text}" if run.statements else ""
        return RuleResult(None, f"{words.failed(run)}{also}{why}")
    if check.check.asks_for_report and _has_reported(check):
        return RuleResult(
            None,
            f"`{run.command}` ended with exit code 0, but wrote no test report",
            words.CUT_SHORT,
        )
    return None


def _has_reported(check: CheckFacts) -> bool:
    invocation = check.check.invocation
    asked = invocation.selection if invocation else None
    return any(
        asked in results.seen_by for results in check.before.reference.tests.values()
    )


def _disagreement(check: CheckFacts) -> RuleResult | None:
    run, tests = check.run, check.tests
    code, others = run.return_code, check.others
    if code == 0 and others:
        return RuleResult(
            None,
            f"`{run.command}` ended with exit code 0, but"
            f" {words.in_a_line(others)} failed",
            words.DISAGREE,
        )
    ran_nothing = not tests.count(Result.PASSED) and not others
    if code and not others and not run.ran_no_test:
        return RuleResult(
            None,
            f"`{run.command}` ended with exit code {code}, but no test failed",
            words.DISAGREE,
        )
    looks_for_tests = check.check.always_reports or bool(tests.results)
    if ran_nothing and looks_for_tests and not check.check.found:
        reason = f"`{run.command}` {words.nothing_ran(tests)} (exit code {code})"
        return RuleResult(None, reason)
    return None


# --- Rules about a step that has not failed -------------------------------------------


def find_nothing_done(step: StepFacts) -> RuleResult | None:
    work = step.work
    if work.changed:
        return None
    if work.refused:
        advice = f"{words.NOTHING_DONE}\n{words.as_list(work.refused)}"
        return RuleResult(None, f"nothing was done: {work.refused[0]}", advice)
    if step.checks:
        return None
    if work.needs_no_check and not work.permissions.declared:
        return None
    return RuleResult(None, words.NOTHING_CHANGED, words.NOTHING_CHANGED_ADVICE)


def find_no_check(step: StepFacts) -> RuleResult | None:
    if step.checks:
        return None
    return RuleResult(Verification.NONE, step.why_unchecked)


def find_nothing_new(step: StepFacts) -> RuleResult | None:
    """Tests passed, but would have passed without the step."""
    has_tests = any(each.run.has_tests for each in step.checks)
    if not has_tests or step.work.has_changed_declared or step.turned_green:
        return None
    reason = f"{_joined(step)}; no test is new or was failing before"
    untouched = step.work.untouched
    if untouched:
        reason += f", and {words.in_a_line(untouched)} did not change"
    return RuleResult(Verification.NONE, reason)


def find_old_failures(step: StepFacts) -> RuleResult | None:
    return _find_proof(step, Verification.BASELINE)


def find_passed(step: StepFacts) -> RuleResult | None:
    return _find_proof(step, Verification.PASSED)


def find_no_test(step: StepFacts) -> RuleResult | None:
    return _find_proof(step, Verification.NONE)


def find_exit_code(step: StepFacts) -> RuleResult | None:
    return RuleResult(Verification.EXIT_CODE, _joined(step))


def _find_proof(step: StepFacts, verification: Verification) -> RuleResult | None:
    """Return this verification if one check alone shows it."""
    if not any(proof_of(each) is verification for each in step.checks):
        return None
    return RuleResult(verification, _joined(step))


def _joined(step: StepFacts) -> str:
    return "; ".join(reason_of(each) for each in step.checks)


def proof_of(check: CheckFacts) -> Verification:
    """Return what a check that has not failed shows by itself."""
    if find_known_reason(check) is not None or check.others:
        return Verification.BASELINE
    if check.tests.count(Result.PASSED):
        return Verification.PASSED
    if check.run.ran_no_test:
        return Verification.NONE
    return Verification.EXIT_CODE


def reason_of(check: CheckFacts) -> str:
    """Return the result of a check that has not failed, in one line."""
    reason = find_known_reason(check)
    if reason is not None:
        return reason.reason
    match proof_of(check):
        case Verification.BASELINE:
            return words.with_old_failures(check)
        case Verification.PASSED:
            return f"`{check.run.command}` passed"
        case Verification.NONE:
            return f"`{check.run.command}` {words.nothing_ran(check.tests)}"
        case Verification.EXIT_CODE:
            return words.by_exit_code(check.run)


CHANGE_RULES: Sequence[StepRule] = (
    StepRule(
        "a file that the plan declares as `(new)` does not exist",
        "failed",
        find_missing_file,
        Refusal.NEW_FILE_MISSING,
    ),
    StepRule(
        "a test is removed, skipped or weaker, and `Removes tests` does not name it",
        "failed; the shell asks",
        find_lost_tests,
        Refusal.TESTS_REMOVED,
    ),
    StepRule(
        "settings of the tests changed in a file that the step does not name",
        "failed",
        find_changed_harness,
        Refusal.TEST_SETTINGS_CHANGED,
    ),
)
CHECK_RULES: Sequence[CheckRule] = (
    CheckRule(
        "a test that the step is about fails, and `May fail` does not name it",
        "failed; `baseline` if it failed before for the same reason of the environment",
        find_due_failure,
        Refusal.TESTS_FAILED,
    ),
    CheckRule(
        "another test fails that did not fail before",
        "failed",
        find_new_failure,
        Refusal.TESTS_FAILED,
    ),
    CheckRule(
        "the check's program cannot start, a program that it starts is not installed"
        " as before, or the check watches files",
        "the run stops; the model is not asked again",
        find_unusable_check,
        Refusal.CHECK_UNUSABLE,
    ),
    CheckRule(
        "an exit code other than 0, tests as before, and the output states the same"
        " reason as before (a threshold, warnings)",
        "`baseline`",
        find_known_reason,
    ),
    CheckRule(
        "any other exit code than 0, a time limit, or a report that does not fit the"
        " exit code",
        "failed",
        find_failed_exit,
        Refusal.CHECK_FAILED,
    ),
)
RESULT_RULES: Sequence[StepRule] = (
    StepRule(
        "nothing changed and no check ran, or the only action was refused",
        "failed, unless the step has `Verify: none` and declares no files",
        find_nothing_done,
        Refusal.NOTHING_DONE,
    ),
    StepRule("no check ran", "`none`", find_no_check),
    StepRule(
        "only tests that passed before stayed green, and no declared file changed",
        "`none`",
        find_nothing_new,
    ),
    StepRule(
        "only failures remain that were there before, or that `May fail` names",
        "`baseline`",
        find_old_failures,
    ),
    StepRule(
        "all checks pass, and at least one test is known to have run",
        "`passed`",
        find_passed,
    ),
    StepRule(
        "all checks pass, and the output says that no test ran",
        "`none`",
        find_no_test,
    ),
    StepRule(
        "all checks pass, and no test is known to have run",
        "`exit_code`",
        find_exit_code,
    ),
)
