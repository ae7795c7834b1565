"""Texts of the rules: lines for the user, advice for the model."""

import re
from collections.abc import Sequence

from cdd_agent.text.sanitize import fenced
from cdd_agent.verification.before import Before
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.facts import CheckFacts, Work
from cdd_agent.verification.outcomes import Result, SuiteRun
from cdd_agent.verification.permissions import REMOVES_TESTS
from cdd_agent.verification.test_id import TestId

_END_LINES, _END_CHARACTERS = 80, 6000
_NAMED, _LISTED = 3, 20
"""Tests to name in a line, and in a list."""

MISSING = """\
The step declares these files as new, and they do not exist after its checks. Create \
them:"""
CUT_SHORT = (
    "The tests were cut short: something ended the process, such as `os._exit`,"
    " `sys.exit` or `process.exit`."
)
DISAGREE = (
    "The exit code contradicts the results of the tests: something other than the"
    " tests decides about one of them."
)
UNNAMED = f"the step's `{REMOVES_TESTS}` does not name them"
_LEAVE = f"""\
A step may remove, skip or weaken only tests that its plan names under \
`{REMOVES_TESTS}`."""
GONE = f"""\
These tests ran before and must run now. {_LEAVE} Restore them:"""
SKIPPED = f"""\
These tests are skipped or expected to fail, so they prove nothing. {_LEAVE} Make them \
run and pass:"""
REMOVED = f"""\
These tests existed before the step, and are gone. {_LEAVE} Restore them, and make the \
code right instead:"""
WEAKENED = f"""\
These tests prove less than before the step. {_LEAVE} Restore them, and make the code \
right instead:"""
NOTHING_DONE = """\
Nothing was changed, and these calls were refused or failed. Do what the step asks by \
other calls, or by files in the reply. If nothing needs to change, say so in words, \
and make no call that changes something:"""
HARNESS = """\
Only a step that names such a file may change in it how tests run (settings, hooks, \
collection). Leave these files unchanged; code that tests share can be fixtures:"""
NOTHING_CHANGED = "nothing changed, and no check ran"
NOTHING_CHANGED_ADVICE = """\
The reply changed nothing, and the step has no check that shows that it is done. Make \
the changes that the step asks for."""


def failed(run: CheckRun) -> str:
    return f"`{run.command}` failed (exit code {run.return_code})"


def as_before(before: Before) -> str:
    return f"as before step {before.baseline_label}"


def nothing_ran(tests: SuiteRun) -> str:
    skipped = tests.count(Result.SKIPPED)
    if skipped:
        return f"ran no test: {skipped} skipped or expected to fail"
    return "found no tests"


def by_exit_code(run: CheckRun) -> str:
    reason = f"`{run.command}` ended with exit code 0, but reported no tests"
    if run.unread:
        reason += f": {run.unread}"
    return reason


def with_old_failures(check: CheckFacts) -> str:
    """The counts of a check that passed except for allowed failures."""
    excused = [test for test in check.others if test in check.targets.excused]
    of_environment = [test for test in check.others if test in check.of_environment]
    old = [test for test in check.others if test not in (*excused, *of_environment)]
    parts = [f"`{check.run.command}`: {check.tests.count(Result.PASSED)} passed"]
    if old:
        parts.append(f"{len(old)} failed {as_before(check.before)}")
    if of_environment:
        cause = check.of_environment[of_environment[0]]
        parts.append(f"{len(of_environment)} failed {as_before(check.before)}: {cause}")
    if excused:
        parts.append(f"{len(excused)} may fail yet")
    return ", ".join(parts)


def to_fix(check: CheckFacts) -> str:
    """List the tests that must pass. If others fail too, add these failures' texts: the
    output may show only the others.
    """
    due, tests = check.targets.due, check.tests
    named = []
    for test in check.counted:
        why = ""
        if test in due:
            why = f" (failed before too; it is for this step to fix: {due[test]})"
        named.append(f"{test}{why}")
    have_to = f"These tests have to pass:\n{as_list(named)}"
    if not check.others:
        return have_to
    texts = "\n\n".join(
        f"{test}:\n{tests.texts.get(test, '')}" for test in check.counted[:_LISTED]
    )
    return (
        f"{have_to}\n\nFailures that were there before do not count"
        f" ({len(check.others)}).\n\n{texts[:_END_CHARACTERS]}"
    )


def contents(work: Work, lost: Sequence[TestId]) -> str:
    """Return the previous content of test files that a command changed, because these
    are not restored. Files that do not fit are left out.
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


def in_a_line(names: Sequence[str]) -> str:
    line = ", ".join(names[:_NAMED])
    if len(names) > _NAMED:
        line += f" and {len(names) - _NAMED} more"
    return line


def as_list(names: Sequence[str]) -> str:
    lines = [f"- {name}" for name in names[:_LISTED]]
    if len(names) > _LISTED:
        lines.append(f"- and {len(names) - _LISTED} more")
    return "\n".join(lines)


def useful_end(output: str) -> str:
    """Return the part of a failed check's output that shows the reason: pytest's
    failures, else the end.
    """
    failures = re.search(r"^=+ (FAILURES|ERRORS) =+$", output, re.MULTILINE)
    if failures is None:
        lines = output.strip().splitlines()[-_END_LINES:]
    else:
        lines = output[failures.start() :].strip().splitlines()
        if len(lines) > _END_LINES:
            lines = [*lines[:20], "…", *lines[20 - _END_LINES :]]
    text = "\n".join(lines)
    if len(text) <= _END_CHARACTERS:
        return text
    return "…" + text[-_END_CHARACTERS:]
