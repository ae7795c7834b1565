"""A spec.yaml is a person's file: what the program writes into it leaves all the rest as it is."""

from contextlib import nullcontext
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.tickets.spec import TicketSpec, TicketType
from cdd_agent.tickets.spec_writing import FIELDS, SpecNotWritable, SpecText, rewritten

SECOND = "It takes a second"

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
    return rewritten(text, replace(TicketSpec.from_yaml(text), **fields))  # type: ignore[arg-type]


def difference(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went, and those that came."""
    old, new = before.splitlines(), after.splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


def test_what_changes_nothing_is_the_same_text() -> None:
    assert rewritten(TEXT, TicketSpec.from_yaml(TEXT)) == TEXT


def test_only_the_value_that_changes_is_different() -> None:
    before = 'title:   "Sign in"   # asked by Ada'
    after = "title: Sign in and out   # asked by Ada"
    assert difference(TEXT, changed(TEXT, title="Sign in and out")) == ([before], [after])


def test_several_lines_become_a_block_that_people_can_read() -> None:
    gone, came = difference(TEXT, changed(TEXT, technical_notes="Use bcrypt.\n\nNot md5: it is broken."))
    assert gone == ['technical_notes: ""']
    assert came == ["technical_notes: |-", "  Use bcrypt.", "  Not md5: it is broken."]


def test_criteria_change_one_by_one() -> None:
    criteria = ("A wrong password is refused", "It takes at most 1 s", "Signing out works", "A locked user is told")
    gone, came = difference(TEXT, changed(TEXT, acceptance_criteria=criteria))
    assert [line.strip(" -'") for line in gone] == [SECOND]
    assert [line.strip(" -") for line in came] == [criteria[1], criteria[3]]


def test_the_comment_of_a_criterion_that_goes_stays() -> None:
    text = changed(TEXT, acceptance_criteria=(SECOND, "Signing out works"))
    gone, came = difference(TEXT, text)
    assert gone[0].endswith("# see RFC 1")
    assert came == ["    # see RFC 1"]


def test_comments_inside_a_value_are_put_above_it() -> None:
    text = "title: x\nacceptance_criteria: [a, # first\n  b] # last\n"
    moved = "title: x\n# first\nacceptance_criteria: # last\n  - c\n"
    assert changed(text, acceptance_criteria=("c",)) == moved


def test_a_comment_stays_behind_a_long_line_that_is_broken_in_two() -> None:
    long = "word " * 30
    (*_, last, _) = changed("title: x # why\nowner: Ada\n", title=long).splitlines()
    assert last.endswith("word # why")


def test_new_keys_go_where_templates_have_them() -> None:
    text = "owner: Ada\ntitle: x\nextra: 1\n"
    new = changed(text, description="What\nfor", acceptance_criteria=("a",), implementation_scope={"api": ("b",)})
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


def test_without_a_key_of_ours_they_go_to_the_top() -> None:
    new = changed("# mine\nowner: Ada\n", title="x")
    assert new.splitlines() == ["# mine", "title: x", "owner: Ada"]


@pytest.mark.parametrize("kind", TicketType)
def test_a_template_is_filled_in_and_keeps_its_questions(kind: TicketType) -> None:
    text = (TEMPLATES / f"{kind}.yaml").read_text(encoding="utf-8")
    new = changed(text, title="Sign in", description="One.\n\nTwo.", acceptance_criteria=("a: b", "c # d"))
    assert TicketSpec.from_yaml(new).missing() == []
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        line for line in new.splitlines() if line.startswith("#")
    ]
    assert any(line.startswith("priority: medium # ") for line in new.splitlines())


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("title: x\r\nowner: Ada\r\n", "title: x\r\ntechnical_notes: |-\r\n  a\r\n  b\r\nowner: Ada\r\n"),
        ("\ufefftitle: x\n", "\ufefftitle: x\ntechnical_notes: |-\n  a\n  b\n"),
        ("title: x", "title: x\ntechnical_notes: |-\n  a\n  b"),
        ("---\ntitle: x\n...\n", "---\ntitle: x\ntechnical_notes: |-\n  a\n  b\n...\n"),
        ("technical_notes: # why\n  old\n", "# why\ntechnical_notes: |-\n  a\n  b\n"),
        ("technical_notes: | # why\n  old\n\n# c\nx: 1\n", "# why\ntechnical_notes: |-\n  a\n  b\n\n# c\nx: 1\n"),
        ("technical_notes:\nx: 1\n", "technical_notes: |-\n  a\n  b\nx: 1\n"),
        ("technical_notes: # none\nx: 1\n", "technical_notes: |- # none\n  a\n  b\nx: 1\n"),
        ("technical_notes: x # y\n", "technical_notes: |- # y\n  a\n  b\n"),
        ("a: &n old\ntechnical_notes: *n # same\n", "a: &n old\ntechnical_notes: |- # same\n  a\n  b\n"),
    ],
)
def test_it_fits_into_the_file_as_it_is(text: str, new: str) -> None:
    assert changed(text, technical_notes="a\nb") == new


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{title: x, owner: Ada}\n", "in braces"),
        ("  title: x\n  owner: Ada\n", "indented"),
        ("title: &t x\nowner: *t\n", "undefined alias"),
        ("problem: It is slow.\ntitle: &a y\nowner: *a\n", "undefined alias"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(text: str, why: str) -> None:
    with pytest.raises(SpecNotWritable, match=why):
        changed(text, title="y z")


@pytest.mark.parametrize(
    ("new", "why"),
    [
        ("title: good\nowner: Ada # why\n", None),
        ("title: [\n", "flow node"),
        ("title: other\nowner: Ada # why\n", "title would read otherwise"),
        ("title: good\npriority: high\nowner: Ada # why\n", "priority would read otherwise"),
        ("title: good\nowner: Bob # why\n", "a key that is not the program's"),
        ("title: good\n# why\n", "a key that is not the program's"),
        ("title: good\nowner: Ada # why\nmore: 1\n", "a key that is not the program's"),
        ("title: good\nowner: Ada\n", "a comment would be lost"),
        ("title: good\nowner: Ada # because\n", "a comment would be lost"),
        ("{title: good, owner: Ada} # why\n", "in braces"),
    ],
)
def test_what_was_written_is_read_once_more_before_anybody_gets_it(new: str, why: str | None) -> None:
    """Whatever went wrong on the way: a text that is not what was meant is refused."""
    before = "title: bad\nowner: Ada # why\n"
    wanted = replace(TicketSpec.from_yaml(before), title="good")
    with pytest.raises(SpecNotWritable, match=why) if why else nullcontext():
        SpecText.of(before, "spec.yaml").check(new, wanted)


def test_one_comment_of_two_that_say_the_same_is_missed() -> None:
    before, spec = "title: a # x\nowner: b # x\n", TicketSpec.from_yaml("title: a\n")
    with pytest.raises(SpecNotWritable, match="comment"):
        SpecText.of(before, "spec.yaml").check("title: a # x\nowner: b\n", spec)


def test_the_older_ways_to_write_a_description_stay_beside_the_new_one() -> None:
    text = "ticket: {title: x, id: 7}\nproblem: It is slow.\n"
    text = "ticket: {title: x, id: 7}\nproblem: Slow.\n"
    new = changed(text, title="y", description="3 s.")
    assert new == "title: y\ndescription: 3 s.\n" + text


def test_a_text_that_is_no_spec_is_refused_with_its_line() -> None:
    with pytest.raises(BadInput, match=r"^s\.yaml:3"):
        rewritten("title: x\nb: [1\nc: 3\n", TicketSpec(), "s.yaml")


# ------------------------------------------------------------------------------------------- any file at all

words = st.one_of(st.text(max_size=20), st.text(":-#'\"|>&*!%@` \n\t\\{}[]?,~a1\u2028\x85\ufeff<", max_size=20))
comments = st.text("ab: -#'\"|[]{}", max_size=12).map(lambda text: f"#{text}")
values = st.sampled_from(
    [
        "x",
        "'it''s # x'",
        '"a\\nb"',
        "",
        "~",
        "[a, 'b',  c]",
        "|\n  one\n  # two\n\n  three",
        ">-\n  one\n  two\n",
        "|+\n  one\n\n",
        "1.10",
        "a\n  folded # but\n",
    ]
)
lists = st.lists(st.sampled_from(["a", "'b # c'", "|-\n    d\n    e", "{given: f}", "", "- g"]), min_size=1, max_size=4)
ours = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["x", "'it''s # x'", '"a\\nb"', "", "> \n  folded\n  title"]),
        "description": values,
        "technical_notes": values,
        "acceptance_criteria": values | lists,
        "priority": st.sampled_from(["high", "'low'", ""]),
    },
)
unknown = st.dictionaries(st.sampled_from(["owner", "estimate", "7", "'a b'"]), values | lists, max_size=3)


@st.composite
def files(draw: st.DrawFn) -> str:
    """A spec.yaml as a person may have written it, with comments wherever there can be some."""
    lines: list[str] = []
    keys = draw(st.permutations([*draw(ours).items(), *draw(unknown).items()]))
    for key, value in keys:
        lines += draw(st.lists(comments | st.just(""), max_size=2))
        if isinstance(value, str):
            gap = draw(st.sampled_from([" ", "  "]))
            lines.append(f"{key}:{gap}{value}{_behind(draw, value)}")
            continue
        indent = draw(st.sampled_from(["", "  ", "    "]))
        lines.append(f"{key}:{draw(st.sampled_from(['', '  # why']))}")
        for item in value:
            lines += draw(st.lists(comments.map(lambda text, indent=indent: indent + text), max_size=1))
            lines.append(f"{indent}- {item.replace(chr(10), chr(10) + indent)}{_behind(draw, item)}")
    lines += draw(st.lists(comments, max_size=1))
    return draw(st.sampled_from(["\n", "\r\n"])).join("\n".join(lines).split("\n")) + draw(st.sampled_from(["\n", ""]))


def _behind(draw: st.DrawFn, value: str) -> str:
    return "" if "\n" in value else draw(st.just("") | comments.map(lambda text: f" {text}"))


specs = st.builds(
    TicketSpec,
    title=words,
    description=words,
    acceptance_criteria=st.lists(words | st.sampled_from(["a", "b # c", "d\ne"]), max_size=4).map(tuple),
    implementation_scope=st.dictionaries(words, st.lists(words, max_size=2).map(tuple), max_size=2),
    technical_notes=words,
    priority=words,
)


@given(files(), specs, st.sets(st.sampled_from([name for name in FIELDS if name != "type"])))
@example(
    "acceptance_criteria:\n- a\n- a\n- a # b\nx: 1\n", TicketSpec(acceptance_criteria=("c",)), set(FIELDS) - {"type"}
)
@example("title: x\nowner: |\n  y", TicketSpec(title="z", technical_notes="n"), {"technical_notes", "title"})
def test_what_is_written_reads_back_and_nothing_else_is_different(
    text: str, wanted: TicketSpec, names: set[str]
) -> None:
    try:
        now = TicketSpec.from_yaml(text)
    except BadInput:
        return
    spec = replace(now, **{name: getattr(wanted, name) for name in names})
    new = rewritten(text, spec)
    read = TicketSpec.from_yaml(new)
    assert all(getattr(read, name) == getattr(spec, name) for name in FIELDS)
    assert {key: read.extra[key] for key in now.extra} == dict(now.extra)
    assert rewritten(new, spec) == new
    for line in text.splitlines():
        if line.lstrip().startswith("#") and not line.startswith("  #"):
            assert line.strip() in new


@given(files(), words.filter(lambda text: bool(TicketSpec(title=text).title)))
def test_a_new_title_is_never_refused(text: str, title: str) -> None:
    try:
        now = TicketSpec.from_yaml(text)
    except BadInput:
        return
    assert TicketSpec.from_yaml(rewritten(text, replace(now, title=title))).title == TicketSpec(title=title).title


def test_a_tab_before_a_comment_is_as_good_as_a_space() -> None:
    text = "title: a\t# mine\nacceptance_criteria:\n  - one\t# first\n  - two\n"
    assert changed(text, title="b", acceptance_criteria=("one", "three")) == (
        "title: b\t# mine\nacceptance_criteria:\n  - one\t# first\n  - three\n"
    )


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_new_key_goes_behind_the_comments_that_end_the_list_before_it(end: str) -> None:
    text = "title: a\nimplementation_scope:\n  api:\n    - the form\n\n  # - the mail\n\n# the end\n".replace("\n", end)
    new = "  # - the mail\ntechnical_notes: |-\n  One.\n  Two.\n\n# the end\n".replace("\n", end)
    assert changed(text, technical_notes="One.\nTwo.") == text.partition("  # - the mail")[0] + new
