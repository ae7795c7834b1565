"""What `Removes tests` and `May fail` change about the verdict on a run of tests."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cdd_agent.tickets.declared_files import declare_files
from cdd_agent.tickets.plan import MayFail, PlanStep
from cdd_agent.tickets.status import Verification
from cdd_agent.verification.before import Agenda, Before
from cdd_agent.verification.checks import parse_command
from cdd_agent.verification.facts import Work
from cdd_agent.verification.outcomes import Reference, Result, Selection, SuiteRun
from cdd_agent.verification.permissions import Permissions
from cdd_agent.verification.targets import Assignment
from cdd_agent.verification.verdict import Verdict
from tests.support.verdicts import judge_one, run_of

P, F, S = Result.PASSED, Result.FAILED, Result.SKIPPED
A, B, NEW = "tests/test_a.py::test_a", "tests/test_a.py::test_b", "tests/new.py::test_n"
FILE = "tests/new.py"
PASSED, BASELINE = Verification.PASSED, Verification.BASELINE


@dataclass(frozen=True)
class Case:
    now: dict[str, Result]
    verification: Verification | None
    may_fail: tuple[MayFail, ...] = ()
    removes: tuple[str, ...] | None = None
    counted: tuple[str, ...] = ()
    before: dict[str, Result] = field(default_factory=lambda: {A: P, B: P})
    later: tuple[str, ...] = ()
    earlier: PlanStep | None = None
    has_own_check: bool = False
    needs_leave: tuple[str, ...] = ()


def verdict_on(case: Case, root: Path) -> Verdict:
    step = PlanStep(2, may_fail=case.may_fail, removes_tests=case.removes)
    later = tuple(PlanStep(9, label=label) for label in case.later)
    earlier = () if case.earlier is None else (case.earlier,)
    assignment = Assignment(root, step, Agenda((), later, earlier))
    failed = F in case.now.values()
    selection = Selection(("tests/new.py",)) if case.has_own_check else Selection()
    check = parse_command("pytest", root)
    return judge_one(
        check,
        run_of(check, int(failed), SuiteRun(selection, case.now)),
        Before(reference=Reference().after(SuiteRun(results=case.before))),
        Work(
            changed=frozenset({"app.py"}),
            permissions=Permissions.of_step(step, declare_files(root, step)),
            assignment=assignment,
            has_own_check=case.has_own_check,
        ),
    )


LEAVE = MayFail(NEW)
UNTIL = MayFail(NEW, "3")
MAY_FAIL = {
    "no field, a new failure": Case({A: P, B: P, NEW: F}, None, counted=(NEW,)),
    "a new failure": Case({A: P, B: P, NEW: F}, BASELINE, (LEAVE,)),
    "a new failure, until a later step": Case(
        {A: P, B: P, NEW: F}, BASELINE, (UNTIL,), later=("3",)
    ),
    "a new failure, until no later step": Case(
        {A: P, B: P, NEW: F}, None, (UNTIL,), counted=(NEW,)
    ),
    "it passes": Case({A: P, B: P, NEW: P}, PASSED, (LEAVE,)),
    "another one fails, too": Case({A: F, B: P, NEW: F}, None, (LEAVE,), counted=(A,)),
    "one that passed before": Case({A: F, B: P}, BASELINE, (MayFail("test_a"),)),
    "one that failed before": Case(
        {A: F, B: P}, BASELINE, (MayFail("test_a"),), before={A: F, B: P}
    ),
    "its own check": Case(
        {NEW: F}, BASELINE, (LEAVE,), has_own_check=True, before={NEW: F}
    ),
    "its own check, without the field": Case(
        {NEW: F}, None, has_own_check=True, before={NEW: F}, counted=(NEW,)
    ),
    "a file that cannot be imported": Case({A: P, B: P, FILE: F}, BASELINE, (LEAVE,)),
    "a file with a test that passed": Case(
        {A: P, B: P, FILE: F},
        None,
        (LEAVE,),
        before={A: P, B: P, f"{FILE}::test_old": P},
        counted=(FILE,),
    ),
    "an earlier step's leave": Case(
        {A: P, B: P, NEW: F},
        BASELINE,
        before={A: P, B: P, NEW: F},
        later=("3",),
        earlier=PlanStep(1, may_fail=(UNTIL,)),
    ),
    "an earlier step's leave, until this step": Case(
        {A: P, B: P, NEW: F},
        None,
        before={A: P, B: P, NEW: F},
        earlier=PlanStep(1, may_fail=(MayFail(NEW, "2"),)),
        counted=(NEW,),
    ),
    "one that is missing": Case(
        {A: P}, None, (MayFail(B),), removes=(), needs_leave=()
    ),
    "one that is skipped": Case({A: P, B: S}, None, (MayFail(B),), removes=()),
}
REMOVES = {
    "one is missing": Case({A: P}, None, needs_leave=(B,)),
    "one is skipped": Case({A: P, B: S}, None, needs_leave=(B,)),
    "one is missing, and one fails": Case({A: F}, None, counted=(A,)),
    "none": Case({A: P}, None, removes=()),
    "its id": Case({A: P}, PASSED, removes=(B,)),
    "its name": Case({A: P, B: S}, PASSED, removes=("test_b",)),
    "its file": Case({A: P}, PASSED, removes=("tests/test_a.py",)),
    "its folder": Case({A: P}, PASSED, removes=("tests/",)),
    "another": Case({A: P}, None, removes=(A,)),
    "both": Case({NEW: P}, PASSED, removes=("test_a", "test_b")),
    "one of two": Case({NEW: P}, None, removes=("test_a",)),
    "a row": Case(
        {A: P, f"{B}[1]": P},
        PASSED,
        removes=("test_b[2]",),
        before={A: P, f"{B}[1]": P, f"{B}[2]": P},
    ),
    "another row": Case(
        {A: P, f"{B}[1]": P},
        None,
        removes=("test_b[1]",),
        before={A: P, f"{B}[1]": P, f"{B}[2]": P},
    ),
}


@pytest.mark.parametrize(
    "table", [MAY_FAIL, REMOVES], ids=["May fail", "Removes tests"]
)
def test_the_fields_excuse_what_they_name_and_nothing_else(
    table: dict[str, Case], tmp_path: Path
) -> None:
    wrong = []
    for name, case in table.items():
        verdict = verdict_on(case, tmp_path)
        leave = tuple(lost.test for lost in verdict.needs_leave)
        found = (verdict.verification, verdict.checks[0].counted, leave)
        if found != (case.verification, case.counted, case.needs_leave):
            wrong.append((name, found, verdict.reason))
    assert wrong == []


def test_the_notes_name_the_tests_and_the_step_that_ends_the_leave(
    tmp_path: Path,
) -> None:
    notes = {
        name: verdict_on(case, tmp_path).notes
        for name, case in (*MAY_FAIL.items(), *REMOVES.items())
    }
    assert [NEW in note for note in notes["a new failure"]] == [True]
    until = notes["a new failure, until a later step"]
    assert ["step 3" in note and NEW in note for note in until] == [True]
    assert [B in note for note in notes["its id"]] == [True]
    assert notes["it passes"] == ()


def test_the_evidence_counts_the_tests_that_may_fail_apart_from_old_failures(
    tmp_path: Path,
) -> None:
    for name, label in (
        ("a new failure", ""),
        ("a new failure, until a later step", "3"),
    ):
        evidence = verdict_on(MAY_FAIL[name], tmp_path).evidence
        assert evidence is not None
        assert (evidence.excused, evidence.excused_until) == (1, label)
        assert (evidence.old_failures, evidence.new_failures) == (0, 0)
        assert evidence.only_excused_failed
