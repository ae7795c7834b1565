"""Values that check themselves, and values of models and users: which spellings are
read, and the messages about all others.
"""

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct, structs

from cdd_agent.values.typed_values import (
    Checked,
    RuleBroken,
    Written,
    WrongValue,
    read,
    read_json,
)
from cdd_agent.values.value_schemas import schema_of
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
        if self.pattern == "none":
            raise RuleBroken("pattern", "give a pattern")


def read_field(name: str, value: object) -> object:
    """Return the value of one field."""
    return getattr(read(Whole, {"title": "a", name: value}), name)


def fault(value: object, form: type = Whole) -> str:
    with pytest.raises(WrongValue) as caught:
        read(form, value)
    return str(caught.value)


@each_row(
    ("name", "value", "expected"),
    [
        *(("numbers", [value], (5,)) for value in (5, 5.0, "5", "5.0", "5e0")),
        ("numbers", [0, "-0", "-1"], (0, 0, -1)),
        ("numbers", [10**30, str(10**18)], (10**30, 10**18)),
        *(("is_new", value, True) for value in (True, 1, "true", "TRUE", "1")),
        *(("is_new", value, False) for value in (False, 0, "false", "False", "0")),
        ("pattern", "", ""),
        ("pattern", "a\x00b\n", "a\x00b\n"),
        ("count", None, None),
        ("count", "9", 9),
        ("names", {"": []}, {"": ()}),
        ("names", {"a": ["b"]}, {"a": ("b",)}),
        (
            "parts",
            [{"name": "\u200b", "change": "create"}],
            (Part("\u200b", "create"),),
        ),
        ("numbers", (1, "2"), (1, 2)),
    ],
)
def test_these_spellings_of_a_value_are_read(
    name: str, value: object, expected: object
) -> None:
    assert read_field(name, value) == expected


NO_WHOLE_NUMBERS: list[Any] = [
    *("", " ", "five", "0x5", "005", "+5", "5.5", "5.", "1__0", "_1", "--5", "null"),
    *("nan", "5\x00", "\u0663", "\uff11", "9" * 5_000),
    *(5.5, 1e300, float("nan"), float("inf"), True, None, [], [5], {}),
]


@each_row("value", NO_WHOLE_NUMBERS, ids=lambda value: ascii(value)[:20])
def test_no_other_value_is_a_whole_number(value: object) -> None:
    assert fault({"title": "a", "numbers": [value]}) in (
        "`numbers.0` is not a whole number",
        "`numbers.0` is empty",
    )


@each_row("value", [2, -1, 0.5, "maybe", "", "none", " true ", None, [], {}])
def test_no_other_value_is_true_or_false(value: object) -> None:
    assert fault({"title": "a", "is_new": value}) in (
        "`is_new` is not true or false",
        "`is_new` is empty",
    )


TITLE = "`title` is not a text (not empty, at most 9 characters)"
PARTS = "`parts` is not a list (each an object, at most 2 items)"
COUNT = "`count` is not a whole number (at least 1, at most 9) or null"
NUMBERS = "`numbers` is not a list (each a whole number)"
NAMES = "`names` is not a mapping (each a list) or null"


@each_row(
    ("value", "message"),
    [
        ({}, "`title` is missing"),
        ({"title": ""}, "`title` is empty"),
        ({"title": "ten letters"}, TITLE),
        ({"title": None}, TITLE),
        ({"title": "a", "pattern": 3}, "`pattern` is not a text"),
        ({"title": "a", "pattern": None}, "`pattern` is not a text"),
        ({"title": "a", "pattern": "\ud800"}, "it has half of a character"),
        ({"title": "a", "\ud800": 1}, "it has half of a character"),
        ({"title": "a", "count": 0}, COUNT),
        ({"title": "a", "count": "10"}, COUNT),
        ({"title": "a", "numbers": "1"}, NUMBERS),
        ({"title": "a", "numbers": {"0": 1}}, NUMBERS),
        ({"title": "a", "parts": {"name": "a"}}, PARTS),
        ({"title": "a", "parts": [{"name": "a"}] * 3}, PARTS),
        (
            {"title": "a", "parts": ['{"name": "a"}']},
            "`parts.0` is not an object with `name`, `change`",
        ),
        ({"title": "a", "parts": [{"name": " \u00a0\n"}]}, "`parts.0.name` is empty"),
        (
            {"title": "a", "parts": [{"name": "a", "change": "Edit"}]},
            "`parts.0.change` is not one of `create`, `edit`",
        ),
        (
            {"title": "a", "parts": [{"name": "a"}, {"nane": "a"}]},
            "`parts.1.nane` is unknown (did you mean `name`?)",
        ),
        (
            {"title": "a", "parts": [{"name": "a", "x": 1}]},
            "`parts.0.x` is unknown; allowed are `name`, `change`",
        ),
        ({"title": "a", "names": [["a", "b"]]}, NAMES),
        ({"title": "a", "names": {"a": [1]}}, NAMES),
        (
            {"title": "a", "names": {"a": "b"}},
            "`names` has a value that is not a list (each a text)",
        ),
        (
            {"title": "a", "names": {"ten letters": []}},
            "`names` has a key that is not a text (at most 9 characters)",
        ),
        ({3: 1}, "it has a key that is not a text"),
        ({"title": "a", "x" * 1_000_000: 1}, f"`{'x' * 100}…` is unknown"),
        ({"x` - at `$.parts[0].name": 1}, "`parts.0.name.x` is unknown"),
        ({"title": "none"}, "give a title"),
        ({"title": "a", "pattern": "none"}, "`pattern`: give a pattern"),
        ([], "it is not an object with `title`, `parts`, "),
        (None, "it is not an object with `title`, `parts`, "),
    ],
    ids=lambda value: ascii(value)[:50],
)
def test_a_message_names_the_place_and_the_allowed_values(
    value: object, message: str
) -> None:
    assert fault(value).startswith(message)


def test_an_error_has_the_place_of_the_value() -> None:
    with pytest.raises(WrongValue) as caught:
        read(Whole, {"title": "a", "parts": [{"name": "a"}, {}]})
    assert caught.value.place == ("parts", 1, "name")


def test_the_rule_of_a_part_has_its_place() -> None:
    class Two(Struct):
        whole: Whole

    assert fault({"whole": {"title": "none"}}, Two) == "`whole`: give a title"
    rule = {"whole": {"title": "a", "pattern": "none"}}
    assert fault(rule, Two) == "`whole.pattern`: give a pattern"
    # a type that ignores unknown keys
    assert read(Two, {"whole": {"title": "a"}, "more": 1}) == Two(Whole("a"))


@each_row(
    "text",
    [
        "{",
        "",
        "[" * 100_000,
        '{"a":' * 100_000,
        "{} {}",
        '{"title": "\n"}',
        '{"title": "\\ud800"}',
        '{"title": "a", "count": NaN}',
        "\udc80",
    ],
)
def test_a_text_that_is_not_json_has_a_short_message(text: str) -> None:
    with pytest.raises(WrongValue, match="it is not valid JSON: ") as caught:
        read_json(Whole, text)
    assert len(str(caught.value)) < 200


class Pair(Checked, frozen=True):
    name: Written
    numbers: dict[str, list[int]]


def test_a_checked_value_is_checked_in_the_constructor_and_copies_its_parts() -> None:
    numbers = {"a": [1]}
    pair = Pair("x", numbers)
    numbers["b"] = [2]
    assert pair.numbers == {"a": [1]}
    for name, value, message in (
        ("", {}, "`name` is empty"),
        (3, {}, "`name` is not a text"),
        ("x", {"a": ["1"]}, "`numbers` is not a mapping (each a list)"),
        ("x", [], "`numbers` is not a mapping (each a list)"),
    ):
        with pytest.raises(WrongValue) as caught:
            Pair(name, value)  # type: ignore[arg-type]
        assert str(caught.value) == message
        assert caught.value.place[0] in ("name", "numbers")


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
def test_anything_is_a_value_of_the_type_or_has_a_message(value: Any) -> None:
    try:
        made = read(Whole, value)
    except WrongValue as error:
        str(error).encode()
    else:
        again = json.loads(json.dumps(structs.asdict(made), default=structs.asdict))
        assert read(Whole, again) == made


def test_a_schema_has_only_what_a_model_needs() -> None:
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
