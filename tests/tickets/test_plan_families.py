"""Plans as people and other tools write them: checks, steps, files and fields in all
their forms. A line is read, or it is a finding; none is lost in silence.
"""

from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_reader import read_plan
from tests.support.tables import each_row

UNITTEST = "python -m unittest -q"
LINT = "python lint.py"
TABLE = f"| Check | Command |\n|---|---|\n| a | `{UNITTEST}` |\n| b | `{LINT}` |"
FENCE = "**Verify:**\n```{}\n{}\n```"
NO_CHECK: tuple[str, ...] = ()


def read_step(body: str) -> tuple[PlanStep, list[tuple[str, str]]]:
    """Return the second of three steps, and the kinds of all findings."""
    plan = read_plan(
        f"# Plan: X\n\n### Step 1: One\n\n### Step 2: Two\n\n{body}\n\n"
        "### Step 3: Three\n"
    )
    assert [step.label for step in plan.steps] == ["1", "2", "3"]
    return plan.steps[1], kinds(plan)


def kinds(plan: ImplementationPlan) -> list[tuple[str, str]]:
    return [
        ("warning" if found.is_warning else "error", found.kind)
        for found in plan.findings
    ]


@each_row(
    ("body", "checks"),
    [
        (f"**Verify:**\n- `{UNITTEST}`\n- `{LINT}`", (UNITTEST, LINT)),
        (f"**Verify:**\n1. `{UNITTEST}`\n2. `{LINT}`", (UNITTEST, LINT)),
        (f"**Verify:**\n\n* `{UNITTEST}`\n\n* `{LINT}`", (UNITTEST, LINT)),
        (f"**Verify:**\n- `{UNITTEST}`\n\n  a note\n\n- `{LINT}`", (UNITTEST, LINT)),
        (f"**Verify:** `{UNITTEST}` and `{LINT}`", (UNITTEST, LINT)),
        (f"**Verify:** `{UNITTEST}`, `{LINT}`", (UNITTEST, LINT)),
        (f"**Verify:** `{UNITTEST}`, then run `{LINT}`.", (UNITTEST, LINT)),
        (f"**Verify:** `{UNITTEST}`\n**Verify:** `{LINT}`", (UNITTEST, LINT)),
        (f"**Verify:**\n- [ ] `{UNITTEST}`\n- [x] `{LINT}`", (UNITTEST, LINT)),
        (f"- [ ] **Verify:** `{UNITTEST}`", (UNITTEST,)),
        (f"#### Verify\n\n- `{UNITTEST}`\n- `{LINT}`", (UNITTEST, LINT)),
        (f"#### Verification\n\n`{UNITTEST}`", (UNITTEST,)),
        (f"**Verify**\n- `{UNITTEST}`\n- `{LINT}`", (UNITTEST, LINT)),
        (f"**Verification:** `{UNITTEST}`", (UNITTEST,)),
        (f"**Verify (automated):** `{UNITTEST}`", (UNITTEST,)),
        (f"**✅ Verify:** `{UNITTEST}`", (UNITTEST,)),
        (f"**验证**：`{UNITTEST}`", (UNITTEST,)),
        (f"**Success Criteria:**\n- `{UNITTEST}` passes", (UNITTEST,)),
        (f"Verify: {UNITTEST}", (UNITTEST,)),
        (FENCE.format("bash", f"{UNITTEST}\n# then\n{LINT}"), (UNITTEST, LINT)),
        (FENCE.format("", f"$ {UNITTEST}\nOK\n$ {LINT}"), (UNITTEST, LINT)),
        (FENCE.format("sh", "pytest tests \\\n  -q"), ("pytest tests    -q",)),
        (f"**Verify:**\n\n{TABLE}", (UNITTEST, LINT)),
        (f"**Verify:** `{LINT}`\n**Verify:** `{LINT}`", (LINT,)),
        ("**Verify:** npm test && npm run lint", ("npm test && npm run lint",)),
        ("**Verify:** cd backend && pytest -q", ("cd backend && pytest -q",)),
        ("**Verify:** ./check.sh", ("./check.sh",)),
        ("**Verify:** make check", ("make check",)),
        ("**Verify:** ruff check .", ("ruff check .",)),
        ("**Verify:** npm run verify", ("npm run verify",)),
        (
            f"**Verify:**\n\nWhat | Command\n---|---\na | `{UNITTEST}`\nb | `{LINT}`",
            (UNITTEST, LINT),
        ),
        ("**Verify:** frobnicate --all", ("frobnicate --all",)),
        ("**Verify:** `frobnicate`", ("frobnicate",)),
        ("**Verify:**", None),
        ("**Verify:** TBD", None),
    ],
)
def test_checks_are_read_in_many_forms(
    body: str, checks: tuple[str, ...] | None
) -> None:
    step, findings = read_step(body)
    assert ([" ".join(check.split()) for check in step.checks or ()]) == [
        " ".join(check.split()) for check in checks or ()
    ]
    assert (step.checks is None) is (checks is None)
    assert findings == []


@each_row(
    "body",
    [
        *("**Verify:** ` `", "**Verify:**\n- ` `", "**Verify:** $ ", "Run: ` `"),
        *("Run:\n- ` `", "Run: `A=1`", "```bash\n$ \n```\nExpected: OK"),
    ],
)
def test_an_empty_command_is_no_check(body: str) -> None:
    assert not read_step(body)[0].checks


@each_row(
    "words",
    [
        *("none", "None.", "N/A", "-", "–", "no", "Manual", "manually", "by hand"),
        *("No tests needed", "no checks", "not applicable", "none (analysis only)"),
        *("Manual: open the page", "manual testing in the browser", "Nothing to test"),
        *("`none`", "\n- none"),
    ],
)
def test_no_check_is_said_in_many_words(words: str) -> None:
    step, findings = read_step(f"**Verify:** {words}")
    assert (step.checks, findings) == ((), [])


@each_row(
    ("body", "checks", "kind"),
    [
        ("**Verify:** Check that the page opens", (), "prose_check"),
        ("**Verify:** `Settings()` loads without a crash", (), "prose_check"),
        ("**Verify:**\n```python\nassert x\n```", (), "prose_check"),
        (
            f"**Verify:** make certain with `{LINT}`, it is quick",
            (LINT,),
            "prose_around_check",
        ),
        (f"**Verify:** `{LINT}` → all green", (LINT,), "prose_around_check"),
        ("Run: `pytest | tail -3`", None, "unread_run"),
        (f"Make sure that `{LINT}` passes.", None, "unread_run"),
        (f"Prüfung: `{LINT}`", None, "unread_run"),
        (f"**Verify:** `{UNITTEST}`\n\nRun `{LINT}`.", (UNITTEST,), "unread_run"),
        (f"**Verify:**\n- `{UNITTEST}`\n- mycheck src", (UNITTEST,), "prose_check"),
        (f"**Verify:**\n- `{UNITTEST}`\n- ~~`{LINT}`~~", (UNITTEST,), "prose_check"),
    ],
)
def test_words_of_a_check_are_a_warning_and_stay_for_the_model(
    body: str, checks: tuple[str, ...] | None, kind: str
) -> None:
    step, findings = read_step(body)
    assert (step.checks, findings) == (checks, [("warning", kind)])
    if not checks:
        assert body.split("\n")[-1].split(" ")[-1] in step.description


@each_row(
    "body",
    [
        "**Verify:** make sure the page opens",
        "**Verify:** go to the page and look",
        "**Verify:** pytest -q, ruff check .",
        "**Verify:** the tests in `tests/test_a.py` pass",
        "**Verify:** pytest 'x",
        f"**Complexity:** hard\n> **Verify:** `{LINT}`",
        f"**Verify:** `{UNITTEST}`\n\nAlso:\n\n- `{LINT}`",
        f"#### Verify\n\n`{UNITTEST}`\n\nAlso:\n\n`{LINT}`",
        f"**Verify:**\n\n> `{LINT}`",
        f"**Verify:**\n\n    {LINT}",
        f"Do it.\n\n    **Verify:** `{LINT}`",
        f"<b>Verify:</b> `{LINT}`",
        f"***Verify:*** `{LINT}`",
        f"<p>\n**Verify:** `{LINT}`\n</p>",
        f"| Field | Value |\n|---|---|\n| Verify | `{LINT}` |",
        "**Verify:** pytest -q.",
    ],
)
def test_a_check_that_cannot_be_read_is_an_error(body: str) -> None:
    assert ("error", "unread_check") in read_step(body)[1]


@each_row(
    ("body", "checks"),
    [
        (f"Run: `{UNITTEST}`\nExpected: PASS", (UNITTEST,)),
        (f"Run: `{UNITTEST}`\nExpected: Build succeeds with 0 errors", (UNITTEST,)),
        ("Run: `pytest -q`\nExpected: FAIL with ImportError", None),
        (f"- [x] Run `{UNITTEST}` and `{LINT}`", (UNITTEST, LINT)),
        (f"- [ ] **Step 9: Verify** — `{UNITTEST}` → pass", (UNITTEST,)),
        ("**Step 4: Run** `make a && make b` → pass", ("make a", "make b")),
        (
            "Run: `cd api && make a && make b`",
            ("cd api && make a", "cd api && make b"),
        ),
        (f"Run:\n- `{UNITTEST}`\n- `{LINT}`", (UNITTEST, LINT)),
        (f"Run:\n\n```bash\n{UNITTEST}\n```\n\nExpected: OK", (UNITTEST,)),
        ("Run: `git commit -m x`", None),
        ("Run `npm install`, then go on.", None),
        (f"**Verify:** none\n\nRun: `{UNITTEST}`", ()),
        (f"**Verify:** `{LINT}`\n\nRun: `{UNITTEST}`", (LINT,)),
    ],
)
def test_what_a_step_says_to_run_is_its_check_if_it_names_no_other(
    body: str, checks: tuple[str, ...] | None
) -> None:
    step, _ = read_step(body)
    assert step.checks == checks
    assert "Run" in step.description or "Verify" in step.description or checks == ()


@each_row(
    ("heading", "label", "title"),
    [
        ("### Step 1b: T", "1b", "T"),
        ("### Step 1.5: T", "1.5", "T"),
        ("### Step 1.5.2 T", "1.5.2", "T"),
        ("#### Step 1.1: T", "1.1", "T"),
        ("### Task 2: T", "2", "T"),
        ("### (Optional) Step 2: T", "2", "T (optional)"),
        ("### Step 2 (optional): T", "2", "T (optional)"),
        ("### [x] Step 2: T", "2", "T"),
        ("### ✅ Step 2: T", "2", "T"),
        ("### Step 2: T ✅", "2", "T"),
        ("### Step [2]: T", "2", "T"),
        ("### [Step 2] T", "2", "T"),
        ("### Step #2 - T", "2", "T"),
        ("### Step2: T", "2", "T"),
        ("### 2) Step 2: T", "2", "T"),
        ("**Step 2: T**", "2", "T"),
        ("**Step 2:** T", "2", "T"),
        ("__Step 2: T__", "2", "T"),
        ("###Step 2: T", "2", "T"),
        ("###\u00a0Step 2: T", "2", "T"),
        ("### Step 2：T", "2", "T"),
        ("### **Step 2** T", "2", "T"),
        ("## Step 2: T", "2", "T"),
        ("Step 2: T\n---------", "2", "T"),
    ],
)
def test_a_heading_of_a_step_is_read_in_many_forms(
    heading: str, label: str, title: str
) -> None:
    plan = read_plan(
        f"# P\n\n## Implementation Steps\n\n### Step 1: One\n\n**Files:** a.py\n\n"
        f"{heading}\n\n**Files:** b.py\n\n### Step 3: C\n\n**Depends on:** {label}\n"
    )
    assert [step.label for step in plan.steps] == ["1", label, "3"]
    middle, last = plan.steps[1:]
    assert (middle.title, last.dependencies) == (title, (middle.number,))
    assert [file.path for file in middle.files_affected] == ["b.py"]
    numbers = [1, 2, 3]
    assert [step.number for step in plan.steps] == numbers
    assert plan.findings == ()


@each_row(
    "heading",
    [
        *("### Step Two: T", "### Step: T", "### [x] Step: T", "### Steps 2-4: T"),
        *("### 2. T", "### (2) T", "### 2.1 T", "### T02 — T", "### Schritt 2: T"),
        *("### Phase 2: T", "### Milestone 2: T", "### 步骤二：T"),
        *("Step 2: T", "- [ ] **Step 2: T**", "1. Step 2: T", "<h3>Step 2: T</h3>"),
        *("### T012 Sign in", "### S30-01 Sign in", "### P1：Sign in"),
        *("## Backend\n\n### 2. T", "> ### Step 2: T"),
        *("- ### Step 2: T", "    ### Step 2: T"),
        *("### Stp 2 - T", "### Setp 2: T", "### Stepp 2", "### Taks 2: T"),
    ],
)
def test_what_resembles_a_step_and_is_none_is_an_error(heading: str) -> None:
    plan = read_plan(
        f"# P\n\n### Step 1: One\n\nDo it.\n\n{heading}\n\nDo this, too.\n\n"
        "### Step 3: X\n"
    )
    assert ("error", "unread_step") in kinds(plan)
    line = 7 + heading.count("\n")
    assert [found.line for found in plan.errors if found.kind == "unread_step"] == [
        line
    ]


@each_row(
    "opening",
    ["```python", "~~~", "<!-- a remark", "<pre>", "<details>", "<div>\nwords"],
)
def test_a_step_in_a_block_without_an_end_is_an_error(opening: str) -> None:
    plan = read_plan(f"### Step 1: A\n\n{opening}\n### Step 2: B\n\nWords.\n")
    assert [step.label for step in plan.steps] == ["1"]
    assert kinds(plan) == [("error", "unread_step")]


@each_row(
    "block",
    [
        "```\n### Step 2: B\n**Verify:** `make b`\n```",
        "<!--\n### Step 2: B\n**Verify:** `make b`\n-->",
        "<pre>\n### Step 2: B\n</pre>",
    ],
)
def test_a_step_in_an_example_is_prose(block: str) -> None:
    plan = read_plan(f"### Step 1: A\n\n{block}\n\n**Verify:** `make a`\n")
    assert [step.label for step in plan.steps] == ["1"]
    assert plan.findings == ()


@each_row(
    "section",
    [
        "### Verify\n\nWords.\n\n**Files Affected:**\n- `a.py`",
        "## Cleanup\n\nFiles: `a.py`",
        "## Cleanup\n\nVerify: `make lint`",
        "## Risks\n\n### 2. Clean up\n\n**Files:** `a.py`",
    ],
)
def test_work_in_a_section_that_is_no_step_is_an_error(section: str) -> None:
    plan = read_plan(f"### Step 1: A\n\nDo it.\n\n{section}\n")
    assert kinds(plan) == [("error", "unread_step")]


def test_a_heading_with_files_or_a_check_of_its_own_is_an_error() -> None:
    for heading in ("### Create it", "## Phase 2: T"):
        for line in ("**Files:** b.py", "**Verify:** `make`"):
            text = f"### Step 1: A\n\n{heading}\n\n{line}\n\n### Step 3: B\n"
            plan = read_plan(text)
            assert ("error", "unread_step") in kinds(plan)


@each_row(
    "text",
    [
        "## Phase 1: Begin\n\n### Step 1: A\n\n## Phase 2: End\n\n### Step 2: B\n",
        "## 1. Overview\n\nWhy.\n\n## 2. Architecture\n\nHow.\n\n### Step 1: A\n",
        "### Step 1: A\n\n#### 1. First\n\nDo.\n\n#### 2. Second\n\nDo.\n",
        "### Step 1: A\n\n#### Step 1.1: Details\n\nOnly words.\n",
        "### Task 1: A\n\n**Step 1: Write the test**\n\n**Step 2: Make it pass**\n",
        "### Step 1: A\n\n## Risks\n\n### 1. Rain\n\nIt may rain.\n",
        "# Task: Sign in\n\n### Step 1: A\n",
        "## Steps\n\n## Step 1: A\n\n## Tasks left\n\nNone.\n",
        "### Step 1: A\n\n### Steps to reproduce\n\nRun it.\n",
        "### Step 1: A\n\n### S3 upload\n\nHow.\n\n### UTF-8 names\n\nWhy.\n",
        "## Design\n\n### 1. Files\n\nWhy.\n\n## Steps\n\n### Step 1: A\n",
        "# P\n\n### Step 1: A\n\n## Questions\n\n### Q1: Why?\n\nSo.\n",
        "### Step 1: A\n\nDo.\n\n### Stop the server\n\n### Test 2 of them\n\nDo.\n",
    ],
)
def test_other_headings_are_prose(text: str) -> None:
    plan = read_plan(text)
    assert plan.findings == ()
    assert [step.label for step in plan.steps] in (["1"], ["1", "2"])


def test_a_misread_step_around_a_bold_step_is_an_error() -> None:
    text = "### Step 1: A\n\nDo.\n\n### Step two: B\n\nDo.\n\n**Step 3: C**\n\nDo.\n"
    plan = read_plan(text)
    assert kinds(plan) == [("error", "unread_step")]
    assert plan.findings[0].line == 5


def test_a_struck_step_is_none_and_is_reported() -> None:
    headings = (
        *("### ~~Step 2: B~~", "### Step 2: ~~B~~", "~~### Step 2: B~~"),
        *("**~~Step 2: B~~**", "~~**Step 2: B**~~"),
    )
    for heading in headings:
        text = f"### Step 1: A\n\n{heading}\n\n**Files:** b.py\n\n### Step 3: C\n"
        plan = read_plan(text)
        assert plan.steps[0].files_affected == ()
        assert [step.label for step in plan.steps] == ["1", "3"]
        assert kinds(plan) == [("warning", "struck_step")]
        assert "lines 3, 5" in plan.findings[0].text


def test_sub_steps_with_files_are_steps_and_a_group_stands_for_them() -> None:
    plan = read_plan(
        "### Step 1: Group\n\n#### Step 1.1: A\n\n**Files:** a.py\n\n"
        "#### Step 1.2: B\n\n**Files:** b.py\n\n"
        "### Step 2: C\n\n**Depends on:** Step 1\n"
    )
    assert [step.label for step in plan.steps] == ["1.1", "1.2", "2"]
    assert plan.steps[2].dependencies == (1, 2)
    assert "Step 1: Group" in plan.notes


@each_row(
    ("item", "files"),
    [
        ("- Modify: `src/calc.py:1-2`", [("src/calc.py", "1-2")]),
        ("- `src/calc.py` (lines 10-20)", [("src/calc.py", "10-20")]),
        ("- src/calc.py#L3-L9", [("src/calc.py", "3-9")]),
        ("- `src/calc.py:12:5`", [("src/calc.py", "12")]),
        ("- [calc](src/calc.py)", [("src/calc.py", "")]),
        ("- [calc](src/calc.py#L3)", [("src/calc.py", "3")]),
        ("- [`calc.py`](src/calc.py#usage)", [("src/calc.py", "")]),
        ("- [calc](src/calc.py) (new)", [("src/calc.py", "")]),
        ("- [NEW] [calc.py](file:///p/a%20b.py)", [("/p/a b.py", "")]),
        ("- [src/a.py](https://x.org/blob/src/a.py)", [("src/a.py", "")]),
        ("- @src/calc.py", [("src/calc.py", "")]),
        ("- file://src/calc.py", [("src/calc.py", "")]),
        ("- `src/*.py`", [("src/*.py", "")]),
        ("- src/", [("src/", "")]),
        ("- src/{a,b}.py", [("src/{a,b}.py", "")]),
        ("- app/[id]/page.tsx", [("app/[id]/page.tsx", "")]),
        ("- `a.py`, `b.py`", [("a.py", ""), ("b.py", "")]),
        ("- `a.py` and b.py", [("a.py", ""), ("b.py", "")]),
        ("- Create `a.py`; Modify `b.py` (before `x`)", [("a.py", ""), ("b.py", "")]),
        ("- `a.py`, others as needed, `b.py`", [("a.py", ""), ("b.py", "")]),
        ("- `a.py` → `b.py`", [("a.py", ""), ("b.py", "")]),
        ("- Create: src/a.py", [("src/a.py", "")]),
        ("- Create:\n  - `a.py`\n  - `b.py`", [("a.py", ""), ("b.py", "")]),
        (
            "| File | Change |\n|---|---|\n| `a.py` | new |\n| b.py | edit |",
            [("a.py", ""), ("b.py", "")],
        ),
        ("```\nsrc/a.py\nsrc/b.py\n```", [("src/a.py", ""), ("src/b.py", "")]),
        ('- "a.py"', [("a.py", "")]),
        ("- [x] a.py", [("a.py", "")]),
        ("- Makefile", [("Makefile", "")]),
    ],
)
def test_files_are_named_in_many_forms(item: str, files: list[tuple[str, str]]) -> None:
    step, findings = read_step(f"**Files Affected:**\n{item}")
    assert [(file.path, file.lines) for file in step.files_affected] == files
    assert findings == []


@each_row(
    ("item", "is_created", "is_deleted"),
    [
        ("- [NEW] [a](a.py)", True, False),
        ("- Create: a.py", True, False),
        ("- **New:**\n  - `a.py`", True, False),
        ("| File | Change |\n|---|---|\n| `a.py` | deleted |", False, True),
        ("- `a.py` (to be removed)", False, True),
        ("| File | Change |\n|---|---|\n| a.py | (new) |", True, False),
        ("| File | Why |\n|---|---|\n| `a.py` (new) | why |", True, False),
        ("- `a.py`: the model", False, False),
    ],
)
def test_a_note_says_what_becomes_of_a_file(
    item: str, is_created: bool, is_deleted: bool
) -> None:
    (file,) = read_step(f"**Files:**\n{item}")[0].files_affected
    assert (file.is_created, file.is_deleted) == (is_created, is_deleted)


@each_row(
    "body",
    [
        "**Files:**\n- the settings",
        "**Files:** the settings",
        "**Files:**\n- ~~a.py~~",
        "**Files:**\n- [docs](https://x.org/)",
        "**Files:**\n- a.py\n\nAnd:\n\n- `b.py`",
        "**Files:**\n> - `a.py`",
        "**Files:**\n\n> `a.py`",
        "**Files:**\n\n    a.py",
        "**Files:**\n- ~~`a.py`~~",
    ],
)
def test_words_among_files_are_a_warning_and_stay_text(body: str) -> None:
    step, findings = read_step(body)
    assert findings == [("warning", "unread_file")]
    assert step.description


@each_row(
    ("body", "removes", "may_fail"),
    [
        ("**Removes tests:** none", (), ()),
        (
            "**Removes tests:** `t/a.py::test_x`, t/b.py",
            ("t/a.py::test_x", "t/b.py"),
            (),
        ),
        ("**Removes tests:**\n- `a`\n- `b`", ("a", "b"), ()),
        ("**May fail:** `t/a.py` until step 3", None, (("t/a.py", "3"),)),
        ("**May fail:** a, b (until Step 3)", None, (("a", "3"), ("b", "3"))),
        ("**May fail:**\n- `a` until step 3\n- `b`", None, (("a", "3"), ("b", ""))),
        ("**May fail:** none", None, ()),
        ("", None, ()),
    ],
)
def test_fields_about_tests_are_read(
    body: str,
    removes: tuple[str, ...] | None,
    may_fail: tuple[tuple[str, str], ...],
) -> None:
    step, findings = read_step(body)
    assert step.removes_tests == removes
    assert tuple((leave.tests, leave.until) for leave in step.may_fail) == may_fail
    assert findings == []


@each_row(
    ("body", "found"),
    [
        ("**Removes tests:** the old ones", ("error", "unread_tests")),
        ("**Removes tests:**\n```\ntest_a\n```", ("error", "unread_tests")),
        ("**May fail:**\n\n| Test |\n|---|\n| test_a |", ("error", "unread_tests")),
        ("**May fail:** `a` until step 3, `b`", ("error", "unread_tests")),
        ("**May fail:** `a` until step 2; `b` until step 3", ("error", "unread_tests")),
        ("**May fail:** `a` (until step 3 is done)", ("error", "unread_tests")),
        ("**Depends on:** the first one", ("error", "unread_dependencies")),
        ("**Owner:** Kim", ("warning", "unknown_label")),
        (f"**Verify:** `{LINT}`\n**Command:** `make`", ("error", "unknown_label")),
        ("**Lint:** `make lint`", ("error", "unknown_label")),
        ("**Source:** `src/a.py`", ("error", "unknown_label")),
        ("**Endpoint:** `/api/users`", ("warning", "unknown_label")),
        ("**Run:** `make a`\n\n**Verify:** `b`", ("error", "unknown_label")),
        ("**Language:** `go`", ("warning", "unknown_label")),
        ("**Why:** `a.py` is slow", ("warning", "unknown_label")),
        ("**Entry:** `a.py`\n\n**Files:** `a.py`", ("warning", "unknown_label")),
        ("**Lint:** `make a`\n\n**Verify:** `make a`", ("warning", "unknown_label")),
        ("**Sources:** `a.py` (new), `b.py`", ("error", "unknown_label")),
        ("**Tool:** `docker`", ("warning", "unknown_label")),
        ("**Format:** `sql`", ("warning", "unknown_label")),
        ("**Tests:** `pytest`", ("error", "unknown_label")),
        ("**Complexity:** a\n**Complexity:** b", ("warning", "duplicate_field")),
    ],
)
def test_other_lines_that_look_like_values_are_findings(
    body: str, found: tuple[str, str]
) -> None:
    assert read_step(body)[1] == [found]


def test_unknown_labels_are_one_warning_a_plan() -> None:
    step = "### Step {}: A\n\n**Owner:** Kim\n**Risk:** low\n\n"
    plan = read_plan(step.format(1) + step.format(2))
    assert kinds(plan) == [("warning", "unknown_label")]
    assert plan.findings[0].text.endswith("“owner”, “risk” (lines 3-4, 8-9)")


@each_row(
    "text",
    [
        f"### Step 1: A\n\n## Verification\n\n- `{UNITTEST}`\n",
        f"### Step 1: A\n\n## Final Verification\n\n```bash\n{UNITTEST}\n```\n",
        f"# Plan: X\n\n**Verify:** `{UNITTEST}`\n\n### Step 1: A\n",
        f"### Step 1: A\n\n### Verify\n\n`{UNITTEST}`\n",
        f"# Plan: X\n\n**Verify:**\n- `{UNITTEST}`\n\n### Step 1: A\n",
    ],
)
def test_a_check_outside_the_steps_is_an_error(text: str) -> None:
    assert kinds(read_plan(text)) == [("error", "stray_check")]


@each_row(
    "text",
    [
        f"## Verification\n\n- `{UNITTEST}`",
        f"## Verification\n\n```bash\n{LINT}\n{UNITTEST}\n```",
        f"## End\n\n**Verify:** `{UNITTEST}` and `{LINT}`",
        f"## End\n\n**Verify:**\n- `{UNITTEST}`",
    ],
)
def test_a_check_outside_the_steps_that_a_step_has_is_no_error(text: str) -> None:
    step = f"### Step 1: A\n\n**Verify:** `{UNITTEST}`\n**Verify:** `{LINT}`\n\n"
    assert ("error", "stray_check") not in kinds(read_plan(step + text))


@each_row(
    "text",
    [
        "Sure!\n\n```markdown\n# Plan: X\n\n### Step 1: A\n```\n\nDone.\n",
        "Sure!\n\n```\n# Plan: X\n\n### Task 1: A\n```\n\nDone.\n",
    ],
)
def test_lines_around_the_code_block_of_a_plan_are_reported(text: str) -> None:
    plan = read_plan(text)
    assert [step.label for step in plan.steps] == ["1"]
    assert "lines 1, 3, 7, 9" in plan.findings[0].text


@each_row(
    ("comment", "step_id", "found"),
    [
        ("<!-- id: k3f9 -->", "k3f9", []),
        ("<!--id:abcd1234-->", "abcd1234", []),
        ("<!-- id: K3F9 -->", "", [("warning", "wrong_id")]),
        ("<!-- id: abc -->", "", [("warning", "wrong_id")]),
        ("<!-- a remark -->", "", []),
    ],
)
def test_a_heading_may_have_an_id(
    comment: str, step_id: str, found: list[tuple[str, str]]
) -> None:
    plan = read_plan(f"### Step 1: A {comment}\n\n### Step 2: B\n")
    assert (plan.steps[0].id, kinds(plan)) == (step_id, found)


def test_equal_labels_and_ids_are_errors() -> None:
    plan = read_plan(
        "### Step 1b: A <!-- id: abcd -->\n### Task 1B: B <!-- id: abcd -->\n"
    )
    assert [error.kind for error in plan.errors] == ["duplicate_step", "duplicate_id"]


def test_text_of_other_sections_is_kept() -> None:
    plan = read_plan("Hello.\n\n# P\n\n## Glossary\n\nA term.\n\n### Step 1: A\n")
    assert plan.notes == "Hello.\n\n## Glossary\n\nA term."
