import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.engine.prompt import step_digest
from cdd_agent.errors import BadInput
from cdd_agent.tickets.plan import (
    AffectedFile,
    ImplementationPlan,
    MayFail,
    PlanInvalid,
    PlanStep,
)
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.plan_writer import write_plan
from cdd_agent.tickets.step_matching import fingerprint
from tests.support.tables import each_row

FORM = "Use this form:\n\nFiles: a.py"
WORDS = "Simple words about it."

PLAN = """\
# Implementation Plan: User authentication

**Ticket:** `feature-user-auth`
**Type:** feature
**Complexity:** medium
**Estimated Time:** 6 hours

## Overview

Users sign in.

- with a name

## Implementation Steps

### Step 1: Create the user model

**Description:** The model.

```markdown
### Step 9: not a step
```

**Complexity:** simple
**Estimated Time:** 30 min
**Dependencies:** None
**Verify:** `pytest tests/test_user.py`

**Files Affected:**
- `src/models/user.py` (new)

### Step 2: Sign in

**Description:** The form.
**Complexity:** complex
**Estimated Time:** 1 hour
**Dependencies:** Step 1

## Risks & Considerations

- Passwords
- Two
  lines
"""

PIECES = st.sampled_from(
    [
        "# ",
        "### ",
        "Step 9",
        ": ",
        "**Complexity:** x",
        "**Description:**",
        "**Files Affected:**",
        "**Verify:** `a`",
        "**Serves:** 1",
        "**Serves:**",
        "- ",
        "* ",
        "1. ",
        "12) ",
        "```",
        "~~~",
        "<!--",
        "-->",
        "<div>",
        "<pre>",
        "---",
        "===",
        "\n",
        "\n\n",
        "    ",
        "  ",
        "\t",
        "\\",
        "\\#",
        "\x0b",
        "\u2028",
        "\x85",
        "\ufeff",
        "\r",
        "> ",
        "[a]: b",
        "## Risks",
        "## Overview",
        "# Implementation Plan",
        "#### Verify",
        "`",
        "``",
        "(",
        ")",
        "!",
        "_",
        "__x__:",
        "a",
        "b c",
        "é",
        "0",
        "None",
        "\x00",
        "•",
        "***",
        "- - -",
        "+ ",
        ", ",
        "**Step 2: B**",
        "###Step 3: C",
        "#### Step 1.1: D",
        "### Task 2b",
        "### 2. E",
        "## Phase 1",
        "~~",
        "[x] ",
        "✅",
        "(optional)",
        "| a | `b.py` |",
        "|---|---|",
        "`make a`",
        "` `",
        "Run: ",
        "Run:\n",
        "\n```bash\n",
        "Expected: ",
        "&&",
        "$ ",
        "make sure it works",
        "<!-- id: abcd -->",
        "<!-- id: ! -->",
        "[a](b.py#L3)",
        "@",
        "file://",
        ":3-9",
        "src/*.py",
        "**Removes tests:** `a`",
        "**May fail:** `a` until step 2",
        "**Owner:** `make x`",
        "**Files**",
        "## Notes",
    ]
)
NASTY = (
    st.lists(PIECES, max_size=12).map("".join)
    | st.text("#*-_`~\\<>!()[]: \n\t019aStep\x0b\u2028=+.", max_size=30)
    | st.text(max_size=15)
)
NUMBERS = st.integers(0, 12)
LABELS = st.sampled_from(["1", "2", "3", "1b", "1.5", "2.A", "10", "2.1.3"])
STEPS = st.builds(
    PlanStep,
    number=NUMBERS,
    title=NASTY,
    description=NASTY,
    complexity=NASTY,
    estimated_time=NASTY,
    dependencies=st.lists(NUMBERS, max_size=3).map(tuple),
    files_affected=st.lists(
        st.builds(AffectedFile, NASTY, NASTY, st.just("") | st.just("3-9")), max_size=3
    ).map(tuple),
    checks=st.none() | st.lists(NASTY, max_size=3).map(tuple),
    serves=st.lists(NUMBERS | NASTY, max_size=3).map(tuple),
    removes_tests=st.none() | st.lists(NASTY, max_size=2).map(tuple),
    may_fail=st.lists(st.builds(MayFail, NASTY, LABELS | NASTY), max_size=2).map(tuple),
    label=st.just("") | LABELS,
    id=st.sampled_from(["", "abcd", "k3f9", "ABCD", "x"]),
    missing_dependencies=st.lists(LABELS, max_size=2).map(tuple),
)
PLANS = st.builds(
    ImplementationPlan,
    *[NASTY] * 6,
    steps=st.lists(STEPS, max_size=3).map(tuple),
    risks=st.lists(NASTY, max_size=3).map(tuple),
    notes=NASTY,
)


def step_of(body: str, heading: str = "### Step 2: Title") -> PlanStep:
    """The second of three steps, so that what it says about others means something."""
    plan = read_plan(f"### Step 1: One\n\n{heading}\n{body}\n\n### Step 3: Three\n")
    assert [step.title for step in plan.steps] == ["One", "Title", "Three"]
    return plan.steps[1]


@settings(deadline=None)
@given(PLANS)
@example(ImplementationPlan(steps=(PlanStep(1, description="½ of it\nnow"),)))
def test_every_plan_survives_its_markdown(plan: ImplementationPlan) -> None:
    assert read_plan(write_plan(plan)) == plan


@settings(deadline=None)
@given(NASTY | st.text() | PLANS.map(write_plan))
def test_any_text_is_a_plan_or_bad_input(text: str) -> None:
    try:
        plan = read_plan(text)
        again = read_plan(write_plan(plan))
        assert again == plan
        plan.check()
    except BadInput as error:
        assert error.message  # noqa: PT017 - either outcome is right


def test_a_plan_is_read() -> None:
    assert read_plan(PLAN) == ImplementationPlan(
        ticket_slug="feature-user-auth",
        ticket_title="User authentication",
        ticket_type="feature",
        overview="Users sign in.\n\n- with a name",
        total_complexity="medium",
        total_estimated_time="6 hours",
        steps=(
            PlanStep(
                number=1,
                title="Create the user model",
                description="The model.\n\n```markdown\n### Step 9: not a step\n```",
                complexity="simple",
                estimated_time="30 min",
                files_affected=(AffectedFile("src/models/user.py", "new"),),
                checks=("pytest tests/test_user.py",),
            ),
            PlanStep(2, "Sign in", "The form.", "complex", "1 hour", (1,)),
        ),
        risks=("Passwords", "Two\nlines"),
    )


def test_a_plan_is_written_as_it_was_read() -> None:
    assert write_plan(read_plan(PLAN)) == PLAN


def test_a_plan_as_json_has_the_promised_keys() -> None:
    plan = ImplementationPlan(
        steps=(PlanStep(1, files_affected=(AffectedFile("a.py", "new"),)),)
    )
    read = json.loads(json.dumps(plan.to_json()))

    assert list(read) == [
        *("ticket_slug", "ticket_title", "ticket_type", "overview"),
        *("total_complexity", "total_estimated_time", "risks", "steps"),
        *("notes", "findings"),
    ]
    assert read["steps"] == [
        {
            "number": 1,
            "title": "Step 1",
            "description": "",
            "complexity": "medium",
            "estimated_time": "unknown",
            "dependencies": [],
            "files_affected": ["a.py"],
            "serves": [],
            "removes_tests": None,
            "may_fail": [],
            "label": "1",
            "id": "",
            "checks": [],
            "verify": None,
        }
    ]


@each_row(
    "heading",
    [
        *(
            "# Step 2: Title",
            "###### Step 2: Title",
            "### Step 2. Title",
            "### Step 2 - Title",
            "### Step 2 – Title",
        ),
        *(
            "### Step 2 — Title",
            "### Step 2 Title",
            "### STEP 2: Title ###",
            "### **Step 2: Title**",
        ),
        *("### **Step 2:** Title", "Step 2: Title\n---"),
    ],
)
def test_a_step_heading_is_read_in_many_forms(heading: str) -> None:
    assert step_of("", heading).number == 2


@each_row(
    ("written", "numbers"),
    [
        *[
            ("None", ()),
            ("none.", ()),
            ("N/A", ()),
            ("-", ()),
            ("", ()),
            ("Step 1", (1,)),
            ("Step 1, 3", (1, 3)),
        ],
        *[
            ("Steps 1-3", (1, 2, 3)),
            ("Steps 1 – Step 3", (1, 2, 3)),
            ("Steps 1 and 3", (1, 3)),
            ("1, 3", (1, 3)),
        ],
        *[
            ("All previous steps", (1,)),
            ("the previous step", (1,)),
            ("Step 1 (v2 of it)", (1,)),
            ("#1", (1,)),
        ],
        *[
            ("\n- Step 1\n- Step 3", (1, 3)),
            ("Steps 1-999999999", (1, 2, 3)),
            ("None (Step 1 helps)", ()),
        ],
    ],
)
def test_dependencies_are_read_in_many_forms(
    written: str, numbers: tuple[int, ...]
) -> None:
    assert step_of(f"**Dependencies:** {written}").dependencies == numbers


@each_row(
    ("written", "files"),
    [
        ("- `a.py` (new)", [("a.py", "new")]),
        ("* a.py (new)\n+ b.py", [("a.py", "new"), ("b.py", "")]),
        (
            "1. `my file (1).py`\n2. b.py - changed",
            [("my file (1).py", ""), ("b.py", "changed")],
        ),
        ("\n- ``a`b.py``", [("a`b.py", "")]),
        ("- `a.py`: the model\n  - add a field", [("a.py", "the model - add a field")]),
        ("- Create `a.py`", [("a.py", "Create")]),
        ("- None", []),
        ("- none.py", [("none.py", "")]),
        ("- `None specified`", [("None specified", "")]),
        ("- Nothing-to-see.txt", [("Nothing-to-see.txt", "")]),
    ],
)
def test_affected_files_are_read_in_many_forms(
    written: str, files: list[tuple[str, str]]
) -> None:
    found = step_of(f"**Files Affected:**\n{written}").files_affected

    assert [(file.path, file.note) for file in found] == [
        (p, n.replace(" - add", " add")) for p, n in files
    ]


@each_row(
    "words",
    [
        *(
            "None specified",
            "none.",
            "None (analysis only)",
            "None, this is research",
            "N/A",
            "n/a - research",
            "-",
            "—",
        ),
        *(
            "No files",
            "No files affected",
            "Not applicable",
            "not specified",
            "TBD",
            "Nothing",
        ),
    ],
)
@each_row(
    "form",
    [
        "**Files Affected:** {}",
        "**Files:**\n- {}",
        "Files: {}",
        "Files Affected:\n\n* {}",
    ],
)
def test_no_files_are_said_in_many_words(form: str, words: str) -> None:
    assert step_of(form.format(words)) == PlanStep(2, "Title")


@each_row(
    ("written", "command"),
    [
        *[
            (" `pytest -q`", "pytest -q"),
            (" pytest -q", "pytest -q"),
            (" Run `make` first", "make"),
            (" None", "none"),
        ],
        *[
            (" N/A", "none"),
            (" None (by hand)", "none"),
            (" None specified", None),
            (" TBD", None),
        ],
        *[
            (" `` echo `x` ``", "echo `x`"),
            ("\n```bash\npytest -q\n```", "pytest -q"),
            ("", None),
        ],
    ],
)
def test_verify_is_read_in_many_forms(written: str, command: str | None) -> None:
    assert step_of(f"**Verify:**{written}").check_lines == command


@each_row(
    ("written", "criteria", "description"),
    [
        *[
            (" 1, 3", (1, 3), ""),
            (" Criteria 1-3", (1, 2, 3), ""),
            (" AC1 and AC-4", (1, 4), ""),
            (" None", (), ""),
        ],
        *[
            (" #2 (in 90 days)", (2,), ""),
            ("\n- 1\n- criterion 3", (1, 3), ""),
            ("", (), ""),
        ],
        *[
            (" a user can log in", ("a user can log in",), ""),
            (" `GET /a` returns 200", ("`GET /a` returns 200",), ""),
            (" **`a`**", ("a",), ""),
            (' "Save" shows "ok"', ('"Save" shows "ok"',), ""),
            (" “It is saved”", ("It is saved",), ""),
            ("\n- `` `a` is b ``\n- it's `b`", ("`a` is b", "it's `b`"), ""),
            (
                "\n- AC-1: login\n- 2\n- a user\n  logs out",
                (2, "AC-1: login", "a user logs out"),
                "",
            ),
            ("\nThe team.", ("The team.",), ""),
            (" 1\n- not this", (1,), "- not this"),
            (" login\n- not this", ("login",), "- not this"),
        ],
    ],
)
def test_criteria_are_read_as_numbers_in_many_forms_or_else_as_words(
    written: str, criteria: tuple[int | str, ...], description: str
) -> None:
    step = step_of(f"**Serves:**{written}")
    assert (step.serves, step.description) == (criteria, description)


def test_a_sentence_behind_a_plain_label_is_text() -> None:
    text = "### Step 1: A\nDescription: one\nServes: the whole team\nServes: 2\n"
    (step,) = read_plan(text).steps
    assert step.serves == (2,)
    assert "Serves: the whole team" in step.description


@each_row(
    "label",
    [
        "**Complexity:** ",
        "**Complexity**: ",
        "**COMPLEXITY:**",
        "- **Complexity:** ",
        "- item\n**complexity**:",
    ],
)
def test_a_label_is_read_in_many_forms(label: str) -> None:
    assert step_of(f"{label}hard").complexity == "hard"


LABELLED = """\
### Step 2: Title

**Description:** Do it.

- one: two

**Complexity:** hard
**Estimated Time:** 1 hour
**Dependencies:** Step 1
**Verify:** `make`
**Serves:** 1
**Files Affected:**
- `a.py` (new)
- `b.py`
"""


@each_row(
    "label",
    [r"\1:", r"*\1:*", r"*\1*:", r"_\1:_", r"`\1`:", r"- \1:", r"2. *\1:*", r"  \1 :"],
)
def test_labels_need_not_be_bold(label: str) -> None:
    written = re.sub(r"\*\*(.*?):\*\*", label, LABELLED)
    assert "**" not in written
    assert step_of(written.partition("\n")[2]) == step_of(LABELLED.partition("\n")[2])


@each_row("rule", ["\n---", "\n\n---"])
def test_the_top_of_a_plan_and_rules_between_its_parts_are_read_without_bold_labels_too(
    rule: str,
) -> None:
    written = (
        PLAN.replace("**", "")
        .replace("\n\n#", f"{rule}\n\n#")
        .replace(f"{rule}\n\n### Step 9", "\n\n### Step 9")
    )
    assert read_plan(written) == read_plan(PLAN)


def test_fields_above_a_rule_are_no_title() -> None:
    plan = read_plan("**Ticket:** `t`\n**Type:** bug\n---\n\n### Step 1: A\n")
    assert (plan.ticket_slug, plan.ticket_type, plan.ticket_title) == ("t", "bug", "")


def test_a_plain_line_beside_bold_labels_is_text() -> None:
    step = step_of(f"**Description:**\n\n{FORM}\n\n**Complexity:** hard")
    assert (step.description, step.files_affected) == (FORM, ())


@each_row("end", ["\r\n", "\r"])
def test_line_ends_and_a_byte_order_mark_make_no_difference(end: str) -> None:
    assert read_plan("\ufeff" + PLAN.replace("\n", end)) == read_plan(PLAN)


@each_row(
    "hidden",
    [
        "```\n### Step 9: x\n**Verify:** x\n```",
        "<!--\n### Step 9: x\n-->",
        "a\n\n    ### Step 9: x\n    **Verify:** x",
    ],
)
def test_what_stands_in_code_or_a_comment_is_text(hidden: str) -> None:
    step = step_of(f"**Description:**\n\n{hidden}\n\n**Complexity:** hard")

    assert (step.description, step.checks, step.complexity) == (hidden, None, "hard")


def test_text_without_a_label_is_the_description() -> None:
    step = step_of(
        "First.\n\n"
        "**Complexity:** hard\n\n"
        "**Files Affected:**\n"
        "- a.py\n\n"
        "Second.\n\n"
        "---"
    )

    assert step.description == "First.\n\nSecond."


@each_row("place", ["## Overview", "## Risks"])
def test_unknown_sections_break_nothing(place: str) -> None:
    plan = read_plan(PLAN.replace(place, f"## Glossary\n\nWords.\n\n{place}"))

    assert plan == replace(read_plan(PLAN), notes="## Glossary\n\nWords.")


def test_an_unknown_label_above_a_rule_is_a_line_of_its_step() -> None:
    assert (
        step_of("**Owner:** Kim\n---\n\nMore.").description
        == "**Owner:** Kim\n---\n\nMore."
    )


def test_risks_may_be_paragraphs() -> None:
    risks = read_plan("## Risks\n\nOne\nof them.\n\nTwo.\n\n---\nThree.\n").risks
    assert risks == ("One\nof them.", "Two.", "Three.")


def test_text_that_looks_like_structure_is_escaped_and_the_rest_is_left_alone() -> None:
    text = "Do this:\n\n- one\n\n### Step 9\n\n```\n# code\n```"
    written = write_plan(ImplementationPlan(steps=(PlanStep(1, description=text),)))

    assert text.replace("### Step", "\\### Step") in written


def test_order_follows_dependencies_and_otherwise_the_plan() -> None:
    plan = ImplementationPlan(
        steps=(PlanStep(3, dependencies=(1,)), PlanStep(2), PlanStep(1), PlanStep(4))
    )

    assert [step.number for step in plan.order()] == [2, 1, 3, 4]


def test_what_a_step_serves_is_no_part_of_what_it_asks_for() -> None:
    plain = PlanStep(1, "A", "Do it.", checks=("make",))
    assert fingerprint(replace(plain, serves=(1,))) == fingerprint(plain)
    assert step_digest(replace(plain, serves=(1,)), "") == step_digest(plain, "")


def test_a_step_knows_its_line() -> None:
    step = read_plan(PLAN).steps[1]

    heading = PLAN.split("\n").index(f"### Step 2: {step.title}")
    assert step.line == 1 + heading


@each_row(
    ("text", "problems"),
    [
        ("# Nothing", ["1: no steps"]),
        (
            "### Step 1\n### Step 1",
            ["2: step 1 appears twice, first in line 1"],
        ),
        (
            "### Step 1\n**Dependencies:** 1, 7",
            ["1: step 1 depends on itself", "1: step 1 depends on step 7"],
        ),
        (
            (
                "### Step 1\n"
                "**Dependencies:** 2\n"
                "### Step 2\n"
                "**Dependencies:** 3\n"
                "### Step 3\n"
                "**Dependencies:** 2"
            ),
            ["3: dependency cycle: 2 → 3 → 2"],
        ),
        (
            "### Step 1\n**Files:** /etc/x",
            ["1: step 1 affects `/etc/x`: the path is absolute"],
        ),
        (
            "### Step 1\n**Files:** C:\\x, a/../../b",
            ["1: step 1 affects `C:\\x`", "1: step 1 affects `a/../../b`"],
        ),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused_with_every_reason(
    text: str, problems: list[str]
) -> None:
    with pytest.raises(PlanInvalid) as caught:
        read_plan(text).check("t/plan.md")

    lines = caught.value.message.split("\n")
    assert len(lines) == len(problems)
    assert all(
        line.startswith(f"t/plan.md:{problem}")
        for line, problem in zip(lines, problems, strict=True)
    )


def test_a_plan_nested_too_deeply_is_bad_input() -> None:
    with pytest.raises(BadInput, match="nested"):
        read_plan("> " * 5000 + "x")


def test_dependencies_that_cannot_be_read_are_refused_with_their_line() -> None:
    text = (
        "# Plan\n\n### Step 1: A\n\n### Step 2: B\n\n**Dependencies:** the first one\n"
    )
    with pytest.raises(BadInput, match=r"plan.md:7: step 2 .*“the first one”"):
        read_plan(text).check()


@each_row(
    ("fence", "command"),
    [
        ("make a\nmake b", "make a\nmake b"),
        ("# first\nmake a\n\n  # then\nmake b\nmake c", "make a\nmake b\nmake c"),
        ("# nothing", ""),
    ],
)
def test_every_line_of_a_fenced_check_has_to_succeed_and_comments_are_none(
    fence: str, command: str
) -> None:
    assert (step_of(f"**Verify:**\n```bash\n{fence}\n```").check_lines or "") == command


@each_row("label", ["Complexity", "Estimated Time", "Dependencies", "Verify"])
def test_a_paragraph_apart_from_a_label_is_text_and_not_its_value(label: str) -> None:
    apart = step_of(f"**{label}:**\n\n{WORDS}")
    assert apart == PlanStep(2, "Title", description=WORDS)


def test_a_comma_in_a_code_span_is_part_of_a_path() -> None:
    files = step_of("**Files Affected:** `a,b.py`, c.py, `d, e.py`").files_affected
    assert [file.path for file in files] == ["a,b.py", "c.py", "d, e.py"]


def test_the_overview_has_its_parts_and_not_the_words_above_the_title() -> None:
    parts = [
        "Sure, here it is!",
        "# Implementation Plan: T",
        "## Overview",
        "One.",
        "### More",
        "Two.",
        "## Other",
        "Three.",
    ]
    text = "\n\n".join(parts)
    overview = read_plan(text).overview
    assert [word in overview for word in ("Sure", "One.", "Two.", "Three.")] == [
        False,
        True,
        True,
        False,
    ]


def test_a_field_said_twice_has_its_first_value_and_the_second_is_text() -> None:
    step = step_of("**Complexity:** simple\n**Complexity:** complex")
    assert (step.complexity, "complex" in step.description) == ("simple", True)
    plan = read_plan(
        "# Implementation Plan: T\n\n**Ticket:** `one`\n**Ticket:** `two`\n"
    )
    assert (plan.ticket_slug, "`two`" in plan.overview) == ("one", True)
