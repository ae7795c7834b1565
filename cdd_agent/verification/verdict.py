"""The verdict on a step: what its check's outcome means.

Where a runner tells of each test, nothing that passed before may fail, be gone or be
skipped, nothing that is new may fail, and nothing that the step is about. Any other
command passes by its exit code.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.edits.changes import ChangeSet
from cdd_agent.process.policy import CommandRunner
from cdd_agent.process.run import CommandResult, Hear, unheard
from cdd_agent.sanitize import fenced
from cdd_agent.tickets.status import Evidence, Verification
from cdd_agent.verification.before import Before
from cdd_agent.verification.checks import Check, Ran, run_check
from cdd_agent.verification.harness import changes_of_harness, conftests, first_settings
from cdd_agent.verification.mandate import StepMandate
from cdd_agent.verification.outcomes import Difference, Result, SuiteRun
from cdd_agent.verification.taken_away import TestChanges
from cdd_agent.verification.targets import Assignment, Targets
from cdd_agent.verification.test_id import TestId

_END_LINES, _END_CHARACTERS = 80, 6000
_NAMED, _LISTED = 3, 20
"""Tests that are named in a line, and in a list."""


class Work(Struct, frozen=True):
    """A step's doings, beside what it was asked to do."""

    changes: ChangeSet = field(default_factory=lambda: ChangeSet(()))
    asked: StepMandate = field(default_factory=StepMandate)
    has_own_check: bool = False
    assignment: Assignment | None = None
    """None: it is for no test in particular."""
    tests: TestChanges = field(default_factory=TestChanges)
    """The fate of the tests that were there, by their text."""
    refused: tuple[str, ...] = ()
    """Calls that were to do something and did not, where nothing was changed: each with
    the reason.
    """


Look = Callable[[], Awaitable[TestChanges]]
"""Looks what became of the tests by now, the check's own doings included."""


class Verdict(Struct, frozen=True):
    """`verification` is None when the check failed; `reason` says what was seen, in a
    line.
    """

    verification: Verification | None
    reason: str
    output: str = ""
    seconds: float = 0.0
    advice: str = ""
    """For a model, to do better: all that it has to know beside the output."""
    notes: tuple[str, ...] = ()
    """For a person to look at, also when the check passed."""
    tests: SuiteRun | None = None
    counted: tuple[str, ...] = ()
    """The tests among the failed ones that count."""
    to_show: frozenset[str] = frozenset()
    """Files that a model has to see to do better: those of tests that are to be
    restored.
    """
    evidence: Evidence | None = None


class _Objection(Struct, frozen=True):
    """Why a step is not believed: to people in a line, and to the model with what to do
    about it.
    """

    reason: str
    advice: str = ""


async def verify(
    check: Check,
    commands: CommandRunner,
    limit: float,
    folder: Path,
    before: Before | None = None,
    work: Work | None = None,
    look: Look | None = None,
    hear: Hear = unheard,
) -> Verdict:
    """Run a check, with a folder in `folder` for what it reports, and `hear` its
    output.

    Raises `BadInput` when it cannot be started.
    """
    ran = await run_check(check, commands, limit, folder, hear)
    work = work or Work()
    work = replace(work, tests=await look()) if look else work
    return await asyncio.to_thread(judge, check, ran, before or Before(), work)


def judge(check: Check, ran: Ran, before: Before, work: Work) -> Verdict:
    """Say what a check's result means. A timeout is a failure, and so is a run that did
    not come to its end.
    """
    tests, asked = ran.tests, work.asked
    seen = (
        before.reference.compare(tests, work.changes.touched, work.tests.tables)
        if tests
        else Difference()
    )
    changes = work.changes.changes
    harness = changes_of_harness(changes, check.invocation, check.script)
    free = first_settings(changes) if before.is_without_tests else ()  # they hide none
    steering = [
        path for path in harness if path not in free and not asked.names_file(path)
    ]
    targets = (
        work.assignment.targets(seen.old_failures) if work.assignment else Targets()
    )
    counted = (*seen.new_failures, *targets.due)
    baseline = before.baseline.tests if before.baseline else None
    if (
        tests
        and work.has_own_check
        and not (baseline and tests.selection.is_no_narrower(baseline))
    ):
        # its own check is aimed at some tests: that is what the step is for
        counted = tests.having(Result.FAILED)
    objections = [
        *(
            _about_tests(check, ran.result, tests, targets, counted)
            if tests
            else _about_exit(check, ran, before)
        ),
        *_about_missing(check, seen, work, tests),
        *_about_test_files(work, seen),
    ]
    if steering:
        reason = (
            "the reply changes how tests are run, and the step does not name"
            f" {_in_a_line(steering)}"
        )
        objections.append(_Objection(reason, f"{_HARNESS}\n{_as_list(steering)}"))
    verification: Verification | None = Verification.PASSED
    by_exit_code = f", {_BY_EXIT_CODE}: {ran.unread}" if ran.unread else ""
    reason = f"`{check.shown}` passed{by_exit_code}"
    if objections:
        verification, reason = None, objections[0].reason
    elif tests and seen.old_failures:
        verification = Verification.BASELINE
        reason = (
            f"`{check.shown}`: {tests.count(Result.PASSED)} passed,"
            f" {len(seen.old_failures)} failed {_as(before)}"
        )
    elif tests and not tests.count(Result.PASSED):
        verification, reason = (
            Verification.NONE,
            f"`{check.shown}` {_nothing_ran(tests)}",
        )
    settings = dict.fromkeys((*harness, *conftests(changes)))
    return Verdict(
        verification,
        reason,
        ran.output,
        ran.result.seconds,
        advice="\n\n".join(
            objection.advice for objection in objections if objection.advice
        ),
        notes=(
            *_notes(seen, asked, counted, targets, settings),
            *_notes_on_test_files(work),
        ),
        tests=tests,
        counted=counted,
        to_show=frozenset(work.tests.contents),
        evidence=(
            before.reference.evidence(tests, reason) if tests else Evidence(reason)
        ),
    )


def judge_unchecked(reason: str, work: Work) -> Verdict:
    """Say what it means for a step that there was nothing to run, or nothing to be
    checked.
    """
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
    )


def _about_exit(check: Check, ran: Ran, before: Before) -> Iterator[_Objection]:
    """The end of a run that tells nothing of its tests: of another program, or one that
    did not come to its end.
    """
    result, baseline = ran.result, before.baseline
    asked = check.invocation.selection if check.invocation else None
    told_before = any(
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
    elif check.always_reports or (check.asks_for_report and told_before):
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
    """The tests that failed; if none that counts did, whether the run ended as they
    say.
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
    check: Check, seen: Difference, work: Work, tests: SuiteRun | None
) -> Iterator[_Objection]:
    """The tests that are not found, or skipped; not one that is called otherwise, or is
    a part of another, and passes there.
    """
    passed = (
        {TestId.parse(test).function for test in tests.having(Result.PASSED)}
        if tests
        else set[TestId]()
    )
    moved = [
        before
        for before, now in work.tests.moved.items()
        if now in passed or any(test.ends_with(now) for test in passed)
    ]
    lost = [TestId.parse(test) for test in seen.gone]
    gone = [
        str(test)
        for test in lost
        if not (work.asked.to_remove(test) or _is_declared(test, moved))
    ]
    skipped = [
        test for test in seen.skipped if not work.asked.to_skip(TestId.parse(test))
    ]
    if gone:
        advice = f"{_GONE}\n{_as_list(gone)}{_contents(work, work.tests.gone)}"
        yield _Objection(f"`{check.shown}` no longer finds {_in_a_line(gone)}", advice)
    if skipped:
        yield _Objection(
            f"`{check.shown}` skips {_in_a_line(skipped)}",
            f"{_SKIPPED}\n{_as_list(skipped)}",
        )


def _is_declared(test: TestId, declared: Iterable[TestId]) -> bool:
    """Whether a test of a run is one of these, as files declare them."""
    return any(test.function == one or test.function.ends_with(one) for one in declared)


def _about_test_files(work: Work, seen: Difference) -> Iterator[_Objection]:
    """Tests that were taken away, by their text; those that a run missed are told by
    it.
    """
    missed = [TestId.parse(test) for test in (*seen.gone, *seen.skipped)]
    gone, less, skipped = (
        [
            str(test)
            for test in tests
            if not any(_is_declared(one, [test]) for one in missed)
        ]
        for tests in work.tests.objectionable(work.asked)
    )
    shown = (
        _contents(work, (*work.tests.gone, *work.tests.less)) if gone or less else ""
    )
    told = (
        (gone, "taken away", f"{_TAKEN_AWAY}\n{_as_list(gone)}{'' if less else shown}"),
        (less, "emptied", f"{_EMPTIED}\n{_as_list(less)}{shown}"),
        (skipped, "skipped", f"{_SKIPPED}\n{_as_list(skipped)}"),
    )
    for tests, what, advice in told:
        if tests:
            yield _Objection(
                f"tests are {what}, and the step does not ask for it:"
                f" {_in_a_line(tests)}",
                advice,
            )


def _contents(work: Work, lost: Sequence[TestId]) -> str:
    """Test files as they were, where they will not be restored: a command has changed
    them, and no edit. Those that can be shown whole, in so many characters together.
    """
    shown, left = "", _END_CHARACTERS
    for path, text in work.tests.contents.items():
        is_lost = path not in work.changes.touched and any(
            test.file == path for test in lost
        )
        if is_lost and len(text) <= left:
            left -= len(text)
            shown += f"\n\n{path} was:\n{fenced(text, '')}"
    return shown


def _notes(
    seen: Difference,
    asked: StepMandate,
    counted: Sequence[str],
    targets: Targets,
    settings: Iterable[str],
) -> Iterator[str]:
    """Changes that were made with leave, and failures that are not the step's doing."""
    if gone := [test for test in seen.gone if asked.to_remove(TestId.parse(test))]:
        yield f"no longer there, as the step asks: {_in_a_line(gone)}"
    if skipped := [test for test in seen.skipped if asked.to_skip(TestId.parse(test))]:
        yield f"skipped, as the step asks: {_in_a_line(skipped)}"
    others = [test for test in seen.old_failures if test not in counted]
    for number in sorted(
        {targets.later[test] for test in others if test in targets.later}
    ):
        left = [test for test in others if targets.later.get(test) == number]
        yield f"failed before too, and left to step {number}: {_in_a_line(left)}"
    if others := [test for test in others if test not in targets.later]:
        yield f"failed before too: {_in_a_line(others)}"
    if changed := list(settings):
        yield f"how tests are run was changed: {_in_a_line(changed)}"


def _notes_on_test_files(work: Work) -> Iterator[str]:
    """No reasons to object, and yet for a person to look at."""
    tests, asked = work.tests, work.asked
    moved = [
        f"{before} → {now}"
        for before, now in tests.moved.items()
        if not asked.to_remove(before)
    ]
    if moved:
        yield (
            "tests have another name or place, or are a part of others:"
            f" {_in_a_line(moved)}"
        )
    if weaker := [str(test) for test in tests.weaker]:
        yield (
            f"tests that were there check less, or may be skipped: {_in_a_line(weaker)}"
        )
    if changed := [
        str(test) for test in tests.changed if not asked.names_file(test.file)
    ]:
        yield (
            "tests that were there are changed, and the step does not name their"
            f" files: {_in_a_line(changed)}"
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
_GONE = """\
These tests were there before and have to be there and run. A step may remove, rename \
or move only a test that its own
text names for that. Put them back as they were:"""
_SKIPPED = """\
These tests are skipped or expected to fail, and so verify nothing. A step may skip \
only a test that its own text names
for that. Make them run and pass:"""
_TAKEN_AWAY = """\
These tests were there before the step, and are not there any more. A step may remove \
or replace only a test that its
own text names for that. Put them back as they were, and make the code right instead:"""
_EMPTIED = """\
These tests do nothing or check nothing any more, or for fewer values. Only a step \
whose own text names a test for that
may take it away. Put them back as they were, and make the code right instead:"""
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
    return f"as before step {before.step}"


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
    """Which tests have to pass. Where others fail too, the output may be about those:
    then with their own words.
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
    """The part of a failed check's output that tells why: pytest's failures, else the
    end.
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
