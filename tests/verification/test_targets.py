"""Of the tests that failed before, which a step has to turn green, and which it leaves
to a later one.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from cdd_agent.changes.change_set import ChangeSet, FileChange
from cdd_agent.events.step_events import AttemptFailed, TestsFinished
from cdd_agent.events.step_summary import StepFinished
from cdd_agent.tickets.plan import AffectedFile, MayFail, PlanStep
from cdd_agent.tickets.served_criteria import places_of_step
from cdd_agent.verification.before import Agenda
from cdd_agent.verification.targets import Assignment, Targets
from tests.engine.calculator import CALC, FIXED, SUB, TEST_SUB, TESTS, calculator, gives
from tests.support.projects import SPEC, Sandbox, Step, run_all, says
from tests.support.tables import each_row

FILES = {
    "tests/test_calc.py": (
        "from calc import sub\n\ndef test_sub(): assert sub(3, 1) == 2\n"
    ),
    "tests/test_shop.py": (
        "from shop import cart, till\n\ndef test_pay(): assert till.pay(cart.total())\n"
    ),
    "tests/test_net.py": "import socket\n\ndef test_net(): assert 0\n",
}
CALC_TEST, SHOP, NET = (
    "tests/test_calc.py::test_sub",
    "tests/test_shop.py",
    "tests/test_net.py::test_net",
)
RED = (CALC_TEST, SHOP, NET)
"""The failure from before: `tests/test_shop.py` cannot even be collected."""


def step(
    text: str = "Do it.",
    *files: str,
    number: int = 1,
    verify: str | None = None,
    serves: tuple[int, ...] = (),
    may_fail: tuple[MayFail, ...] = (),
) -> PlanStep:
    return PlanStep(
        number,
        "Work",
        text,
        files_affected=tuple(map(AffectedFile, files)),
        checks=(verify,) if verify else None,
        serves=serves,
        may_fail=may_fail,
    )


def changed(*paths: str) -> ChangeSet:
    return ChangeSet(
        tuple(FileChange(PurePosixPath(path), None, b"x = 1\n") for path in paths)
    )


@dataclass(frozen=True)
class Case:
    step: PlanStep
    due: tuple[str, ...] = ()
    later: tuple[tuple[str, int], ...] = ()
    left: tuple[PlanStep, ...] = ()
    done: tuple[PlanStep, ...] = ()
    excused: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    guidance: str = ""


SECOND = step("Make `sub` subtract.", "calc.py", number=2)
README = step("Say it.", "README.md", number=9)
CASES = {
    "nothing to do with any": Case(step("Do it.", "notes.txt"), changes=("notes.txt",)),
    # Named by the step.
    "its words name the file": Case(
        step("Make tests/test_calc.py pass.", "notes.txt"), (CALC_TEST,)
    ),
    "its words name the test": Case(step("Make test_sub pass."), (CALC_TEST,)),
    "its words name a test in what cannot be collected": Case(
        step("Make test_pay pass."), (SHOP,)
    ),
    "its words name a node": Case(
        step("`tests/test_net.py::test_net` is red."), (NET,)
    ),
    "its check names the file": Case(
        step(verify="make -C . tests/test_calc.py"), (CALC_TEST,)
    ),
    "its files": Case(step("Do it.", "./tests/test_net.py"), (NET,)),
    "its folder": Case(step("Do it.", "tests/"), RED),
    "its pattern": Case(step("Do it.", "tests/*_net.py"), (NET,)),
    "a pattern that a later step declares, too": Case(
        step("Do it.", "calc.py"),
        later=((CALC_TEST, 2),),
        left=(step("Do more.", "c*.py", number=2),),
    ),
    "the person who guides it": Case(
        step(), (NET,), guidance="test_net has to pass, too"
    ),
    # Tied to its files.
    "it changed what a test imports": Case(step(), (CALC_TEST,), changes=("calc.py",)),
    "it was to change what a test imports": Case(
        step("Do it.", "calc.py"), (CALC_TEST,), changes=("notes.txt",)
    ),
    "it made what could not be imported": Case(
        step(), (SHOP,), changes=("shop/till.py",)
    ),
    "it changed what a test is named after": Case(step(), (NET,), changes=("net.py",)),
    # Named by a criterion.
    "a criterion, and it is the last step": Case(
        step(), (NET,), criteria=("Fast.", "tests/test_net.py passes")
    ),
    "a criterion that the last step answers for": Case(
        step(), later=(), left=(README,), criteria=("tests/test_net.py passes",)
    ),
    "a criterion that it serves": Case(
        step(serves=(2,)),
        (NET,),
        left=(README,),
        criteria=("Fast.", "tests/test_net.py passes"),
    ),
    "a criterion that a later step serves, too": Case(
        step(serves=(1,)),
        later=((NET, 2),),
        left=(step(number=2, serves=(1,)), README),
        criteria=("test_net passes",),
    ),
    "a criterion, and a later step brings what the test imports": Case(
        step("Do it.", "shop/cart.py"),
        later=((SHOP, 2),),
        left=(step("Do it.", "shop/till.py", number=2), README),
        criteria=("tests/test_shop.py passes",),
    ),
    "a criterion, and it brings what the test imports": Case(
        step("Do it.", "shop/till.py"),
        (SHOP,),
        left=(README,),
        criteria=("tests/test_shop.py passes",),
    ),
    # Left to later steps.
    "a later step changes the same file": Case(
        step("Add mul.", "calc.py"), later=((CALC_TEST, 2),), left=(SECOND, README)
    ),
    "the last of them counts": Case(
        step("Add mul.", "calc.py"),
        later=((CALC_TEST, 3),),
        left=(SECOND, step("Make `sub` fast.", "calc.py", number=3), README),
    ),
    "a later step brings the rest of what a test imports": Case(
        step("Do it.", "shop/cart.py"),
        later=((SHOP, 2),),
        left=(step("Do it.", "shop/till.py", number=2),),
    ),
    "a later step names the test": Case(
        step("Add mul.", "calc.py"),
        later=((CALC_TEST, 2),),
        left=(step("Make test_sub pass.", number=2),),
    ),
    "a later step's check names the file": Case(
        step("Add mul.", "calc.py"),
        later=((CALC_TEST, 2),),
        left=(step(number=2, verify="pytest tests/test_calc.py"),),
    ),
    "named by its own words, whatever comes later": Case(
        step("Make test_sub pass.", "calc.py"), (CALC_TEST,), left=(SECOND,)
    ),
    "a later step that only writes tests fixes none": Case(
        step("Fix sub.", "calc.py"),
        (CALC_TEST,),
        left=(step("More cases.", "tests/test_calc.py", number=2),),
    ),
    # Tests first.
    "it writes the tests that a later step is for": Case(
        step("Write test_sub in tests/test_calc.py.", "tests/test_calc.py"),
        later=((CALC_TEST, 2),),
        left=(SECOND,),
    ),
    "it writes tests, and says that they fail": Case(
        step("Write failing tests. They fail until step 2.", "tests/test_net.py"),
        (NET,),
        left=(step("Do it.", "a.py", number=2),),
    ),
    "it writes tests, and nobody makes them pass": Case(
        step("Write test_net.", "tests/test_net.py"), (NET,)
    ),
    "it writes code and tests": Case(
        step(
            "Write it with tests/test_calc.py.",
            "calc.py",
            "tests/test_calc.py",
        ),
        (CALC_TEST,),
        left=(README,),
    ),
    "it writes tests first, and then the code": Case(
        step("Write tests, then make them pass.", "calc.py", "tests/test_calc.py"),
        (CALC_TEST,),
    ),
    "it writes tests, and others are for it to fix": Case(
        step(
            "Write tests.",
            "tests/test_calc.py",
            may_fail=(MayFail("tests/test_calc.py"),),
        ),
        (NET,),
        excused=(CALC_TEST,),
        criteria=("test_net passes",),
    ),
    "it writes tests, and a note that the plan does not name": Case(
        step("Write test_sub.", "tests/test_calc.py"),
        later=((CALC_TEST, 2),),
        left=(SECOND,),
        changes=("tests/test_calc.py", "notes.txt"),
    ),
    # Left red with leave.
    "its words let the test fail": Case(
        step("Make test_sub fast; test_sub may still fail.", "calc.py"), (CALC_TEST,)
    ),
    "its field lets the test fail": Case(
        step("Make test_sub fast.", "calc.py", may_fail=(MayFail("test_sub"),)),
        excused=(CALC_TEST,),
    ),
    "its field lets another test fail": Case(
        step("Make it fast.", "calc.py", may_fail=(MayFail(NET),)),
        (CALC_TEST,),
        excused=(NET,),
    ),
    "its field lets a file fail that cannot be collected": Case(
        step("Do it.", "shop/till.py", may_fail=(MayFail(f"{SHOP}::test_pay"),)),
        excused=(SHOP,),
    ),
    "its field lets a test fail until a later step": Case(
        step("Do it.", "calc.py", may_fail=(MayFail("tests/test_calc.py", "2"),)),
        excused=(CALC_TEST,),
        left=(README, step("Do it.", number=2)),
    ),
    "until a step that is over": Case(
        step("Do it.", "calc.py", number=3, may_fail=(MayFail(CALC_TEST, "2"),)),
        (CALC_TEST,),
        done=(step("Do it.", number=2),),
    ),
    "an earlier step lets a test fail, until a later one": Case(
        step("Do it.", "calc.py", number=2),
        excused=(CALC_TEST,),
        done=(step(may_fail=(MayFail(CALC_TEST, "9"),)),),
        left=(README,),
    ),
    "an earlier step lets a test fail, until this one": Case(
        step("Do it.", "notes.txt", number=2),
        (CALC_TEST,),
        done=(step(may_fail=(MayFail(CALC_TEST, "2"),)),),
        left=(step("Fix it.", "calc.py", number=3),),
    ),
    "an earlier step let a test fail, for itself": Case(
        step("Do it.", "notes.txt", number=2),
        done=(step(may_fail=(MayFail(CALC_TEST),)),),
    ),
}


@each_row("case", CASES.values(), ids=CASES)
def test_which_tests_a_step_is_about(tmp_path: Path, case: Case) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    served = {
        step.number: places_of_step(step, None, case.criteria)
        for step in (case.step, *case.left)
    }
    agenda = Agenda(case.criteria, case.left, case.done, served)
    targets = Assignment(
        tmp_path, case.step, agenda, case.guidance, changed(*case.changes)
    ).find_targets(RED)
    later = tuple((test, taker.number) for test, taker in targets.later.items())
    found = (tuple(targets.due), later, tuple(targets.excused))
    assert found == (case.due, case.later, case.excused)


def test_a_new_failure_is_excused_by_the_field_alone(tmp_path: Path) -> None:
    leave = (MayFail("tests/test_cube.py", "2"),)
    named = step("Write test_cube and test_root.", may_fail=leave)
    cube, root = "tests/test_cube.py::test_cube", "tests/test_root.py::test_root"
    agenda = Agenda(later=(step(number=2),))
    targets = Assignment(tmp_path, named, agenda).find_targets((), (cube, root))
    assert targets == Targets(excused={cube: "2"})


def test_a_reply_that_takes_the_import_out_of_a_red_test_hides_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text("def test_sub(): assert 0\n")
    path = PurePosixPath("tests/test_it.py")
    changes = ChangeSet(
        (FileChange(path, b"from calc import sub\n", b"def test_sub(): assert 0\n"),)
    )
    targets = Assignment(
        tmp_path, step("Do it.", "calc.py"), changes=changes
    ).find_targets(["tests/test_it.py::test_sub"])
    assert targets.due.keys() == {"tests/test_it.py::test_sub"}


def test_what_did_not_fail_is_nobodys_target(tmp_path: Path) -> None:
    named = step("Make test_sub pass.")
    assert Assignment(tmp_path, named).find_targets(()) == Targets()


# --- In a run -------------------------------------------------------------------------

USELESS = gives(calc_dot_py=CALC + "# fixed\n")
ONLY_SUB = f"from calc import sub\n\n\n{TEST_SUB}"
"""All tests fail before."""


@pytest.mark.parametrize(
    ("work", "reply", "spec"),
    [
        (
            Step("notes.txt", description="Make tests/test_calc.py pass."),
            says("notes.txt", "x"),
            SPEC,
        ),
        (
            Step("notes.txt", description="Make test_sub pass."),
            says("notes.txt", "x"),
            SPEC,
        ),
        (Step("notes.txt", also=("tests/test_calc.py",)), says("notes.txt", "x"), SPEC),
        (
            Step("notes.txt", verify="pytest -q tests/test_calc.py"),
            says("notes.txt", "x"),
            SPEC,
        ),
        (
            Step("notes.txt"),
            says("notes.txt", "x"),
            SPEC.replace("a.txt says good", "test_sub passes"),
        ),
        (
            Step("notes.txt"),
            gives(notes_dot_txt="x", calc_dot_py=CALC + "# fixed\n"),
            SPEC,
        ),
        (Step("calc.py"), USELESS, SPEC),
    ],
    ids=[
        "its words name the file",
        "the test",
        "its files",
        "its check",
        "the criteria",
        "a change",
        "its file",
    ],
)
async def test_a_useless_reply_to_a_step_about_red_tests_completes_nothing(
    sandbox: Sandbox, work: Step, reply: str, spec: str
) -> None:
    calculator(sandbox, tests__test_calc_dot_py=ONLY_SUB).write(work, spec=spec)
    sandbox.flags = {"test_command": "pytest -q tests/test_calc.py"}

    events = await run_all(sandbox.replies(reply, reply), attempts=2)

    assert sandbox.statuses() == ["failed"]
    error = next(event.error for event in events if isinstance(event, StepFinished))
    assert error
    assert SUB in error
    assert "exit code" in error


async def test_the_model_is_told_which_tests_have_to_turn_green_and_goes_on(
    sandbox: Sandbox,
) -> None:
    calculator(sandbox, tests__test_net_dot_py="def test_net(): assert 0\n")
    sandbox.replies(USELESS, gives(calc_dot_py=FIXED))

    events = await run_all(sandbox, attempts=2)

    assert [
        event.will_retry for event in events if isinstance(event, AttemptFailed)
    ] == [True]
    told = sandbox.prompt().partition(f"\n- {SUB} ")[2].splitlines()[0]
    assert "calc.py" in told
    assert sandbox.statuses() == ["completed"]
    notes = [event.notes for event in events if isinstance(event, TestsFinished)][-1]
    assert [note.split()[-1] for note in notes] == ["tests/test_net.py::test_net"]


async def test_a_file_that_cannot_be_imported_yet_is_due_when_all_of_it_is_there(
    sandbox: Sandbox,
) -> None:
    calculator(sandbox, Step("shop/cart.py"), Step("shop/till.py"), Step("notes.txt"))
    tests = (
        "from shop.cart import total\n"
        "from shop.till import pay\n\n\n"
        "def test_pay():\n"
        "    assert pay(total()) == 3\n"
    )
    (sandbox.root / "tests/test_calc.py").write_text(TESTS.replace(TEST_SUB, ""))
    (sandbox.root / "tests/test_shop.py").write_text(tests)
    cart, wrong, right = (
        says("shop/cart.py", "def total(): return 3"),
        "def pay(x): return 0",
        "def pay(x): return x",
    )
    sandbox.replies(
        cart,
        says("shop/till.py", wrong),
        says("shop/till.py", right),
        says("notes.txt", "x"),
    )

    events = await run_all(sandbox, attempts=2)

    assert [
        step["verification"] for step in sandbox.state()["step_executions"].values()
    ] == [
        "baseline",
        "passed",
        "passed",
    ]
    first = next(event for event in events if isinstance(event, TestsFinished))
    assert "step 2" in first.notes[0]
    assert first.notes[0].split()[-1] == "tests/test_shop.py"
    failed = [event.error for event in events if isinstance(event, AttemptFailed)]
    assert len(failed) == 1
    assert "tests/test_shop.py::test_pay" in failed[0]


async def test_a_step_that_writes_red_tests_completes_and_the_next_one_makes_them_pass(
    sandbox: Sandbox,
) -> None:
    more = (
        "from calc import add, cube, sub\n\n\n"
        f"{TEST_SUB}\n\n"
        "def test_cube():\n"
        "    assert cube(2) == 8\n"
    )
    red = f"from calc import cube\n\n\n{TEST_SUB}"  # cannot be imported
    first = Step(
        "tests/test_calc.py",
        description="Write test_cube in tests/test_calc.py. It fails until step 2.",
    )
    calculator(sandbox, first, Step("calc.py"), tests__test_calc_dot_py=red)
    cubed = FIXED + "\n\ndef cube(a):\n    return a**3\n"
    sandbox.replies(
        gives(tests__test_calc_dot_py=more), USELESS, gives(calc_dot_py=cubed)
    )

    events = await run_all(sandbox, attempts=2)

    assert [
        step["verification"] for step in sandbox.state()["step_executions"].values()
    ] == ["baseline", "passed"]
    assert [event.step for event in events if isinstance(event, AttemptFailed)] == [2]
