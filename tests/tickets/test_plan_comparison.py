"""Two versions of a plan, compared step by step."""

from msgspec.structs import replace

from cdd_agent.events.ticket_events import PlanProposed
from cdd_agent.tickets.plan import AffectedFile, ImplementationPlan, MayFail, PlanStep
from cdd_agent.tickets.plan_comparison import (
    PlanComparison,
    StepChangeKind,
    ValueEdit,
    compare_plans,
)
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.wording.describe import describe
from tests.support.tables import each_row


def step(
    label: str, title: str, files: str = "", check: str = "", **values: object
) -> PlanStep:
    plain: dict[str, object] = {
        "number": int(label) if label.isdigit() else 0,
        "label": label,
        "title": title,
        "description": f"Make the part of {title.lower()}.",
        "files_affected": tuple(map(AffectedFile, files.split())),
        "checks": (check,) if check else None,
    }
    return PlanStep(**(plain | values))  # type: ignore[arg-type]


STORE = step("1", "Store", "store.py", "pytest test_store.py", id="aaaa")
FORM = step("2", "Form", "form.py", "pytest test_form.py", id="bbbb", dependencies=(1,))
LOGIN = step("3", "Login", "login.py", id="cccc", dependencies=(2,))
DOCS = step("4", "Docs", "docs.md", id="dddd")
STEPS = (STORE, FORM, LOGIN, DOCS)


def plan(*steps: PlanStep, **values: object) -> ImplementationPlan:
    """Return a plan as plan.md holds it."""
    plan = ImplementationPlan(
        ticket_slug="feature-x", ticket_title="X", steps=steps, **values
    )
    return read_plan(write_plan(plan))


def without_ids(steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    return tuple(replace(step, id="") for step in steps)


def in_short(comparison: PlanComparison) -> str:
    """Return the changes in the order in which they are shown."""
    parts = []
    for change in comparison.steps:
        fields = ",".join(field.name for field in change.fields)
        place = "" if change.follows is None else f" after {change.follows or 'none'}"
        if change.kind is StepChangeKind.NEW:
            fields = ""
        parts.append(f"{change.kind} {change.label}{place} {fields}".rstrip())
    parts += [f"{edit.old}→{edit.new}" for edit in comparison.renumbered]
    parts += [part.name for part in comparison.parts]
    return "; ".join([*parts, f"{comparison.unchanged} same"])


NEW = step("5", "Audit", "audit.py", "pytest test_audit.py", id="eeee")
LONG_TEXT = "One two three four five six seven eight."
SERVES = replace(STORE, serves=("It stores",))


@each_row(
    "before,after,expected",
    [
        (STEPS, STEPS, "4 same"),
        (STEPS, (*STEPS, NEW), "new 5 after 4; 4 same"),
        (STEPS, (NEW, *STEPS), "new 5 after none; 4 same"),
        (STEPS, (STORE, FORM, NEW, LOGIN, DOCS), "new 5 after 2; 4 same"),
        (STEPS, (STORE, FORM, LOGIN), "removed 4; 3 same"),
        (
            STEPS,
            (STORE, replace(FORM, title="Better form"), LOGIN, DOCS),
            "changed 2 title; 3 same",
        ),
        (
            STEPS,
            (
                STORE,
                replace(FORM, files_affected=(AffectedFile("form.py", "new"),)),
                LOGIN,
                DOCS,
            ),
            "changed 2 files; 3 same",
        ),
        (
            STEPS,
            (replace(STORE, checks=()), replace(FORM, checks=None), LOGIN, DOCS),
            "changed 1 check; changed 2 check; 2 same",
        ),
        (
            (replace(STORE, checks=("make a", "make b")), FORM),
            (replace(STORE, checks=("make b", "make a")), FORM),
            "changed 1 check; 1 same",
        ),
        (
            (step("1", "Store", "a.py:1-9 a.py:20-29"), FORM),
            (step("1", "Store", "a.py:5-9 a.py:20-29"), FORM),
            "changed 1 files; 1 same",
        ),
        (
            STEPS,
            (replace(STORE, description=LONG_TEXT), FORM, LOGIN, DOCS),
            "changed 1 description; 3 same",
        ),
        (
            (SERVES, FORM),
            (replace(SERVES, serves=("It keeps",)), FORM),
            "changed 1 serves; 1 same",
        ),
        (
            STEPS,
            (
                replace(
                    STORE,
                    complexity="high",
                    estimated_time="1 day",
                    removes_tests=("t.py",),
                    may_fail=(MayFail("u.py", "3"),),
                ),
                FORM,
                LOGIN,
                DOCS,
            ),
            "changed 1 removes tests,may fail,complexity,estimated time; 3 same",
        ),
        (
            STEPS,
            (STORE, FORM, replace(LOGIN, dependencies=(1, 2)), DOCS),
            "changed 3 depends on; 3 same",
        ),
        # the fewest steps are moved
        (STEPS, (DOCS, STORE, FORM, LOGIN), "moved 4 after none; 3 same"),
        (STEPS, (FORM, LOGIN, STORE, DOCS), "moved 1 after 3; 3 same"),
        (
            STEPS,
            (DOCS, LOGIN, FORM, STORE),
            "moved 4 after none; moved 3 after 4; moved 2 after 3; 1 same",
        ),
        (
            STEPS,
            (replace(DOCS, title="Manual"), STORE, FORM, LOGIN),
            "changed 4 after none title; 3 same",
        ),
        # split: what stays keeps its id, the rest is new
        (
            STEPS,
            (
                STORE,
                replace(FORM, title="Fields"),
                step("5", "Validation", "form.py", id="ffff", dependencies=(2,)),
                replace(LOGIN, dependencies=(2, 5)),
                DOCS,
            ),
            "changed 2 title; new 5 after 2; changed 3 depends on; 2 same",
        ),
        # merged: one stays, the other is removed
        (
            STEPS,
            (
                STORE,
                replace(FORM, title="Form and login"),
                DOCS,
            ),
            "changed 2 title; removed 3; 2 same",
        ),
        # renumbered steps are the same, and so are references to them
        (
            STEPS,
            (
                STORE,
                replace(NEW, number=2, label="2"),
                replace(FORM, number=3, label="3"),
                replace(LOGIN, number=4, label="4", dependencies=(3,)),
                replace(DOCS, number=5, label="5"),
            ),
            "new 2 after 1; 2→3; 3→4; 4→5; 4 same",
        ),
        # the same without ids: by title
        (
            without_ids(STEPS),
            without_ids(
                (
                    STORE,
                    replace(NEW, number=2, label="2"),
                    replace(FORM, number=3, label="3"),
                    replace(LOGIN, number=4, label="4", dependencies=(3,)),
                    replace(DOCS, number=5, label="5"),
                )
            ),
            "new 2 after 1; 2→3; 3→4; 4→5; 4 same",
        ),
        # without ids, another title is the same step by its number
        (
            without_ids(STEPS),
            without_ids((STORE, replace(FORM, title="Fields"), LOGIN, DOCS)),
            "changed 2 title; 3 same",
        ),
        # another id is another step
        (
            STEPS,
            (STORE, replace(FORM, id="zzzz"), LOGIN, DOCS),
            "new 2 after 1; removed 2; 3 same",
        ),
        # labels that are no plain numbers
        (
            (STORE, step("1b", "Cache", id="gggg"), DOCS),
            (STORE, step("1b", "Cache", "cache.py", id="gggg"), DOCS),
            "changed 1b files; 2 same",
        ),
        (
            (),
            STEPS,
            "new 1 after none; new 2 after 1; new 3 after 2; new 4 after 3; 0 same",
        ),
        (STEPS, (), "removed 1; removed 2; removed 3; removed 4; 0 same"),
    ],
)
def test_steps_are_compared(
    before: tuple[PlanStep, ...], after: tuple[PlanStep, ...], expected: str
) -> None:
    assert in_short(compare_plans(plan(*before), plan(*after))) == expected


def test_changes_outside_of_the_steps_are_named() -> None:
    before = plan(STORE, overview="First this.", risks=("Slow.",), notes="Mine.")
    after = plan(
        STORE,
        overview="First that.",
        risks=("Slow.", "Late."),
        total_estimated_time="2 days",
        notes="Mine.",
    )
    after = replace(after, ticket_title="Y")
    comparison = compare_plans(before, after)
    assert in_short(comparison) == "title; overview; estimated time; risks; 1 same"
    assert comparison.parts[3].edits == (ValueEdit("", "Late."),)
    assert compare_plans(before, before).is_empty
    assert not comparison.is_empty


def test_completed_steps_that_change_are_named() -> None:
    before = plan(*STEPS)
    after = plan(DOCS, replace(STORE, title="Storage"), LOGIN)
    comparison = compare_plans(before, after, {"1", "2", "4"})
    assert [change.label for change in comparison.reopened] == ["1", "2"]
    proposal = PlanProposed.from_plan("feature-x", after, "", {"1"}, comparison)
    told = "\n".join(text for text, _ in describe(proposal))
    assert "The change reopens step 1, which is completed: Storage" in told
    assert "The change removes step 2, which is completed: Form" in told


@each_row(
    "old,new,edits",
    [
        ("It gives an error.", "It gives a code.", [("an error.", "a code.")]),
        ("a b c d", "a b c d e", [("", "e")]),
        ("a b c d", "a c d", [("b", "")]),
        ("a b c", "x y z", [("a b c", "x y z")]),
        ("a b c d", "a b X c d Y", [("", "X"), ("", "Y")]),
        ("- a\n- b", "- a - b", [("- a\n- b", "- a - b")]),
        ("w " * 3000, "w " * 3000 + "x", [(("w " * 3000).strip(), "w " * 3000 + "x")]),
    ],
)
def test_descriptions_are_compared_by_words(
    old: str, new: str, edits: list[tuple[str, str]]
) -> None:
    before = plan(replace(STORE, description=old))
    after = plan(replace(STORE, description=new))
    ((change,),) = [step.fields for step in compare_plans(before, after).steps]
    assert [(edit.old, edit.new) for edit in change.edits] == edits


def test_long_prose_is_cut_and_what_the_user_approves_is_not() -> None:
    check = f"pytest {'x' * 500} && rm everything"
    before = plan(STORE, notes="Mine.")
    new = replace(NEW, checks=(check,), description="word " * 300)
    after = plan(replace(STORE, checks=(check,), description="word " * 300), new)
    comparison = compare_plans(before, after)
    proposal = PlanProposed.from_plan("feature-x", after, "", (), comparison)
    told = [text for text, _ in describe(proposal)]
    checks = [line for line in told if "check:" in line]
    assert len(checks) == 2
    assert all(line.endswith(f"{check}`") for line in checks)
    assert max(len(line) for line in told if line not in checks) < 450


def test_the_changes_have_the_same_words_everywhere() -> None:
    after = plan(
        STORE,
        replace(FORM, title="Fields", files_affected=(AffectedFile("a.py", "new"),)),
        NEW,
        LOGIN,
        risks=("Slow.",),
    )
    comparison = compare_plans(plan(*STEPS), after)
    proposal = PlanProposed.from_plan(
        "feature-x", after, "", (), comparison, "As you say."
    )
    assert [text for text, _ in describe(proposal)] == [
        "Proposed change of the plan: 1 new step, 1 changed, 1 removed, 2 unchanged",
        "As you say.",
        "  ~ 2. Fields",
        "      title: Form → Fields",
        "      files: + a.py (new); - form.py",
        "  + 5. Audit (new, after step 2)",
        "      files: audit.py",
        "      check: `pytest test_audit.py`",
        "      description: Make the part of audit.",
        "  - 4. Docs (removed)",
        "  plan's risks: + Slow.",
    ]
    listed = [text for text, _ in describe(replace(proposal, in_full=False))]
    assert listed[1:] == [
        "    1. Store",
        "  ~ 2. Fields",
        "  + 5. Audit",
        "    3. Login",
    ]


@each_row(
    "name,value",
    [
        ("checks", ("make a", "make b")),
        ("serves", ("It stores", "It loads")),
        ("removes_tests", ("test_a", "test_b")),
        ("may_fail", (MayFail("test_a"), MayFail("test_b"))),
        ("files_affected", (AffectedFile("a.py"), AffectedFile("b.py"))),
    ],
)
def test_another_order_in_a_step_is_a_change(
    name: str, value: tuple[object, ...]
) -> None:
    before = replace(STORE, **{name: value})
    after = replace(STORE, **{name: tuple(reversed(value))})
    assert not compare_plans(plan(before), plan(after)).is_empty


def test_another_order_of_risks_is_a_change() -> None:
    before = plan(STORE, risks=("Slow", "Large"))
    after = plan(STORE, risks=("Large", "Slow"))
    (part,) = compare_plans(before, after).parts
    assert part.edits == (ValueEdit("Slow, Large", "Large, Slow"),)
