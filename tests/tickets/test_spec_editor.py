"""A spec.yaml is the user's file: a change of one value leaves everything else
unchanged.
"""

from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.tickets.spec import FIELDS, TicketSpec, TicketType
from cdd_agent.tickets.spec_editor import SpecNotWritable, SpecText, edit_spec
from tests.support.tables import each_row

TEMPLATES = Path(__file__).parents[2] / "cdd_agent" / "tickets" / "templates"
TEXT = """\
# The ticket of the month.
title:   "Sign in"   # asked by Ada

owner: {name: Ada,   since: 2024-01-02}
type: feature
description: |
  Users sign in.
  # not a comment
  With a password.

# How do we know?
acceptance_criteria:
    - A wrong password is refused   # see RFC 1
    # the next one is new
    - 'It takes a second'
    -   "Signing out works"

estimate: 1.10
links: [ a,
         b ]   # both
technical_notes: ""
# the end
"""


def changed(text: str, **fields: object) -> str:
    return edit_spec(text, replace(TicketSpec.from_yaml(text), **fields))  # type: ignore[arg-type]


def difference(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return the lines that were removed and the lines that were added."""
    old, new = before.splitlines(), after.splitlines()
    return [line for line in old if line not in new], [
        line for line in new if line not in old
    ]


def test_no_change_is_the_same_text() -> None:
    assert edit_spec(TEXT, TicketSpec.from_yaml(TEXT)) == TEXT


def test_only_the_changed_value_is_different_and_its_comment_stays() -> None:
    before = 'title:   "Sign in"   # asked by Ada'
    after = "title: Sign in and out   # asked by Ada"
    assert difference(TEXT, changed(TEXT, title="Sign in and out")) == (
        [before],
        [after],
    )


def test_several_lines_become_a_block() -> None:
    removed, added = difference(
        TEXT, changed(TEXT, technical_notes="Use bcrypt.\n\nNot md5.")
    )
    assert removed == ['technical_notes: ""']
    assert added == ["technical_notes: |-", "  Use bcrypt.", "  Not md5."]


def test_criteria_change_one_by_one() -> None:
    criteria = (
        "A wrong password is refused",
        "It takes at most 1 s",
        "Signing out works",
        "A locked user is told",
    )
    removed, added = difference(TEXT, changed(TEXT, acceptance_criteria=criteria))
    assert removed == ["    - 'It takes a second'"]
    assert added == ["    - It takes at most 1 s", "    - A locked user is told"]


@each_row(
    ("text", "fields", "expected"),
    [
        (
            "a: 1\ntechnical_notes: x # y\n",
            {"technical_notes": "a\nb"},
            "a: 1\n# y\ntechnical_notes: |-\n  a\n  b\n",
        ),
        (
            "technical_notes: | # y\n  old\n",
            {"technical_notes": "a"},
            "# y\ntechnical_notes: a\n",
        ),
        (
            "acceptance_criteria: [a, # first\n  b] # last\n",
            {"acceptance_criteria": ("c",)},
            "# first\n# last\nacceptance_criteria:\n  - c\n",
        ),
        (
            "acceptance_criteria:\n  - a # first\n  - b\n",
            {"acceptance_criteria": ("b",)},
            "acceptance_criteria:\n  # first\n  - b\n",
        ),
    ],
    ids=["several lines", "block header", "inside the value", "removed item"],
)
def test_other_comments_move_above_the_value(
    text: str, fields: dict[str, object], expected: str
) -> None:
    assert changed(text, **fields) == expected


def test_new_keys_go_where_templates_have_them() -> None:
    text = "owner: Ada\ntitle: x\nextra: 1\n"
    new = changed(
        text,
        description="What\nfor",
        acceptance_criteria=("a",),
        implementation_scope={"api": ("b",)},
    )
    expected = dedent("""\
        owner: Ada
        title: x
        description: |-
          What
          for
        acceptance_criteria:
          - a
        implementation_scope:
          api:
            - b
        extra: 1
        """)
    assert new == expected
    assert (
        changed("# mine\nowner: Ada\n", title="x") == "# mine\ntitle: x\nowner: Ada\n"
    )


@each_row("kind", TicketType)
def test_a_template_keeps_its_comments(kind: TicketType) -> None:
    text = (TEMPLATES / f"{kind}.yaml").read_text(encoding="utf-8")
    new = changed(
        text,
        title="Sign in",
        description="One.\n\nTwo.",
        acceptance_criteria=("a: b", "c # d"),
    )
    assert TicketSpec.from_yaml(new).missing() == []
    comments, new_comments = (
        [line for line in t.splitlines() if line.startswith("#")] for t in (text, new)
    )
    assert comments == new_comments
    assert any(line.startswith("priority: medium # ") for line in new.splitlines())


@each_row(
    ("text", "new"),
    [
        (
            "title: x\r\nowner: Ada\r\n",
            "title: x\r\ntechnical_notes: |-\r\n  a\r\n  b\r\nowner: Ada\r\n",
        ),
        ("\ufefftitle: x\n", "\ufefftitle: x\ntechnical_notes: |-\n  a\n  b\n"),
        ("title: x", "title: x\ntechnical_notes: |-\n  a\n  b"),
        ("---\ntitle: x\n...\n", "---\ntitle: x\ntechnical_notes: |-\n  a\n  b\n...\n"),
        ("technical_notes:\nx: 1\n", "technical_notes: |-\n  a\n  b\nx: 1\n"),
        ("title: x\t# mine\n", "title: x\t# mine\ntechnical_notes: |-\n  a\n  b\n"),
    ],
    ids=[
        "CRLF",
        "byte order mark",
        "no final line end",
        "document marks",
        "null",
        "tab before a comment",
    ],
)
def test_any_layout_is_kept(text: str, new: str) -> None:
    assert changed(text, technical_notes="a\nb") == new


@each_row(
    "text",
    [
        "{title: x, owner: Ada}\n",
        "  title: x\n  owner: Ada\n",
        "title: &t x\nowner: *t\n",
        "owner: &o Ada\ntitle: *o\n",
    ],
    ids=["braces", "indented", "anchor", "alias"],
)
def test_a_file_that_cannot_be_changed_safely_is_refused(text: str) -> None:
    with pytest.raises(SpecNotWritable):
        changed(text, title="y z")


@each_row(
    "scope",
    ["{api: [a], api: [b]}", "{1: [a], '1': [b]}", "{api: {x: a, x: b}}"],
)
def test_a_scope_of_which_not_all_was_read_is_not_replaced(scope: str) -> None:
    text = f"title: x\nimplementation_scope: {scope}\n"
    with pytest.raises(SpecNotWritable, match="appears twice"):
        changed(text, implementation_scope={"api": ("c",)})
    assert changed(text, title="y") == text.replace("x\n", "y\n", 1)


@each_row(
    "criterion",
    [
        "{given: a, then: b, given: c}",
        "{Given: a, then: b, given: c}",
        "{ID: 1, id: 2}",
    ],
)
def test_a_criterion_of_which_not_all_was_read_is_not_replaced(criterion: str) -> None:
    text = f"title: x\nacceptance_criteria:\n  - {criterion}\n  - other\n"
    first, _ = TicketSpec.from_yaml(text).acceptance_criteria
    with pytest.raises(SpecNotWritable, match="appears twice"):
        changed(text, acceptance_criteria=("new words", "other"))
    assert changed(text, acceptance_criteria=(first, "new")) == text.replace(
        "other", "new"
    )


@each_row(
    ("new", "reason"),
    [
        ("title: [\n", "flow node"),
        ("title: other\nowner: Ada # why\n", "title would be read differently"),
        ("title: good\nowner: Bob # why\n", "a key that cdd does not use"),
        ("title: good\nowner: Ada\n", "a comment would be lost"),
    ],
)
def test_the_result_is_checked(new: str, reason: str) -> None:
    before = "title: bad\nowner: Ada # why\n"
    wanted = replace(TicketSpec.from_yaml(before), title="good")
    with pytest.raises(SpecNotWritable, match=reason):
        SpecText.parse(before, "spec.yaml").check(new, wanted)


def test_a_text_that_is_not_a_spec_is_refused_with_its_line() -> None:
    with pytest.raises(BadInput, match=r"^s\.yaml:3"):
        edit_spec("title: x\nb: [1\nc: 3\n", TicketSpec(), "s.yaml")


# Any file

WORDS = st.one_of(
    st.text(max_size=20),
    st.text(":-#'\"|>&*!%@` \n\t\\{}[]?,~a1\u2028\x85\ufeff<", max_size=20),
)
COMMENTS = st.text("ab: -#'\"|[]{}", max_size=12).map(lambda text: f"#{text}")
VALUES = st.sampled_from(
    [
        *[
            "x",
            "'it''s # x'",
            '"a\\nb"',
            "",
            "~",
            "[a, 'b',  c]",
            "1.10",
            "a\n  folded # but\n",
        ],
        *["|\n  one\n  # two\n\n  three", ">-\n  one\n  two\n", "|+\n  one\n\n"],
    ]
)
ITEMS = st.sampled_from(["a", "'b # c'", "|-\n    d\n    e", "{given: f}", "", "- g"])
KEYS = st.sampled_from(
    [name for name in FIELDS if name not in {"type", "implementation_scope"}]
    + ["owner", "'a b'"]
)
SPECS = st.builds(
    TicketSpec,
    title=WORDS,
    description=WORDS,
    acceptance_criteria=st.lists(
        WORDS | st.sampled_from(["a", "b # c", "d\ne"]), max_size=4
    ).map(tuple),
    implementation_scope=st.dictionaries(
        WORDS, st.lists(WORDS, max_size=2).map(tuple), max_size=2
    ),
    technical_notes=WORDS,
    priority=WORDS,
)


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw a spec.yaml as a user may write it, with comments in every place."""
    lines: list[str] = []
    for key in draw(st.lists(KEYS, unique=True)):
        lines += draw(st.lists(COMMENTS | st.just(""), max_size=2))
        if draw(st.booleans()):
            value = draw(VALUES)
            comment = (
                ""
                if "\n" in value
                else draw(st.just("") | COMMENTS.map(lambda text: f" {text}"))
            )
            lines.append(f"{key}: {value}{comment}")
            continue
        indent = draw(st.sampled_from(["", "  ", "    "]))
        lines.append(f"{key}:{draw(st.sampled_from(['', '  # why']))}")
        for item in draw(st.lists(ITEMS, min_size=1, max_size=4)):
            lines += draw(
                st.lists(
                    COMMENTS.map(lambda text, indent=indent: indent + text), max_size=1
                )
            )
            lines.append(f"{indent}- {item.replace(chr(10), chr(10) + indent)}")
    return draw(st.sampled_from(["\n", "\r\n"])).join(
        "\n".join(lines).split("\n")
    ) + draw(st.sampled_from(["\n", ""]))


@given(
    files(),
    SPECS,
    st.sets(st.sampled_from([name for name in FIELDS if name != "type"])),
)
@example(
    "acceptance_criteria:\n- a\n- a\n- a # b\nx: 1\n",
    TicketSpec(acceptance_criteria=("c",)),
    set(FIELDS) - {"type"},
)
def test_the_result_has_the_new_values_and_everything_else(
    text: str, wanted: TicketSpec, names: set[str]
) -> None:
    try:
        before = TicketSpec.from_yaml(text)
    except BadInput:
        return
    spec = replace(before, **{name: getattr(wanted, name) for name in names})
    new = edit_spec(text, spec)
    read = TicketSpec.from_yaml(new)
    assert all(getattr(read, name) == getattr(spec, name) for name in FIELDS)
    assert {key: read.extra[key] for key in before.extra} == dict(before.extra)
    assert edit_spec(new, spec) == new
    for line in text.splitlines():
        if line.startswith("#"):
            assert line.strip() in new
