"""Changing a plan and its plan.md: what nobody asked for stays as it is, byte for
byte.
"""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import (
    AffectedFile,
    ImplementationPlan,
    MayFail,
    PlanStep,
)
from cdd_agent.tickets.plan_changes import (
    ChangeRefused,
    FixedSteps,
    change_plan,
    merge_plans,
    replace_plan,
)
from cdd_agent.tickets.plan_check import FilesOfPlan, find_problems, only_errors
from cdd_agent.tickets.plan_draft import (
    BASIC_PLAN_MARK,
    PlanChanges,
    PlanDraft,
    add_ids,
    make_basic_plan,
)
from cdd_agent.tickets.plan_editor import PlanTextLost, edit_plan
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.plan_writer import step_block, step_labels, write_plan
from cdd_agent.tickets.spec import TicketSpec
from cdd_agent.values.typed_values import WrongValue, read
from tests.support.examples import count_examples
from tests.support.tables import each_row
from tests.tickets.test_plan import PLANS

THIRD = ["## Step 3 - The mail", "Mail it."]
MINE = "My words."

BY_HAND = """\
<!-- ours, do not format -->

# Implementation Plan: Sign in

**Ticket:** `feature-sign-in`
**Complexity:** medium

## Overview

Short.

## Notes of the team

Ask Kim about the `users` table.

## Step 1 - The table

Some *words*   with  odd spacing.
* **Files:** src/table.py (new)

---

## Step 2 - The form
* **Depends on:** all previous steps

The form, with `name`.

---

## Step 3 - The mail

Mail it.

## Appendix

| a | b |
"""
SPEC = TicketSpec(
    "Sign in", description="d", acceptance_criteria=("Users sign in", "Mail is sent")
)


def draft(number: int, title: str = "New", **values: object) -> dict[str, object]:
    """A step as a model writes it."""
    plain = {
        "description": "Do it.",
        "complexity": "simple",
        "estimated_time": "1 hour",
        "dependencies": [],
    }
    return (
        plain
        | {
            "number": number,
            "title": title,
            "files": [],
            "checks": [],
            "serves": [],
        }
        | values
    )


def changes(**values: object) -> PlanChanges:
    return read(PlanChanges, {"summary": "As asked.", **values})


def refined(text: str, fixed: FixedSteps | None = None, **values: object) -> str:
    plan = read_plan(text)
    numbers = frozenset(step.number for step in plan.steps)
    return edit_plan(
        text,
        change_plan(plan, changes(**values), fixed or FixedSteps(used_numbers=numbers)),
    )


def lines_lost(before: str, after: str) -> list[str]:
    return [line for line in before.splitlines() if line not in after.splitlines()]


def test_only_the_changed_step_is_written_anew() -> None:
    after = refined(BY_HAND, steps=[draft(3, "The letter", description="Print it.")])
    assert lines_lost(BY_HAND, after) == THIRD
    assert "\n## Step 3: The letter\n\n" in after
    assert read_plan(after).steps[2].description == "Print it."
    assert after.endswith("\n\n## Appendix\n\n| a | b |\n")


def test_a_step_is_split_and_the_others_keep_their_words() -> None:
    after = refined(
        BY_HAND,
        steps=[draft(1, "The table"), draft(4, "Its index", after=1, dependencies=[1])],
    )
    plan = read_plan(after)
    assert [step.number for step in plan.steps] == [1, 4, 2, 3]
    assert plan.steps[2].dependencies == (1, 4)  # "all previous steps" is what it says
    assert BY_HAND[BY_HAND.index("## Step 2") :] == after[after.index("## Step 2") :]
    assert BY_HAND[: BY_HAND.index("## Step 1")] == after[: after.index("## Step 1")]


@each_row(
    ("after", "order"), [(0, [4, 1, 2, 3]), (2, [1, 2, 4, 3]), (None, [1, 2, 3, 4])]
)
def test_a_new_step_stands_where_it_is_to(after: int | None, order: list[int]) -> None:
    text = refined(BY_HAND, steps=[draft(4, after=after)])
    assert [step.number for step in read_plan(text).steps] == order
    assert lines_lost(BY_HAND, text) == []


def test_new_steps_may_stand_behind_each_other() -> None:
    text = refined(BY_HAND, steps=[draft(4, after=3), draft(5, after=4)])
    assert [step.number for step in read_plan(text).steps] == [1, 2, 3, 4, 5]


def test_a_step_is_removed_with_its_section_alone() -> None:
    after = refined(BY_HAND, removed=[3])
    assert lines_lost(BY_HAND, after) == THIRD


def test_overview_risks_and_totals_are_changed_in_their_place_or_added() -> None:
    risk = "Mail is slow"
    after = refined(
        BY_HAND,
        overview="Long.",
        risks=[risk],
        complexity="complex",
        estimated_time="2 hours",
    )
    plan = read_plan(after)
    assert (plan.overview, plan.risks) == ("Long.", (risk,))
    assert (plan.total_complexity, plan.total_estimated_time) == ("complex", "2 hours")
    assert lines_lost(BY_HAND, after) == ["**Complexity:** medium", "Short."]


def test_the_words_below_the_title_stay_before_another_overview() -> None:
    text = f"# Plan: X\n\n{MINE}\n\n## Overview\n\nOld.\n\n### Step 1: A\n\nDo it.\n"
    plan = read_plan(text)
    after = text.replace("Old.", "New.")
    assert edit_plan(text, replace(plan, overview="New.")) == after
    assert edit_plan(text, replace(plan, overview=f"{MINE}\n\nNew.")) == after
    assert read_plan(edit_plan(text, replace(plan, overview=""))).overview == MINE


def test_a_last_step_that_goes_leaves_no_blank_end() -> None:
    assert (
        refined("### Step 1: A\n\n### Step 2: B\n\nB.\n", removed=[2])
        == "### Step 1: A\n"
    )


def test_a_total_is_put_beside_the_others() -> None:
    after = refined(BY_HAND, estimated_time="1 hour")
    totals = "**Complexity:** medium\n**Estimated Time:** 1 hour\n\n"
    assert f"{totals}## Overview" in after


def test_overview_risks_and_totals_are_put_in_where_there_are_none() -> None:
    after = refined(
        "# Plan: X\n\n### Step 1: A\n",
        overview="Long.",
        risks=["r"],
        complexity="complex",
    )
    expected = (
        "# Plan: X\n\n"
        "**Complexity:** complex\n\n"
        "## Overview\n\n"
        "Long.\n\n"
        "### Step 1: A\n\n"
        "## Risks & Considerations\n\n"
        "- r\n"
    )
    assert after == expected


@each_row("end", ["\r\n", "\n"])
@each_row("text", [BY_HAND, BY_HAND.rstrip(), "### Step 1: A\n### Step 2: B"])
def test_line_ends_are_those_of_the_file(text: str, end: str) -> None:
    written = text.replace("\n", end)
    after = refined(written, steps=[draft(9, after=2), draft(1)])
    assert after.count("\n") == after.count(end)
    assert "\r\r" not in after
    assert (
        refined(text, steps=[draft(9, after=2), draft(1)]).replace("\n", end) == after
    )


def test_a_line_end_with_a_nul_inside_is_two() -> None:
    text = "# Plan: X\n\nWords\r\x00\n\n### Step 1: A\n\n### Step 2: B\n"
    assert (
        refined(text, removed=[2])
        == text.partition("### Step 2")[0].rstrip("\n") + "\n"
    )


def test_what_is_not_changed_is_not_touched() -> None:
    assert refined(BY_HAND) == BY_HAND
    assert refined("\ufeff" + BY_HAND, removed=[3]).startswith("\ufeff<!-- ours")


def test_what_could_only_be_lost_is_refused() -> None:
    twice = BY_HAND.replace("## Notes of the team", "## Summary")
    with pytest.raises(PlanTextLost):
        refined(twice, overview="Long.")
    with pytest.raises(BadInput, match=r"Step 1 .*twice"):
        edit_plan(
            "### Step 1: A\n### Step 1: B\n", ImplementationPlan(steps=(PlanStep(1),))
        )
    plan = read_plan(BY_HAND)
    with pytest.raises(BadInput, match="would move steps"):
        edit_plan(BY_HAND, replace(plan, steps=plan.steps[::-1]))


@settings(max_examples=count_examples(100))
@given(PLANS, PLANS, st.data())
def test_any_change_of_any_plan_is_written_and_the_steps_that_stay_keep_their_bytes(
    plan: ImplementationPlan, other: ImplementationPlan, data: st.DataObject
) -> None:
    plan = replace(
        plan, steps=tuple({step.label: step for step in plan.steps}.values())
    )
    labels = {step.label for step in plan.steps}
    steps = [step for step in plan.steps if data.draw(st.booleans())]
    steps = [
        replace(step, description=other.overview) if data.draw(st.booleans()) else step
        for step in steps
    ]
    for new in {
        step.label: step for step in other.steps if step.label not in labels
    }.values():
        steps.insert(data.draw(st.integers(0, len(steps))), new)
    wanted = replace(
        plan,
        steps=tuple(steps),
        overview=data.draw(st.sampled_from([plan.overview, other.overview])),
    )

    after = edit_plan(write_plan(plan), wanted)

    assert read_plan(after) == wanted
    for step in wanted.steps:
        assert step_block(step, step_labels(wanted)) in after


@each_row(
    ("values", "reason"),
    [
        ({"steps": [draft(1, "Other")]}, "step 1 is done and stays unchanged"),
        ({"removed": [1]}, "step 1 is done and stays unchanged"),
        (
            {"steps": [draft(7)]},
            "number 7 belonged to another step: new steps are numbered from 10 on",
        ),
        ({"steps": [draft(10), draft(10)]}, "step 10 appears twice"),
        ({"removed": [5]}, "there is no step 5 to remove"),
        ({"steps": [draft(2)], "removed": [2]}, "step 2 is both changed and removed"),
        ({"steps": [draft(10, after=5)]}, "follow step 5, which is not in the plan"),
    ],
)
def test_a_change_that_breaks_a_rule_is_refused_in_words(
    values: dict[str, object], reason: str
) -> None:
    plan = read_plan(BY_HAND)
    with pytest.raises(ChangeRefused, match=reason):
        change_plan(
            plan,
            changes(**values),
            FixedSteps(
                completed=frozenset({"1"}), used_numbers=frozenset({1, 2, 3, 7, 9})
            ),
        )


def test_a_note_beside_a_file_stays_where_it_says_the_same() -> None:
    note = "new, the model"
    plan = ImplementationPlan(
        steps=(PlanStep(1, files_affected=(AffectedFile("a", note),)),)
    )
    files = [{"path": "a", "change": "create"}, {"path": "b", "change": "delete"}]
    [step] = change_plan(
        plan, changes(steps=[draft(1, files=files)]), FixedSteps()
    ).steps
    assert [(file.path, file.note) for file in step.files_affected] == [
        ("a", note),
        ("b", "deleted"),
    ]
    [step] = change_plan(
        plan,
        changes(steps=[draft(1, files=[{"path": "a", "change": "edit"}])]),
        FixedSteps(),
    ).steps
    assert [(file.path, file.note) for file in step.files_affected] == [("a", "")]


def test_a_plan_made_anew_keeps_what_was_done_and_takes_no_number_twice() -> None:
    plan = read_plan(BY_HAND)
    fixed = FixedSteps(
        completed=frozenset({"1"}), used_numbers=frozenset({1, 2, 3}), is_begun=True
    )
    new = ImplementationPlan(steps=(PlanStep(4, "Anew"),))
    assert [step.number for step in replace_plan(plan, new, fixed).steps] == [1, 4]
    with pytest.raises(ChangeRefused, match=r"2 .* 4"):
        replace_plan(plan, ImplementationPlan(steps=(PlanStep(2),)), fixed)
    unbegun = FixedSteps(used_numbers=frozenset({1, 2, 3}))
    assert replace_plan(plan, new, unbegun) == replace(new, notes=plan.notes)
    assert "Ask Kim about the `users` table." in plan.notes


def test_a_change_is_carried_over_to_a_plan_that_was_edited_meanwhile() -> None:
    base = read_plan(BY_HAND)
    wanted = change_plan(
        base,
        changes(steps=[draft(3, "Letter"), draft(4, after=1)], risks=["r"]),
        FixedSteps(),
    )
    now = read_plan(
        BY_HAND.replace("The form, with", "A form, with").replace("Short.", "Brief.")
    )
    merged = merge_plans(base, wanted, now)
    assert [step.title for step in merged.steps] == [
        "The table",
        "New",
        "The form",
        "Letter",
    ]
    assert merged.steps[2].description.startswith("A form, ")
    assert (merged.overview, merged.risks) == ("Brief.", ("r",))


@each_row(
    ("edit", "reason"),
    [
        (("Mail it.", "Send it."), "step 3 has been edited"),
        (("Short.", "Brief."), "the overview was edited after the proposal"),
        (
            ("## Appendix", "## Step 4: Mine\n\n## Appendix"),
            "step 4 has been added",
        ),
    ],
)
def test_what_both_have_changed_is_refused(edit: tuple[str, str], reason: str) -> None:
    base = read_plan(BY_HAND)
    wanted = change_plan(
        base,
        changes(steps=[draft(3, "Letter"), draft(4)], overview="Long."),
        FixedSteps(),
    )
    with pytest.raises(ChangeRefused, match=reason):
        merge_plans(base, wanted, read_plan(BY_HAND.replace(*edit)))


def test_a_models_plan_becomes_a_plan() -> None:
    files = [{"path": "a.py", "change": "create"}, {"path": "b.py", "change": "edit"}]
    written = {
        "overview": "Why.",
        "complexity": "simple",
        "estimated_time": "1 hour",
        "steps": [draft(1, "One", files=files, checks=["pytest -q"], serves=[1, 2])],
        "risks": ["Assumed: one database"],
    }
    plan = read(PlanDraft, written).to_plan(SPEC, "feature-sign-in")
    assert (plan.ticket_slug, plan.ticket_title, plan.ticket_type) == (
        "feature-sign-in",
        "Sign in",
        "feature",
    )
    assert plan.steps[0].files_affected == (
        AffectedFile("a.py", "new"),
        AffectedFile("b.py"),
    )
    assert plan.steps[0].serves == (1, 2)
    assert find_problems(plan, SPEC, FilesOfPlan(frozenset({"b.py"}))) == []
    with pytest.raises(WrongValue, match="verfy"):
        read(PlanDraft, written | {"verfy": "x"})


def test_a_basic_plan_has_a_step_per_criterion_says_what_it_is_and_can_run() -> None:
    plan = make_basic_plan(SPEC, "feature-sign-in")
    assert [(step.title, step.serves) for step in plan.steps] == [
        (criterion, (criterion,)) for criterion in SPEC.acceptance_criteria
    ]
    assert plan.overview.startswith(BASIC_PLAN_MARK)
    problems = find_problems(plan, SPEC, FilesOfPlan(frozenset()))
    assert {problem.kind for problem in problems} == {"no_check"}
    assert only_errors(problems) == []
    assert read_plan(write_plan(plan)) == plan


LABELLED = """\
# Plan: Sign in

## Our rules

Never touch `billing.py`.

### Step 1: The table

Do *it*.

### Step 1b: Its index
**Depends on:** Step 1

### Step 2: The form <!-- id: form -->
**Depends on:** Steps 1b
**May fail:** `tests/test_mail.py` until step 3

### Step 3: The mail
**Depends on:** all previous steps
"""


def by_label(plan: ImplementationPlan) -> dict[str, tuple[str, list[str]]]:
    """The title and the dependencies of each step, all by labels."""
    labels = step_labels(plan)
    steps = {}
    for step in plan.steps:
        needed = [labels[number] for number in step.dependencies]
        needed += step.missing_dependencies
        steps[step.label] = (step.title, sorted(needed))
    return steps


@each_row(
    ("values", "expected"),
    [
        # number 3 is the step with the label 2
        (
            {"steps": [draft(3, "A form", dependencies=[2])]},
            {"1": [], "1b": ["1"], "2": ["1b"], "3": ["1", "1b", "2"]},
        ),
        (
            {"steps": [draft(5, "New", after=1, dependencies=[1])]},
            {
                "1": [],
                "5": ["1"],
                "1b": ["1"],
                "2": ["1b"],
                "3": ["1", "5", "1b", "2"],
            },
        ),
        (
            {
                "steps": [
                    draft(6, "New", after=5, dependencies=[5, 2]),
                    draft(5, "Newer", after=0),
                    draft(4, "The mail", dependencies=[3, 6]),
                ]
            },
            {
                "5": [],
                "1": [],
                "1b": ["1"],
                "2": ["1b"],
                "3": ["2", "6"],
                "6": ["1b", "5"],
            },
        ),
        (
            {"steps": [draft(4, "The mail", dependencies=[2])], "removed": [3]},
            {"1": [], "1b": ["1"], "3": ["1b"]},
        ),
        # a dependency on the step that went is not one on the step with its number
        (
            {"steps": [draft(4, "The mail", dependencies=[1, 3])], "removed": [3]},
            {"1": [], "1b": ["1"], "3": ["1", "2"]},
        ),
    ],
)
def test_a_draft_names_the_steps_of_a_labelled_plan_by_number(
    values: dict[str, object], expected: dict[str, list[str]]
) -> None:
    after = refined(LABELLED, **values)
    plan = read_plan(after)
    found = {label: needed for label, (_, needed) in by_label(plan).items()}
    assert found == {label: sorted(needed) for label, needed in expected.items()}
    kept = LABELLED[: LABELLED.index("### Step 1:")]
    assert after.startswith(kept)
    for block in (
        "### Step 1: The table\n\nDo *it*.\n",
        "### Step 1b: Its index\n**Depends on:** Step 1\n",
    ):
        assert block in after


@each_row("number", [1, 2, 3, 4])
def test_a_new_step_takes_neither_a_number_nor_a_label_of_the_plan(number: int) -> None:
    text = LABELLED.replace("Step 3: The mail", "Step 7: The mail")
    text = text.replace("until step 3", "until step 7")
    plan = read_plan(text)
    with pytest.raises(ChangeRefused, match="from 8 on"):
        change_plan(plan, changes(steps=[draft(7, "New")]), FixedSteps())
    changed = change_plan(
        plan, changes(steps=[draft(number), draft(8, after=number)]), FixedSteps()
    )
    labels = [step.label for step in changed.steps]
    assert labels.index("8") == number
    assert [label for label in labels if label != "8"] == ["1", "1b", "2", "7"]


def test_the_text_for_drafts_has_numbers_for_labels() -> None:
    plan = read_plan(LABELLED)
    plain = plan.with_plain_labels()
    assert [step.label for step in plain.steps] == ["1", "2", "3", "4"]
    assert plain.steps[2].may_fail[0].until == "4"
    assert plain.steps[3].dependencies == plan.steps[3].dependencies
    assert read_plan(write_plan(plain)) == plain
    assert read_plan(BY_HAND).with_plain_labels() == read_plan(BY_HAND)


@settings(deadline=None)
@given(PLANS)
def test_plain_labels_are_the_numbers_and_change_nothing_else(
    plan: ImplementationPlan,
) -> None:
    plain = plan.with_plain_labels()
    assert [step.label for step in plain.steps] == [
        str(step.number) for step in plan.steps
    ]
    assert [step.number for step in plain.steps] == [step.number for step in plan.steps]
    assert [step.dependencies for step in plain.steps] == [
        step.dependencies for step in plan.steps
    ]
    assert plain.with_plain_labels() == plain


def labelled_plans() -> st.SearchStrategy[ImplementationPlan]:
    """Plans whose labels are unique."""
    return PLANS.map(
        lambda plan: replace(
            plan, steps=tuple({step.label: step for step in plan.steps}.values())
        )
    ).filter(lambda plan: len(step_labels(plan)) == len(plan.steps))


@settings(max_examples=count_examples(60), deadline=None)
@given(labelled_plans(), st.data())
def test_drafted_changes_land_in_any_labelled_plan_and_the_other_steps_keep_their_bytes(
    plan: ImplementationPlan, data: st.DataObject
) -> None:
    numbers = [step.number for step in plan.steps]
    first_new = FixedSteps().with_steps_of(plan).next_number
    removed = [number for number in numbers if data.draw(st.booleans())]
    changed = [
        number
        for number in numbers
        if number not in removed and data.draw(st.booleans())
    ]
    rest = [number for number in numbers if number not in removed]
    after = data.draw(st.sampled_from([None, 0, *rest]))
    drafts = [draft(number, f"Changed {number}") for number in changed]
    drafts.append(draft(first_new, "New", after=after))

    wanted = change_plan(plan, changes(steps=drafts, removed=removed), FixedSteps())
    text = edit_plan(write_plan(plan), wanted)

    assert read_plan(text) == wanted
    labels = step_labels(plan)
    order = [labels[number] for number in rest]
    place = len(order) if after is None else 0
    if after in rest:
        place = rest.index(after) + 1
    order.insert(place, str(first_new))
    assert [step.label for step in wanted.steps] == order
    for step in wanted.steps:
        if step.label == str(first_new):
            assert (step.title, bool(step.id)) == ("New", True)
    before = {step.label: step for step in plan.steps}
    for number in rest:
        new = wanted.find_step(labels[number])
        old = before[labels[number]]
        assert new is not None
        assert new.id == old.id
        if number in changed:
            assert new.title == f"Changed {number}"
        else:
            assert step_block(old, labels) in text or removed


@settings(max_examples=count_examples(60), deadline=None)
@given(labelled_plans(), st.data())
def test_a_proposal_is_carried_over_to_any_labelled_plan_that_was_edited(
    plan: ImplementationPlan, data: st.DataObject
) -> None:
    """The user inserts a step, and the proposal another one and a new title."""
    number = FixedSteps().with_steps_of(plan).next_number
    numbers = [step.number for step in plan.steps]
    chosen = data.draw(st.sampled_from([0, *numbers]))
    drafts = [draft(number, "New", after=chosen)]
    if chosen:
        drafts.append(draft(chosen, "Changed"))
    wanted = change_plan(plan, changes(steps=drafts), FixedSteps())
    mine = draft(number + 1, "Mine", after=data.draw(st.sampled_from([0, *numbers])))
    current = change_plan(plan, changes(steps=[mine]), FixedSteps())

    merged = merge_plans(plan, wanted, current)

    titles = [step.title for step in merged.steps]
    assert {"New", "Mine"} <= {*titles}
    assert len(titles) == len(plan.steps) + 2
    ours, theirs, both = by_label(wanted), by_label(current), by_label(merged)
    for label in ours:
        assert both[label] == ours[label]
    assert both[str(number + 1)] == theirs[str(number + 1)]
    order = [step.label for step in merged.steps]
    for part in (wanted, current):
        labels = [step.label for step in part.steps]
        assert [label for label in order if label in labels] == labels


def test_an_edit_above_a_labelled_step_is_no_conflict_with_a_change_of_it() -> None:
    base = read_plan(LABELLED)
    wanted = change_plan(base, changes(steps=[draft(3, "A form")]), FixedSteps())
    now = read_plan(LABELLED.replace("### Step 1b", "### Step 1a: Mine\n\n### Step 1b"))
    merged = merge_plans(base, wanted, now)
    titles = {step.label: step.title for step in merged.steps}
    assert titles == {
        "1": "The table",
        "1a": "Mine",
        "1b": "Its index",
        "2": "A form",
        "3": "The mail",
    }


def test_a_labelled_plan_made_anew_keeps_its_completed_steps() -> None:
    plan = read_plan(LABELLED)
    fixed = FixedSteps(completed=frozenset({"1b", "2"}), is_begun=True)
    fixed = fixed.with_steps_of(plan)
    new = ImplementationPlan(steps=(PlanStep(5, "Anew", dependencies=(2, 3)),))
    after = replace_plan(plan, new, fixed)
    assert by_label(after)["5"] == ("Anew", ["1b", "2"])
    assert [step.label for step in after.steps] == ["1b", "2", "5"]
    plain = replace_plan(plan.with_plain_labels(), new, fixed.with_plain_labels(plan))
    assert [step.label for step in plain.steps] == ["2", "3", "5"]


@each_row(
    ("notes", "kept"),
    [
        ("## Rules\n\nBe kind.", "## Rules\n\nBe kind."),
        ("## Rules\n\nBe kind.\n\n## Phase 3\n\nMore.", "## Rules\n\nBe kind."),
        ("## Phase 3\n\nMore.\n\n## Rules\n\nBe kind.", "## Rules\n\nBe kind."),
        ("## Verification\n\n- `make a`\n\n## Rules\n\nA.", "## Rules\n\nA."),
        ("## Phase 3\n\nMore.", ""),
        ("```\n## Phase 3\n\n## A\n```", "```\n## Phase 3\n\n## A\n```"),
        ("", ""),
    ],
)
def test_a_new_plan_keeps_the_notes_that_were_not_meant_as_steps(
    notes: str, kept: str
) -> None:
    plan = ImplementationPlan(steps=(PlanStep(1),), notes=notes)
    new = ImplementationPlan(steps=(PlanStep(1, "New"),))
    after = read_plan(write_plan(replace_plan(plan, new, FixedSteps())))
    assert (after.notes, after.errors) == (kept, ())
    fixed = FixedSteps(completed=frozenset({"1"}), is_begun=True)
    done = ImplementationPlan(steps=(PlanStep(2, "New"),))
    assert replace_plan(plan, done, fixed).notes == notes


ID = re.compile("[a-z0-9]{4}")


def test_the_planner_gives_new_steps_ids_and_leaves_all_other_ids_alone() -> None:
    plan = read_plan(LABELLED)
    changed = change_plan(
        plan,
        changes(steps=[draft(3, "A form"), draft(1, "A table"), draft(5), draft(6)]),
        FixedSteps(),
    )
    ids = {step.label: step.id for step in changed.steps}
    new = (ids.pop("5"), ids.pop("6"))
    assert ids == {"1": "", "1b": "", "2": "form", "3": ""}
    assert all(map(ID.fullmatch, new))
    assert len({*new}) == 2
    basic = make_basic_plan(SPEC, "feature-sign-in")
    assert all(ID.fullmatch(step.id) for step in basic.steps)
    text = write_plan(basic)
    assert f"### Step 1: Users sign in <!-- id: {basic.steps[0].id} -->\n" in text
    assert read_plan(text) == basic


@settings(max_examples=count_examples(60))
@given(
    st.lists(st.builds(PlanStep, st.integers(0, 9), st.sampled_from("ab")), max_size=9),
    st.integers(0, 3),
)
def test_ids_are_unique_repeatable_and_never_one_that_was_used(
    steps: list[PlanStep], rounds: int
) -> None:
    used: set[str] = set()
    for _ in range(rounds + 1):
        first = [step.id for step in add_ids(steps, "feature-x", used)]
        assert first == [step.id for step in add_ids(steps, "feature-x", used)]
        assert all(map(ID.fullmatch, first))
        assert len({*first}) == len(steps)
        assert used.isdisjoint(first)
        used.update(first)


def test_ids_depend_on_the_ticket_the_number_and_the_title() -> None:
    plans = [
        ("feature-x", PlanStep(1, "A")),
        ("feature-y", PlanStep(1, "A")),
        ("feature-x", PlanStep(2, "A")),
        ("feature-x", PlanStep(1, "B")),
    ]
    ids = {add_ids([step], slug, ())[0].id for slug, step in plans}
    assert len(ids) == len(plans)


FAILING = MayFail("tests/test_x.py", "1b")


@each_row(
    ("previous", "values", "expected"),
    [
        # what a draft leaves open stays as the plan has it
        (None, {}, ((), None, ())),
        ({}, {}, (None, None, ())),
        ({"checks": ()}, {}, ((), None, ())),
        ({"checks": ("a",)}, {}, ((), None, ())),
        ({"checks": ("a",)}, {"checks": ["b", "c"]}, (("b", "c"), None, ())),
        ({"removes_tests": ()}, {}, (None, (), ())),
        ({"removes_tests": ("t",)}, {}, (None, None, ())),
        ({"removes_tests": ()}, {"removes_tests": ["t"]}, (None, ("t",), ())),
        (None, {"removes_tests": ["t", "u.py"]}, ((), ("t", "u.py"), ())),
        (
            None,
            {"may_fail": [{"tests": ["a", "b"], "until": 9}, {"tests": ["c"]}]},
            ((), None, (MayFail("a", "9"), MayFail("b", "9"), MayFail("c"))),
        ),
        # the model names steps by number
        (
            None,
            {"may_fail": [{"tests": ["tests/test_x.py"], "until": 2}]},
            ((), None, (FAILING,)),
        ),
        ({"may_fail": (FAILING,)}, {}, (None, None, ())),
    ],
)
def test_a_draft_becomes_checks_and_permissions_of_the_step(
    previous: dict[str, Any] | None,
    values: dict[str, object],
    expected: tuple[object, ...],
) -> None:
    [read_step] = changes(steps=[draft(1, **values)]).steps
    old = None if previous is None else PlanStep(1, **previous)
    step = read_step.to_step(old, {1: "1", 2: "1b"})
    assert (step.checks, step.removes_tests, step.may_fail) == expected


def test_only_fields_with_something_to_say_are_written() -> None:
    text = refined(BY_HAND, steps=[draft(4), draft(5, removes_tests=["t"])])
    assert text.count("**Removes tests:** `t`") == 1
    assert text.count("**Removes tests:**") == 1
    assert "**May fail:**" not in text
