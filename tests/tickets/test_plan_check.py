"""The compiler finds the problems of a plan, and leaves alone what is fine."""

import re
from pathlib import Path

from msgspec.structs import replace

from cdd_agent.tickets.plan import AffectedFile, ImplementationPlan, PlanStep, Problem
from cdd_agent.tickets.plan_check import (
    FilesOfPlan,
    check_plan,
    find_problems,
    only_errors,
)
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.tickets.state import ExecutionState, StepExecution
from cdd_agent.tickets.status import StepStatus
from tests.support.tables import each_row

SPEC = TicketSpec(
    "Sign in",
    description="d",
    acceptance_criteria=("Users sign in", "Wrong passwords are refused"),
)
EMPTY = FilesOfPlan(frozenset())


def step(
    number: int,
    *files: str,
    needs: tuple[int, ...] = (),
    serves: tuple[int, ...] = (1, 2),
) -> PlanStep:
    """A step that is fine; a file may have a note behind a space: `a.py new`."""
    affected = (AffectedFile(*file.split(" ", 1)) for file in files)
    return PlanStep(
        number,
        "Do it",
        dependencies=needs,
        files_affected=tuple(affected),
        checks=("pytest -q",),
        serves=serves,
    )


def state_after(completed: tuple[int, ...]) -> ExecutionState:
    return ExecutionState(
        "feature-x",
        step_executions={
            number: StepExecution(number, status=StepStatus.COMPLETED)
            for number in completed
        },
    )


def found(
    *steps: PlanStep, there: str = "", settled: tuple[int, ...] = ()
) -> list[tuple[str, int | None]]:
    plan = ImplementationPlan(steps=steps)
    return [
        (p.kind, p.step)
        for p in find_problems(
            plan, SPEC, FilesOfPlan(frozenset(there.split())), state_after(settled)
        )
    ]


@each_row(
    ("steps", "there"),
    [
        ([step(1, "a.py new")], ""),
        ([step(1, "a.py New file, the model")], ""),
        ([step(1, "a.py")], "a.py"),
        ([step(1, "./a.py")], "a.py"),
        ([step(1, "a.py new"), step(2, "a.py", needs=(1,))], ""),
        ([step(1, "a.py new"), step(2, needs=(1,)), step(3, "a.py", needs=(2,))], ""),
        ([step(2, "a.py", needs=(1,)), step(1, "a.py new")], ""),
        (
            [
                step(1, "a.py deleted"),
                step(2, "a.py new", needs=(1,)),
                step(3, "a.py", needs=(2,)),
            ],
            "a.py",
        ),
        ([step(1, "tests/test_a.py new tests for signing in")], "tests/test_a.py"),
        ([step(1, serves=(1,)), step(2, serves=(2,))], ""),
    ],
)
def test_a_sound_plan_has_no_problems(steps: list[PlanStep], there: str) -> None:
    assert found(*steps, there=there) == []


@each_row(
    ("steps", "there", "problems"),
    [
        ([step(1, "a.py"), step(2, "a.py new")], "", [("edited_before_created", 1)]),
        ([step(1, "a.py new"), step(2, "a.py new")], "", [("created_twice", 2)]),
        (
            [step(1, "a.py new"), step(2, "./a.py created here")],
            "",
            [("created_twice", 2)],
        ),
        (
            [step(1, "a.py deleted"), step(2, "a.py")],
            "a.py",
            [("edited_after_deleted", 2)],
        ),
        ([step(1, "a.py new")], "a.py", [("exists_already", 1)]),
        ([step(1, "a.py"), step(2, "a.py", needs=(1,))], "", [("missing_file", 1)]),
        ([step(1, "a.py new"), step(2, "a.py")], "", [("missing_dependency", 2)]),
        (
            [step(1, serves=(1, 3))],
            "",
            [("unknown_criterion", 1), ("unserved_criterion", None)],
        ),
        ([step(1, serves=(2,))], "", [("unserved_criterion", None)]),
        ([step(1, *(f"{n}.py new" for n in range(9)))], "", [("too_wide", 1)]),
        ([step(1), step(1)], "", [("duplicate_step", 1)]),
        ([step(1, needs=(2,)), step(2, needs=(1,))], "", [("cycle", 1)]),
        ([step(1, needs=(1,))], "", [("cycle", 1)]),
        ([step(1, needs=(7,))], "", [("unknown_dependency", 1)]),
        ([step(1, "../a.py")], "", [("outside_project", 1)]),
        ([], "", [("no_steps", None)]),
    ],
)
def test_what_would_go_wrong_is_found(
    steps: list[PlanStep], there: str, problems: list[tuple[str, int]]
) -> None:
    assert found(*steps, there=there) == problems


@each_row(
    ("time", "is_wide"),
    [
        ("8 hours", False),
        ("1 day", False),
        ("1-2 days", True),
        ("12h", True),
        ("90 min", False),
        ("unknown", False),
        ("1 week", True),
    ],
)
def test_a_step_of_more_than_a_days_work_is_wide(time: str, is_wide: bool) -> None:
    wide = PlanStep(1, estimated_time=time, checks=("make",), serves=(1, 2))
    assert (found(wide) == [("too_wide", 1)]) is is_wide


@each_row(
    ("verify", "file", "is_told"),
    [(None, "a.py", True), ("none", "a.py", True), ("none", "", False)],
)
def test_a_step_without_a_check_is_told_unless_it_changes_nothing(
    verify: str, file: str, is_told: bool
) -> None:
    bare = PlanStep(
        1,
        checks=(verify,) if verify else None,
        files_affected=(AffectedFile(file, "new"),),
        serves=(1, 2),
    )
    assert (found(bare) == [("no_check", 1)]) is is_told


def test_a_plan_in_few_words_has_only_warnings() -> None:
    plan = read_plan("### Step 1: Do it\n\n**Files:** `a.py`\n\n### Step 2: Test it\n")
    problems = find_problems(plan, SPEC, EMPTY)
    assert {problem.kind for problem in problems} == {
        "no_serves",
        "missing_file",
        "no_check",
    }
    assert only_errors(problems) == []


def test_an_error_is_told_from_a_warning() -> None:
    plan = ImplementationPlan(steps=(step(1, "a.py"), step(2, "a.py new")))
    assert only_errors(find_problems(plan, SPEC, EMPTY)) == find_problems(
        plan, SPEC, EMPTY
    )


def test_steps_that_were_begun_are_not_judged_but_count() -> None:
    steps = (
        step(1, "a.py new"),
        step(2, "a.py", needs=(1,)),
        step(3, "a.py new", needs=(2,)),
    )
    assert found(*steps, there="a.py", settled=(1,)) == [("created_twice", 3)]
    assert found(PlanStep(1, serves=(1, 2)), settled=(1,)) == []


def test_a_step_that_is_over_may_name_words_that_the_spec_had_before() -> None:
    """Steps that are over stay in each new plan, which could not be approved."""
    plan = ImplementationPlan(
        steps=(step(1, serves=(1, 2)), replace(step(2), serves=("Old words", 9)))
    )
    for status in StepStatus:
        entry = StepExecution(2, status=status)
        state = ExecutionState("feature-x", step_executions={2: entry})
        problems = find_problems(plan, SPEC, EMPTY, state)
        assert [p.kind for p in problems] == ["unknown_criterion"] * 2
        assert (only_errors(problems) == []) is status.is_over, status


def test_problems_have_the_line_of_their_step_and_come_in_that_order() -> None:
    text = (
        "# Plan\n\n"
        "### Step 1: A\n"
        "**Verify:** `make`\n"
        "**Serves:** 9\n\n"
        "### Step 2: B\n"
        "**Serves:** 1, 2\n"
    )
    problems = find_problems(read_plan(text), SPEC, EMPTY)
    assert [(problem.line, problem.kind) for problem in problems] == [
        (3, "unknown_criterion"),
        (7, "no_check"),
    ]


def test_the_project_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    (tmp_path / "out").symlink_to("/")
    plan = ImplementationPlan(
        steps=(step(1, "a.py", "b.py new", "out/etc/passwd", "~/x"),)
    )
    problems: list[Problem] = check_plan(plan, SPEC, tmp_path)
    assert [problem.kind for problem in problems] == ["outside_project"] * 2
    assert [re.findall("`(.*?)`", problem.text) for problem in problems] == [
        ["out/etc/passwd"],
        ["~/x"],
    ]
