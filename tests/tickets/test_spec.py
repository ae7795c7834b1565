from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cdd_agent.errors import BadInput
from cdd_agent.tickets.spec import TicketSpec, TicketType
from tests.support.tables import each_row

TEMPLATES = Path(__file__).parents[2] / "cdd_agent" / "tickets" / "templates"
SPEC = """
# A comment
title: Sign in
type: Feature
description: |
  Users sign in.

  With a password.
acceptance_criteria:
  - A wrong password is refused
implementation_scope:
  backend: [the model, the form]
technical_notes: Use bcrypt.
priority: high
estimate: 5"""

words = st.one_of(
    st.text(max_size=30),
    st.text(":-#'\"|>&*!%@` \n\t\\{}[]?,~a1\u2028\x85\ufeff\x07<", max_size=30),
)
specs = st.builds(
    TicketSpec,
    title=words,
    type=st.sampled_from(TicketType),
    description=words,
    acceptance_criteria=st.lists(words, max_size=3).map(tuple),
    implementation_scope=st.dictionaries(
        words, st.lists(words, max_size=2).map(tuple), max_size=2
    ),
    technical_notes=words,
    priority=words,
    extra=st.dictionaries(
        st.sampled_from(["estimate", "5", "null", "no", "2024-01-02"]),
        st.recursive(
            words | st.sampled_from(["1.10", "no", "~", "2024-13-45", "012"]),
            lambda inner: st.lists(inner) | st.dictionaries(words, inner, min_size=1),
            max_leaves=4,
        ),
        max_size=2,
    ),
)


@given(specs)
def test_every_spec_survives_its_yaml(spec: TicketSpec) -> None:
    # Text in extra keys is not normalised, and YAML has no half surrogates, so these
    # are left to the reader.
    assert TicketSpec.from_yaml(spec.to_yaml()) == spec


@given(st.text() | st.text("a:- \n\t[]{}&*!|>#'\"%@1?,<.", max_size=60))
def test_any_text_is_a_spec_or_bad_input(text: str) -> None:
    try:
        TicketSpec.from_yaml(text).missing()
    except BadInput as error:
        # either outcome is right
        assert error.message.startswith("spec.yaml")  # noqa: PT017


def test_a_spec_is_read() -> None:
    assert TicketSpec.from_yaml(SPEC) == TicketSpec(
        title="Sign in",
        type=TicketType.FEATURE,
        description="Users sign in.\n\nWith a password.",
        acceptance_criteria=("A wrong password is refused",),
        implementation_scope={"backend": ("the model", "the form")},
        technical_notes="Use bcrypt.",
        priority="high",
        extra={"estimate": "5"},
    )


def test_unknown_keys_are_kept() -> None:
    spec = TicketSpec.from_yaml("title: x\nowner: {name: Ada, since: 2024-01-02}\n")

    assert TicketSpec.from_yaml(spec.to_yaml()).extra == {
        "owner": {"name": "Ada", "since": "2024-01-02"}
    }


def test_unknown_keys_and_values_are_text_as_a_person_wrote_it() -> None:
    written = {
        "version": "1.10",
        "answer": "no",
        "start": "12:30",
        "mode": "0o17",
        "due": "2024-13-45",
        "1.10": "x",
        "yes": "y",
        "2024-01-02": "z",
    }
    text = "".join(f"{key}: {value}\n" for key, value in written.items())
    spec = TicketSpec.from_yaml(text)

    assert spec.extra == written
    assert TicketSpec.from_yaml(spec.to_yaml()) == spec


def test_several_lines_are_written_as_a_block() -> None:
    text = TicketSpec(description="one\ntwo").to_yaml()
    assert text.partition("description: ")[2].startswith("|-\n  one\n  two\n")


def test_our_keys_are_text_as_a_person_wrote_it() -> None:
    spec = TicketSpec.from_yaml(
        "title: 1.10\ndescription: no\nacceptance_criteria: [yes, 2024-13-45]\n"
    )

    assert (spec.title, spec.description, spec.acceptance_criteria) == (
        "1.10",
        "no",
        ("yes", "2024-13-45"),
    )


def test_the_ticket_mapping_of_earlier_tools_is_read() -> None:
    spec = TicketSpec.from_yaml(
        "ticket: {id: 7, title: Slow, type: BUG, priority: low}\nsummary: Too slow."
    )

    assert (spec.title, spec.type, spec.priority, spec.description) == (
        "Slow",
        TicketType.BUG,
        "low",
        "Too slow.",
    )
    assert spec.extra == {"ticket": {"id": "7"}}


def test_the_description_is_joined_from_older_keys() -> None:
    spec = TicketSpec.from_yaml(
        "title: x\ndesired_state: fast\ncurrent_state: slow\nuser_story: As a user …\n"
    )

    assert spec.description.split("\n\n") == [
        "As a user …",
        "Current state: slow",
        "Desired state: fast",
    ]


@each_row(
    ("written", "criteria"),
    [
        ("[a, b]", ("a", "b")),
        ("a", ("a",)),
        ("'- a\n\n  - b'", ("a", "b")),
        ("|\n  1. a\n     more\n  2. b", ("a\nmore", "b")),
        ("|\n  a\n  b", ("a", "b")),
        (
            "[{given: a user, when: she signs in, then: it works}]",
            ("Given a user, when she signs in, then it works",),
        ),
        ("[{id: AC1, description: It works}]", ("AC1: It works",)),
        (
            "[{id: AC1, criterion: It works, priority: must}]",
            ("AC1: It works (priority: must)",),
        ),
        ("[Version: 2 works]", ("Version: 2 works",)),
        ("{AC1: It works}", ("AC1: It works",)),
        ("", ()),
        ("[null, '']", ()),
    ],
)
def test_criteria_are_read_in_many_forms(
    written: str, criteria: tuple[str, ...]
) -> None:
    text = f"title: x\nacceptance_criteria: {written}\n"
    assert TicketSpec.from_yaml(text).acceptance_criteria == criteria


@each_row(
    ("written", "scope"),
    [
        ("{api: [a, b], ui: c}", {"api": ("a", "b"), "ui": ("c",)}),
        ("{api: {new: a}}", {"api": ("new: a",)}),
        ("{a  b: [x], a b: [y, z]}", {"a b": ("x", "y", "z")}),
        ("[a, [b]]", {"scope": ("a", "b")}),
        ("all of it", {"scope": ("all of it",)}),
        ("", {}),
    ],
)
def test_the_scope_is_read_in_many_forms(
    written: str, scope: dict[str, tuple[str, ...]]
) -> None:
    text = f"title: x\nimplementation_scope: {written}\n"
    assert TicketSpec.from_yaml(text).implementation_scope == scope


@each_row(
    ("written", "notes"),
    [
        ("[a, b]", "- a\n- b"),
        ("{db: sqlite, limits: [a]}", "db: sqlite\nlimits:\n  - a"),
        ("a", "a"),
    ],
)
def test_technical_notes_are_read_in_many_forms(written: str, notes: str) -> None:
    text = f"title: x\ntechnical_notes: {written}\n"
    assert TicketSpec.from_yaml(text).technical_notes == notes


@each_row(
    ("slug", "kind"),
    [("bug-x", "bug"), ("spike-y", "spike"), ("login", "feature"), ("", "feature")],
)
def test_a_type_that_is_not_said_comes_from_the_slug(slug: str, kind: str) -> None:
    assert TicketSpec.from_yaml("title: x", slug=slug).type == kind


@each_row(
    ("text", "message"),
    [
        ("", "s.yaml: the file is empty"),
        ("# only a comment\n", "s.yaml: the file is empty"),
        ("- a\n", "s.yaml:1: a spec is a mapping"),
        ("title: x\nb: [1, 2\nc: 3\n", "s.yaml:3:"),
        ("title: x\ntype: story\n", "s.yaml:2: unknown type 'story'"),
        ("title: [x]\n", "s.yaml:1: title must be text, not a list"),
        ("title: x\ntitle: y\n", "s.yaml:2:1: the key title appears twice"),
        ("2024-13-45: x\n", "s.yaml:1: a value cannot be read"),
        ("5: x\n'5': y\n", "s.yaml:2: the key 5 appears twice"),
        ("? [a]\n: b\n", "s.yaml:1: a list or mapping cannot be a key"),
        ("a: &a [*a]\n", "s.yaml:1: the value *a contains itself"),
        ("a: " + "[" * 5000, "s.yaml:1: nested more than 50"),
        ("a: " + "{a: " * 60, "s.yaml:1: nested more than 50"),
        ("a: 1\n---\nb: 2\n", "s.yaml:2"),
        ("title: \x00", "s.yaml: not YAML"),
        ("title: \ud800", "s.yaml: not valid text"),
        ("a: " + "x" * 5_000_001, "s.yaml: more than 5,000,000 bytes"),
    ],
)
def test_a_bad_spec_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        TicketSpec.from_yaml(text, "s.yaml")

    assert caught.value.message.startswith(message)


def test_an_unknown_type_names_those_allowed() -> None:
    with pytest.raises(BadInput) as caught:
        TicketSpec.from_yaml("type: epic")

    assert all(kind in caught.value.hint for kind in TicketType)


def test_an_alias_bomb_is_refused() -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    with pytest.raises(BadInput, match="aliases make the document too large"):
        TicketSpec.from_yaml("\n".join(["a0: &a0 [lol]", *levels]))


def test_aliases_and_merges_of_ordinary_size_work() -> None:
    spec = TicketSpec.from_yaml("base: &b {title: x, priority: low}\n<<: *b\n")

    assert (spec.title, spec.priority) == ("x", "low")


def test_every_type_has_a_template_and_every_template_a_type() -> None:
    assert {file.stem for file in TEMPLATES.glob("*.yaml")} == set(TicketType)


@each_row("kind", TicketType)
def test_a_template_is_a_spec_of_its_type_in_which_all_is_missing(
    kind: TicketType,
) -> None:
    spec = TicketSpec.from_yaml(
        (TEMPLATES / f"{kind}.yaml").read_text(encoding="utf-8")
    )

    assert spec.type is kind
    assert [line.partition(":")[0] for line in spec.missing()] == [
        "title",
        "description",
        "acceptance_criteria",
    ]
    assert spec.is_blank


@each_row("kind", TicketType)
@each_row("key", ["title", "description", "acceptance_criteria"])
def test_a_template_in_which_one_thing_is_written_misses_the_others(
    kind: TicketType, key: str
) -> None:
    text = (TEMPLATES / f"{kind}.yaml").read_text(encoding="utf-8")
    words: Any = ("It works",) if key == "acceptance_criteria" else "It works"
    spec = replace(TicketSpec.from_yaml(text), **{key: words})

    assert key not in {line.partition(":")[0] for line in spec.missing()}
    assert len(spec.missing()) == 2
    assert spec.is_blank == (key == "title")


@each_row(
    "title", ["Sort a List<String>", "Fix <Button>", "What to do?", "[x] is not closed"]
)
def test_what_a_person_wrote_is_no_placeholder(title: str) -> None:
    assert (
        TicketSpec(
            title=title, description=title, acceptance_criteria=(title,)
        ).missing()
        == []
    )


@each_row(
    "title",
    [
        "",
        "TODO",
        "…",
        "<what is it about>",
        "[Title of the ticket]",
        "Goal: <the goal is>",
    ],
)
def test_a_placeholder_is_missing(title: str) -> None:
    assert (
        len(
            TicketSpec(
                title=title, description=title, acceptance_criteria=(title,)
            ).missing()
        )
        == 3
    )
