"""The rules that decide how a step is verified, with inputs on both sides: one that
a rule decides, and ones that differ in a single fact and that it leaves to other rules.
"""

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.tickets.declared_files import declare_files
from cdd_agent.tickets.plan import AffectedFile, MayFail, PlanStep
from cdd_agent.tickets.status import Verification
from cdd_agent.verification import rules
from cdd_agent.verification.baseline import Baseline
from cdd_agent.verification.before import Before
from cdd_agent.verification.check import Check
from cdd_agent.verification.check_run import CheckRun
from cdd_agent.verification.checks import parse_command
from cdd_agent.verification.facts import StepFacts, Work
from cdd_agent.verification.lost_tests import Comparison, Weakening
from cdd_agent.verification.outcomes import (
    Reference,
    Result,
    Statement,
    StatementKind,
    SuiteRun,
)
from cdd_agent.verification.permissions import Permissions
from cdd_agent.verification.targets import Assignment
from cdd_agent.verification.test_id import TestId
from cdd_agent.verification.verdict import Verdict, judge, judge_check
from tests.support.tables import each_row
from tests.support.verdicts import run_of

GOOD, BAD, SKIPPED = Result.PASSED, Result.FAILED, Result.SKIPPED
PASSED, BASELINE = Verification.PASSED, Verification.BASELINE
EXIT_CODE, NONE = Verification.EXIT_CODE, Verification.NONE
A, B = "test_a.py::test_a", "test_b.py::test_b"
NOT_INSTALLED = Statement(StatementKind.PROGRAM_MISSING, "`vitest` is not installed")
NO_SCRIPT = Statement(StatementKind.SCRIPT_MISSING, "there is no script `test`")
NO_OWN_MODULE = Statement(
    StatementKind.PROGRAM_MISSING, "the Python module `app` is not installed"
)
THRESHOLD = Statement(StatementKind.THRESHOLD, "the coverage is below 80 %")
OTHER_THRESHOLD = Statement(StatementKind.THRESHOLD, "the coverage is below 90 %")
WARNINGS = Statement(StatementKind.WARNINGS, "warnings count as errors")
NO_TESTS = Statement(StatementKind.NO_TESTS, "no test was found")
NO_SERVER = "nothing listens on port 5432"


class Ran(Struct, frozen=True):
    """A check and its result, before a step or after it."""

    command: str = "pytest"
    code: int = 0
    results: dict[str, Result] | None = None
    """None if the check does not report on its tests."""
    statements: tuple[Statement, ...] = ()
    causes: dict[str, str] = {}
    is_finished: bool = True
    timed_out: bool = False
    unusable: str = ""
    found: bool = False

    def build(self, root: Path) -> tuple[Check, CheckRun]:
        check = replace(parse_command(self.command, root), found=self.found)
        tests = None
        if self.results is not None:
            assert check.invocation
            tests = SuiteRun(
                check.invocation.selection,
                self.results,
                is_finished=self.is_finished,
                causes=self.causes,
            )
        run = run_of(check, self.code, tests, timed_out=self.timed_out)
        statements = (*self.statements, *run.statements)
        run = replace(run, statements=statements)
        if self.unusable:
            run = replace(
                run, return_code=None, problem=self.unusable, unusable=self.unusable
            )
        return check, run


def suite(code: int = 0, **results: Result) -> Ran:
    """Return a run of all tests, by their names."""
    ids = {"a": A, "b": B}
    return Ran(code=code, results={ids[test]: each for test, each in results.items()})


def reply(*paths: str) -> ChangeSet:
    """Return changes of these files that a reply made."""
    changes = []
    for path in paths:
        changes.append(FileChange(PurePosixPath(path), b"test:\n\ttrue\n", b"test:\n"))
    return ChangeSet(tuple(changes))


PLAIN = PlanStep(1, "Work", "Do it.", files_affected=(AffectedFile("app.py"),))
NO_FILES = PlanStep(1, "Work", "Do it.")
UNCHECKED = PlanStep(1, "Work", "Do it.", checks=())
ABOUT_B = PlanStep(
    1, "Work", "Make `test_b` pass.", files_affected=(AffectedFile("app.py"),)
)
LINT = Ran("python lint.py")
MAKE = Ran("make test")


class Case(Struct, frozen=True):
    """All that the rules go by, and what follows."""

    verification: Verification | None
    words: str
    """A part of the reason."""
    ran: tuple[Ran, ...] = ()
    known: tuple[Ran, ...] = ()
    """The baseline."""
    step: PlanStep = PLAIN
    work: Work = Work(changed=frozenset({"app.py"}))
    why_unchecked: str = ""

    def before(self, root: Path) -> Before:
        baseline = Baseline(step=1)
        reference = Reference()
        for each in self.known:
            _, run = each.build(root)
            baseline = baseline.add(1, run, ())
            if run.tests is not None:
                reference = reference.after(run.tests)
        runs = {each.run.command: each.run for each in baseline.runs}
        return Before(baseline, reference, runs)

    def full_work(self, root: Path) -> Work:
        step, changes = self.step, self.work.changes
        return replace(
            self.work,
            permissions=Permissions.of_step(step, declare_files(root, step)),
            has_own_check=bool(step.checks),
            needs_no_check=step.checks == (),
            assignment=Assignment(root, step, changes=changes),
        )

    def judge(self, root: Path) -> tuple[Verdict, StepFacts]:
        """Judge the step as the engine does."""
        for test in "ab":
            (root / f"test_{test}.py").write_text(f"def test_{test}(): assert 1\n")
        before, work = self.before(root), self.full_work(root)
        ran = [each.build(root) for each in self.ran]
        results = []
        for check, run in ran:
            results.append(judge_check(check, run, before, work))
            if results[-1].has_failed:
                break
        not_run = [check for check, _ in ran[len(results) :]]
        verdict = judge(results, before, work, not_run, self.why_unchecked)
        facts = tuple(each.facts for each in results)
        return verdict, StepFacts(facts, before, work, self.why_unchecked)


class Row(Struct, frozen=True):
    """A rule, an input that it decides, and inputs next to it."""

    rule: Callable[[Any], rules.RuleResult | None]
    decides: Case
    leaves: list[Case] = field(default_factory=list)


def next_to(
    case: Case, verification: Verification | None, words: str, **facts: Any
) -> Case:
    return replace(case, verification=verification, words=words, **facts)


IS_GREEN = (suite(a=GOOD),)
WAS_GREEN = (suite(a=GOOD, b=GOOD),)
WAS_RED = (suite(1, a=GOOD, b=BAD),)
CHANGED = frozenset({"app.py"})

MISSING = Case(
    None,
    "app.py is declared as new, but missing",
    IS_GREEN,
    work=Work(changed=CHANGED, missing=("app.py",)),
)
GONE = Case(None, f"no longer finds {B}", IS_GREEN, WAS_GREEN)
IS_SKIPPED = Case(
    None, f"skips {B}", (suite(a=GOOD, b=SKIPPED),), (suite(a=GOOD, b=GOOD),)
)
REMOVED = Case(
    None,
    f"tests are removed, and the step's `Removes tests` does not name them: {B}",
    IS_GREEN,
    work=Work(changed=CHANGED, tests=Comparison(removed=(TestId.parse(B),))),
)
WEAKENED = Case(
    None,
    "tests are weakened",
    IS_GREEN,
    work=Work(
        changed=CHANGED,
        tests=Comparison(weakened={TestId.parse(B): Weakening.SKIPPED}),
    ),
)
REMOVES_B = replace(PLAIN, removes_tests=(B,))
REMOVES_A = replace(PLAIN, removes_tests=(A,))
HARNESS = Case(
    None,
    "the step does not name Makefile",
    (suite(a=GOOD), MAKE),
    WAS_GREEN[:0],
    work=Work(changes=reply("Makefile"), changed=frozenset({"app.py", "Makefile"})),
)
DUE = Case(
    None,
    f"{B}; it failed before too, and this step has to fix it: the step names it",
    (suite(1, a=GOOD, b=BAD),),
    WAS_RED,
    ABOUT_B,
)
NO_DATABASE = replace(WAS_RED[0], causes={B: NO_SERVER})
NO_APP = replace(WAS_RED[0], causes={B: "the Python module `app` is missing"})
NEW_FAILURE = Case(
    None, f"failed (exit code 1): {B}", (suite(1, a=GOOD, b=BAD),), WAS_GREEN
)
UNUSABLE = Case(
    None,
    "`pytest` could not be run: it is missing",
    (Ran(unusable="could not be run: it is missing"),),
)
NOT_STARTED = Case(
    None,
    "`make test` cannot run, as before step 1: `vitest` is not installed",
    (replace(MAKE, code=127, statements=(NOT_INSTALLED,)),),
    (replace(MAKE, code=127, statements=(NOT_INSTALLED,)),),
)
OVER_LIMIT = replace(suite(1, a=GOOD, b=GOOD), statements=(THRESHOLD,))
KNOWN_REASON = Case(
    BASELINE,
    "`pytest` ended with exit code 1, as before step 1: the coverage is below 80 %",
    (OVER_LIMIT,),
    (OVER_LIMIT,),
)
FAILED_EXIT = Case(None, "failed (exit code 1)", (replace(LINT, code=1),))
OVERTIME = Case(None, "still running after 60 s", (replace(LINT, timed_out=True),))
CUT_SHORT = Case(
    None,
    "stopped in the middle of a test (exit code 1)",
    (replace(suite(1, a=GOOD, b=BAD), is_finished=False),),
    WAS_RED,
)
NO_REPORT = Case(None, "wrote no test report (exit code 0)", (Ran(),))
REPORTED = (Ran("cargo test", 0, {"unit::a": GOOD}),)
NO_REPORT_ANY_MORE = Case(None, "wrote no test report", (Ran("cargo test"),), REPORTED)
DISAGREES = Case(
    None, "exit code 1, but no test failed", (suite(1, a=GOOD, b=GOOD),), WAS_GREEN
)
HIDES_FAILURE = Case(
    None, f"exit code 0, but {B} failed", (suite(0, a=GOOD, b=BAD),), WAS_RED
)
FINDS_NOTHING = Case(None, "`pytest` found no tests", (Ran(code=5, results={}),))
NOTHING_DONE = Case(
    None, "nothing changed, and no check ran", step=NO_FILES, work=Work()
)
REFUSED = Case(
    None,
    "nothing was done: create_file",
    step=UNCHECKED,
    work=Work(refused=("create_file: outside of the project",)),
)
UNCHECKED_WORDS = Case(
    NONE,
    "the plan says so",
    step=UNCHECKED,
    work=Work(),
    why_unchecked="the plan says so",
)
NOTHING_NEW = Case(
    NONE,
    "`pytest` passed; no test is new or was failing before, and app.py did not",
    WAS_GREEN,
    WAS_GREEN,
    work=Work(),
)
OLD_FAILURES = Case(
    BASELINE, "1 passed, 1 failed as before step 1", (suite(1, a=GOOD, b=BAD),), WAS_RED
)
PROVEN = Case(PASSED, "`pytest` passed", WAS_GREEN, WAS_GREEN)
NO_TEST = Case(NONE, "`cargo test` found no tests", (Ran("cargo test", 0, {}),))
BY_EXIT = Case(
    EXIT_CODE,
    "`python lint.py` ended with exit code 0, but reported no tests",
    (LINT,),
)

ROWS = {
    "a new file is missing": Row(
        rules.find_missing_file,
        MISSING,
        [next_to(MISSING, PASSED, "passed", work=Work(changed=CHANGED))],
    ),
    "a test is gone": Row(
        rules.find_lost_tests,
        GONE,
        [
            next_to(GONE, PASSED, "passed", step=REMOVES_B),
            next_to(GONE, PASSED, "passed", ran=WAS_GREEN),
            # a check that asks for less misses nothing
            next_to(
                GONE, PASSED, "passed", ran=(Ran("pytest test_a.py", 0, {A: GOOD}),)
            ),
        ],
    ),
    "leave for another test": Row(rules.find_lost_tests, replace(GONE, step=REMOVES_A)),
    "a test is skipped": Row(
        rules.find_lost_tests,
        IS_SKIPPED,
        [
            next_to(IS_SKIPPED, PASSED, "passed", step=REMOVES_B),
            next_to(IS_SKIPPED, PASSED, "passed", known=(suite(a=GOOD, b=SKIPPED),)),
        ],
    ),
    "a test is removed in its file": Row(
        rules.find_lost_tests,
        REMOVED,
        [next_to(REMOVED, PASSED, "passed", step=REMOVES_B)],
    ),
    "a test is weaker": Row(
        rules.find_lost_tests,
        WEAKENED,
        [next_to(WEAKENED, PASSED, "passed", step=REMOVES_B)],
    ),
    "the Makefile decides": Row(
        rules.find_changed_harness,
        HARNESS,
        [
            next_to(
                HARNESS,
                PASSED,
                "passed",
                step=replace(PLAIN, files_affected=(AffectedFile("Makefile"),)),
            ),
            # no check reads it
            next_to(HARNESS, PASSED, "passed", ran=IS_GREEN),
        ],
    ),
    "a test of the step fails": Row(
        rules.find_due_failure,
        DUE,
        [
            next_to(DUE, PASSED, "passed", ran=WAS_GREEN),
            next_to(DUE, BASELINE, "1 failed as before step 1", step=PLAIN),
            next_to(
                DUE,
                BASELINE,
                "1 may fail yet",
                step=replace(ABOUT_B, may_fail=(MayFail(B),)),
            ),
            # as before, for a stated reason of the environment
            next_to(
                DUE,
                BASELINE,
                f"1 failed as before step 1: {NO_SERVER}",
                ran=(NO_DATABASE,),
                known=(NO_DATABASE,),
            ),
        ],
    ),
    "the reason of the environment is new": Row(
        rules.find_due_failure, replace(DUE, ran=(NO_DATABASE,))
    ),
    "the test has passed since, in a check of another step": Row(
        rules.find_due_failure,
        replace(
            DUE,
            words=f"failed (exit code 1): {B}",
            ran=(NO_DATABASE,),
            known=(NO_DATABASE, Ran("pytest test_b.py", 0, {B: GOOD})),
        ),
    ),
    "the reason of the environment is gone": Row(
        rules.find_due_failure, replace(DUE, known=(NO_DATABASE,))
    ),
    "the reason of the environment is another": Row(
        rules.find_due_failure,
        replace(
            DUE,
            ran=(NO_DATABASE,),
            known=(replace(WAS_RED[0], causes={B: "docker is not running"}),),
        ),
    ),
    "the reason is a module that the plan makes": Row(
        rules.find_due_failure, replace(DUE, ran=(NO_APP,), known=(NO_APP,))
    ),
    "a new test of the step fails": Row(
        rules.find_due_failure,
        replace(DUE, words=f"failed (exit code 1): {B}", known=(suite(a=GOOD),)),
    ),
    "another test fails": Row(
        rules.find_new_failure,
        NEW_FAILURE,
        [
            next_to(NEW_FAILURE, BASELINE, "1 failed as before", known=WAS_RED),
            next_to(NEW_FAILURE, PASSED, "passed", ran=WAS_GREEN),
            next_to(
                NEW_FAILURE,
                BASELINE,
                "1 may fail yet",
                step=replace(PLAIN, may_fail=(MayFail(B),)),
            ),
        ],
    ),
    "another test fails, with a reason that it did not have": Row(
        rules.find_new_failure, replace(NEW_FAILURE, ran=(NO_DATABASE,))
    ),
    "another test fails, and a limit is not met as before": Row(
        rules.find_new_failure,
        replace(
            NEW_FAILURE,
            ran=(replace(suite(1, a=GOOD, b=BAD), statements=(THRESHOLD,)),),
            known=(OVER_LIMIT,),
        ),
    ),
    "the program is missing": Row(
        rules.find_unusable_check,
        UNUSABLE,
        [
            next_to(UNUSABLE, None, "failed (exit code 127)", ran=(Ran(code=127),)),
        ],
    ),
    "a program that the check starts is missing, as before": Row(
        rules.find_unusable_check,
        NOT_STARTED,
        [
            next_to(NOT_STARTED, None, "failed (exit code 127)", known=()),
            next_to(
                NOT_STARTED,
                None,
                "failed (exit code 127)",
                known=(replace(MAKE, code=1),),
            ),
            next_to(
                NOT_STARTED,
                None,
                "failed (exit code 127), as before",
                known=(replace(MAKE, code=127, statements=(NO_SCRIPT,)),),
            ),
            next_to(NOT_STARTED, EXIT_CODE, "exit code 0", ran=(MAKE,)),
            # a step can add these
            next_to(
                NOT_STARTED,
                None,
                "failed (exit code 127), as before",
                ran=(replace(MAKE, code=127, statements=(NO_SCRIPT,)),),
                known=(replace(MAKE, code=127, statements=(NO_SCRIPT,)),),
            ),
            next_to(
                NOT_STARTED,
                None,
                "failed (exit code 127), as before",
                ran=(replace(MAKE, code=127, statements=(NO_OWN_MODULE,)),),
                known=(replace(MAKE, code=127, statements=(NO_OWN_MODULE,)),),
            ),
            # a test failed as well
            next_to(
                NOT_STARTED,
                None,
                f"failed (exit code 127): {B}",
                ran=(replace(suite(127, a=GOOD, b=BAD), statements=(NOT_INSTALLED,)),),
                known=(replace(suite(127, a=GOOD), statements=(NOT_INSTALLED,)),),
            ),
        ],
    ),
    "the check watches": Row(
        rules.find_unusable_check,
        Case(None, "`npx tsc -w` watches", (Ran("npx tsc -w", unusable="watches"),)),
        [
            Case(None, "still running", (Ran("npx tsc -w", timed_out=True),)),
        ],
    ),
    "a limit is not met, as before": Row(
        rules.find_known_reason,
        KNOWN_REASON,
        [
            next_to(KNOWN_REASON, None, "but no test failed", known=()),
            next_to(KNOWN_REASON, None, "but no test failed", known=WAS_GREEN),
            next_to(
                KNOWN_REASON,
                None,
                "but no test failed",
                known=(replace(OVER_LIMIT, statements=(OTHER_THRESHOLD,)),),
            ),
            next_to(
                KNOWN_REASON,
                None,
                "but no test failed",
                known=(replace(OVER_LIMIT, statements=(WARNINGS,)),),
            ),
            # a statement that explains no exit code
            next_to(
                KNOWN_REASON,
                None,
                "but no test failed",
                ran=(replace(OVER_LIMIT, statements=(NO_TESTS,)),),
                known=(replace(OVER_LIMIT, statements=(NO_TESTS,)),),
            ),
            # something else is wrong now, too
            next_to(
                KNOWN_REASON,
                None,
                "but no test failed",
                ran=(replace(OVER_LIMIT, statements=(THRESHOLD, WARNINGS)),),
            ),
            next_to(
                KNOWN_REASON,
                None,
                "exit code 2, but no test failed",
                ran=(replace(OVER_LIMIT, command="vendor/bin/phpunit", code=2),),
                known=(replace(OVER_LIMIT, command="vendor/bin/phpunit"),),
            ),
            # stated before, but without an effect
            next_to(
                KNOWN_REASON,
                None,
                "but no test failed",
                known=(replace(OVER_LIMIT, code=0),),
            ),
            next_to(KNOWN_REASON, PASSED, "passed", ran=(replace(OVER_LIMIT, code=0),)),
            next_to(
                KNOWN_REASON,
                None,
                "in the middle of a test",
                ran=(replace(OVER_LIMIT, is_finished=False),),
            ),
            next_to(KNOWN_REASON, NONE, "did not change", work=Work()),
            # which tests failed is not known
            next_to(
                KNOWN_REASON,
                None,
                "failed (exit code 1), as before step 1: the coverage is below 80 %",
                ran=(replace(MAKE, code=1, statements=(THRESHOLD,)),),
                known=(replace(MAKE, code=1, statements=(THRESHOLD,)),),
            ),
        ],
    ),
    "another exit code": Row(
        rules.find_failed_exit,
        FAILED_EXIT,
        [next_to(FAILED_EXIT, EXIT_CODE, "exit code 0", ran=(LINT,))],
    ),
    "an exit code as before": Row(
        rules.find_failed_exit,
        replace(
            FAILED_EXIT,
            words="failed (exit code 1), as before step 1",
            known=(replace(LINT, code=1),),
        ),
    ),
    "the time limit": Row(
        rules.find_failed_exit,
        OVERTIME,
        [next_to(OVERTIME, EXIT_CODE, "exit code 0", ran=(LINT,))],
    ),
    "the time limit, with failed tests": Row(
        rules.find_failed_exit,
        replace(
            OVERTIME,
            ran=(replace(suite(1, a=BAD), timed_out=True),),
            known=WAS_GREEN[:0],
        ),
    ),
    "the run was cut short": Row(
        rules.find_failed_exit,
        CUT_SHORT,
        [next_to(CUT_SHORT, BASELINE, "1 failed", ran=WAS_RED)],
    ),
    "the run was cut short, and does not have all tests": Row(
        rules.find_failed_exit,
        Case(None, "failed (exit code 2)", (suite(2, a=GOOD),), WAS_GREEN),
        [next_to(GONE, None, f"no longer finds {B}", ran=IS_GREEN)],
    ),
    "an exit code that no test explains": Row(
        rules.find_failed_exit,
        replace(
            CUT_SHORT, words="failed (exit code 2)", ran=(suite(2, a=GOOD, b=BAD),)
        ),
    ),
    "no report, though one was asked for": Row(
        rules.find_failed_exit,
        NO_REPORT,
        [next_to(NO_REPORT, PASSED, "passed", ran=IS_GREEN)],
    ),
    "no report any more": Row(
        rules.find_failed_exit,
        NO_REPORT_ANY_MORE,
        [
            next_to(NO_REPORT_ANY_MORE, EXIT_CODE, "exit code 0", known=()),
            next_to(NO_REPORT_ANY_MORE, PASSED, "passed", ran=REPORTED),
        ],
    ),
    "the exit code and the tests disagree": Row(
        rules.find_failed_exit,
        DISAGREES,
        [next_to(DISAGREES, PASSED, "passed", ran=WAS_GREEN)],
    ),
    "the exit code hides an old failure": Row(
        rules.find_failed_exit,
        HIDES_FAILURE,
        [next_to(HIDES_FAILURE, BASELINE, "1 failed", ran=WAS_RED)],
    ),
    "a check of the plan finds no tests": Row(
        rules.find_failed_exit,
        FINDS_NOTHING,
        [
            # the project may have none yet
            next_to(
                FINDS_NOTHING,
                NONE,
                "found no tests",
                ran=(replace(FINDS_NOTHING.ran[0], found=True),),
            ),
        ],
    ),
    "nothing was done": Row(
        rules.find_nothing_done,
        NOTHING_DONE,
        [
            next_to(
                NOTHING_DONE,
                NONE,
                "why",
                work=Work(changed=frozenset({"any.txt"})),
                why_unchecked="why",
            ),
            next_to(NOTHING_DONE, NONE, "why", step=UNCHECKED, why_unchecked="why"),
            next_to(NOTHING_DONE, EXIT_CODE, "exit code 0", ran=(LINT,)),
        ],
    ),
    "nothing was done, and files are declared": Row(
        rules.find_nothing_done,
        replace(NOTHING_DONE, step=replace(PLAIN, checks=())),
    ),
    "the only call was refused": Row(
        rules.find_nothing_done,
        REFUSED,
        [
            next_to(REFUSED, NONE, "why", work=Work(), why_unchecked="why"),
        ],
    ),
    "the only call was refused, and the check ends with 0": Row(
        rules.find_nothing_done,
        replace(REFUSED, step=NO_FILES, ran=(LINT,)),
        [
            next_to(REFUSED, EXIT_CODE, "exit code 0", ran=(LINT,), work=Work()),
            next_to(REFUSED, None, "failed (exit code 1)", ran=FAILED_EXIT.ran),
        ],
    ),
    "the only call was refused, and tests stay green": Row(
        rules.find_nothing_done,
        replace(REFUSED, step=NO_FILES, ran=WAS_GREEN, known=WAS_GREEN),
    ),
    "no check ran": Row(
        rules.find_no_check,
        UNCHECKED_WORDS,
        [next_to(UNCHECKED_WORDS, EXIT_CODE, "exit code 0", ran=(LINT,))],
    ),
    "only old tests stayed green": Row(
        rules.find_nothing_new,
        NOTHING_NEW,
        [
            next_to(NOTHING_NEW, PASSED, "passed", work=Work(changed=CHANGED)),
            # a formerly failing test passes
            next_to(NOTHING_NEW, PASSED, "passed", known=WAS_RED),
            # a new test passes
            next_to(NOTHING_NEW, PASSED, "passed", known=IS_GREEN),
            # there were no tests, and somebody looked
            next_to(
                NOTHING_NEW,
                PASSED,
                "passed",
                known=(Ran(code=5, results={}, found=True),),
            ),
            next_to(NOTHING_NEW, PASSED, "passed", known=()),
        ],
    ),
    "another file than the declared ones changed": Row(
        rules.find_nothing_new,
        replace(NOTHING_NEW, work=Work(changed=frozenset({"other.py"}))),
        [
            next_to(
                NOTHING_NEW,
                PASSED,
                "passed",
                work=Work(changed=frozenset({"other.py"})),
                step=NO_FILES,
            )
        ],
    ),
    "what the tests were before is not known": Row(
        rules.find_nothing_new,
        replace(NOTHING_NEW, known=(Ran(timed_out=True),)),
        [
            # the step made its file
            next_to(
                NOTHING_NEW,
                PASSED,
                "passed",
                known=(Ran(timed_out=True),),
                work=Work(
                    changed=frozenset({"test_a.py"}), created=frozenset({"test_a.py"})
                ),
            ),
        ],
    ),
    "old failures remain": Row(
        rules.find_old_failures,
        OLD_FAILURES,
        [
            next_to(OLD_FAILURES, PASSED, "passed", ran=WAS_GREEN),
            next_to(OLD_FAILURES, NONE, "did not change", work=Work()),
        ],
    ),
    "tests passed": Row(
        rules.find_passed,
        PROVEN,
        [
            next_to(PROVEN, EXIT_CODE, "exit code 0", ran=(LINT,)),
            next_to(
                PROVEN,
                NONE,
                "ran no test: 2 skipped",
                ran=(replace(suite(a=SKIPPED, b=SKIPPED), found=True),),
                step=replace(PLAIN, removes_tests=(A, B)),
            ),
        ],
    ),
    "tests of one of two checks passed": Row(
        rules.find_passed,
        replace(PROVEN, ran=(LINT, *WAS_GREEN, Ran("cargo test", 0, {}))),
    ),
    "no test ran": Row(
        rules.find_no_test,
        NO_TEST,
        [next_to(NO_TEST, PASSED, "passed", ran=REPORTED)],
    ),
    "the output says that no test ran": Row(
        rules.find_no_test,
        replace(
            NO_TEST,
            words="`make test` found no tests",
            ran=(replace(MAKE, statements=(NO_TESTS,)),),
        ),
        [next_to(NO_TEST, EXIT_CODE, "exit code 0", ran=(MAKE,))],
    ),
    "by exit code": Row(rules.find_exit_code, BY_EXIT),
}


@each_row("row", ROWS.values(), ids=ROWS)
def test_a_rule_decides_its_row_and_leaves_what_is_next_to_it(
    tmp_path: Path, row: Row
) -> None:
    verdict, facts = row.decides.judge(tmp_path)
    assert verdict.verification is row.decides.verification
    assert row.decides.words in verdict.reason
    assert find(row.rule, verdict, facts), "another rule decided"
    assert verdict.is_unusable is (row.rule is rules.find_unusable_check)
    for case in row.leaves:
        verdict, facts = case.judge(tmp_path)
        assert verdict.verification is case.verification, case
        assert case.words in verdict.reason, case
        assert not verdict.is_unusable


def find(rule: Callable[[Any], Any], verdict: Verdict, facts: StepFacts) -> bool:
    """True if the rule gives the reason of the verdict."""
    subjects: list[Any] = [facts]
    if any(each.find is rule for each in rules.CHECK_RULES):
        subjects = list(facts.checks)
    findings = [rule(each) for each in subjects]
    return any(finding and finding.reason in verdict.reason for finding in findings)


def test_each_rule_has_rows_on_both_sides() -> None:
    every_rule = (*rules.CHANGE_RULES, *rules.CHECK_RULES, *rules.RESULT_RULES)
    deciding = [row.rule for row in ROWS.values()]
    leaving = [row.rule for row in ROWS.values() if row.leaves]
    for rule in every_rule:
        assert rule.find in deciding, rule.seen
        # the last rule leaves nothing
        if rule is not rules.RESULT_RULES[-1]:
            assert rule.find in leaving, rule.seen


# --- The order ------------------------------------------------------------------------

FAILING = (MAKE, suite(1, a=GOOD, b=BAD))
EVERYTHING_WRONG = Case(
    None,
    "app.py is declared as new, but missing",
    FAILING,
    (MAKE, OVER_LIMIT),
    work=Work(
        changes=reply("Makefile"),
        changed=frozenset({"Makefile"}),
        missing=("app.py",),
        tests=Comparison(removed=(TestId.parse("test_c.py::test_c"),)),
    ),
)
NAMES_MAKEFILE = replace(
    PLAIN, files_affected=(AffectedFile("app.py"), AffectedFile("Makefile"))
)
MENDED: list[tuple[Verification | None, str, dict[str, Any]]] = [
    (None, "declared as new", {}),
    (None, "tests are removed", {"missing": ()}),
    (None, "does not name Makefile", {"tests": Comparison()}),
    (None, f"failed (exit code 1): {B}", {"step": NAMES_MAKEFILE}),
    (None, "no test failed", {"ran": (MAKE, suite(1, a=GOOD, b=GOOD))}),
    (BASELINE, "below 80 %", {"ran": (MAKE, OVER_LIMIT)}),
    (NONE, "app.py, Makefile did not change", {"changed": frozenset()}),
]
"""What is mended next, and what is then found."""


def test_the_first_rule_that_matches_decides(tmp_path: Path) -> None:
    case = EVERYTHING_WRONG
    for verification, words, mended in MENDED:
        of_work = {
            name: mended[name] for name in mended if name in Work.__struct_fields__
        }
        of_case = {name: mended[name] for name in mended if name not in of_work}
        case = replace(case, work=replace(case.work, **of_work), **of_case)
        verdict, _ = case.judge(tmp_path)
        assert verdict.verification is verification, words
        assert words in verdict.reason


def test_a_question_about_lost_tests_is_asked_only_if_nothing_else_is_wrong(
    tmp_path: Path,
) -> None:
    verdict, _ = REMOVED.judge(tmp_path)
    assert [lost.test for lost in verdict.needs_leave] == [B]
    for also_wrong in (
        replace(REMOVED, ran=(replace(LINT, code=1),)),
        replace(REMOVED, ran=(suite(1, a=BAD),)),
        replace(REMOVED, work=replace(REMOVED.work, missing=("app.py",))),
        replace(REMOVED, step=replace(PLAIN, removes_tests=())),
    ):
        verdict, _ = also_wrong.judge(tmp_path)
        assert (verdict.verification, verdict.needs_leave) == (None, ())


@pytest.mark.parametrize("count", [1, 2])
def test_the_first_check_that_fails_decides(tmp_path: Path, count: int) -> None:
    """A known reason of an earlier check does not hide it."""
    lint = replace(LINT, code=1)
    case = Case(None, "", (OVER_LIMIT, *[lint] * count), (OVER_LIMIT,))
    verdict, _ = case.judge(tmp_path)
    assert verdict.verification is None
    assert verdict.reason.startswith("`python lint.py` failed (exit code 1)")
