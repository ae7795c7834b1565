"""Values from models and people: what is taken as what, and what is said of all
else.
"""

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct, structs

from cdd_agent.forms import (
    Fault,
    NotOfForm,
    Respelled,
    Written,
    read,
    read_json,
    schema_of,
)
from tests.support.tables import each_row


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A part."""

    name: Annotated[Written, Meta(description="Its name.")]
    change: Literal["create", "edit"] = "edit"


class Whole(Struct, frozen=True, forbid_unknown_fields=True):
    """All kinds of fields."""

    title: Annotated[str, Meta(min_length=1, max_length=9)]
    parts: Annotated[
        tuple[Part, ...], Meta(max_length=2, description="Its parts.")
    ] = ()
    count: Annotated[int, Meta(ge=1, le=9)] | None = None
    numbers: tuple[int, ...] = ()
    is_new: bool = False
    names: dict[Annotated[str, Meta(max_length=9)], tuple[str, ...]] | None = None
    pattern: str = "."

    def __post_init__(self) -> None:
        if self.title == "none":
            raise ValueError("give a title")


def given_as(name: str, value: object) -> object:
    """What becomes of one field's value."""
    return getattr(read(Whole, {"title": "a", name: value}), name)


def faults(value: object, form: type = Whole) -> list[str]:
    with pytest.raises(NotOfForm) as caught:
        read(form, value)
    return [str(fault) for fault in caught.value.faults]


@each_row(
    ("number", "value"),
    [
        *(
            (5, value)
            for value in (
                5,
                5.0,
                "5",
                " 5 ",
                "\t5\n",
                "5\u00a0",
                "5.0",
                "5.00",
                "+5",
                "005",
            )
        ),
        *((0, value) for value in (0, "-0", "-0.0", False)),
        *((1, value) for value in (1, True)),
        *((-1, value) for value in (-1, "-1")),
        (1000, "1_000"),
        (10**18, 1e18),
        *((10**30, value) for value in (10**30, str(10**30))),
    ],
)
def test_a_whole_number_is_taken_in_these_spellings(number: int, value: object) -> None:
    assert given_as("numbers", [value]) == (number,)


@each_row(
    "value",
    [
        *(
            "",
            " ",
            "five",
            "0x5",
            "1e3",
            "5.5",
            "5.",
            ".0",
            "1__0",
            "_1",
            "+ 5",
            "--5",
            "5.0_0",
            "null",
            "nan",
            "5\x00",
        ),
        *(
            "\u0663",
            "\uff11",
            "9" * 5_000,
            "\ud800",
            5.5,
            1e19,
            1e300,
            float("nan"),
            float("inf"),
            None,
            [],
            [5],
            {},
        ),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_and_in_no_others(value: object) -> None:
    (told,) = faults({"title": "a", "numbers": [value]})
    assert told == "`numbers.0` is not a whole number" or (
        value == "\ud800" and "half of a character" in told
    )


@each_row(
    ("answer", "values"),
    [
        (
            True,
            [
                True,
                1,
                1.0,
                "true",
                "True",
                "TRUE",
                "tRuE",
                "t",
                "T",
                "yes",
                "YES",
                "y",
                "Y",
                "on",
                "1",
            ],
        ),
        (False, [False, 0, 0.0, "false", "FALSE", "f", "no", "n", "off", "0"]),
    ],
)
def test_yes_and_no_are_taken_in_these_spellings(
    answer: bool, values: list[object]
) -> None:
    assert {given_as("is_new", value) for value in values} == {answer}


@each_row(
    "value",
    [
        2,
        -1,
        0.5,
        float("nan"),
        "maybe",
        "",
        "null",
        "none",
        " true ",
        "true\n",
        None,
        [],
        {},
        "\ud800",
    ],
)
def test_no_other_word_is_yes_or_no(value: object) -> None:
    (told,) = faults({"title": "a", "is_new": value})
    assert told == "`is_new` is not true or false" or (
        value == "\ud800" and "half of a character" in told
    )


@each_row(
    ("name", "value", "made"),
    [
        ("pattern", "", ""),
        ("pattern", "a\x00b\n", "a\x00b\n"),
        ("count", None, None),
        ("count", "9", 9),
        ("names", None, None),
        ("names", {"": []}, {"": ()}),
        ("names", {"a": ["b"]}, {"a": ("b",)}),
        ("parts", [], ()),
        (
            "parts",
            [{"name": "\u200b", "change": "create"}],
            (Part("\u200b", "create"),),
        ),
        ("numbers", (1, "2"), (1, 2)),
    ],
)
def test_a_value_of_the_right_kind_is_taken_as_it_is(
    name: str, value: object, made: object
) -> None:
    assert given_as(name, value) == made


@each_row(
    ("value", "fault"),
    [
        ({}, "`title` is missing"),
        ({"title": ""}, "`title` is empty"),
        (
            {"title": "ten letters"},
            "`title` is not a text (not empty, at most 9 characters)",
        ),
        ({"title": None}, "`title` is not a text (not empty, at most 9 characters)"),
        ({"title": "a", "pattern": 3}, "`pattern` is not a text"),
        ({"title": "a", "pattern": True}, "`pattern` is not a text"),
        ({"title": "a", "pattern": ["x"]}, "`pattern` is not a text"),
        ({"title": "a", "pattern": None}, "`pattern` is not a text"),
        (
            {"title": "a", "pattern": "\ud800"},
            "`pattern` is no text that can be written",
        ),
        (
            {"title": "a", "count": 0},
            "`count` is not a whole number (at least 1, at most 9)",
        ),
        (
            {"title": "a", "count": "10"},
            "`count` is not a whole number (at least 1, at most 9)",
        ),
        (
            {"title": "a", "count": "null"},
            "`count` is not a whole number (at least 1, at most 9)",
        ),
        (
            {"title": "a", "numbers": "1"},
            "`numbers` is not a list (each a whole number)",
        ),
        (
            {"title": "a", "numbers": "[1]"},
            "`numbers` is not a list (each a whole number)",
        ),
        (
            {"title": "a", "numbers": {"0": 1}},
            "`numbers` is not a list (each a whole number)",
        ),
        (
            {"title": "a", "parts": {"name": "a"}},
            "`parts` is not a list (each an object, at most 2 items)",
        ),
        (
            {"title": "a", "parts": [{"name": "a"}] * 3},
            "`parts` is not a list (each an object, at most 2 items)",
        ),
        ({"title": "a", "parts": ['{"name": "a"}']}, "`parts.0` is not an object"),
        ({"title": "a", "parts": [None]}, "`parts.0` is not an object"),
        ({"title": "a", "parts": [{"name": " \u00a0\n"}]}, "`parts.0.name` is empty"),
        (
            {"title": "a", "parts": [{"name": "a", "change": "Edit"}]},
            "`parts.0.change` is not one of `create`, `edit`",
        ),
        (
            {"title": "a", "parts": [{"name": "a", "change": [1]}]},
            "`parts.0.change` is not one of `create`, `edit`",
        ),
        (
            {"title": "a", "names": [["a", "b"]]},
            "`names` is not a mapping (each a list)",
        ),
        (
            {"title": "a", "names": '{"a": []}'},
            "`names` is not a mapping (each a list)",
        ),
        ({"title": "a", "names": {"a": "b"}}, "`names.a` is not a list (each a text)"),
        ({"title": "a", "names": {"a": [1]}}, "`names.a.0` is not a text"),
        (
            {"title": "a", "names": {"ten letters": []}},
            "`names.ten letters` is not a text (at most 9 characters)",
        ),
        (
            {"title": "a", "names": {"\ud800": []}},
            "`names.\\ud800` is no text that can be written",
        ),
        ({"title": "a", "\ud800": 1}, "`\\ud800` is unknown"),
        ({"title": "a", "x" * 1_000_000: 1}, f"`{'x' * 100}…` is unknown"),
        ({"title": "none"}, "give a title"),
        ([], "it is not an object"),
        ("a", "it is not an object"),
        (None, "it is not an object"),
    ],
    ids=lambda value: ascii(value)[:50],
)
def test_a_fault_says_where_it_is_and_what_is_allowed(
    value: object, fault: str
) -> None:
    (told,) = faults(value)
    assert told.startswith(fault)
    assert told.isascii() or "…" in told


def test_every_fault_is_told_at_once() -> None:
    value = {"pattern": 1, "x": 1, "parts": [{"name": "", "y": 1}, {}], "count": 10}
    assert faults(value) == [
        "`x` is unknown",
        "`title` is missing",
        "`parts.0.y` is unknown",
        "`parts.0.name` is empty",
        "`parts.1.name` is missing",
        "`count` is not a whole number (at least 1, at most 9)",
        "`pattern` is not a text",
    ]
    with pytest.raises(NotOfForm) as caught:
        read(Whole, value)
    assert caught.value.faults[2] == Fault(
        ("parts", 0, "y"), "unknown", "unknown", ("name", "change")
    )


def test_of_a_list_that_is_too_long_its_items_are_told_too() -> None:
    assert faults({"title": "a", "parts": [{}, {"name": "b"}, {"name": "c"}]}) == [
        "`parts` is not a list (each an object, at most 2 items)",
        "`parts.0.name` is missing",
    ]


def test_a_list_has_its_least_and_most_items() -> None:
    class Pair(Struct):
        ends: Annotated[tuple[int, ...], Meta(min_length=2, max_length=2)]

    assert read(Pair, {"ends": [1, 2]}) == Pair((1, 2))
    assert faults({"ends": []}, Pair) == ["`ends` is empty"]
    for ends in ([1], [1, 2, 3]):
        (fault,) = faults({"ends": ends}, Pair)
        assert fault.startswith("`ends` is not a list (each a whole number, ")


def test_a_rule_of_a_part_is_told_with_its_place() -> None:
    class Two(Struct):
        whole: Whole

    assert faults({"whole": {"title": "none"}}, Two) == ["`whole`: give a title"]
    assert read(Two, {"whole": {"title": "a"}, "more": 1}) == Two(
        Whole("a")
    )  # of a form that ignores what it does not know


@each_row(
    "text",
    [
        "{",
        "",
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 5_000,
        "{} {}",
        '{"title": "\n"}',
        "\udc80",
    ],
)
def test_what_is_not_json_is_one_fault(text: str) -> None:
    with pytest.raises(NotOfForm, match="it is not valid JSON: ") as caught:
        read_json(Whole, text)
    assert len(str(caught.value)) < 200


def test_very_many_faults_are_told_in_part() -> None:
    assert len(faults({"title": "a", "numbers": ["x"] * 100_000})) == 50
    assert len(faults({str(number): 1 for number in range(100_000)})) < 100


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["\ud800", "5", "yes"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*Part.__struct_fields__, "\ud800"]), inner)
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from([*Whole.__struct_fields__, "x"]), ANYTHING)
    | ANYTHING
)
def test_anything_is_a_value_of_the_form_or_told_in_words(value: Any) -> None:
    try:
        made = read(Whole, value)
    except NotOfForm as error:
        told = [str(fault) for fault in error.faults]
        assert all(told)
        "\n".join(told).encode()
    else:
        again = json.loads(json.dumps(structs.asdict(made), default=structs.asdict))
        assert read(Whole, again) == made


def test_a_schema_says_what_a_model_needs_and_no_more() -> None:
    assert schema_of(Whole) == {
        "$defs": {
            "Part": {
                "type": "object",
                "description": "A part.",
                "properties": {
                    "name": {"type": "string", "description": "Its name."},
                    "change": {"enum": ["create", "edit"], "default": "edit"},
                },
                "required": ["name"],
                "additionalProperties": False,
            }
        },
        "type": "object",
        "description": "All kinds of fields.",
        "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": 9},
            "parts": {
                "type": "array",
                "items": {"$ref": "#/$defs/Part"},
                "maxItems": 2,
                "description": "Its parts.",
            },
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "is_new": {"type": "boolean", "default": False},
            "names": {
                "type": "object",
                "propertyNames": {"maxLength": 9},
                "additionalProperties": {"type": "array", "items": {"type": "string"}},
            },
            "pattern": {"type": "string", "default": "."},
        },
        "required": ["title"],
        "additionalProperties": False,
    }


def _shelf(name: str) -> str:
    if name == "nowhere":
        raise ValueError("allowed: places that there are")
    return name.lower()


class Placed(Struct, frozen=True):
    """Fields with rules, and with other spellings."""

    shelf: Annotated[str, _shelf] | None = None
    shelves: tuple[Annotated[str, _shelf], ...] = ()
    part: (
        Annotated[
            Part,
            Respelled(lambda said: {"name": said} if isinstance(said, str) else said),
        ]
        | None
    ) = None
    weight: Annotated[float, Meta(gt=0)] = 1.0


def test_a_rule_is_asked_about_a_value_that_is_of_its_kind_and_may_change_it() -> None:
    assert read(Placed, {"shelf": "A", "shelves": ["B", "c"]}) == Placed(
        shelf="a", shelves=("b", "c")
    )
    assert read(Placed, {"shelf": None}) == Placed()
    given = {"shelf": 3, "shelves": ["A", "nowhere"]}
    assert faults(given, Placed) == [
        "`shelf` is not a text",
        "`shelves.1`: allowed: places that there are",
    ]


def test_another_spelling_is_read_as_what_it_means() -> None:
    assert (
        read(Placed, {"part": "a"})
        == read(Placed, {"part": {"name": "a"}})
        == Placed(part=Part("a"))
    )
    assert faults({"part": ""}, Placed) == ["`part.name` is empty"]


@each_row("value", [2.5, "2.5", " 2.5 ", "25e-1"])
def test_a_number_may_be_written_as_text(value: object) -> None:
    assert read(Placed, {"weight": value}).weight == 2.5
    assert (
        faults({"weight": "heavy"}, Placed)
        == faults({"weight": "-1"}, Placed)
        == ["`weight` is not a number"]
    )


def test_words_that_may_be_chosen_are_named_with_the_fault() -> None:
    with pytest.raises(NotOfForm) as caught:
        read(Part, {"name": "a", "change": "move"})
    assert [fault.allowed for fault in caught.value.faults] == [("create", "edit")]
