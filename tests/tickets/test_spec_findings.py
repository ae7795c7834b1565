"""What YAML reads otherwise than a person means it: which words a spec has, and which
line is reported.
"""

import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.tickets.spec import (
    FIELDS,
    OLD_DESCRIPTION_KEYS,
    TicketSpec,
    TicketType,
    dump_yaml,
)
from cdd_agent.tickets.spec_findings import find_spec_problems
from tests.support.tables import each_row
from tests.tickets.test_spec import TEMPLATES, specs

DOCS = Path(__file__).parents[2] / "docs"


def findings(text: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.kind) for problem in find_spec_problems(text)]


def read(text: str, name: str) -> Any:
    spec = TicketSpec.from_yaml(text)
    value = getattr(spec, name, None)
    return spec.extra[name] if value is None else value


CUT = "comment"
COMMENTS = [
    # Text of each field, with and without a space after the sign.
    ("title: Fix #42", "title", "Fix", [(1, CUT)]),
    ("title: Fix # the login", "title", "Fix", [(1, CUT)]),
    ("title: Fix\t#42", "title", "Fix", [(1, CUT)]),
    ("title: #42", "title", "", [(1, CUT)]),
    ("title: # one line", "title", "", [(1, CUT)]),
    ("title: Learn C #", "title", "Learn C", [(1, CUT)]),
    ("title: Fix#42", "title", "Fix#42", []),
    ("title: 'Fix #42'", "title", "Fix #42", []),
    ('title: "Fix #42" # a note', "title", "Fix #42", []),
    ("description: Fix #42", "description", "Fix", [(1, CUT)]),
    ("description: one\n  two #3", "description", "one two", [(2, CUT)]),
    ("description: one\n  #2 and\ntype: bug", "description", "one", [(2, CUT)]),
    ("description: one\n  # a note\ntype: bug", "description", "one", []),
    ("description: |\n  # Title\n  Fix #42", "description", "# Title\nFix #42", []),
    ("description: >\n  Fix #42\n  now # x", "description", "Fix #42 now # x", []),
    ("description: | # in lines\n  a", "description", "a", []),
    ("technical_notes: see #42", "technical_notes", "see", [(1, CUT)]),
    ("technical_notes: see  # by Ada", "technical_notes", "see", []),
    ("summary: Fix #42", "description", "Fix", [(1, CUT)]),
    ("ticket: {title: x}\ntitle: a #1", "title", "a", [(2, CUT)]),
    # Lists
    (
        "acceptance_criteria:\n- a #1\n- b",
        "acceptance_criteria",
        ("a", "b"),
        [(2, CUT)],
    ),
    ("acceptance_criteria:\n- #1 works", "acceptance_criteria", (), [(2, CUT)]),
    ("acceptance_criteria:\n- a # or b", "acceptance_criteria", ("a",), [(2, CUT)]),
    ("acceptance_criteria: # all\n- a", "acceptance_criteria", ("a",), []),
    ("acceptance_criteria:\n- a\n# - b\n#- c", "acceptance_criteria", ("a",), []),
    (
        "acceptance_criteria: [\n a, # x\n b #1\n]",
        "acceptance_criteria",
        ("a", "b"),
        [(3, CUT)],
    ),
    ("acceptance_criteria: [a, b] # x", "acceptance_criteria", ("a", "b"), []),
    (
        "acceptance_criteria:\n- given: a user #1\n  then: ok",
        "acceptance_criteria",
        ("Given a user, then ok",),
        [(2, CUT)],
    ),
    (
        "acceptance_criteria:\n- id: 1\n  #text: b\n  text: a",
        "acceptance_criteria",
        ("1: a",),
        [],
    ),
    (
        "implementation_scope:\n  api: [a]\n  ui: b #1",
        "implementation_scope",
        {"api": ("a",), "ui": ("b",)},
        [(3, CUT)],
    ),
    # Keys that are no prose
    ("priority: high #p1", "priority", "high", [(1, CUT)]),
    ("priority: high # or low", "priority", "high", []),
    ("type: bug # or feature", "type", "bug", []),
    ("owner: Ada #2", "owner", "Ada", [(1, CUT)]),
    ("owner: Ada # since May", "owner", "Ada", []),
    ("issue: #42", "issue", "", [(1, CUT)]),
    ("days: 5 #about", "days", "5", []),
    (
        "owner:\n- Ada #2\n- {name: Bo #3\n  }",
        "owner",
        ["Ada", {"name": "Bo"}],
        [(2, CUT), (3, CUT)],
    ),
]
READ_AS_STRUCTURE = [
    ("title: &co is new", "title", "is new", [(1, "anchor")]),
    ("title: &co", "title", "", [(1, "anchor")]),
    (
        "acceptance_criteria:\n- &a works",
        "acceptance_criteria",
        ("works",),
        [(2, "anchor")],
    ),
    ("title: &t x\ndescription: *t", "description", "x", []),
    ("base: &b {x: y}\nother: {<<: *b}", "title", "", []),
    ("title: !important fix", "title", "fix", [(1, "tag")]),
    ("title: ! fix", "title", "fix", [(1, "tag")]),
    ("title: !", "title", "", [(1, "tag")]),
    ("owner: !ada x", "owner", "x", [(1, "tag")]),
    ("title: !!str 5", "title", "5", []),
    ("title: what? yes!", "title", "what? yes!", []),
    (
        "acceptance_criteria:\n- ? what then",
        "acceptance_criteria",
        ("what then:",),
        [(2, "question")],
    ),
    ("? why now\ntitle: x", "title", "x", [(1, "question")]),
    ("? title\n: x", "title", "x", []),
    ("acceptance_criteria:\n- ?what", "acceptance_criteria", ("?what",), []),
    ("acceptance_criteria:\n- [x]", "acceptance_criteria", ("- x",), [(2, "brackets")]),
    (
        "acceptance_criteria:\n- [ ]\n- a",
        "acceptance_criteria",
        ("a",),
        [(2, "brackets")],
    ),
    (
        "implementation_scope:\n  api: [a, b]",
        "implementation_scope",
        {"api": ("a", "b")},
        [],
    ),
    ("description: [x]", "description", "- x", [(1, "brackets")]),
    ("description: [a, b]", "description", "- a\n- b", []),
    ("sizes:\n- [1, 2]", "sizes", [["1", "2"]], []),
    (
        "acceptance_criteria:\n- {name}",
        "acceptance_criteria",
        ("name:",),
        [(2, "braces")],
    ),
    (
        "acceptance_criteria:\n- {{name}}",
        "acceptance_criteria",
        ("name::",),
        [(2, "braces")],
    ),
    ("description: {name}", "description", "name:", [(1, "braces")]),
    ("owner: {name}", "owner", {"name": ""}, [(1, "braces")]),
    ("owner: {name: }", "owner", {"name": ""}, []),
    (
        "implementation_scope: {api:a}",
        "implementation_scope",
        {"api:a": ()},
        [(1, "braces")],
    ),
    ("implementation_scope: {}", "implementation_scope", {}, []),
    ("acceptance_criteria:\n- ~\n- a", "acceptance_criteria", ("a",), [(2, "null")]),
    ("owner: null", "owner", "", []),
    (
        "acceptance_criteria:\n  -a\n  -b",
        "acceptance_criteria",
        ("-a -b",),
        [(2, "joined_lines")],
    ),
    (
        "acceptance_criteria:\n- a\n  - b",
        "acceptance_criteria",
        ("a - b",),
        [(3, "joined_lines")],
    ),
    (
        "description: Do\n  - a\n  - b",
        "description",
        "Do - a - b",
        [(2, "joined_lines")],
    ),
    ("description: one\n  - two", "description", "one - two", [(2, "joined_lines")]),
    ("description: one\n  -two", "description", "one -two", []),
    ('title: "a\ndescription: b"', "title", "a description: b", [(1, "open_quote")]),
    ('description: "a\n  b: c"', "description", "a b: c", []),
    (
        "implementation_scope:\n  api: a\n  api: b",
        "implementation_scope",
        {"api": ("b",)},
        [(3, "repeated_key")],
    ),
    (
        "acceptance_criteria:\n- Fix: the bug",
        "acceptance_criteria",
        ("Fix: the bug",),
        [],
    ),
    ("acceptance_criteria:\n- given:x", "acceptance_criteria", ("given:x",), []),
    ("title: a:b", "title", "a:b", []),
    ("title: 1.10", "title", "1.10", []),
    ("\ufefftitle: Ü #1\r\ntype: bug\r\n", "title", "Ü", [(1, CUT)]),
    ("title: 漢字 #1", "title", "漢字", [(1, CUT)]),
]
NAME = "unknown_key"
NAMES = [
    ("Title: x", [(1, NAME)]),
    ("TITLE: x\ntitle: y", [(1, NAME)]),
    ("titel: x", [(1, NAME)]),
    ("title: x\ntitles: y", []),
    ("title: x\ntile: y\ntime: z", []),
    ("acceptance_critera: [a]", [(1, NAME)]),
    ("acceptance_criteria: [a]\nacceptance-criteria: [b]", [(2, NAME)]),
    ("Acceptance Criteria: [a]", [(1, NAME)]),
    ("acceptanceCriteria: [a]", [(1, NAME)]),
    ("acceptance_criterion: a", [(1, NAME)]),
    ("criteria: [a]", [(1, NAME)]),
    ("acceptance: [a]", [(1, NAME)]),
    ("criterios_aceptación: [a]", [(1, NAME)]),
    ("acceptance_criteria: [a]\ncriteria: [b]", []),
    ("acceptance_criteria: [a]\nacceptance_test: b", []),
    ("desciption: x", [(1, NAME)]),
    ("prority: high", [(1, NAME)]),
    ("tecnical_notes: x", [(1, NAME)]),
    ("technical notes: x", [(1, NAME)]),
    ("implementation_notes: x", []),
    ("tpye: bug", [(1, NAME)]),
    ("types: [a]", []),
    ("typo: x", []),
    ("ticket: {Title: x}", [(1, NAME)]),
    ("ticket: {title: x}\ntiles: y", []),
    ("notes: x\nscope: y\nid: z\nprio: 1", []),
    ("problem: x\nuser_story: y", []),
    ("story: {title: x, description: y}", [(1, "level")]),
    ("items:\n- {title: x}\n- {title: y}", [(1, "level")]),
    ("title: x\nitems:\n- {title: x}\n- {title: y}", []),
    ("5: x\nnull: y\n2024-01-02: z", []),
]


@each_row(("text", "name", "value", "expected"), [*COMMENTS, *READ_AS_STRUCTURE])
def test_text_that_is_not_read_as_it_is_written_is_reported(
    text: str, name: str, value: object, expected: list[tuple[int, str]]
) -> None:
    assert read(text, name) == value
    assert findings(text) == expected


@each_row(("text", "expected"), NAMES)
def test_a_key_that_is_nearly_known_is_reported(
    text: str, expected: list[tuple[int, str]]
) -> None:
    assert findings(text) == expected


@each_row(
    ("text", "name", "value"),
    [
        (text, name, value)
        for text, name, value, expected in [*COMMENTS, *READ_AS_STRUCTURE]
        if len(expected) == 1 and name in {"title", "acceptance_criteria", "owner"}
    ],
)
def test_the_advice_to_put_text_in_quotes_keeps_all_words(
    text: str, name: str, value: object
) -> None:
    (problem,) = find_spec_problems(text)
    quoted = problem.text.partition("put the text in quotes: ")[2]
    if not quoted:
        return
    (words,) = TicketSpec.from_yaml(
        f"acceptance_criteria: [{quoted}]"
    ).acceptance_criteria
    lines = text.splitlines()
    written = re.sub(r"\s+", " ", lines[problem.line - 1])
    assert words.removeprefix("- ") in written or words in " ".join(text.split())


@given(specs)
def test_a_spec_that_the_program_writes_has_no_findings(spec: TicketSpec) -> None:
    text = TicketSpec(
        title=spec.title or "x",
        type=spec.type,
        description=spec.description,
        acceptance_criteria=spec.acceptance_criteria,
        implementation_scope=spec.implementation_scope,
        technical_notes=spec.technical_notes,
        priority=spec.priority,
    ).to_yaml()
    assert findings(text) == []


keys = st.text(min_size=1, max_size=8).map(lambda text: f"own {text}")
trees: st.SearchStrategy[Any] = st.recursive(
    st.text(":-#'\"|>&*!%@` \n\t\\{}[]?,~a1ü漢\u2028", max_size=20)
    | st.integers()
    | st.dates()
    | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(keys, trees, max_size=3))
def test_yaml_that_the_program_writes_has_no_findings(value: dict[str, Any]) -> None:
    assert findings(dump_yaml({"title": "x", **value})) == []


@given(st.text(max_size=60) | st.text("a:- \n\t[]{}&*!|>#'\"%@1?,<.~", max_size=60))
def test_any_text_can_be_searched(text: str) -> None:
    for problem in find_spec_problems(text):
        assert 1 <= problem.line <= len(re.split("\r\n|[\n\r\x85\u2028\u2029]", text))
        assert problem.is_warning


@each_row("kind", TicketType)
def test_templates_have_no_findings(kind: TicketType) -> None:
    assert findings((TEMPLATES / f"{kind}.yaml").read_text(encoding="utf-8")) == []


def test_examples_in_the_docs_have_no_findings() -> None:
    examples = []
    for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(
            r"^```ya?ml\n(.*?)^```", text, re.MULTILINE | re.DOTALL
        ):
            if re.search("^(title|acceptance_criteria):", block, re.MULTILINE):
                examples.append((page.name, block))
    assert examples
    wrong = {page: findings(block) for page, block in examples if findings(block)}
    assert wrong == {}


def test_all_fields_and_old_keys_are_known() -> None:
    text = "".join(f"{name}: bug\n" for name in (*FIELDS, *OLD_DESCRIPTION_KEYS))
    assert findings(text) == []


def test_many_findings_are_counted_not_listed() -> None:
    lines = "".join(f"- a #{number}\n" for number in range(5_000))
    problems = find_spec_problems(f"acceptance_criteria:\n{lines}")
    assert len(problems) == 20
    assert "4,980" in problems[-1].text or "4980" in problems[-1].text
