"""The page about spec.yaml and plan.md says what the readers of these files do: each
example of its tables is read as its row says, and its kinds of findings are all.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import cdd_agent
from cdd_agent.tickets.plan import ImplementationPlan, PlanStep
from cdd_agent.tickets.plan_reader import read_plan
from cdd_agent.tickets.spec_findings import find_spec_problems
from tests.docs.pages import DOCS, page_at
from tests.support.tables import each_row

_PAGE = page_at(DOCS / "reference" / "plan-and-spec.md")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_COUNTS = {"none": 0, "one": 1, "two": 2}
_PACKAGE = Path(cdd_agent.__file__).parent
_SOURCES = [
    path.read_text("utf-8")
    for folder in ("tickets", "agents")
    for path in (_PACKAGE / folder).rglob("*.py")
]
_VALUES = {"Removes tests": "`test_a`", "May fail": "`test_a`", "Serves": "1"}
"""Values of the fields whose cells describe them in words."""


def rows_below(heading: str) -> Iterator[list[str]]:
    """Yield the cells of the rows of the tables in a section."""
    is_inside = is_body = False
    for _, line in _PAGE.prose:
        if line.startswith("#"):
            is_inside = line == heading
        if not line.startswith("|"):
            is_body = False
        elif line.startswith("|---"):
            is_body = True
        elif is_inside and is_body:
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def spans_in(cell: str) -> list[str]:
    return [match[2].strip() for match in _SPAN.finditer(cell)]


def read_steps(heading: str, *fields: str) -> ImplementationPlan:
    return read_plan("\n".join(["# Plan", "", heading, "", "Text.", "", *fields, ""]))


def read_step(*fields: str) -> PlanStep:
    (step,) = read_steps("### Step 1: Title", *fields).steps
    return step


HEADINGS = [
    (heading, spans_in(labels)[:1])
    for headings, labels in rows_below("### Steps")
    for heading in spans_in(headings)
]
"""The headings, and the label of each if it begins a step."""


@each_row(("heading", "labels"), [row for row in HEADINGS if "1b" not in row[1]])
def test_a_heading_is_the_step_that_the_page_names(
    heading: str, labels: list[str]
) -> None:
    steps = read_steps(heading).steps
    assert [step.label for step in steps] == labels
    assert all(step.title.startswith("Title") for step in steps)


def test_labels_that_are_no_whole_numbers_are_kept() -> None:
    ((headings, labels),) = [row for row in rows_below("### Steps") if "1b" in row[1]]
    read = [read_steps(heading).steps[0].label for heading in spans_in(headings)]
    assert read == spans_in(labels)


CHECKS = [
    (spans_in(written), _COUNTS[checks.split()[0].strip(",;")])
    for written, checks in rows_below("### Checks")
    if spans_in(written)
]


@each_row(("examples", "count"), CHECKS)
def test_a_check_is_read_as_the_page_says(examples: list[str], count: int) -> None:
    for example in examples:
        if example == "Verify":
            continue
        is_value = "Verify" not in example and "Run" not in example
        line = f"**Verify:** {example}" if is_value else example
        assert len(read_step(line).checks or ()) == count, example


FILES = [
    (example, meaning)
    for written, meaning in rows_below("### Files")
    for example in spans_in(written)
    if "/" in example or "." in example
]


@each_row(("example", "meaning"), FILES)
def test_a_file_is_read_as_the_page_says(example: str, meaning: str) -> None:
    path, note, rest = example.partition(" (")
    files = read_step("**Files:**", f"- `{path}`{note}{rest}").files_affected
    if "->" in example:
        files = read_step("**Files:**", f"- {example}").files_affected
        assert (files[0].is_deleted, files[1].is_created) == (True, True)
        return
    (file,) = files
    assert file.is_created == ("creates" in meaning)
    assert file.is_deleted == ("deletes" in meaning)
    assert bool(file.lines) == ("lines" in meaning)


@each_row(("field", "labels", "values"), list(rows_below("### Fields")))
def test_a_label_is_that_of_a_field(field: str, labels: str, values: str) -> None:
    for label in spans_in(labels):
        value = _VALUES.get(label) or next(iter(spans_in(values)), "a.py")
        if field == "check":
            value = "`pytest`"
        plan = read_steps("### Step 1: Title", f"**{label}:** {value}")
        assert [problem.message for problem in plan.findings] == [], label


SPECS = {
    "title: Fix #42": "title: Fix #42",
    "&co is new": "title: &co is new",
    "!important fix": "title: !important fix",
    "- ? what then": "acceptance_criteria:\n- ? what then",
    "- ~": "acceptance_criteria:\n- ~",
    "- [x]": "acceptance_criteria:\n- [x]",
    "- {name}": "acceptance_criteria:\n- {name}",
    "- a": "acceptance_criteria:\n- a\n  - b",
    'title: "Fix': 'title: "Fix\ndescription: b"',
    "nested": "implementation_scope:\n  a: [x]\n  a: [y]",
    "acceptance_critera": "acceptance_critera:\n- a",
    "criteria": "criteria:\n- a",
    "story:": "story:\n  title: a\n  description: b\n  acceptance_criteria: [c]",
}
"""The examples of the page, each in a spec."""


def test_the_examples_of_spec_findings_have_these_kinds() -> None:
    wrong = []
    unused = set(SPECS)
    for kinds, examples in rows_below("### Findings in spec.yaml"):
        for example, text in SPECS.items():
            if example not in examples:
                continue
            unused.discard(example)
            read = {problem.kind for problem in find_spec_problems(f"{text}\n")}
            if not read & set(spans_in(kinds)):
                wrong.append((example, kinds, read))
    assert wrong == []
    assert unused == set()


def emitted_kinds() -> set[str]:
    """The kinds that the readers name in a call."""
    kinds = set()
    for source in _SOURCES:
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            function = node.func
            name = getattr(function, "attr", getattr(function, "id", ""))
            first = node.args[0]
            kind = str(first.value) if isinstance(first, ast.Constant) else ""
            is_report = re.search("warn|error|problem", name.lower())
            if is_report and re.fullmatch("[a-z_]+", kind):
                kinds.add(kind)
    return kinds


def test_the_page_has_each_kind_of_finding_and_no_other() -> None:
    documented = set()
    for heading in ("### Findings in spec.yaml", "### Findings in plan.md"):
        for row in rows_below(heading):
            documented.update(spans_in(row[0]))
    source = "\n".join(_SOURCES)
    assert [kind for kind in documented if f'"{kind}"' not in source] == []
    emitted = emitted_kinds()
    assert {"no_steps", "cycle", "unread_check", "comment"} <= emitted
    assert sorted(emitted - documented) == []
