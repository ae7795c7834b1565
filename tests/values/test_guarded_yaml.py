"""YAML of unknown origin: hostile files and double keys are refused with their line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdd_agent.errors import BadInput
from cdd_agent.values.guarded_yaml import (
    format_tree,
    read_mapping,
    read_node,
    read_tree,
)
from tests.support.tables import each_row

SPELLINGS = {
    "lists in brackets": lambda levels: "[" * levels + "]" * levels,
    "mappings in braces": lambda levels: "{a: " * levels + "x" + "}" * levels,
    "lists in a line": lambda levels: "- " * levels + "x",
    "mappings, a line each": lambda levels: "\n".join(
        " " * level + "a:" for level in range(levels)
    ),
    "keys with a question mark": lambda levels: "? " * levels + "x",
}
MAX_LEVELS = 49


@each_row("spelling", SPELLINGS)
def test_levels_are_read_up_to_the_limit(spelling: str) -> None:
    text = SPELLINGS[spelling]
    assert read_node(text(MAX_LEVELS), "a.yaml") is not None
    with pytest.raises(BadInput, match="nested more than"):
        read_node(text(MAX_LEVELS + 1), "a.yaml")


def test_aliases_are_counted_however_small_the_text_is() -> None:
    lists = ["a: &a [" + ", ".join("x" * 9) + "]"]
    lists += [
        f"{key}: &{key} [{', '.join([f'*{last}'] * 9)}]"
        for last, key in zip("abcdefg", "bcdefgh", strict=True)
    ]
    with pytest.raises(BadInput, match="aliases make the document too large"):
        read_node("\n".join(lists), "a.yaml")


@each_row(
    ("text", "message"),
    [
        ("- 1\n" * 100_001, "a.yaml:99998: more than 100,000 values"),
        ("a: " + "x" * 5_000_001, "a.yaml: more than 5,000,000 bytes"),
        ("a: &a\n  b: *a", "a.yaml:2: the value *a contains itself"),
        ("a: \ud800", "a.yaml: not valid text"),
        ("a: b\n--- c", "a.yaml:2:1: not YAML"),
        ("\x07", "a.yaml: not YAML"),
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_a_document_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_node(text, "a.yaml")
    assert caught.value.message.startswith(message)


@each_row(
    ("text", "place"),
    [
        ("a: 1\nb: 2\na: 3", "a.yaml:3:1: the key a appears twice, first in line 1"),
        ("a: 1\n'a': 3", "a.yaml:2:1: the key a appears twice, first in line 1"),
        ("a:\n  b: 1\n  b: 2", "a.yaml:3:3: the key b appears twice, first in line 2"),
        ("a: [{b: 1, b: 2}]", "a.yaml:1:12: the key b appears twice"),
        ("x: &x {a: 1, a: 2}\ny: {<<: *x}", "a.yaml:1:14: the key a appears twice"),
    ],
)
def test_a_key_that_is_there_twice_is_refused_with_its_line(
    text: str, place: str
) -> None:
    with pytest.raises(BadInput) as caught:
        read_values(text)
    assert caught.value.message.startswith(place)


def test_keys_of_another_mapping_are_merged_and_the_mapping_itself_wins() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc:\n  <<: [*a, *b]\n  x: 0"
    entries = read_mapping(text, "a.yaml", "a config")["c"].entries("a.yaml")
    values = {key: entry.value("a.yaml") for key, entry in entries.items()}
    assert values == {"x": 0, "y": 2, "z": 4}
    wrong = read_mapping("a:\n  <<: 3", "a.yaml", "a config")["a"]
    with pytest.raises(BadInput, match=r"a\.yaml:2:7: "):
        wrong.entries("a.yaml")


@each_row("text", ["? [a]\n: 1", "? {a: b}\n: 1"])
def test_a_list_or_mapping_is_no_key(text: str) -> None:
    with pytest.raises(BadInput, match="a list or mapping cannot be a key"):
        read_mapping(text, "a.yaml", "a config")


@each_row(
    "value", ["2024-13-45", "0x" + "f" * 6_000, "!!int x", "!!python/name:os.system x"]
)
def test_a_value_that_cannot_be_read_is_refused(value: str) -> None:
    entry = read_mapping(f"a: {value}", "a.yaml", "a config")["a"]
    assert entry.tree
    with pytest.raises(BadInput, match=r"a\.yaml:1: a value cannot be read") as caught:
        entry.value("a.yaml")
    assert caught.value.hint == "Put it in quotes."


def read_values(text: str) -> dict[object, object]:
    entries = read_mapping(text, "a.yaml", "a config")
    return {key: entry.value("a.yaml") for key, entry in entries.items()}


@given(st.text(alphabet="ab:-[]{},&*!|>'\"#%@?<~ \n\t0", max_size=40))
def test_any_text_is_a_document_or_refused_with_the_name_of_the_file(text: str) -> None:
    try:
        read_values(text)
        node = read_node(text, "a.yaml")
        assert node is None or isinstance(format_tree(read_tree(node)), str)
    except BadInput as error:
        assert "a.yaml" in error.message  # noqa: PT017
